"""How many training images a decoder needs, as a function of the grid size N (Figure 4c).

The paper says N^3 for bumps only and N with stripes, but not which accuracy counts as enough, by
which pixel tolerance or where. A `Reading` is one such choice, and every reading is computed from
one table: a list of dicts, one per trained trial, with keys `grid`, `scheme`, `region`, `share`,
`learning_rate`, `weight_decay`, `n_data`, `seed`, `status` ('ok' or 'failed') and accuracies such
as 'ood.exact_accuracy'. Counts of images are positive integers. NumPy only.
"""

import math
from typing import NamedTuple

import numpy as np

from compgen_jax.analysis.censored import censored_slopes
from compgen_jax.analysis.statistics import bootstrap_interval

REACHED, ABOVE, BELOW, UNKNOWN = "reached", "above", "below", "unknown"
PLACES = ("seen", "unseen", "ood", "real")
SCORES = ("exact", "position", "image")
TOLERANCE = 1e-6  # accuracies are single-precision shares: 95 of 100 comes out below 0.95
COARSE, COARSE_SHARE = 2.0, 0.1
UNIDENTIFIED = 0.05  # share of resamples without an exponent that an interval may leave out


class Reading(NamedTuple):
    """One way of scoring: the accuracy `score` ('exact', 'position' or 'image') at the points
    `where`, of decoders trained around `region`, must reach `target`, in (0, 1]."""

    region: str
    where: str
    score: str
    target: float


class Threshold(NamedTuple):
    """Images needed. `status` says how to read `value`: 'reached'; 'above', more than value (not
    reached by the largest number); 'below', at most value (reached by the smallest); 'unknown',
    NaN (no finite accuracies)."""

    value: float
    status: str


class Curve(NamedTuple):
    """Thresholds of S seeds at K grid sizes for one scheme and reading.

    grids_K and seeds_S ascending ints; values_SxK images; status_SxK as in `Threshold`;
    factor_SxK, of reached ones, between the numbers of images on either side (see `bracket`).
    """

    scheme: str
    reading: Reading
    grids_K: np.ndarray
    seeds_S: np.ndarray
    values_SxK: np.ndarray
    status_SxK: np.ndarray
    factor_SxK: np.ndarray


def isotonic(values_M, weights_M):
    """(M,) non-decreasing values nearest to these by weighted least squares.

    Pool adjacent violators (Ayer et al. 1955). Weights positive.
    """
    blocks = []  # [mean, weight, length]
    for value, weight in zip(values_M, weights_M, strict=True):
        blocks.append([float(value), float(weight), 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, weight, length = blocks.pop()
            total = blocks[-1][1] + weight
            pooled = (blocks[-1][0] * blocks[-1][1] + mean * weight) / total
            blocks[-1] = [pooled, total, blocks[-1][2] + length]
    return np.repeat([mean for mean, _, _ in blocks], [length for _, _, length in blocks])


def threshold(n_data, accuracies, target: float) -> Threshold:
    """Images at which the accuracy reaches the target.

    Args:
      n_data: (P,) numbers of images, in any order.  accuracies: (P,); what is not finite is left
        out.  target: in (0, 1].

    The accuracies are made non-decreasing by `isotonic` regression (points of equal `n_data`
    count as their mean, weighted by how many they are), so that one lucky decoder does not set
    the threshold. The crossing is interpolated linearly in log n_data.

    Raises ValueError for no points, lengths that differ, `n_data` other than positive integers,
    or a target outside (0, 1].
    """
    n_M, fit_M, first = _crossing(n_data, accuracies, target)
    if n_M.size == 0:
        return Threshold(math.nan, UNKNOWN)
    if first == 0:
        return Threshold(float(n_M[0]), BELOW)
    if first == n_M.size:
        return Threshold(float(n_M[-1]), ABOVE)
    (left, right), (low, high) = np.log(n_M[first - 1 : first + 1]), fit_M[first - 1 : first + 1]
    share = min((target - low) / (high - low), 1.0)  # above 1 only by the tolerance
    return Threshold(float(np.exp(left + share * (right - left))), REACHED)


def bracket(n_data, accuracies, target: float) -> tuple[int, int] | None:
    """The neighbouring `n_data` with finite accuracies on either side of the crossing; None if
    the threshold is not 'reached'. Arguments and errors as for `threshold`."""
    n_M, _, first = _crossing(n_data, accuracies, target)
    return (int(n_M[first - 1]), int(n_M[first])) if 0 < first < n_M.size else None


def refinement(n_data, accuracies, target: float, count: int) -> list[int]:
    """`count` numbers of images to measure next, ascending, strictly inside the bracket.

    They are the free integers nearest to a geometric spacing; all of them where `count` or fewer
    are free. Numbers in `n_data` are not free even where the accuracy is not finite. Empty if
    there is no bracket. ValueError for a negative count and as for `threshold`.
    """
    if count < 0:
        raise ValueError(f"count must not be negative, not {count}")
    ends = bracket(n_data, accuracies, target)
    if ends is None:
        return []
    free = np.setdiff1d(np.arange(ends[0] + 1, ends[1]), np.asarray(n_data))
    if free.size <= count:
        return free.tolist()
    chosen = []
    for wanted in np.geomspace(*ends, count + 2)[1:-1]:
        chosen.append(free[np.argmin(np.abs(np.log(free / wanted)))])
        free = free[free != chosen[-1]]
    return sorted(int(number) for number in chosen)


def _crossing(n_data, accuracies, target):
    """Distinct n_M ascending, fit_M, and the index of the first that reaches the target (M if
    none does)."""
    n_P, accuracies_P = np.asarray(n_data, np.float64), np.asarray(accuracies, np.float64)
    if n_P.ndim != 1 or n_P.size == 0 or n_P.shape != accuracies_P.shape:
        raise ValueError(
            "n_data and accuracies must be vectors of one length, not empty: "
            f"{n_P.shape}, {accuracies_P.shape}"
        )
    if not (np.isfinite(n_P) & (n_P >= 1) & (n_P == np.floor(n_P))).all():
        raise ValueError("n_data must be positive integers")
    if not 0 < target <= 1:
        raise ValueError(f"target must lie in (0, 1], not {target}")
    # sorted, so that rounding does not depend on the order of the points
    order = np.lexsort((accuracies_P, n_P))
    order = order[np.isfinite(accuracies_P[order])]
    n_M, index_P, counts_M = np.unique(n_P[order], return_inverse=True, return_counts=True)
    sums_M = np.bincount(index_P, accuracies_P[order], minlength=n_M.size)
    fit_M = isotonic(sums_M / counts_M, counts_M)
    return n_M, fit_M, int(np.searchsorted(fit_M, target - TOLERANCE))


def thresholds(
    rows, reading: Reading, scheme: str, *, share=None, learning_rate=None, weight_decay=None
) -> Curve:
    """Thresholds of every seed at every grid size in the table.

    Only rows of this scheme, of the reading's region and of the settings that are given count.
    Failed trials and seeds that lack a grid size leave 'unknown' where nothing else is known.

    Raises ValueError if no row is left, if the rows left mix several values of a setting, for a
    `where` or `score` that is not one, and as `threshold` does.
    """
    if reading.where not in PLACES or reading.score not in SCORES:
        raise ValueError(f"where must be one of {PLACES} and score one of {SCORES}: {reading}")
    settings = {"share": share, "learning_rate": learning_rate, "weight_decay": weight_decay}
    wanted = {name: value for name, value in settings.items() if value is not None}
    wanted |= {"scheme": scheme, "region": reading.region}
    rows = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    if not rows:
        raise ValueError(f"the table has no rows of {wanted}")
    for name in settings:
        if len(np.unique([row[name] for row in rows])) > 1:
            raise ValueError(f"the table mixes several values of {name}: state one")
    grids_K = np.unique([row["grid"] for row in rows])
    seeds_S = np.unique([row["seed"] for row in rows])
    key = f"{reading.where}.{reading.score}_accuracy"
    values_SxK = np.full((seeds_S.size, grids_K.size), np.nan)
    status_SxK = np.full(values_SxK.shape, UNKNOWN)
    points = {}
    for row in rows:
        accuracy = row[key] if row["status"] == "ok" else math.nan
        points.setdefault((row["seed"], row["grid"]), []).append((row["n_data"], accuracy))
    factor_SxK = np.full(values_SxK.shape, np.nan)
    for (seed, grid), pairs in points.items():
        cell = np.searchsorted(seeds_S, seed), np.searchsorted(grids_K, grid)
        measured = *zip(*pairs, strict=True), reading.target
        values_SxK[cell], status_SxK[cell] = threshold(*measured)
        if ends := bracket(*measured):
            factor_SxK[cell] = ends[1] / ends[0]
    return Curve(scheme, reading, grids_K, seeds_S, values_SxK, status_SxK, factor_SxK)


def exponent(curve: Curve) -> dict:
    """Slope of log threshold on log N over all seeds and grid sizes, with its interval.

    {'value', 'ci95': [low, high], 'reached', 'above', 'below', 'unknown', 'coarse'}: the others
    count thresholds, 'coarse' the reached ones that are known to a factor above `COARSE` only:
    between numbers of images so far apart a threshold lies where their own law puts it (see
    `is_resolved`). Censored ones enter by `censored_slopes`; unknown ones say nothing and do not
    enter. Without censoring the slope is that of ordinary least squares. It is not identified,
    NaN with a NaN interval, where fewer than two distinct N have a reached threshold.

    The interval is `bootstrap_interval` over seeds, each with its thresholds at all N. Resamples
    whose exponent is not identified are left out up to a share of `UNIDENTIFIED`; beyond that,
    and for a single seed, the interval is NaN.
    """
    count = curve.seeds_S.size

    def over_resamples(chosen_RxS):
        counts_RxS = (chosen_RxS[:, :, None] == np.arange(count)).sum(axis=1)
        # the order within a resample is immaterial: of 5^5 only 126 are distinct
        distinct, index_R = np.unique(counts_RxS, axis=0, return_inverse=True)
        return _slopes(curve, distinct)[index_R.ravel()]

    value = float(_slopes(curve, np.ones((1, count)))[0])
    interval = bootstrap_interval(
        np.arange(count), statistic=over_resamples, undefined=UNIDENTIFIED
    )
    statuses = {
        name: int((curve.status_SxK == name).sum()) for name in (REACHED, ABOVE, BELOW, UNKNOWN)
    }
    coarse = int((curve.factor_SxK > COARSE).sum())
    return {"value": value, "ci95": list(interval)} | statuses | {"coarse": coarse}


def is_resolved(number: dict) -> bool:
    """Whether an `exponent` is the thresholds' own, of which at most `COARSE_SHARE` are coarse,
    and not that of the numbers of images that were tried."""
    return number["coarse"] <= COARSE_SHARE * number[REACHED]


def _slopes(curve, counts_RxS):
    """(R,) slopes, each with every seed counted so often; NaN where not identified."""
    status_SxK = curve.status_SxK
    reached_RxK = counts_RxS @ (status_SxK == REACHED).astype(np.float64) > 0
    identified_R = reached_RxK.sum(axis=1) >= 2
    slopes_R = np.full(len(counts_RxS), np.nan)
    if identified_R.any():
        seed_P, grid_P = np.nonzero(status_SxK != UNKNOWN)
        known_P = status_SxK[seed_P, grid_P]
        slopes_R[identified_R] = censored_slopes(
            np.log(curve.grids_K[grid_P]),
            np.log(curve.values_SxK[seed_P, grid_P]),
            (known_P == ABOVE).astype(int) - (known_P == BELOW),
            counts_RxS[identified_R][:, seed_P],
        )
    return slopes_R
