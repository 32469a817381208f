"""Maps from an angle (and an object) to images whose answer is known: what the criteria on a gap of
angles (C14, K6) must decide rightly.

Each draws seen cells as they are, the turned object, and those in a gap in its own way.
"""

from functools import partial

import numpy as np

from compgen_jax.claims import Matrix, letters
from compgen_jax.metrics import circle
from compgen_jax.metrics.circle import Gap
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering.known import SEEDS, jittered
from compgen_jax.runs.results import scorer
from compgen_jax.runs.run import Run
from compgen_jax.tasks.rotation import GapConfig, Rotation

ANOTHER = "another object"
BLACK, BLACKER = 1e-2, 1e-4  # what 0 is before a sigmoid
STEEP = 5.0  # slope of `contrast`, over the amplitude
LAG = 0.5  # of the way from the nearer edge that `lagging` turns


TURNS = {
    "mixture": "the images at the gap's edges, cross-faded by the angle",
    "contrast": "the mixture, dark made darker and light lighter",
    "mixed logits": "the mixture of both edges before a sigmoid",
    "steep logits": "the same, black and white twice as far apart",
    "halves": "half of each of them at every angle",
    "true": "the turned object that is asked for",
    "half turned": "six tenths of it, and four of the mixture",
    "lagging": "the object turned half as far from the nearer edge",
    "nearest edge": "the image at the nearer edge",
    "beyond": "1.5 of the nearer edge's image less half of the other's",
    "brighter": "of every pixel the brighter of both edges' images",
    "best constant": "the mean of all seen images",
    ANOTHER: "another object, seen at that angle",
    "blank": "nothing",
    "noise": "independent uniform pixels",
}


def drawn(gap: Gap, true: CellResults) -> dict:
    """Signals (Q, N, N) of all maps for the cells of a gap, beside results of the true images."""
    edges, asked = true.truths[list(gap.edges)], true.truths[gap.cells]
    faded = partial(circle.cross_fade, *edges)
    mixture, near = faded(gap.place), gap.place < 0.5
    sigmoid = lambda images: 1 / (1 + np.exp(-images))
    dark, light = (sigmoid(STEEP * (end - 0.5)) for end in (0.0, 1.0))
    steep = sigmoid(STEEP * (mixture / true.amplitude - 0.5))

    def mixed_logits(black):
        ends = np.clip(edges, black, 1 - black)
        return sigmoid(circle.cross_fade(*np.log(ends / (1 - ends)), gap.place))

    path = np.array([gap.edges[0], *gap.cells, gap.edges[1]])
    wanted = np.where(near, LAG * gap.place, 1 - LAG * (1 - gap.place))
    apart = np.abs(np.array([0, *gap.place, 1])[None] - wanted[:, None])
    images = {
        "mixture": mixture,
        "contrast": true.amplitude * (steep - dark) / (light - dark),
        "mixed logits": mixed_logits(BLACK),
        "steep logits": mixed_logits(BLACKER),
        "halves": faded(np.full(len(asked), 0.5)),
        "true": asked,
        "half turned": 0.6 * asked + 0.4 * mixture,
        "lagging": true.truths[path[apart.argmin(axis=1)]],
        "nearest edge": faded(np.round(gap.place)),
        "beyond": faded(np.where(near, -0.5, 1.5)),
        "brighter": np.repeat(edges.max(axis=0)[None], len(asked), axis=0),
        "best constant": np.repeat(true.truths[~true.held_out].mean(axis=0)[None], len(asked), 0),
        "blank": np.zeros_like(asked),
        "noise": true.amplitude * np.random.default_rng(0).uniform(size=asked.shape),
    }
    if true.factors.shape[1] > 1:
        angle, label = true.factors.T
        others = np.flatnonzero(~true.held_out & (label != gap.label[0]))
        at = [others[angle[others] == angle[cell]][0] for cell in gap.cells]
        images[ANOTHER] = true.truths[at]
    return images


def images(true: CellResults) -> dict:
    """(B, N, N) of every map at every cell, by name. ValueError as `circle.gaps`."""
    found = {}
    for gap in circle.gaps(true.factors, true.held_out):
        for name, signals in drawn(gap, true).items():
            found.setdefault(name, np.array(true.truths, np.float64))[gap.cells] = signals
    return found


# --- what claims must say of them --------------------------------------------------------------

OBJECTS = 4, 7  # digits: the first has the gap, and is the one object of the other task
ANGLES = 144  # with fewer, the interval of a share is too wide for K6


def turns(side: int) -> dict[str, dict]:
    """Known maps of one turned digit, `single`, and of two of which the first has a gap,
    `several`."""
    known = {}
    for name, objects, gap in (("single", OBJECTS[:1], {}), ("several", OBJECTS, {"of": (4,)})):
        task = Rotation(side=side, objects=objects, angles=ANGLES, gap=GapConfig(**gap)).make()
        known[name] = turned(scorer(task), ANGLES * len(objects), side)
    return known


def turned(score, cells: int, side: int) -> dict[str, Run]:
    """All known maps at the cells of a task, by name; `another object` where there are several.

    score: signals (T, B, N, N) -> CellResults, as the task scores.  cells: B.  side: N.
    ValueError as `circle.gaps`.
    """
    true = score(np.zeros((1, cells, side, side), np.float32))
    return {
        name: Run.known(range(SEEDS), cells=score(jittered(signals, SEEDS, true.amplitude)))
        for name, signals in images(true).items()
    }


def _beside_kernels(name, known):
    """Kernels on the angle mix the edges' images too."""
    several = known["several"]
    cells, mixture = several[name].cells, several["mixture"].cells
    kernels = {"interpolator": mixture, "wide_network": mixture}
    return {"net": Run.known(several[name].seeds, cells=cells, **kernels)}


def _matrix(side: int) -> Matrix:
    """On 28 pixels a mixture that is black and white lies near the span as well, and no mixture
    resembles the turned image; on 16 some do. Names that a row lacks depend on the object."""
    steep = ("contrast", "steep logits") if side == 28 else ()
    depends = {"steep logits", "brighter", "contrast"} - {*steep}
    mixed = letters(TURNS, depends, R=("mixture", "halves", "mixed logits", *steep))
    resemble = ("halves", "steep logits") if side == 16 else ()
    # a faint ghost, `half turned`, is within the tolerance
    ghost = ("half turned",)
    return Matrix(
        f"N = {side}",
        TURNS,
        partial(turns, side),
        {
            "C14": mixed,
            "C14.other_objects": mixed,
            "K6": letters(TURNS, ghost, R=("true",), r=resemble),
            "K6.predictors": letters(TURNS, ghost, R=("true",)),
        },
        {
            # one object has no other: `another object` is asked of several in both rows
            "C14": lambda name, known: {
                "single": known["single"].get(name, known["several"][name])
            },
            "C14.other_objects": lambda name, known: {"several": known["several"][name]},
            "K6": _beside_kernels,
            "K6.predictors": _beside_kernels,
        },
    )


MATRICES = tuple(map(_matrix, (16, 28)))
