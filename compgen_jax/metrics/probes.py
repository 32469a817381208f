"""Can the factors be read off a layer linearly, at unseen points? (Figures 2, 11-14) Decodability
is not composition: a lookup is decoded better than the true image."""

import numpy as np

from compgen_jax.metrics import kernels, readout

SCORES = ("id_r2", "ood_r2", "id_accuracy", "ood_accuracy")


def probe(
    features_BxD, factors_BxF, held_out_B, folds=5, real=None, periods=None, centred_BxB=None
) -> dict:
    """Linear decodability of the factors: `SCORES`, (F,) each.

    centred_BxB: the features' centred Gram matrix, if known.
    real: of each factor, whether it is a number; of a label r2 is NaN. None: all are.
    periods: of each factor, inf where it does not repeat; of an angle cosine and sine are probed.

    `id_` scores are cross-validated, `ood_` ones of a fit on all ID points; accuracies of a ridge
    on one-hot values. NaN for a target without variance, or no OOD point. ValueError for too few
    ID points.
    """
    if centred_BxB is None:
        centred_BxB = kernels.gram(features_BxD, center=True)
    factors = np.asarray(factors_BxF, np.float64)
    held_out = np.asarray(held_out_B, bool)
    real = np.ones(factors.shape[1], bool) if real is None else np.asarray(real, bool)
    periods = np.full(len(real), np.inf) if periods is None else periods
    seen = np.sum(~held_out)
    if seen < 2 * folds:
        raise ValueError(f"{seen} ID points: {folds} folds need at least {2 * folds}")
    rng = np.random.default_rng(0)
    fold_B = readout.folds_of(np.arange(len(factors)), held_out, folds, rng)
    targets, onehots = [], []
    for values_B, period in zip(factors.T, periods, strict=True):
        _, label_B = np.unique(values_B, return_inverse=True)
        targets.append(targets_of(values_B, period))
        onehots.append(np.eye(label_B.max() + 1)[label_B])
    fitted = readout.cross_fitted(
        centred_BxB, targets + onehots, fold_B, folds, features_BxD.shape[1]
    )
    predicted, predicted_onehots = fitted[: len(targets)], fitted[len(targets) :]
    scores = {name: np.full(len(real), np.nan) for name in SCORES}
    for region, mask in (("id", ~held_out), ("ood", held_out)):
        if not mask.any():
            continue
        for f, (target, onehot) in enumerate(zip(targets, onehots, strict=True)):
            hits = np.argmax(predicted_onehots[f], axis=1) == np.argmax(onehot, axis=1)
            scores[f"{region}_accuracy"][f] = hits[mask].mean()
            around = np.sum((target[mask] - target[mask].mean(axis=0, keepdims=True)) ** 2)
            if real[f] and around > 0:
                errors = np.sum((target[mask] - predicted[f][mask]) ** 2)
                scores[f"{region}_r2"][f] = 1 - errors / around
    return scores


def targets_of(values_B, period: float):
    """(B, 1) the values of a factor, or (B, 2) the cosine and the sine of an angle."""
    if not np.isfinite(period):
        return values_B[:, None]
    angle_B = 2 * np.pi * values_B / period
    return np.stack([np.cos(angle_B), np.sin(angle_B)], axis=1)
