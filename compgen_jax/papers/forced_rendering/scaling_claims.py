"""C11: how many images are enough, by the grid's side N (Figure 4c). Functions of a sweep's table
(`metrics.scaling` says what a row is)."""

from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pandas as pd

from compgen_jax.claims import TRAINED, Condition, claim, note
from compgen_jax.config import Config
from compgen_jax.metrics import scaling, text
from compgen_jax.metrics.scaling import BELOW, REACHED, UNKNOWN, Curve
from compgen_jax.statistics import mean_with_interval

# The paper asks for "the correct x and y coordinates": enough are so many images that the brightest
# pixel is the one nearest to the bump's centre (`exact_accuracy`) at .9 of real-valued positions. A
# training set of stripes and bumps has `task.images` images: first the 2N stripes, in an order of
# the seed's, then bumps. So a set of more than 2N images has that many bumps beyond all stripes,
# and one of fewer has no bump and lacks some stripes.

# columns of the table: the searched field, and the axes that a reading or a scheme is of
IMAGES = "task.images"
GRID, COPIES, REGION = "task.grid", "task.stripes.copies", "task.support.region"
COUNTED = "counted"  # a column of our own
RENDERED, RIGHT = "rendered", "exact_accuracy"
SCORES = {RENDERED: "rendered", RIGHT: "with the right x and y"}
ENOUGH = 0.9  # of real-valued positions
LEAST_GRID = 24  # the smallest of the paper's N
SAME_NUMBER = 1e-9  # relative: a threshold at a measured number of images differs by rounding


class Count(NamedTuple):
    """What is counted in a training set, in words, and the bounds of its exponent: the paper's with
    a margin of .5."""

    title: str
    above: float | None
    below: float | None


class Scheme(NamedTuple):
    """A way to make data sets: the paper's exponent of all images, how often each stripe is in one
    (the value of `COPIES`), and what the claim counts."""

    title: str
    exponent: int
    copies: int
    counts: tuple[Count, ...]


EVERY_IMAGE = Count("images", 2.5, 3.5)
BEYOND = Count("bumps beyond all 2N stripes", None, 1.5)
DROPPED = Count("stripes where some are dropped", 0.5, 1.5)
SCHEMES = {
    "bumps": Scheme("bumps alone", 3, 0, (EVERY_IMAGE,)),
    "stripes": Scheme("stripes and bumps", 1, 1, (BEYOND, DROPPED)),
}


class Reading(NamedTuple):
    """The share `target` of points `where` must have the score, by decoders around `region`."""

    region: str
    where: str
    target: float
    score: str = RENDERED

    @property
    def points(self) -> str:
        if self.where == "ood":
            return f"the held-out {self.region}"
        points = {"unseen": "unseen cells", "real": "points between cells"}[self.where]
        return points if self.region == "none" else f"{points}, {self.region} held out"


def completed(rows: list[dict], config: Config) -> list[dict]:
    """The rows with their scheme and region, which need not be axes of the sweep."""
    return [{name: attrgetter(name)(config) for name in (COPIES, REGION)} | row for row in rows]


def schemes(rows, region: str) -> list[str]:
    copies = {row[COPIES] for row in rows if row[REGION] == region}
    return [name for name, scheme in SCHEMES.items() if scheme.copies in copies]


def thresholds(rows, reading: Reading, scheme: str, count=EVERY_IMAGE) -> Curve:
    """How many are needed of what is counted; as `metrics.scaling.thresholds`."""
    fixed = {COPIES: SCHEMES[scheme].copies, REGION: reading.region}
    column = f"{reading.where}.{reading.score}"
    return scaling.thresholds(
        counted(rows, count), column, reading.target, field=COUNTED, along=GRID, fixed=fixed
    )


def counted(rows, count: Count) -> list[dict]:
    """The rows that tell, with what is counted. No bump counts as one, as logarithms are taken."""
    numbered = []
    for row in rows:
        images, stripes = row[IMAGES], 2 * row[GRID]
        number = max(images - stripes, 1) if count is BEYOND else images
        if not (count is BEYOND and images < stripes or count is DROPPED and images > stripes):
            numbered.append(row | {COUNTED: number})
    return numbered


def seen_share(rows, curve: Curve, count: Count) -> np.ndarray:
    """(S, K) share of seen cells that have the curve's score, by seed and grid size, at the
    smallest number at or above the threshold, or else the largest; NaN where either is unknown."""
    column = f"seen.{curve.score.rpartition('.')[2]}"
    table, shares_SxK = pd.DataFrame(counted(rows, count)), np.full(curve.values_SxK.shape, np.nan)
    fits = (table[list(curve.fixed)] == pd.Series(curve.fixed)).all(axis=1)
    table = table[fits & (table["status"] == "ok")].dropna(subset=column)
    for (seed, grid), trials in table.sort_values([COUNTED, column]).groupby(["seed", GRID]):
        s, k = np.searchsorted(curve.seeds_S, seed), np.searchsorted(curve.along_K, grid)
        if curve.status_SxK[s, k] != UNKNOWN:
            enough = trials[COUNTED].searchsorted(curve.values_SxK[s, k] * (1 - SAME_NUMBER))
            shares_SxK[s, k] = trials[column].iloc[min(enough, len(trials) - 1)]
    return shares_SxK


# --- the claim ---------------------------------------------------------------------------------


def conditions(sweep, scheme: str, readings: list[Reading], table=None):
    """On the exponents of N by these readings, over the N from `LEAST_GRID` up, or, as a preview,
    over all N. `table`: a sweep of as many epochs, not steps, that is scored instead."""
    table = table or sweep
    rows, preview = completed(table.rows, table.config), ""
    grids = sorted({row[GRID] for row in rows})
    large = [grid for grid in grids if grid >= LEAST_GRID]
    if len(large) > 1:
        grids, rows = large, [row for row in rows if row[GRID] >= LEAST_GRID]
    else:
        preview = f"a preview: N = {grids[0]} to {grids[-1]}, the paper's begin at {LEAST_GRID}"
    for reading in readings:
        if scheme not in schemes(rows, reading.region):
            continue
        for count in SCHEMES[scheme].counts:
            words = [
                f"exponent of N ({grids[0]} to {grids[-1]})",
                count.title,
                f"{reading.target:g} {SCORES[reading.score]} at {reading.points}",
            ]
            name = ", ".join(words if table is sweep else [*words, "as many epochs"])
            curve = thresholds(rows, reading, scheme, count)
            if count is not DROPPED or (curve.status_SxK == REACHED).any():
                yield from exponent(name, rows, reading, curve, count, preview)


def exponent(name, rows, reading: Reading, curve: Curve, count: Count, preview: str):
    """The condition on one, and the share of seen cells at the N where it is lowest."""
    statuses = scaling.exponent(curve)
    number = {key: statuses.pop(key) for key in ("value", "ci95")}
    of_grids = [
        (mean_with_interval(column[np.isfinite(column)]), grid)
        for column, grid in zip(seen_share(rows, curve, count).T, curve.along_K, strict=True)
        if np.isfinite(column).any()
    ]
    nowhere = mean_with_interval([np.nan]), None
    seen, grid = min(of_grids, key=lambda pair: pair[0]["value"], default=nowhere)
    known = curve.values_SxK[curve.status_SxK != UNKNOWN]
    why = preview
    if count is BEYOND and known.size and statuses[BELOW] == known.size and (known == 1).all():
        number = {"value": 0.0, "ci95": [0.0, 0.0]}  # no bump, whatever N
    elif not np.isfinite(number["value"]):
        bounds = f"{statuses['above']} above the most, {statuses['below']} below the fewest"
        why = why or f"not identified: fewer than two grids have a threshold ({bounds})"
    elif not scaling.is_resolved(statuses):
        why = why or f"not resolved: {statuses['coarse']} thresholds are known to a factor above 2"
    # without a seen cell in any set, only stripes can have been enough
    if seen["value"] < TRAINED or (count is EVERY_IMAGE and np.isnan(seen["value"])):
        share = f"{text.number(seen['value'])} at N = {grid}, {TRAINED:g} asked"
        why = why or f"not trained: share of seen cells {SCORES[reading.score]} {share}"
    number |= {"undecided_because": why} if why else {}
    yield Condition(name, number, count.above, count.below)
    yield note(f"{name}: share of seen cells, at the thresholds, at worst", seen)


def searched(sweep) -> list[Reading]:
    config = sweep.config
    regions = dict(config.sweep.axes).get(REGION, (config.task.support.region,))
    return [
        Reading(region, where, config.sweep.search.target)
        for region in regions
        for where in scaling.SEARCHED[region != "none"]
    ]


ALONE = {"case": "bumps alone", "scheme": "bumps", "power": "N^3", "run": "data_scaling"}
BESIDE = {"case": "stripes and bumps", "scheme": "stripes", "power": "N", "run": "data_scaling"}
# sweeps of bumps alone towards the paper's network, which is CNN(E, 64, 4)
OF_SETTINGS = (
    ALONE,
    ALONE | {"setting": "depth 4", "run": "data_scaling_depth4"},
    ALONE | {"setting": "width 64", "run": "data_scaling_width64"},
    ALONE | {"setting": "training time x2", "run": "data_scaling_steps4800"},
    BESIDE,
)


@claim(
    "C11", figure="Fig 4c", cases=OF_SETTINGS, runs={"sweep": "{run}"}, network="ours", after=True
)
def images_in_proportion(sweep, scheme, score=RIGHT, epochs=None, everywhere=False):
    """{case} need images in proportion to {power} for the right x and y."""
    readings = searched(sweep) if everywhere else [Reading("none", "real", ENOUGH, score)]
    yield from conditions(sweep, scheme, readings, epochs)


CLAIMS = (
    images_in_proportion,
    images_in_proportion.variant(
        "C11.rendered",
        "{case} need images in proportion to {power} for bumps that are rendered",
        score=RENDERED,
    ),
    images_in_proportion.variant(
        "C11.places",
        "{case} need images in proportion to {power} wherever decoders are scored",
        cases=[ALONE, BESIDE],
        everywhere=True,
    ),
    images_in_proportion.variant(
        "C11.epochs",
        "{case} need images in proportion to {power}, also by decoders trained for as many epochs",
        runs={"sweep": "data_scaling", "epochs": "data_scaling_epochs"},
        cases=(ALONE, BESIDE),
    ),
)
