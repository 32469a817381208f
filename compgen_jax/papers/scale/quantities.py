"""What claims of the second paper measure: scores of runs, thresholds, slopes, correlations.

`r2` is pooled, around the outputs' means over all tasks. `gain` is 1 - error / that of the best map
that is bilinear in latent and input. R^2 alone misleads: that map composes nothing and has .85.
So claims such as S1a.gain judge gains.
"""

import numpy as np

from compgen_jax.metrics.decodability import midranks

COMPOSED = 0.5  # gain on held-out sets from which a network composes


def score(run, name: str):
    """(T,): a number of every seed of a run's summary, such as 'ood.gain'."""
    return np.array([seed[name] for seed in run.summary["seeds"].values()])


def scores(runs, name: str):
    """(R, T): the same of several runs."""
    return np.stack([score(run, name) for run in runs])


# --- thresholds --------------------------------------------------------------------------------


def needed_for(sizes_K, scores_KxT, target: float = COMPOSED):
    """(T,): the size that gives the target score, between the last size below it and the next,
    linear in the size's logarithm. It is 0 if all sizes reach the target, so that fewer might, and
    NaN if the largest does not."""
    order = np.argsort(sizes_K)
    logs, scores_KxT = np.log(np.asarray(sizes_K, float)[order]), np.asarray(scores_KxT)[order]
    needed = []
    for values in scores_KxT.T:
        below = np.flatnonzero(values < target)
        if not len(below):
            needed.append(0.0)
        elif below[-1] == len(values) - 1:
            needed.append(np.nan)
        else:
            k = below[-1]
            share = (target - values[k]) / (values[k + 1] - values[k])
            needed.append(np.exp(logs[k] + share * (logs[k + 1] - logs[k])))
    return np.array(needed)


def bracketed(needed):
    """Thresholds of `needed_for`, NaN where they are only bounds."""
    return np.where(np.asarray(needed) > 0, needed, np.nan)


def not_bracketed(needed, least: str) -> str:
    """Why nothing is concluded from thresholds of `needed_for`; '' if all are numbers."""
    needed = np.asarray(needed)
    missing, all_do = int(np.isnan(needed).sum()), int((needed == 0).sum())
    reasons = [f"not reached in {missing} of {needed.size}"] * (missing > 0)
    reasons += [f"reached with {least} in {all_do} of {needed.size}"] * (all_do > 0)
    return ", ".join(reasons)


# --- slopes, correlations, means ---------------------------------------------------------------


def slope(x_K, values_KxT):
    """(T,) least squares."""
    centred = x_K - np.mean(x_K)
    return centred @ values_KxT / np.sum(centred**2)


def correlation(groups, of_run):
    """(T,): Spearman's correlation over the runs of a group between R² OOD and `of_run`, (T,) of a
    run; the mean over the groups."""
    by_group = []
    for runs in groups:
        pairs = zip(
            scores(runs, "ood.r2").T, np.stack([of_run(run) for run in runs]).T, strict=True
        )
        by_group.append([spearman(*pair) for pair in pairs])
    return np.mean(by_group, axis=0)


def spearman(a, b) -> float:
    """0 if one side is constant, since nothing varies with it."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(midranks(a), midranks(b))[0, 1])


def mean_where(values_RxT, counted_RxT):
    """(T,): the mean over the runs that count, NaN if none does."""
    pairs = zip(values_RxT.T, counted_RxT.T, strict=True)
    return np.array([values[counted].mean() if counted.any() else np.nan
                     for values, counted in pairs])  # fmt: skip
