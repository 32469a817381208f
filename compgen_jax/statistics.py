"""Means and other statistics over seeds with Student's t intervals."""

import re
import warnings

import numpy as np
from scipy.special import betaincinv, stdtr, stdtrit

LEVEL = 0.95
# Seeds that agree to the cell show Student's t no spread, so the interval of a share reaches at
# least this many cells to either side of its mean. It is the least number of half cells with which
# simulated intervals of shares that are 1 in most seeds cover their mean in 93% of samples
# (docs/findings/criteria.md).
LEAST_CELLS = 1.5
# in the name of a score or a note that lies between 0 and 1; one with 'less' is a difference
SHARE = re.compile(r"(share|rendered|accuracy)\b(?!.*\bless\b)")


def mean_with_interval(values_T, name: str = "") -> dict:
    """{'value': mean, 'ci95': [low, high]} over seeds; `in_range` if its name is given."""
    return in_range(name, {"value": float(np.mean(values_T)), "ci95": list(t_interval(values_T))})


def in_range(name: str, number: dict) -> dict:
    """A {'value', 'ci95'}; if its name says a share (`SHARE`), its interval ends at 0 and 1. NaN
    and None stay."""
    if number["value"] is None or not (SHARE.search(name) and 0 <= number["value"] <= 1):
        return number
    ends = [end if end is None else min(max(end, 0.0), 1.0) for end in number["ci95"]]
    return number | {"ci95": ends}


def geometric_mean_with_interval(values_T) -> dict:
    """The same of the logarithms of positive values."""
    number = mean_with_interval(np.log(values_T))
    ends = [float(np.exp(end)) for end in number["ci95"]]
    return {"value": float(np.exp(number["value"])), "ci95": ends}


def share_with_interval(does_T) -> dict:
    """{'value': share of the seeds that do something, 'ci95': [low, high]}, the exact binomial
    interval (Clopper and Pearson 1934)."""
    does, tail = np.asarray(does_T, bool), (1 - LEVEL) / 2
    count, others = int(does.sum()), int((~does).sum())
    low = betaincinv(count, others + 1, tail) if count else 0.0
    high = betaincinv(count + 1, others, 1 - tail) if others else 1.0
    return {"value": count / does.size, "ci95": [float(low), float(high)]}


def of_share(number: dict, cells: float, least: float = 0.0) -> dict:
    """{'value', 'ci95'} of a share of so many cells (`LEAST_CELLS`), no end below `least` or above
    1."""
    value, (low, high), half = number["value"], number["ci95"], LEAST_CELLS / max(cells, 1)
    ends = max(min(low, value - half), least), min(max(high, value + half), 1.0)
    return number | {"ci95": [float(end) for end in ends]}


def t_interval(values_T) -> tuple[float, float]:
    """Student's t interval of the mean of T independent values; NaN for a single one
    (docs/findings/criteria.md has its simulated coverage). ValueError unless they are a non-empty
    vector."""
    values = np.asarray(values_T, np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"values must be a non-empty vector over seeds, not {values.shape}")
    if values.size == 1:
        return (float("nan"), float("nan"))
    mean, half = float(values.mean()), float(half_width(values))
    return mean - half, mean + half


def half_width(values_xT):
    """(...) half the width of `t_interval`, over the last axis."""
    values = np.asarray(values_xT, np.float64)
    count = values.shape[-1]
    return stdtrit(count - 1, (1 + LEVEL) / 2) * values.std(axis=-1, ddof=1) / np.sqrt(count)


def holm_factors(ratios_C, seeds_C) -> np.ndarray:
    """(C,) by how much each interval of a family of C widens for Holm's (1979) correction: whether
    it excludes its bound then holds for all together, though not its ends. `ratios` are distances
    from a mean to its bound, in half widths of its t interval over so many `seeds`."""
    freedom_C = np.asarray(seeds_C) - 1
    halves_C = stdtrit(freedom_C, (1 + LEVEL) / 2)
    p_C = stdtr(freedom_C, -np.asarray(ratios_C) * halves_C)
    order, tails_C = np.argsort(p_C), (1 - LEVEL) / 2 / np.arange(len(p_C), 0, -1)
    accepted = np.flatnonzero(p_C[order] >= tails_C)[:1]  # after the first none is rejected
    tails_C[order] = np.minimum(tails_C, tails_C[accepted].min(initial=1))
    return stdtrit(freedom_C, 1 - tails_C) / halves_C


def seeds_to_settle(differences_T, least: float = 0.0) -> int | None:
    """The least number of seeds whose interval of the mean would leave out 0 at this mean and
    standard deviation; None above 100,000. `least` is the least half width of an interval."""
    values = np.asarray(differences_T, np.float64)
    if values.size < 2 or not np.isfinite(values).all() or abs(values.mean()) <= least:
        return None
    counts = np.arange(2, 100_001)
    halves = stdtrit(counts - 1, (1 + LEVEL) / 2) / np.sqrt(counts) * values.std(ddof=1)
    settled = counts[halves < abs(values.mean())]
    return int(settled[0]) if len(settled) else None


def jackknife_interval(full_x, without_xS, most: float = np.inf):
    """(..., 2) interval of a smooth statistic of S seeds: the t interval of its pseudo-values S
    full - (S - 1) without (Tukey 1958), no end above `most`; NaN for a single seed. `without` is
    the statistic without each seed in turn."""
    without_xS = np.asarray(without_xS)
    count = without_xS.shape[-1]
    if count < 2:
        return np.full((*np.shape(full_x), 2), np.nan)
    values = count * np.asarray(full_x)[..., None] - (count - 1) * without_xS
    middle, half = values.mean(axis=-1), half_width(values)
    return np.minimum(np.stack([middle - half, middle + half], axis=-1), most)


def mean_band(values_TxL):
    """(3, L): mean and ends of its interval over the seeds that have a finite value; NaN where none
    has."""
    values_TxL = np.asarray(values_TxL, np.float64)
    band_3xL = np.full((3, values_TxL.shape[1]), np.nan)
    for column, values in enumerate(values_TxL.T):
        values = values[np.isfinite(values)]
        if len(values):
            mean = values.mean()
            band_3xL[:, column] = mean, *np.nan_to_num(t_interval(values), nan=mean)
    return band_3xL


def mean_of_known(values_xF):
    """(...) the mean over the last axis of what is not NaN; NaN where nothing is."""
    with warnings.catch_warnings(action="ignore"):
        return np.nanmean(np.asarray(values_xF, np.float64), axis=-1)
