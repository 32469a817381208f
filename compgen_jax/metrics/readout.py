"""One linear readout: ridge regression with a free intercept, of rows by fits without them."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from compgen_jax.metrics.kernels import check_finite, gram

PENALTIES = np.logspace(-8, 4, 25)  # of the mean squared singular value of the centred features
RELATIVE_NOISE = 1e-12  # of the largest eigenvalue: directions below are rounding


def compact(features_BxD):
    """Centred features in at most min(B, D) dimensions with the same inner products, float64: all
    that ridge regression knows. Errors as in `kernels.gram`."""
    features = np.asarray(features_BxD)
    if features.ndim == 2 and features.shape[1] < features.shape[0]:
        check_finite("features", features)
        offset = features.astype(np.float64) - features[:1]
        return offset - offset.mean(axis=0, keepdims=True)
    values, vectors = np.linalg.eigh(gram(features, center=True))
    significant = values > RELATIVE_NOISE * max(values[-1], 0)
    return vectors[:, significant] * np.sqrt(values[significant])


def folds_of(groups, held_out, folds, rng):
    """(B,) the fold of each ID row, its whole group's; -1 for OOD rows."""
    seen, index = np.unique(groups[~held_out], return_inverse=True)
    fold_B = np.full(len(groups), -1)
    fold_B[~held_out] = (rng.permutation(len(seen)) % folds)[index]
    return fold_B


def cross_fitted(features_BxD, targets, fold_B, folds: int) -> list:
    """Predictions of each of the targets, (B, T): of the rows of a fold by a fit to all other
    folds, of rows in no fold (-1) by the fit to all. One target's columns share the penalty of
    least error on rows left out, each alone (`ridge`)."""
    predictions = [np.empty_like(target_BxT) for target_BxT in targets]
    for fold in (*range(folds), -1):
        fitted_B, new_B = (fold_B >= 0) & (fold_B != fold), fold_B == fold
        if new_B.any():
            design = decompose(features_BxD[fitted_B])
            for target_BxT, prediction_BxT in zip(targets, predictions, strict=True):
                fit = ridge(design, target_BxT[fitted_B])
                prediction_BxT[new_B] = fit(features_BxD[new_B])
    return predictions


class Design(NamedTuple):
    """Thin SVD of centred features: basis (B, R), scales (R,), right (R, D); their mean (D,)."""

    basis: np.ndarray
    scales: np.ndarray
    right: np.ndarray
    mean: np.ndarray


def decompose(features_BxD) -> Design:
    """What all fits to the same points share."""
    mean_D = features_BxD.mean(axis=0)
    return Design(*np.linalg.svd(features_BxD - mean_D, full_matrices=False), mean_D)


class Ridge(NamedTuple):
    """weights (D, T), intercept (T,), and the chosen penalty with its leave-one-out MSE."""

    weights: np.ndarray
    intercept: np.ndarray
    penalty: float
    loo_mse: float

    def __call__(self, features_QxD):
        return features_QxD @ self.weights + self.intercept


def ridge(design: Design, targets_BxT) -> Ridge:
    """Minimiser of |t - F w - b|^2 + penalty |w|^2, one penalty for all T targets.

    The penalty has the least leave-one-out error, exact from a single fit: residual_i /
    (1 - H_ii), with H the hat matrix of the ridge and its free intercept.
    """
    mean_T = targets_BxT.mean(axis=0)
    along_RxT = design.basis.T @ (targets_BxT - mean_T)
    squared_R = design.scales**2
    unit = squared_R.mean() if squared_R.any() else 1.0
    shrink_RxP = squared_R[:, None] / (squared_R[:, None] + unit * PENALTIES)
    leverage_BxP = 1 / len(targets_BxT) + design.basis**2 @ shrink_RxP
    flat = (shrink_RxP[:, None] * along_RxT[..., None]).reshape(len(along_RxT), -1)
    fitted_BxTxP = (design.basis @ flat).reshape(*targets_BxT.shape, -1)
    residual_BxTxP = (targets_BxT - mean_T)[..., None] - fitted_BxTxP
    loo_mse_P = np.mean((residual_BxTxP / (1 - leverage_BxP)[:, None]) ** 2, axis=(0, 1))
    best = np.argmin(loo_mse_P)
    loo_mse, penalty = float(loo_mse_P[best]), float(unit * PENALTIES[best])
    gain_R = design.scales / (squared_R + penalty)
    weights_DxT = design.right.T @ (gain_R[:, None] * along_RxT)
    return Ridge(weights_DxT, mean_T - design.mean @ weights_DxT, penalty, loo_mse)


def r2(targets_BxT, predictions_BxT) -> float:
    """Over all columns together; NaN without a point or without variance."""
    if not len(targets_BxT):
        return np.nan
    total = np.sum((targets_BxT - targets_BxT.mean(axis=0, keepdims=True)) ** 2)
    return 1 - np.sum((targets_BxT - predictions_BxT) ** 2) / total if total > 0 else np.nan


# --- penalties by whole folds -------------------------------------------------------------------


class _Fit(NamedTuple):
    """Means (D,), (T,); axes (D, R), squared singular values (R,), targets along them (R, T)."""

    features: np.ndarray
    targets: np.ndarray
    axes: np.ndarray
    squared: np.ndarray
    along: np.ndarray
    unit: float


def cross_fitted_by_folds(features_BxD, targets, fold_B, folds: int) -> list:
    """The same with penalties by whole folds: a ridge is fitted without each pair of folds, and its
    errors on both count. Penalties are relative to the fit's mean squared singular value."""
    targets_BxT = np.concatenate(targets, axis=1)
    owner_T = np.repeat(range(len(targets)), [target.shape[1] for target in targets])
    pieces = [(features_BxD[fold_B == k], targets_BxT[fold_B == k]) for k in range(folds)]
    moments = [(len(x), x.sum(axis=0), t.sum(axis=0), x.T @ x, x.T @ t) for x, t in pieces]

    def fit(*left_out) -> _Fit:
        fitted = [moments[k] for k in range(folds) if k not in left_out]
        count, features_D, targets_T, square_DxD, cross_DxT = map(sum, zip(*fitted, strict=True))
        mean_D, mean_T = features_D / count, targets_T / count
        squared_R, axes = np.linalg.eigh(square_DxD - count * np.outer(mean_D, mean_D))
        along = axes.T @ (cross_DxT - count * np.outer(mean_D, mean_T))
        squared_R = np.maximum(squared_R, 0)
        unit = squared_R.mean() if squared_R.any() else 1.0
        return _Fit(mean_D, mean_T, axes, squared_R, along, unit)

    errors = np.zeros((folds + 1, len(PENALTIES), targets_BxT.shape[1]))
    for j, k in combinations(range(folds), 2):
        solved = fit(j, k)
        errors[k] += _errors(solved, *pieces[j])
        errors[j] += _errors(solved, *pieces[k])
    predictions = np.empty(targets_BxT.shape)
    for k in range(folds):
        solved = fit(k)
        errors[folds] += _errors(solved, *pieces[k])
        predictions[fold_B == k] = _predict(solved, pieces[k][0], errors[k], owner_T)
    new = fold_B < 0
    predictions[new] = _predict(fit(), features_BxD[new], errors[folds], owner_T)
    return [predictions[:, owner_T == target] for target in range(len(targets))]


def _errors(fit: _Fit, features_QxD, targets_QxT):
    """(P, T) sums of squared errors at every penalty; of many rows, from their second moments,
    which is the same up to 1e-13 of the targets' squares."""
    along_QxR = (features_QxD - fit.features) @ fit.axes
    wanted = targets_QxT - fit.targets
    gains_RxP = fit.squared[:, None] + fit.unit * PENALTIES[None]
    weights_RxPxT = fit.along[:, None] / gains_RxP[:, :, None]
    flat = weights_RxPxT.reshape(len(weights_RxPxT), -1)
    if len(along_QxR) <= along_QxR.shape[1]:
        residuals = (along_QxR @ flat).reshape(-1, *weights_RxPxT.shape[1:]) - wanted[:, None]
        return np.einsum("qpt,qpt->pt", residuals, residuals)
    twice = (along_QxR.T @ along_QxR @ flat).reshape(weights_RxPxT.shape)
    twice -= 2 * (along_QxR.T @ wanted)[:, None]
    return np.einsum("rpt,rpt->pt", weights_RxPxT, twice) + np.sum(wanted**2, axis=0)[None]


def _predict(fit: _Fit, features_QxD, errors_PxT, owner_T):
    """(Q, T), at the penalty of least error, the largest of equals, summed over an owner's
    columns."""
    of_owner = np.zeros((len(PENALTIES), owner_T.max() + 1))
    np.add.at(of_owner.T, owner_T, errors_PxT.T)
    penalties_T = PENALTIES[::-1][np.argmin(of_owner[::-1], axis=0)][owner_T]
    along_QxR = (features_QxD - fit.features) @ fit.axes
    gains_RxT = fit.squared[:, None] + fit.unit * penalties_T[None]
    return fit.targets + along_QxR @ (fit.along / gains_RxT)
