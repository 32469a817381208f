"""Means over seeds with bootstrap intervals."""

from itertools import product

import numpy as np

RESAMPLES = 10_000


def bootstrap_interval(values_T, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean over seeds.

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
    means = values[chosen].mean(axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def mean_with_interval(values_T) -> dict:
    """{'value': mean, 'ci95': [low, high]} over seeds."""
    return {"value": float(np.mean(values_T)), "ci95": list(bootstrap_interval(values_T))}
