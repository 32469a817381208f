"""C11: how many images are enough, by the grid's side N (Figure 4c).

Functions of a sweep's table (`analysis.scaling` says what a row is). The paper gives the two
exponents, but not which accuracy is enough or where: the stricter sense asks for all of them.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics import scaling, text
from compgen_jax.metrics.scaling import UNKNOWN, Curve
from compgen_jax.old_claims import TRAINED, Condition, entry, with_interval

# columns of the table: the searched field, and the axes that a reading or a scheme is of
IMAGES = "task.images"
GRID, COPIES, REGION = "task.grid", "task.stripes.copies", "task.support.region"
SCORES = ("exact", "position", "image")
STATED = ("corner", "ood"), ("none", "unseen")  # of all regions and places, the paper's
KEPT = "value", "ci95", "unless"  # of an exponent, beside a condition
MARGIN = 0.5  # on either side of the paper's exponent
SAME_NUMBER = 1e-9  # relative: a threshold at a measured number of images differs by rounding


class Scheme(NamedTuple):
    """A way to make data sets: its name in words, the paper's exponent, and how often each stripe
    is in one, the value of `COPIES`."""

    title: str
    exponent: int
    copies: int


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
    """Images needed by every seed at every N. Raises ValueError as `analysis.scaling.thresholds`,
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


def needs_images(code: str, rows, wanted, setting: dict | None = None, epochs=()) -> list[dict]:
    """C11: bumps alone need images in proportion to N^3, stripes and bumps in proportion to N.

    A claim for every scheme of the table: as stated, by exact accuracy at the places
    `STATED` (by all that is wanted, where that has none of them); stricter, by every reading that
    is wanted. The exponent and its interval over seeds are `analysis.scaling.exponent`'s; nothing
    is concluded from one that is not identified or not resolved, or whose decoders at the
    thresholds do not draw what they saw (`seen_accuracy`).

    Args:
      code: the name of the decoders' code.  rows: the table.  wanted: `Reading`s.
      setting: of the other axes, where the table has several; see `settings_of`.
      epochs: rows of decoders that were trained for as many epochs, not steps, whatever N and the
        number of images: readings of them are asked for too in the stricter sense.

    Raises ValueError as `thresholds` does.
    """
    return [
        _needs_images(code, rows, wanted, scheme, setting or {}, epochs)
        for scheme in schemes(rows)
        if any(scheme in schemes(rows, reading.region) for reading in wanted)
    ]


def _needs_images(code: str, rows, wanted, name: str, setting: dict, epochs) -> dict:
    scheme = SCHEMES[name]
    wanted = [reading for reading in wanted if name in schemes(rows, reading.region)]
    every = {_asked(each, rows): _measured(rows, each, name, setting) for each in wanted}
    places = [_asked(each, rows) for each in wanted if each.is_stated]
    stated = {place: every[place] for place in places} or every
    more = {
        f"{_asked(each, epochs)}, as many epochs": _measured(epochs, each, name, setting)
        for each in wanted
        if name in schemes(epochs, each.region)
    }
    details = {}
    for asked, found in stated.items():
        seen = "accuracy on seen cells, at the thresholds of the N where it is lowest"
        details[f"{asked}: {seen}"] = found.seen
        details |= {f"{asked}: {title}": _count(found.number[status])
                    for status, title in STATUS_TITLES.items()}  # fmt: skip
    power = "N" if scheme.exponent == 1 else f"N^{scheme.exponent}"
    others = told_apart(setting, settings_of(rows, wanted[0].region))
    return entry(
        "C11",
        code,
        sorted({row["seed"] for row in rows}),
        None,
        figure="Fig 4c",
        statement=f"{scheme.title} need images in proportion to {power}"
        + (f" ({others})" if others else ""),
        as_stated=_conditions(scheme, stated),
        stricter=_conditions(scheme, every | more),
        details=details,
    )


class Measured(NamedTuple):
    """number: an exponent with its interval and counts, and `unless`, why nothing is concluded from
    it, if so.  seen: accuracy on seen cells at the N where it is lowest, with its interval."""

    number: dict
    seen: dict


def _measured(rows, reading: Reading, scheme: str, setting: dict) -> Measured:
    curve = thresholds(rows, reading, scheme, setting)
    number = scaling.exponent(curve)
    seen, grid = _lowest(seen_accuracy(rows, curve, reading, scheme, setting), curve.along_K)
    why = _why_not(number)
    if not why and not seen["value"] >= TRAINED:
        why = (f"not trained: accuracy on seen cells {text.number(seen['value'])} at N = {grid}, "
               f"{TRAINED:g} asked")  # fmt: skip
    return Measured(number | ({"unless": why} if why else {}), seen)


def _lowest(seen_SxK, along_K):
    """Of the N with the lowest mean over seeds: that mean with its interval, and the N."""
    of_grids = [
        (with_interval(column[np.isfinite(column)]), grid)
        for column, grid in zip(seen_SxK.T, along_K, strict=True)
        if np.isfinite(column).any()
    ]
    nowhere = with_interval([np.nan]), None
    return min(of_grids, key=lambda pair: pair[0]["value"], default=nowhere)


def _conditions(scheme: Scheme, measured: dict[str, Measured]) -> dict[str, Condition]:
    found = {}
    for asked, each in measured.items():
        number = {name: value for name, value in each.number.items() if name in KEPT}
        bounds = scheme.exponent - MARGIN, scheme.exponent + MARGIN
        found[asked] = Condition(number, "between", bounds)
    return found


def _asked(reading: Reading, rows) -> str:
    grids = sorted({row[GRID] for row in rows})
    accuracy = f"{reading.score} accuracy {reading.target:g} at {scored_place(reading)}"
    return f"exponent of N ({grids[0]} to {grids[-1]}), {accuracy}"


def _why_not(number: dict) -> str:
    """Why an exponent says nothing, '' where it does."""
    if not np.isfinite(number["value"]):
        bounds = f"{number['above']} above the most images, {number['below']} below the fewest"
        return f"not identified: fewer than two grids have a threshold ({bounds})"
    if not scaling.is_resolved(number):
        return f"not resolved: {number['coarse']} thresholds are known to a factor above 2 only"
    return ""


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


def _count(number: int) -> dict:
    """A count over all seeds, which has no interval."""
    return {"value": number, "ci95": [np.nan, np.nan]}
