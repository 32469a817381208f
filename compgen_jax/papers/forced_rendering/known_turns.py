"""Maps from an angle (and an object) to images whose answer is known: what the criteria on a gap of
angles (C14, K6) must decide rightly.

Each draws seen cells as they are, the turned object, and those in a gap in its own way.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from compgen_jax.claims import Matrix
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


class KnownTurn(NamedTuple):
    """render: a gap, results of the true images -> signals (Q, N, N) for its cells.  draws: what,
    in words."""

    render: Callable
    draws: str


def _true(gap: Gap, true: CellResults):
    return true.truths[gap.cells]


def _mixture(gap, true):
    return circle.cross_fade(*true.truths[list(gap.edges)], gap.place)


def _halves(gap, true):
    return circle.cross_fade(*true.truths[list(gap.edges)], np.full(len(gap.cells), 0.5))


def _nearest_edge(gap, true):
    return circle.cross_fade(*true.truths[list(gap.edges)], np.round(gap.place))


def _beyond(gap, true):
    return circle.cross_fade(*true.truths[list(gap.edges)], np.where(gap.place < 0.5, -0.5, 1.5))


def _brighter(gap, true):
    return np.repeat(true.truths[list(gap.edges)].max(axis=0)[None], len(gap.cells), axis=0)


def _contrast(gap, true):
    """As a network that ends in a sigmoid may have it."""
    faded = _mixture(gap, true) / true.amplitude
    low, high = (1 / (1 + np.exp(-STEEP * (end - 0.5))) for end in (0.0, 1.0))
    steep = 1 / (1 + np.exp(-STEEP * (faded - 0.5)))
    return true.amplitude * (steep - low) / (high - low)


def _mixed_logits(gap, true, black=BLACK):
    """A linear mixture before a sigmoid."""
    edges = np.clip(true.truths[list(gap.edges)], black, 1 - black)
    return 1 / (1 + np.exp(-circle.cross_fade(*np.log(edges / (1 - edges)), gap.place)))


def _half_turned(gap, true):
    return 0.6 * true.truths[gap.cells] + 0.4 * _mixture(gap, true)


def _lagging(gap, true):
    path = np.array([gap.edges[0], *gap.cells, gap.edges[1]])
    places = np.array([0, *gap.place, 1])
    wanted = np.where(gap.place < 0.5, LAG * gap.place, 1 - LAG * (1 - gap.place))
    return true.truths[path[np.abs(places[None] - wanted[:, None]).argmin(axis=1)]]


def _blank(gap, true):
    return np.zeros_like(true.truths[gap.cells])


def _noise(gap, true):
    rng = np.random.default_rng(0)
    return true.amplitude * rng.uniform(size=true.truths[gap.cells].shape)


def _best_constant(gap, true):
    return np.repeat(true.truths[~true.held_out].mean(axis=0)[None], len(gap.cells), axis=0)


def _another_object(gap, true):
    angle, label = true.factors[:, 0], true.factors[:, 1]
    others = np.flatnonzero(~true.held_out & (label != gap.label[0]))
    return np.stack([true.truths[others[angle[others] == angle[q]][0]] for q in gap.cells])


TURNS = {
    "mixture": KnownTurn(_mixture, "the images at the gap's edges, cross-faded by the angle"),
    "contrast": KnownTurn(_contrast, "the mixture, dark made darker and light lighter"),
    "mixed logits": KnownTurn(_mixed_logits, "the mixture of both edges before a sigmoid"),
    "steep logits": KnownTurn(
        partial(_mixed_logits, black=BLACKER), "the same, black and white twice as far apart"
    ),
    "halves": KnownTurn(_halves, "half of each of them at every angle"),
    "true": KnownTurn(_true, "the turned object that is asked for"),
    "half turned": KnownTurn(_half_turned, "six tenths of it, and four of the mixture"),
    "lagging": KnownTurn(_lagging, "the object turned half as far from the nearer edge"),
    "nearest edge": KnownTurn(_nearest_edge, "the image at the nearer edge"),
    "beyond": KnownTurn(_beyond, "1.5 of the nearer edge's image less half of the other's"),
    "brighter": KnownTurn(_brighter, "of every pixel the brighter of both edges' images"),
    "best constant": KnownTurn(_best_constant, "the mean of all seen images"),
    ANOTHER: KnownTurn(_another_object, "another object, seen at that angle"),
    "blank": KnownTurn(_blank, "nothing"),
    "noise": KnownTurn(_noise, "independent uniform pixels"),
}


def images(name: str, true: CellResults):
    """(B, N, N) of a map at every cell. ValueError as `circle.gaps`."""
    drawn = np.array(true.truths, np.float64)
    for gap in circle.gaps(true.factors, true.held_out):
        drawn[gap.cells] = TURNS[name].render(gap, true)
    return drawn


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
    names = [name for name in TURNS if name != ANOTHER or true.factors.shape[1] > 1]
    return {
        name: Run.known(
            range(SEEDS), cells=score(jittered(images(name, true), SEEDS, true.amplitude))
        )
        for name in names
    }


def _beside_interpolator(name, known):
    """A kernel on the angle mixes the edges' images too."""
    several = known["several"]
    cells, mixture = several[name].cells, several["mixture"].cells
    return {"net": Run.known(several[name].seeds, cells=cells, interpolator=mixture)}


def _matrix(side: int) -> Matrix:
    """On 28 pixels a mixture that is black and white lies near the span as well, and no mixture
    resembles the turned image; on 16 some do. Names that a row lacks depend on the object."""
    mixtures = ("mixture", "halves", "mixed logits")
    mixtures += ("contrast", "steep logits") * (side == 28)
    depends = "steep logits", "brighter", "contrast"
    mixed = {name: "-" for name in TURNS if name not in depends} | dict.fromkeys(mixtures, "R")
    resemble = ("halves", "steep logits") if side == 16 else ()
    # a faint ghost, `half turned`, is within the tolerance
    turned_rows = {name: "-" for name in TURNS if name != "half turned"} | {"true": "R"}
    return Matrix(
        f"N = {side}",
        {name: one.draws for name, one in TURNS.items()},
        partial(turns, side),
        {
            "C14": mixed,
            "C14.other_objects": mixed,
            "K6": turned_rows | dict.fromkeys(resemble, "r"),
            "K6.predictors": turned_rows,
        },
        {
            # one object has no other: `another object` is asked of several in both rows
            "C14": lambda name, known: {
                "single": known["single"].get(name, known["several"][name])
            },
            "C14.other_objects": lambda name, known: {"several": known["several"][name]},
            "K6": _beside_interpolator,
            "K6.predictors": _beside_interpolator,
        },
    )


MATRICES = tuple(map(_matrix, (16, 28)))
