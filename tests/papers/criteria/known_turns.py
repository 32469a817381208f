"""Maps from an angle (and an object) to images whose answer is known, and layers whose curve over
the angle is: what the criteria on a gap of angles (C14, K6) must decide rightly.

Each treats seen cells as they are, and those in a gap in its own way.
"""

from functools import partial

import numpy as np

from compgen_jax.metrics import circle
from compgen_jax.metrics.circle import Gap
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.runs.results import scorer
from compgen_jax.runs.run import Run
from compgen_jax.tasks.rotation import GapConfig, Rotation
from tests.papers.criteria.known_maps import SEEDS, jittered
from tests.papers.criteria.matrix import Matrix, letters

ANOTHER = "another object"
BLACK, BLACKER = 1e-2, 1e-4  # what 0 is before a sigmoid
HAZE = 0.13  # of `hazy`, the noise
STEEP = 5.0  # slope of `contrast`, over the amplitude
LAG = 0.5  # of the way from the nearer edge that `lagging` turns


TURNS = {
    "mixture": "the images at the gap's edges, cross-faded by the angle",
    "contrast": "the mixture, dark made darker and light lighter",
    "mixed logits": "the mixture of both edges before a sigmoid",
    "steep logits": "the same, black and white twice as far apart",
    "hazy": "the mixture with some noise, which shows most before a sigmoid",
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
    noise = true.amplitude * np.random.default_rng(0).uniform(size=asked.shape)
    images = {
        "mixture": mixture,
        "hazy": (1 - HAZE) * mixture + HAZE * noise,
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
        "noise": noise,
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

CURVES = {
    "circle": "a circle",
    "chord": "a circle, cut straight across the gap",
    "uneven": "a circle, the gap's middle skipped at one step",
    "dented": "a circle, half way to its centre in the gap",
    "frozen": "a circle that stands still at the gap's nearer edge",
    "scattered": "a circle, in the gap random points",
}
UNITS = 256  # of the layers that have these curves
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


def curves(angles: int) -> dict[str, Run]:
    """Networks that draw the turned object, with one hidden layer: in each seed a random linear map
    of a curve in the plane."""
    task = Rotation(side=16, objects=OBJECTS[:1], angles=angles).make()
    cells = turned(scorer(task), angles, 16)["true"].cells
    (gap,), degrees = circle.gaps(cells.factors, cells.held_out), cells.factors[:, 0].astype(float)
    ring = lambda turns: np.stack([np.cos(np.deg2rad(turns)), np.sin(np.deg2rad(turns))], axis=1)
    (first, last), place, near = degrees[list(gap.edges)], gap.place, gap.place < 0.5
    lagging, rng = np.where(near, LAG * place, 1 - LAG * (1 - place)), np.random.default_rng(0)
    maps, runs = rng.normal(size=(SEEDS, 2, UNITS)), {}
    in_gap = {
        "circle": ring(degrees[gap.cells]),
        "chord": circle.cross_fade(*ring([first, last]), place),
        "uneven": ring(first + (last - first) * lagging),
        "dented": ring(degrees[gap.cells]) * (1 - np.sin(np.pi * place) ** 2 / 2)[:, None],
        "frozen": ring(np.where(near, first, last)),
        "scattered": rng.normal(size=(len(place), 2)),
    }
    for name, points in in_gap.items():
        layer = ring(degrees)
        layer[gap.cells] = points
        asked = cells.factors, cells.held_out, (circle.PERIOD,)
        ratios = [[circle.turning_ratio(layer @ each, *asked)] * 3 for each in maps]
        layers = {"curve.turning_ratio": np.array(ratios)}
        runs[name] = Run.known(range(SEEDS), cells=cells, layers=layers)
    return runs


def _beside_kernels(name, known):
    """Kernels on the angle mix the edges' images too."""
    several = known["several"]
    cells, mixture = several[name].cells, several["mixture"].cells
    kernels = {"interpolator": mixture, "wide_network": mixture}
    return {"net": Run.known(several[name].seeds, cells=cells, **kernels)}


def _single(name, known):
    """One object has no other, so `another object` is asked of several."""
    return {"single": known["single"].get(name, known["several"][name])}


def _matrix(side: int) -> Matrix:
    """On 28 pixels a mixture that is black and white lies near the span as well, and no mixture
    resembles the turned image; on 16 some do. Names that a row lacks depend on the object."""
    steep = ("contrast", "steep logits") if side == 28 else ()
    depends = {"steep logits", "brighter", "contrast"} - {*steep}
    mixtures = ("mixture", "halves", "mixed logits", *steep)
    mixed = letters(TURNS, depends, R=(*mixtures, "hazy"))
    resemble = ("halves", "steep logits") if side == 16 else ()
    # a faint ghost, `half turned`, is within the tolerance
    ghost = ("half turned",)
    return Matrix(
        f"N = {side}",
        TURNS,
        partial(turns, side),
        {
            "C14": mixed,
            "C14.logits": letters(TURNS, depends, R=mixtures),
            "C14.other_objects": mixed,
            "K6": letters(TURNS, ghost, R=("true",), r=resemble),
            "K6.predictors": letters(TURNS, ghost, R=("true",)),
        },
        {
            **dict.fromkeys(("C14", "C14.logits"), _single),
            "C14.other_objects": lambda name, known: {"several": known["several"][name]},
            "K6": _beside_kernels,
            "K6.predictors": _beside_kernels,
        },
    )


def _matrix_of_curves(angles: int) -> Matrix:
    """How far a curve turns does not say how fast it is run through."""
    smooth = letters(CURVES, R=("circle",), r=("chord", "uneven"))
    beside = {"C14.curve": lambda name, known: {"single": known[name]}}
    make = partial(curves, angles)
    return Matrix(f"{angles} angles", CURVES, make, {"C14.curve": smooth}, beside)


MATRICES = (*map(_matrix, (16, 28)), *map(_matrix_of_curves, (144, 360)))
