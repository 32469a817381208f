"""Means and other statistics over seeds with bootstrap intervals."""

from itertools import product

import numpy as np

RESAMPLES = 10_000


def bootstrap_interval(
    values_T, level: float = 0.95, statistic=None, undefined: float = 0.0
) -> tuple[float, float]:
    """Percentile bootstrap interval over seeds: of the mean, or of another statistic.

    `statistic` maps R resamples of the values, (R, T), to (R,) numbers, NaN where it is undefined:
    such resamples are left out while their share is at most `undefined`, else the interval is NaN.

    All T^T resamples are enumerated where they are fewer than `RESAMPLES`, so small samples get
    the exact interval; otherwise resamples come from a fixed generator. Few seeds make it too
    narrow: of normal values it covers the true mean in 75% of samples of three (where it is
    their range), 84% of five, 91% of twenty. NaN for a single seed, which shows no spread.
    """
    values = np.asarray(values_T, np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"values must be a non-empty vector over seeds, not {values.shape}")
    count = values.size
    if count == 1:
        return (float("nan"), float("nan"))
    if count**count <= RESAMPLES:
        chosen = np.array(list(product(range(count), repeat=count)))
    else:
        chosen = np.random.default_rng(0).integers(0, count, (RESAMPLES, count))
    resampled_RxT = values[chosen]
    results_R = statistic(resampled_RxT) if statistic else resampled_RxT.mean(axis=1)
    left_out_R = np.isnan(results_R)
    if left_out_R.mean() > undefined or left_out_R.all():
        return (float("nan"), float("nan"))
    tail = (1 - level) / 2
    low, high = np.quantile(results_R[~left_out_R], [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def mean_with_interval(values_T) -> dict:
    """{'value': mean, 'ci95': [low, high]} over seeds."""
    return {"value": float(np.mean(values_T)), "ci95": list(bootstrap_interval(values_T))}


def mean_band(values_TxL):
    """Mean and ends of its interval over the seeds that have a finite value; (3, L).

    NaN in a column where none has; where one seed shows no spread the ends are the mean itself.
    ValueError unless the values are (T, L).
    """
    values_TxL = np.asarray(values_TxL, np.float64)
    if values_TxL.ndim != 2:
        raise ValueError(f"values must be (T, L), not {values_TxL.shape}")
    band_3xL = np.full((3, values_TxL.shape[1]), np.nan)
    for column, values in enumerate(values_TxL.T):
        values = values[np.isfinite(values)]
        if len(values):
            number = mean_with_interval(values)
            ends = [number["value"] if np.isnan(end) else end for end in number["ci95"]]
            band_3xL[:, column] = number["value"], *ends
    return band_3xL
