"""C11: how many images are enough, by the grid's side N (Figure 4c).

Functions of a sweep's table (`metrics.scaling` says what a row is). The paper asks for "the correct
x and y coordinates": enough are so many images that the brightest pixel is the one nearest to the
bump's centre (`exact_accuracy`) at .9 of real-valued positions. A training set of stripes and bumps
has `task.images` images: first the 2N stripes, in an order of the seed's, then bumps. So a set of
more than 2N images has that many bumps beyond all stripes, and one of fewer has no bump and lacks
some stripes.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from compgen_jax.claims import TRAINED, Condition, claim, note
from compgen_jax.config import Config, field_value
from compgen_jax.metrics import scaling, text
from compgen_jax.metrics.scaling import BELOW, REACHED, UNKNOWN, Curve
from compgen_jax.statistics import mean_with_interval

# columns of the table: the searched field, and the axes that a reading or a scheme is of
IMAGES = "task.images"
GRID, COPIES, REGION = "task.grid", "task.stripes.copies", "task.support.region"
COUNTED = "counted"  # a column of our own: what `Count.of` counts
RENDERED, RIGHT = "rendered", "exact_accuracy"
SCORES = {RENDERED: "rendered", RIGHT: "with the right x and y"}
ENOUGH = 0.9  # of real-valued positions
MARGIN = 0.5  # on either side of the paper's exponent
LEAST_GRID = 24  # the smallest of the paper's N
SAME_NUMBER = 1e-9  # relative: a threshold at a measured number of images differs by rounding


class Count(NamedTuple):
    """What is counted in a training set.

    title: in words.  of: number of images, N -> how many there are, None for a set that does not
    tell.  above, below: the bounds of its exponent.
    """

    title: str
    of: Callable
    above: float | None
    below: float | None


class Scheme(NamedTuple):
    """A way to make data sets: its name in words, the paper's exponent of all images, how often
    each stripe is in one (the value of `COPIES`), and what the claim counts."""

    title: str
    exponent: int
    copies: int
    counts: tuple[Count, ...]


def _beyond(images: int, grid: int) -> int | None:
    """The bumps beside all stripes; none counts as one, as its logarithm is taken."""
    return max(images - 2 * grid, 1) if images >= 2 * grid else None


def _dropped(images: int, grid: int) -> int | None:
    return images if images <= 2 * grid else None


EVERY_IMAGE = Count("images", lambda images, grid: images, 3 - MARGIN, 3 + MARGIN)
BEYOND = Count("bumps beyond all 2N stripes", _beyond, None, 1 + MARGIN)
DROPPED = Count("stripes where some are dropped", _dropped, 1 - MARGIN, 1 + MARGIN)
SCHEMES = {
    "bumps": Scheme("bumps alone", 3, 0, (EVERY_IMAGE,)),
    "stripes": Scheme("stripes and bumps", 1, 1, (BEYOND, DROPPED)),
}
STATUS_TITLES = {
    "reached": "thresholds reached",
    "above": "thresholds above the most",
    "below": "thresholds at or below the fewest",
    "unknown": "thresholds unknown",
    "coarse": "thresholds known to a factor above 2 only",
}


class Reading(NamedTuple):
    """What share of points must have the score: `target` of those `where`, by decoders trained
    around `region`."""

    region: str
    where: str
    target: float
    score: str = RENDERED


def completed(rows: list[dict], config: Config) -> list[dict]:
    """The rows with their scheme and region, also where these are no axes of the sweep."""
    return [{name: field_value(config, name) for name in (COPIES, REGION)} | row for row in rows]


def places(region: str) -> tuple[str, ...]:
    """Where decoders trained around a region are scored."""
    return ("unseen", "real") if region == "none" else ("ood", "unseen", "real")


def schemes(rows, region: str | None = None) -> list[str]:
    """Those of the rows, or of a region's rows."""
    copies = {row[COPIES] for row in rows if region in (None, row[REGION])}
    return [name for name, scheme in SCHEMES.items() if scheme.copies in copies]


def settings_of(rows, region: str) -> list[dict]:
    """The values of all other axes among a region's rows, in order; [{}] where there is none, []
    without rows."""
    own = [row for row in rows if row[REGION] == region]
    names = [name for name in (own[0] if own else ()) if name.startswith(("task.", "model.",
             "training.")) and name not in (IMAGES, GRID, COPIES, REGION)]  # fmt: skip
    found = {tuple(row[name] for name in names) for row in own}
    return [dict(zip(names, values, strict=True)) for values in sorted(found)]


def told_apart(setting: dict, settings: list[dict]) -> str:
    """What tells a setting from the others, in words; '' of a single one."""
    differing = [name for name in setting if len({other[name] for other in settings}) > 1]
    words = (f"{name.rpartition('.')[2].replace('_', ' ')} {setting[name]}" for name in differing)
    return ", ".join(words)


def thresholds(rows, reading: Reading, scheme: str, setting: dict, count=EVERY_IMAGE) -> Curve:
    """How many are needed of what is counted, by every seed at every N. Raises ValueError as
    `metrics.scaling.thresholds`, and where the rows have several settings but for this one."""
    fixed = {COPIES: SCHEMES[scheme].copies, REGION: reading.region} | setting
    own = [row for row in rows if all(row[name] == value for name, value in fixed.items())]
    if left := settings_of(own, reading.region)[1:]:
        raise ValueError(f"rows of several settings, such as {left[0]}: state one")
    column = f"{reading.where}.{reading.score}"
    return scaling.thresholds(
        counted(own, count), column, reading.target, field=COUNTED, along=GRID, fixed=fixed
    )


def counted(rows, count: Count) -> list[dict]:
    """The rows that tell, with what is counted."""
    numbers = [count.of(row[IMAGES], row[GRID]) for row in rows]
    return [
        row | {COUNTED: number}
        for row, number in zip(rows, numbers, strict=True)
        if number is not None
    ]


def seen_share(rows, curve: Curve, count: Count) -> np.ndarray:
    """(S, K) share of seen cells that have the curve's score, by seed and grid size, by the
    decoders at the thresholds.

    At a threshold is the smallest number at or above it, and of a threshold that is above all of
    them the largest: decoders that cannot draw what they were shown would say nothing about how
    many images are needed. Stripes alone show no cell, so that numbers without a seen cell are
    passed over. NaN where the threshold is unknown, or none has a seen cell.
    """
    pairs, score = {}, curve.score.rpartition(".")[2]
    for row in counted(rows, count):
        share = row[f"seen.{score}"]
        fits = all(row[name] == value for name, value in curve.fixed.items())
        if fits and row["status"] == "ok" and np.isfinite(share):
            pairs.setdefault((row["seed"], row[GRID]), []).append((row[COUNTED], share))
    shares_SxK = np.full(curve.values_SxK.shape, np.nan)
    for s, seed in enumerate(curve.seeds_S):
        for k, grid in enumerate(curve.along_K):
            if curve.status_SxK[s, k] != UNKNOWN and (seed, grid) in pairs:
                shares_SxK[s, k] = _at(curve.values_SxK[s, k], pairs[seed, grid])
    return shares_SxK


def _at(number: float, pairs) -> float:
    """The share at the smallest number at or above `number`, or else at the largest."""
    pairs = sorted(pairs)
    enough = (pair for pair in pairs if pair[0] >= number * (1 - SAME_NUMBER))
    return next(enough, pairs[-1])[1]


def scored_place(reading: Reading) -> str:
    """Where the reading is scored, and what was held out, in words."""
    if reading.where == "ood":
        return f"the held-out {reading.region}"
    points = {"unseen": "unseen cells", "real": "points between cells"}
    held_out = "" if reading.region == "none" else f", {reading.region} held out"
    return points[reading.where] + held_out


# --- the claim ---------------------------------------------------------------------------------


class Exponent(NamedTuple):
    """An exponent of N by one reading.

    name: of the condition on it.  count: of what.  number: it, with its interval over seeds and, if
    so, why nothing is concluded from it, `undecided_because`.  statuses: how many thresholds have
    each.  seen: share of seen cells with the score at the N where it is lowest, with its interval.
    """

    name: str
    count: Count
    number: dict
    statuses: dict
    seen: dict


def exponents(sweep, scheme: str, readings: list[Reading], table=None) -> list[Exponent]:
    """By these readings, at every setting of a sweep's other axes, over the N from `LEAST_GRID` up;
    over all N, as a preview, where fewer than two are as large.

    The number of stripes is left out where no set of stripes alone reaches the target.
    table: the sweep whose decoders are scored, by default the same; another one's were trained for
    as many epochs, not steps, whatever N and the number of images.
    """
    rows = completed(sweep.rows, sweep.config)
    scored = completed(table.rows, table.config) if table else rows
    grids = sorted({row[GRID] for row in scored})
    large = [grid for grid in grids if grid >= LEAST_GRID]
    preview = ""
    if len(large) > 1:
        grids, scored = large, [row for row in scored if row[GRID] >= LEAST_GRID]
    else:
        preview = f"a preview: N = {grids[0]} to {grids[-1]}, the paper's begin at {LEAST_GRID}"
    found = []
    for reading in readings:
        there = scheme in schemes(scored, reading.region)
        settings = settings_of(rows, reading.region) if there else []
        for setting, count in itertools.product(settings, SCHEMES[scheme].counts):
            words = (
                f"exponent of N ({grids[0]} to {grids[-1]})",
                count.title,
                f"{reading.target:g} {SCORES[reading.score]} at {scored_place(reading)}",
                told_apart(setting, settings),
                "as many epochs" if table else "",
            )
            name = ", ".join(filter(None, words))
            curve = thresholds(scored, reading, scheme, setting, count)
            if count is not DROPPED or (curve.status_SxK == REACHED).any():
                found.append(_exponent(name, scored, reading, curve, count, preview))
    return found


def _exponent(name, rows, reading: Reading, curve: Curve, count: Count, preview: str) -> Exponent:
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
    none_needed = known.size and statuses[BELOW] == known.size and (known == 1).all()
    why = preview
    if count is BEYOND and none_needed:
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
    return Exponent(name, count, number, statuses, seen)


def _judged(found: list[Exponent]):
    for each in found:
        yield Condition(each.name, each.number, each.count.above, each.count.below)


def positions(score: str) -> list[Reading]:
    """The claim's reading, by a score."""
    return [Reading("none", "real", ENOUGH, score)]


def searched(sweep) -> list[Reading]:
    """By the share rendered, at every place and the target that a sweep searched."""
    config = sweep.config
    regions = dict(config.sweep.axes).get(REGION, (config.task.support.region,))
    return [
        Reading(region, where, config.sweep.search.target)
        for region in regions
        for where in scaling.searched_places(region != "none")
    ]


CASES = tuple(
    {"case": scheme.title, "scheme": name, "power": f"N^{scheme.exponent}".removesuffix("^1")}
    for name, scheme in SCHEMES.items()
)
# sweeps of bumps alone towards the paper's network, which is CNN(E, 64, 4)
RUNS = {"": "", "depth 4": "_depth4", "width 64": "_width64", "training time x2": "_steps4800"}
ALONE, BESIDE = CASES
WITH_SETTINGS = [ALONE | {"setting": s, "run": f"data_scaling{run}"} for s, run in RUNS.items()]
WITH_SETTINGS += [BESIDE | {"run": "data_scaling"}]
SCALING = {"figure": "Fig 4c"}


@claim("C11", cases=WITH_SETTINGS, runs={"sweep": "{run}"}, **SCALING)
def images_in_proportion(sweep, scheme):
    """{case} need images in proportion to {power} for the right x and y."""
    found = exponents(sweep, scheme, positions(RIGHT))
    yield from _judged(found)
    for each in found:
        yield note(f"{each.name}: share of seen cells, at the thresholds, at worst", each.seen)
        for status, title in STATUS_TITLES.items():  # counts over all seeds have no interval
            number = {"value": each.statuses[status], "ci95": [np.nan, np.nan]}
            yield note(f"{each.name}: {title}", number)


@claim("C11.rendered", cases=WITH_SETTINGS, runs={"sweep": "{run}"}, **SCALING)
def images_in_proportion_to_render(sweep, scheme):
    """{case} need images in proportion to {power} for bumps that are rendered."""
    yield from _judged(exponents(sweep, scheme, positions(RENDERED)))


@claim("C11.places", cases=CASES, runs={"sweep": "data_scaling"}, **SCALING)
def images_in_proportion_everywhere(sweep, scheme):
    """{case} need images in proportion to {power} wherever decoders are scored."""
    yield from _judged(exponents(sweep, scheme, searched(sweep)))


EPOCHS = {"sweep": "data_scaling", "epochs": "data_scaling_epochs"}


@claim("C11.epochs", cases=CASES, runs=EPOCHS, **SCALING)
def images_in_proportion_with_as_many_epochs(sweep, epochs, scheme):
    """{case} need images in proportion to {power}, also by decoders trained for as many epochs."""
    yield from _judged(exponents(sweep, scheme, positions(RIGHT), epochs))


CLAIMS = (
    images_in_proportion,
    images_in_proportion_to_render,
    images_in_proportion_everywhere,
    images_in_proportion_with_as_many_epochs,
)
