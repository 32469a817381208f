"""C11: how many images are enough, by the grid's side N (Figure 4c).

Functions of a sweep's table (`metrics.scaling` says what a row is). The paper gives the two
exponents, but not which accuracy is enough or where: the stricter reading asks for all of them.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.claims import TRAINED, Claim, Condition, once
from compgen_jax.config import Config, field_value
from compgen_jax.metrics import scaling, text
from compgen_jax.metrics.scaling import UNKNOWN, Curve
from compgen_jax.statistics import mean_with_interval

# columns of the table: the searched field, and the axes that a reading or a scheme is of
IMAGES = "task.images"
GRID, COPIES, REGION = "task.grid", "task.stripes.copies", "task.support.region"
SCORES = ("exact", "position", "image")
STATED = ("corner", "ood"), ("none", "unseen")  # of all regions and places, the paper's
MARGIN = 0.5  # on either side of the paper's exponent
SAME_NUMBER = 1e-9  # relative: a threshold at a measured number of images differs by rounding


class Scheme(NamedTuple):
    """A way to make data sets: its name in words, the paper's exponent, and how often each stripe
    is in one, the value of `COPIES`."""

    title: str
    exponent: int
    copies: int


def completed(rows: list[dict], config: Config) -> list[dict]:
    """The rows with their scheme and region, also where these are no axes of the sweep."""
    return [{name: field_value(config, name) for name in (COPIES, REGION)} | row for row in rows]


SCHEMES = {"bumps": Scheme("bumps alone", 3, 0), "stripes": Scheme("stripes and bumps", 1, 1)}
STATUS_TITLES = {
    "reached": "thresholds reached",
    "above": "thresholds above the most images",
    "below": "thresholds at or below the fewest images",
    "unknown": "thresholds unknown",
    "coarse": "thresholds known to a factor above 2 only",
}


class Reading(NamedTuple):
    """One way of scoring: the accuracy `score` at the points `where`, of decoders trained around
    `region`, must reach `target`."""

    region: str
    where: str
    score: str
    target: float

    @property
    def column(self) -> str:
        return f"{self.where}.{self.score}_accuracy"

    @property
    def is_stated(self) -> bool:
        return self.score == "exact" and (self.region, self.where) in STATED


def readings(region: str, target: float) -> list[Reading]:
    """All there are of decoders trained around a region."""
    places = ("unseen", "real") if region == "none" else ("ood", "unseen", "real")
    return [Reading(region, where, score, target) for score in SCORES for where in places]


def searched(region: str, target: float, scores) -> list[Reading]:
    """Those around whose thresholds a search of these scores puts its numbers of images."""
    places = scaling.searched_places(region != "none")
    return [each for each in readings(region, target)
            if each.where in places and f"{each.score}_accuracy" in scores]  # fmt: skip


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


def thresholds(rows, reading: Reading, scheme: str, setting: dict) -> Curve:
    """Images needed by every seed at every N. Raises ValueError as `metrics.scaling.thresholds`,
    and where the rows have several settings but for this one."""
    fixed = _fixed(reading, scheme, setting)
    own = [row for row in rows if all(row[name] == value for name, value in fixed.items())]
    if left := settings_of(own, reading.region)[1:]:
        raise ValueError(f"rows of several settings, such as {left[0]}: state one")
    return scaling.thresholds(
        rows, reading.column, reading.target, field=IMAGES, along=GRID, fixed=fixed
    )


def _fixed(reading: Reading, scheme: str, setting: dict) -> dict:
    return {COPIES: SCHEMES[scheme].copies, REGION: reading.region} | setting


def seen_accuracy(rows, curve: Curve, reading: Reading, scheme: str, setting=None) -> np.ndarray:
    """(S, K) accuracy on seen cells by the reading's score, by seed and grid size, of the decoders
    at the thresholds.

    At a threshold is the smallest number of images at or above it, and of a threshold that is
    above all of them the largest: decoders that cannot draw what they were shown would say
    nothing about how many images are needed. Stripes alone show no cell, so that numbers without
    a seen cell are passed over. NaN where the threshold is unknown, or none has a seen cell.
    """
    key, wanted = f"seen.{reading.score}_accuracy", _fixed(reading, scheme, setting or {})
    pairs = {}
    for row in rows:
        if row["status"] == "ok" and all(row[name] == value for name, value in wanted.items()):
            if np.isfinite(row[key]):
                pair = row[IMAGES], row[key]
                pairs.setdefault((row["seed"], row[GRID]), []).append(pair)
    found_SxK = np.full(curve.values_SxK.shape, np.nan)
    for s, seed in enumerate(curve.seeds_S):
        for k, grid in enumerate(curve.along_K):
            if curve.status_SxK[s, k] != UNKNOWN and (seed, grid) in pairs:
                found_SxK[s, k] = _at(curve.values_SxK[s, k], pairs[seed, grid])
    return found_SxK


def _at(images: float, pairs) -> float:
    """The accuracy at the smallest number at or above `images`, or else at the largest."""
    pairs = sorted(pairs)
    enough = (pair for pair in pairs if pair[0] >= images * (1 - SAME_NUMBER))
    return next(enough, pairs[-1])[1]


def scored_place(reading: Reading) -> str:
    """Where the reading is scored, and what was held out, in words."""
    if reading.where == "ood":
        return f"the held-out {reading.region}"
    points = {"seen": "seen cells", "unseen": "unseen cells", "real": "points between cells"}
    held_out = "" if reading.region == "none" else f", {reading.region} held out"
    return points[reading.where] + held_out


# --- the claim ---------------------------------------------------------------------------------


class Exponent(NamedTuple):
    """An exponent of N by one reading.

    name: of the condition on it.  number: it, with its interval over seeds and, if so, why nothing
    is concluded from it, `undecided_because`.  counts: of thresholds, by status.  seen: accuracy on
    seen cells at the N where it is lowest, with its interval.  is_stated: see `Reading`.
    """

    name: str
    number: dict
    counts: dict
    seen: dict
    is_stated: bool


def exponents(sweep, scheme: str, table=None) -> list[Exponent]:
    """By every reading that a sweep searched, at every setting of its other axes.

    table: the sweep whose decoders are scored, by default the same; another one's were trained for
    as many epochs, not steps, whatever N and the number of images.
    """
    config, rows = sweep.config, completed(sweep.rows, sweep.config)
    scored = completed(table.rows, table.config) if table else rows
    grids = sorted({row[GRID] for row in scored})
    found, search = [], config.sweep.search
    for region in dict(config.sweep.axes).get(REGION, (config.task.support.region,)):
        settings = settings_of(rows, region) if scheme in schemes(scored, region) else []
        for setting in settings:
            for reading in searched(region, search.target, search.scores):
                words = (
                    f"exponent of N ({grids[0]} to {grids[-1]})",
                    f"{reading.score} accuracy {reading.target:g} at {scored_place(reading)}",
                    told_apart(setting, settings),
                    "as many epochs" if table else "",
                )
                name = ", ".join(filter(None, words))
                found.append(_exponent(name, scored, reading, scheme, setting))
    return found


def _exponent(name: str, rows, reading: Reading, scheme: str, setting: dict) -> Exponent:
    curve = thresholds(rows, reading, scheme, setting)
    counts = scaling.exponent(curve)
    number = {key: counts.pop(key) for key in ("value", "ci95")}
    of_grids = [
        (mean_with_interval(column[np.isfinite(column)]), grid)
        for column, grid in zip(
            seen_accuracy(rows, curve, reading, scheme, setting).T, curve.along_K, strict=True
        )
        if np.isfinite(column).any()
    ]
    nowhere = mean_with_interval([np.nan]), None
    seen, grid = min(of_grids, key=lambda pair: pair[0]["value"], default=nowhere)
    why = ""
    if not np.isfinite(number["value"]):
        bounds = f"{counts['above']} above the most images, {counts['below']} below the fewest"
        why = f"not identified: fewer than two grids have a threshold ({bounds})"
    elif not scaling.is_resolved(counts):
        why = f"not resolved: {counts['coarse']} thresholds are known to a factor above 2 only"
    elif not seen["value"] >= TRAINED:
        accuracy = f"accuracy on seen cells {text.number(seen['value'])} at N = {grid}"
        why = f"not trained: {accuracy}, {TRAINED:g} asked"
    number |= {"undecided_because": why} if why else {}
    return Exponent(name, number, counts, seen, reading.is_stated)


@once
def _of_sweep(evidence) -> list[Exponent]:
    return exponents(evidence.sweep, evidence.scheme)


def _stated(evidence) -> list[Exponent]:
    """At the places that the paper names or, if the sweep searched none of them, everywhere."""
    return [each for each in _of_sweep(evidence) if each.is_stated] or _of_sweep(evidence)


def _every(evidence) -> list[Exponent]:
    if not evidence.has("epochs"):
        return _of_sweep(evidence)
    return _of_sweep(evidence) + exponents(evidence.sweep, evidence.scheme, evidence.epochs)


def _conditions(found: list[Exponent], scheme: str) -> tuple[Condition, ...]:
    stated = SCHEMES[scheme].exponent
    return tuple(
        Condition(each.name, each.number, stated - MARGIN, stated + MARGIN) for each in found
    )


def _details(evidence) -> dict:
    seen = "accuracy on seen cells, at the thresholds of the N where it is lowest"
    details = {}
    for each in _stated(evidence):
        details[f"{each.name}: {seen}"] = each.seen
        for status, title in STATUS_TITLES.items():  # counts over all seeds have no interval
            count = {"value": each.counts[status], "ci95": [np.nan, np.nan]}
            details[f"{each.name}: {title}"] = count
    return details


# As stated, by exact accuracy at the places `STATED`. Stricter, by every score at every place that
# was searched, also of decoders trained for as many epochs. Nothing is concluded from an exponent
# that is not identified or not resolved, or whose decoders at the thresholds do not draw what they
# saw (`seen_accuracy`).
NEEDS_IMAGES = Claim(
    "C11",
    "{title} need images in proportion to {power}",
    figure="Fig 4c",
    each=(
        {"scheme": "bumps", "title": SCHEMES["bumps"].title, "power": "N^3"},
        {"scheme": "stripes", "title": SCHEMES["stripes"].title, "power": "N"},
    ),
    runs={"sweep": "data_scaling", "epochs": "data_scaling_epochs?"},
    code="bump",
    trained=None,
    as_stated=lambda e: _conditions(_stated(e), e.scheme),
    stricter=lambda e: _conditions(_every(e), e.scheme),
    details=_details,
)
CLAIMS = (NEEDS_IMAGES,)
