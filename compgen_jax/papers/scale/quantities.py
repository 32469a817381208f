"""Scores of the second paper's runs, thresholds, slopes and correlations.

`r2` is pooled, around the outputs' means over all tasks. `gain` is 1 - error / that of the best map
that is bilinear in latent and input. R^2 alone misleads: that map composes nothing and has .85.
So claims such as S1a.gain judge gains.
"""

import numpy as np

from compgen_jax.metrics.decodability import midranks
from compgen_jax.statistics import mean_with_interval

COMPOSED = 0.5  # gain on held-out sets from which a network composes


def score(run, name: str):
    """(S,): a number of every seed of a run's summary, such as 'ood.gain'."""
    return np.array([numbers[name] for numbers in run.summary["seeds"].values()])


def scores(runs, name: str):
    """(R, S): the same of several runs."""
    return np.stack([score(run, name) for run in runs])


def needed_for(sizes_K, scores_KxS, target: float = COMPOSED):
    """(S,): the size that gives the target score, linear in its logarithm beyond the last below it;
    0 if all sizes reach the target, NaN if the largest does not."""
    order = np.argsort(sizes_K)
    logs, needed = np.log(np.asarray(sizes_K, float)[order]), []
    for values in np.asarray(scores_KxS)[order].T:
        k = max(np.flatnonzero(values < target), default=-1)
        if k < 0:
            needed.append(0.0)
        elif k == len(values) - 1:
            needed.append(np.nan)
        else:
            share = (target - values[k]) / (values[k + 1] - values[k])
            needed.append(np.exp(logs[k] + share * (logs[k + 1] - logs[k])))
    return np.array(needed)


def exponent(sizes_G, needed_GxS, least: str):
    """(S,): the slope of log `needed_for` on log sizes; undecided where these are only bounds."""
    needed = np.stack(needed_GxS)
    counts = {
        "not reached": np.isnan(needed).sum(),
        f"reached with {least}": (needed == 0).sum(),
    }
    reasons = [f"{words} in {n} of {needed.size}" for words, n in counts.items() if n]
    bracketed = np.where(needed > 0, needed, np.nan)
    slopes = slope(np.log(sizes_G), np.log(bracketed))
    if not reasons:
        return slopes
    return mean_with_interval(slopes) | {"undecided_because": ", ".join(reasons)}


def slope(x_K, values_KxS):
    """(S,) least squares."""
    centred = x_K - np.mean(x_K)
    return centred @ values_KxS / np.sum(centred**2)


def correlation(a_GxRxS, b_GxRxS):
    """(S,): Spearman's correlation over the R runs of a group, the mean over the G groups. It is 0
    where one side is constant, since nothing varies with it."""
    groups, _, seeds = a_GxRxS.shape
    correlations_GxS = np.zeros((groups, seeds))
    for g, s in np.ndindex(groups, seeds):
        a, b = a_GxRxS[g, :, s], b_GxRxS[g, :, s]
        if np.ptp(a) and np.ptp(b):
            correlations_GxS[g, s] = np.corrcoef(midranks(a), midranks(b))[0, 1]
    return correlations_GxS.mean(axis=0)


def mean_where(values, counted):
    """(S,): the mean of values (..., S) over the runs that count, NaN if none does."""
    columns = zip(np.moveaxis(values, -1, 0), np.moveaxis(counted, -1, 0), strict=True)
    return np.array([v[mask].mean() if mask.any() else np.nan for v, mask in columns])
