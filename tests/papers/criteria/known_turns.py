"""Maps from an angle (and an object) to images whose answer is known, and layers whose curve over
the angle is: what the criteria on a gap of angles (C14, K6) must decide rightly.

Each treats seen cells as they are, and those in a gap in its own way.
"""

from functools import cache, partial

import numpy as np
from scipy.special import expit, logit

from compgen_jax.metrics import circle
from compgen_jax.metrics.circle import Gap
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.metrics.layers import Layer, turning_ratio
from compgen_jax.runs.run import Run
from compgen_jax.tasks.rotation import GapConfig, Rotation
from tests.papers.criteria import known_maps
from tests.papers.criteria.known_maps import SEEDS, beside, jittered
from tests.papers.criteria.matrix import Matrix, rows_of, runs_by

ANOTHER = "another-object"
BLACK, BLACKER = 1e-2, 1e-4  # what 0 is before a sigmoid
HAZE = 0.13  # of `hazy`, the noise
STEEP = 5.0  # slope of `contrast`, over the amplitude
LAG = 0.5  # of the way from the nearer edge that `lagging` turns


def drawn(gap: Gap, true: CellResults) -> dict:
    """Signals (Q, N, N) of all maps for the cells of a gap, beside results of the true images."""
    edges, asked = true.truths[list(gap.edges)], true.truths[gap.cells]
    faded = partial(circle.cross_fade, *edges)
    mixture, near = faded(gap.place), gap.place < 0.5
    dark, light = expit(-STEEP / 2), expit(STEEP / 2)
    steep = expit(STEEP * (mixture / true.amplitude - 0.5))
    ends = {black: logit(np.clip(edges, black, 1 - black)) for black in (BLACK, BLACKER)}
    path = np.array([gap.edges[0], *gap.cells, gap.edges[1]])
    wanted = np.where(near, LAG * gap.place, 1 - LAG * (1 - gap.place))
    apart = np.abs(np.array([0, *gap.place, 1])[None] - wanted[:, None])
    noise = true.amplitude * np.random.default_rng(0).uniform(size=asked.shape)
    images = {
        "mixture": mixture,
        "hazy": (1 - HAZE) * mixture + HAZE * noise,
        "contrast": true.amplitude * (steep - dark) / (light - dark),
        "mixed-logits": expit(circle.cross_fade(*ends[BLACK], gap.place)),
        "steep-logits": expit(circle.cross_fade(*ends[BLACKER], gap.place)),
        "halves": faded(0 * gap.place + 0.5),
        "true": asked,
        "half-turned": 0.6 * asked + 0.4 * mixture,
        "lagging": true.truths[path[apart.argmin(axis=1)]],
        "nearest-edge": faded(np.round(gap.place)),
        "beyond": faded(np.where(near, -0.5, 1.5)),
        "brighter": 0 * asked + edges.max(axis=0),
        "best-constant": 0 * asked + true.truths[~true.held_out].mean(axis=0),
        "blank": 0 * asked,
        "noise": noise,
    }
    if true.factors.shape[1] > 1:
        angle, label = true.factors.T
        others = np.flatnonzero(~true.held_out & (label != gap.label[0]))
        at = [others[angle[others] == angle[cell]][0] for cell in gap.cells]
        images[ANOTHER] = true.truths[at]
    return images


# --- what claims must say of them --------------------------------------------------------------

UNITS = 256  # of the layers that have these curves
OBJECTS = 4, 7  # digits: the first has the gap, and is the one object of the other task
ANGLES = 144  # with fewer, the interval of a share is too wide for K6


@cache
def scorer_of(objects=OBJECTS, angles: int = ANGLES, side: int = 16):
    """`known_maps.scorer_of` turned objects, of which the first has a gap."""
    gap = GapConfig(of=objects[:1] if len(objects) > 1 else ())
    return known_maps.scorer_of(Rotation(side=side, objects=objects, angles=angles, gap=gap))


def turned(*task) -> dict[str, Run]:
    """All known maps of the objects of `scorer_of`, by name."""
    score, true = scorer_of(*task)
    images = {}
    for gap in circle.gaps(true.factors, true.held_out):
        for name, signals in drawn(gap, true).items():
            images.setdefault(name, np.array(true.truths, np.float64))[gap.cells] = signals
    return {
        name: Run.known(range(SEEDS), cells=score(jittered(signals, SEEDS, true.amplitude)))
        for name, signals in images.items()
    }


def turns(side: int) -> dict[str, dict]:
    """Known maps of one turned digit, and of two of which the first has a gap."""
    return {
        "single": turned(OBJECTS[:1], ANGLES, side),
        "several": turned(OBJECTS, ANGLES, side),
    }


def curves(angles: int) -> dict[str, Run]:
    """Networks that draw the turned object, with one hidden layer: in each seed a random linear map
    of a curve in the plane."""
    cells = turned(OBJECTS[:1], angles)["true"].cells
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
        of_maps = [
            Layer(layer @ each, cells.factors, cells.held_out, periods=(circle.PERIOD,))
            for each in maps
        ]
        ratios = {"curve.turning_ratio": np.array([[turning_ratio(of)] * 3 for of in of_maps])}
        runs[name] = Run.known(range(SEEDS), cells=cells, layers=ratios)
    return runs


def beside_kernels(name, known):
    """Kernels on the angle mix the edges' images too."""
    several = known["several"]
    return {"net": beside(several[name].cells, several["mixture"].cells)}


BESIDE = {
    # one object has no other, so `another-object` is asked of several
    **dict.fromkeys(
        ("C14", "C14.logits"),
        lambda name, known: {"single": known["single"].get(name, known["several"][name])},
    ),
    "C14.other_objects": lambda name, known: {"several": known["several"][name]},
    **dict.fromkeys(("K6", "K6.predictors"), beside_kernels),
    "C14.curve": runs_by(single=""),
}
# On 28 pixels a mixture that is black and white lies near the span as well, and no mixture
# resembles the turned image; on 16 some do. What is not tried depends on the object, or is within
# the tolerance: a faint ghost, half-turned.
ON_16_PIXELS = """
answer         C14 C14.logits C14.other_objects K6 K6.predictors
mixture        R   R          R                 -  -
mixed-logits   R   R          R                 -  -
hazy           R   -          R                 -  -
halves         R   R          R                 r  -
true           -   -          -                 R  R
half-turned    -   -          -                 .  .
lagging        -   -          -                 -  -
nearest-edge   -   -          -                 -  -
beyond         -   -          -                 -  -
best-constant  -   -          -                 -  -
another-object -   -          -                 -  -
blank          -   -          -                 -  -
noise          -   -          -                 -  -
contrast       .   .          .                 -  -
steep-logits   .   .          .                 r  -
brighter       .   .          .                 -  -
"""
ON_28_PIXELS = """
answer         C14 C14.logits C14.other_objects K6 K6.predictors
mixture        R   R          R                 -  -
contrast       R   R          R                 -  -
mixed-logits   R   R          R                 -  -
steep-logits   R   R          R                 -  -
hazy           R   -          R                 -  -
halves         R   R          R                 -  -
true           -   -          -                 R  R
half-turned    -   -          -                 .  .
lagging        -   -          -                 -  -
nearest-edge   -   -          -                 -  -
beyond         -   -          -                 -  -
best-constant  -   -          -                 -  -
another-object -   -          -                 -  -
blank          -   -          -                 -  -
noise          -   -          -                 -  -
brighter       .   .          .                 -  -
"""
# how far a curve turns does not say how fast it is run through
ON_CURVES = """
answer    C14.curve
circle    R
chord     r
uneven    r
dented    -
frozen    -
scattered -
"""
MATRICES = {
    "turned digits of 16 pixels": Matrix(partial(turns, 16), rows_of(ON_16_PIXELS), BESIDE),
    "turned digits of 28 pixels": Matrix(partial(turns, 28), rows_of(ON_28_PIXELS), BESIDE),
    "curves of 144 angles": Matrix(partial(curves, 144), rows_of(ON_CURVES), BESIDE),
    "curves of 360 angles": Matrix(partial(curves, 360), rows_of(ON_CURVES), BESIDE),
}
