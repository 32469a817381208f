"""At which value of a setting does a score cross a target, and how does that value grow? (Figure
4c)

A table is a list of dicts, one per trial: the sweep's axes by their names, `seed`, the searched
field, `status` ('ok' or 'failed') and scores.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from compgen_jax.metrics.censored import censored_slopes
from compgen_jax.statistics import jackknife_interval

REACHED, ABOVE, BELOW, UNKNOWN = "reached", "above", "below", "unknown"
TOLERANCE = 1e-6  # accuracies are single-precision shares: 95 of 100 comes out below 0.95
COARSE, COARSE_SHARE = 2.0, 0.1
# where a search looks for its target, with held-out points and without
SEARCHED = {True: ("ood",), False: ("unseen", "real")}


class Threshold(NamedTuple):
    """The value that is needed: 'reached'; more than it ('above', not reached by the largest); at
    most it ('below', reached by the smallest); or 'unknown', NaN. `bracket`: the values on either
    side of the crossing, if 'reached'."""

    value: float
    status: str
    bracket: tuple[float, float] | None = None


class Curve(NamedTuple):
    """Thresholds of S seeds at K values of the axis `along`, and `fixed` ones of the others;
    factor_SxK: between the values on either side of a reached one."""

    score: str
    target: float
    along: str | None
    fixed: dict
    along_K: np.ndarray
    seeds_S: np.ndarray
    values_SxK: np.ndarray
    status_SxK: np.ndarray
    factor_SxK: np.ndarray


def threshold(values, scores, target: float) -> Threshold:
    """The value at which a rising score reaches the target. values (positive), scores: (P,), in any
    order; scores that are finite are made non-decreasing by isotonic regression, and the crossing
    is interpolated in log value."""
    values_P, scores_P = np.asarray(values, np.float64), np.asarray(scores, np.float64)
    # sorted, so that rounding does not depend on the order of the points
    order = np.lexsort((scores_P, values_P))
    order = order[np.isfinite(scores_P[order])]
    values_M, index_P, counts_M = np.unique(
        values_P[order], return_inverse=True, return_counts=True
    )
    if values_M.size == 0:
        return Threshold(math.nan, UNKNOWN)
    from scipy.optimize import isotonic_regression  # a while to import

    fit_M = isotonic_regression(
        np.bincount(index_P, scores_P[order]) / counts_M, weights=counts_M
    ).x
    first = int(np.searchsorted(fit_M, target - TOLERANCE))  # that reaches the target
    if first == 0:
        return Threshold(float(values_M[0]), BELOW)
    if first == values_M.size:
        return Threshold(float(values_M[-1]), ABOVE)
    around = slice(first - 1, first + 1)
    (lower, upper), (low, high) = np.log(values_M[around]), fit_M[around]
    share = min((target - low) / (high - low), 1.0)  # above 1 only by the tolerance
    value = float(np.exp(lower + share * (upper - lower)))
    return Threshold(value, REACHED, tuple(values_M[around].tolist()))


def refinement(
    values, scores, target: float, count: int, whole: bool = True, allowed: Callable = bool
) -> list:
    """`count` values to measure next, ascending, inside the bracket, spaced geometrically; if
    `whole`, the nearest integers that are `allowed` and new. Empty without a bracket."""
    ends = threshold(values, scores, target).bracket
    if ends is None:
        return []
    wanted = np.geomspace(*ends, count + 2)[1:-1]
    if not whole:
        return [float(value) for value in wanted if value not in values and allowed(float(value))]
    free = np.setdiff1d(np.arange(ends[0] + 1, ends[1]), np.asarray(values))
    chosen = []
    for value in wanted:
        nearest = free[np.argsort(np.abs(np.log(free / value)), kind="stable")]
        chosen += itertools.islice(filter(allowed, map(int, nearest)), 1)
        free = np.setdiff1d(free, chosen)
    return sorted(chosen)


def thresholds(
    rows, score: str, target: float, *, field: str, along: str | None = None, fixed=None
) -> Curve:
    """Thresholds of every seed at every value of the axis `along`, in the rows whose other axes
    have the `fixed` values. `score` and `field`, the searched one, are columns. ValueError if no
    row remains, or several values of another axis."""
    fixed = fixed or {}
    rows = [row for row in rows if all(row[name] == value for name, value in fixed.items())]
    if not rows:
        raise ValueError(f"the table has no rows of {fixed}")
    for axis in list(rows[0])[: list(rows[0]).index("seed")]:  # the axes' columns come first
        if axis != along and len({row[axis] for row in rows}) > 1:
            raise ValueError(f"the table mixes several values of {axis}: state one")
    points: dict[Any, list] = {}
    for row in rows:
        value = row[score] if row["status"] == "ok" else math.nan
        trial = row["seed"], row[along] if along else 0
        points.setdefault(trial, []).append((row[field], value))
    seeds_S, along_K = map(np.unique, zip(*points, strict=True))
    values_SxK, factor_SxK = np.full((2, seeds_S.size, along_K.size), np.nan)
    status_SxK = np.full(values_SxK.shape, UNKNOWN)
    for (seed, coordinate), pairs in points.items():
        cell = np.searchsorted(seeds_S, seed), np.searchsorted(along_K, coordinate)
        values_SxK[cell], status_SxK[cell], ends = threshold(*zip(*pairs, strict=True), target)
        if ends:
            factor_SxK[cell] = ends[1] / ends[0]
    return Curve(score, target, along, fixed, along_K, seeds_S, values_SxK, status_SxK, factor_SxK)


def exponent(curve: Curve) -> dict:
    """Slope of log threshold on the log of the axis' value: 'value' and 'ci95', by jackknife over
    seeds, NaN where fewer than two values have a reached threshold; counts of the thresholds by
    status and of 'coarse' ones, known to a factor above `COARSE`."""
    count, status_SxK = curve.seeds_S.size, curve.status_SxK
    counts_RxS = np.concatenate([np.ones((1, count)), 1 - np.eye(count)])  # all, all but one
    reached_RxK = counts_RxS @ (status_SxK == REACHED).astype(np.float64) > 0
    identified_R = reached_RxK.sum(axis=1) >= 2
    slopes_R = np.full(1 + count, np.nan)
    if identified_R.any():
        seed_P, along_P = np.nonzero(status_SxK != UNKNOWN)
        known_P = status_SxK[seed_P, along_P]
        slopes_R[identified_R] = censored_slopes(
            np.log(curve.along_K[along_P]),
            np.log(curve.values_SxK[seed_P, along_P]),
            (known_P == ABOVE).astype(int) - (known_P == BELOW),
            counts_RxS[identified_R][:, seed_P],
        )
    value, *without = slopes_R.tolist()
    interval = jackknife_interval(value, without)
    statuses = {name: int((status_SxK == name).sum()) for name in (REACHED, ABOVE, BELOW, UNKNOWN)}
    coarse = int((curve.factor_SxK > COARSE).sum())
    return {"value": value, "ci95": interval.tolist()} | statuses | {"coarse": coarse}


def is_resolved(number: dict) -> bool:
    """Whether at most `COARSE_SHARE` of an `exponent`'s thresholds are coarse."""
    return number["coarse"] <= COARSE_SHARE * number[REACHED]
