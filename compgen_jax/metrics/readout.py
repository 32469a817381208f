"""Linear readouts: ridge regression with a free intercept, of rows by fits without them."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from compgen_jax.metrics.kernels import check_finite, gram

PENALTIES = np.logspace(-8, 4, 25)  # of the mean squared singular value of the centred features
RELATIVE_NOISE = 1e-12  # of the largest eigenvalue: directions below are rounding


def compact(features_BxD):
    """Centred features in at most min(B, D) dimensions with the same inner products, float64."""
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


def cross_fitted(centred_BxB, targets, fold_B, folds: int, dimensions: int) -> list:
    """Predictions of each of the targets, (B, T): of the rows of a fold by a ridge on all other
    folds, of rows in no fold (-1) by one on all. Of the features only their centred Gram matrix is
    needed, and how many there are."""
    if dimensions >= len(centred_BxB):
        values = np.linalg.eigvalsh(centred_BxB)
        dimensions = np.sum(values > RELATIVE_NOISE * values[-1])
    predictions = [np.empty_like(target_BxT) for target_BxT in targets]
    for fold in (*range(folds), -1):
        fitted_F = np.flatnonzero((fold_B >= 0) & (fold_B != fold))
        new_N = np.flatnonzero(fold_B == fold)
        if not new_N.size:
            continue
        gram_FxF, gram_NxF = (centred_BxB[np.ix_(rows, fitted_F)] for rows in (fitted_F, new_N))
        mean_F = gram_FxF.mean(axis=0)
        offset_F = mean_F - mean_F.mean()
        squared_R, basis_FxR = np.linalg.eigh(gram_FxF - mean_F[:, None] - offset_F)
        squared_R = np.maximum(squared_R, 0)
        unit = squared_R.sum() / min(len(fitted_F), dimensions) or 1.0
        known_R = squared_R > RELATIVE_NOISE * squared_R[-1]
        squared_R, basis_FxR = squared_R[known_R], basis_FxR[:, known_R]
        new_NxR = (gram_NxF - gram_NxF.mean(axis=1, keepdims=True) - offset_F) @ basis_FxR
        fits = _penalised(basis_FxR, squared_R, unit, [target[fitted_F] for target in targets])
        for (mean_T, along_RxT, penalty), prediction_BxT in zip(fits, predictions, strict=True):
            weights_RxT = along_RxT / (squared_R + penalty)[:, None]
            prediction_BxT[new_N] = mean_T + new_NxR @ weights_RxT
    return predictions


class Ridge(NamedTuple):
    """weights (D, T), intercept (T,), and the chosen penalty."""

    weights: np.ndarray
    intercept: np.ndarray
    penalty: float


def ridge(features_BxD, targets) -> list[Ridge]:
    """Minimisers of |t - F w - b|^2 + penalty |w|^2, one for each of the targets (B, T), whose
    columns share a penalty.

    The penalty has the least leave-one-out error, exact from a single fit: residual_i /
    (1 - H_ii), with H the ridge's hat matrix.
    """
    mean_D = features_BxD.mean(axis=0)
    basis_BxR, scales_R, right_RxD = np.linalg.svd(features_BxD - mean_D, full_matrices=False)
    squared_R = scales_R**2
    unit = squared_R.mean() or 1.0
    fits = []
    for mean_T, along_RxT, penalty in _penalised(basis_BxR, squared_R, unit, targets):
        weights_DxT = right_RxD.T @ ((scales_R / (squared_R + penalty))[:, None] * along_RxT)
        fits.append(Ridge(weights_DxT, mean_T - mean_D @ weights_DxT, penalty))
    return fits


def _penalised(basis_BxR, squared_R, unit: float, targets):
    """Of each of the targets (B, T) its mean (T,), its part along the basis (R, T) of centred
    features, whose squared lengths are given, and the penalty."""
    shrink_RxP = squared_R[:, None] / (squared_R[:, None] + unit * PENALTIES)
    leverage_BxP = 1 / len(basis_BxR) + basis_BxR**2 @ shrink_RxP
    for targets_BxT in targets:
        mean_T = targets_BxT.mean(axis=0)
        along_RxT = basis_BxR.T @ (targets_BxT - mean_T)
        fitted_BxTxP = np.tensordot(basis_BxR, shrink_RxP[:, None] * along_RxT[..., None], 1)
        residual_BxTxP = (targets_BxT - mean_T)[..., None] - fitted_BxTxP
        loo_mse_P = np.mean((residual_BxTxP / (1 - leverage_BxP)[:, None]) ** 2, axis=(0, 1))
        yield mean_T, along_RxT, float(unit * PENALTIES[np.argmin(loo_mse_P)])


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
    errors on both count."""
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
    """(P, T) sums of squared errors at every penalty; of many rows, from their second moments."""
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
    """(Q, T), at the penalty of least error over an owner's columns, the largest of equals."""
    of_owner = np.zeros((len(PENALTIES), owner_T.max() + 1))
    np.add.at(of_owner.T, owner_T, errors_PxT.T)
    penalties_T = PENALTIES[::-1][np.argmin(of_owner[::-1], axis=0)][owner_T]
    along_QxR = (features_QxD - fit.features) @ fit.axes
    gains_RxT = fit.squared[:, None] + fit.unit * penalties_T[None]
    return fit.targets + along_QxR @ (fit.along / gains_RxT)
