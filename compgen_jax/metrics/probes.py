"""Can the factors be read off a layer linearly, at unseen points? (Figures 2, 11-14)

Ridge regression in closed form. The authors fit and score least squares on the same 784 points;
with as many features as points that R^2 is 1 whatever the features (`in_sample_r2`, for parity
only). Here a probe is fitted on ID points and scored on ID points left out and on OOD points.

Of x from the outputs, R^2 on ID and OOD points and OOD class accuracy; N = 28, donut 6 to 22:
true bump .999, .64, .16; plus 1, 1, 1; lookup .999, .75, 1; iid noise -.005, -.03, 0. A probe
separates noise from the rest, but decodability is not composition: a lookup is decoded better
than the true image, whose pixels in the hole no fitted point lights up.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics.kernels import check_finite, gram

PENALTIES = np.logspace(-8, 4, 25)  # of the mean squared singular value of the centred features
RELATIVE_NOISE = 1e-12  # of the largest eigenvalue: directions below are rounding


def probe(
    features_BxD,
    factors_BxF,
    held_out_B,
    folds: int = 5,
    seed: int = 0,
    real=None,
    periods=None,
) -> dict:
    """Linear decodability of the factors; every value is an (F,) array in their order.

    Args:
      features: (B, D), any D.  factors: (B, F).  held_out: (B,) bool.
      folds: of the ID points, assigned at random from `seed`.
      real: whether the values of each factor are numbers. For labels r2 is NaN, and only the
        accuracies say something. None: all are.
      periods: of each factor, inf where it does not repeat. An angle jumps where it repeats, so
        its cosine and sine are probed, and its r2 is over both. None: none repeats.

    Returns `in_sample_r2` (above); `id_r2`, cross-validated on the ID points; `ood_r2`, of a fit
    on all ID points, against the OOD points' own mean, so it can be below 0; `id_accuracy` and
    `ood_accuracy`, the share of points whose value of a factor is the largest of a ridge on its
    one-hot classes; and the last four under 'shuffled.' for targets permuted among the ID
    points. Penalties are chosen within the fitted points by leave-one-out. Constant features
    decode nothing; a target without variance, or no OOD point, gives NaN.

    ValueError for shapes that do not match, features that are not finite and fewer ID points
    than twice the folds.
    """
    features, factors = compact(features_BxD), np.asarray(factors_BxF, np.float64)
    held_out = np.asarray(held_out_B, bool)
    if factors.ndim != 2 or len(factors) != len(features) or held_out.shape != (len(features),):
        raise ValueError(
            f"factors {factors.shape} and held_out {held_out.shape}: "
            f"the features have {len(features)} points"
        )
    check_finite("factors", factors)
    real = checked_real(real, factors.shape[1])
    periods = checked_periods(periods, factors.shape[1])
    seen = np.flatnonzero(~held_out)
    if len(seen) < 2 * folds:
        raise ValueError(f"{len(seen)} ID points: {folds} folds need at least {2 * folds}")
    rng = np.random.default_rng(seed)
    fold = rng.permutation(len(seen)) % folds
    splits = [(seen[fold != k], seen[fold == k]) for k in range(folds)]
    splits.append((seen, np.flatnonzero(held_out)))
    fits = [(decompose(features[fit]), fit, new) for fit, new in splits]
    shuffled = factors.copy()
    shuffled[seen] = shuffled[rng.permutation(seen)]
    control = _scores(features, shuffled, periods, held_out, fits)
    found = (
        {"in_sample_r2": in_sample_r2(features, factors, periods)}
        | _scores(features, factors, periods, held_out, fits)
        | {f"shuffled.{name}": value for name, value in control.items()}
    )
    for name in found:
        if name.endswith("r2"):
            found[name] = np.where(real, found[name], np.nan)
    return found


def mean_over_factors(scores: dict, real=None) -> dict:
    """The means of `probe`'s scores over the factors: of an r2 over the real ones, NaN where there
    is none or one of them has none."""
    means = {}
    for name, value in scores.items():
        counted = value[checked_real(real, len(value))] if name.endswith("r2") else value
        means[name] = np.mean(counted) if counted.size else np.nan
    return means


def checked_real(real, factors: int):
    """(F,) bool, True where `real` is None. ValueError unless there is one for each factor."""
    found = np.ones(factors, bool) if real is None else np.asarray(real, bool)
    if found.shape != (factors,):
        raise ValueError(f"real {real} for {factors} factors")
    return found


def checked_periods(periods, factors: int):
    """(F,), inf where `periods` is None. ValueError unless there is one above 0 for each factor."""
    found = np.full(factors, np.inf) if periods is None else np.asarray(periods, np.float64)
    if found.shape != (factors,) or not (found > 0).all():
        raise ValueError(f"periods {periods} for {factors} factors: one above 0 each")
    return found


def targets_of(values_B, period: float):
    """(B, 1) the values of a factor, or (B, 2) the cosine and the sine of an angle."""
    if not np.isfinite(period):
        return values_B[:, None]
    angle_B = 2 * np.pi * values_B / period
    return np.stack([np.cos(angle_B), np.sin(angle_B)], axis=1)


def compact(features_BxD):
    """Centred features in at most min(B, D) dimensions with the same inner products, float64.

    Ridge regression knows features only up to rotation, so this stands for them in every fit:
    the primal problem if D < B, the dual if not. Errors as in `kernels.gram`.
    """
    features = np.asarray(features_BxD)
    if features.ndim == 2 and features.shape[1] < features.shape[0]:
        check_finite("features", features)
        offset = features.astype(np.float64) - features[:1]
        return offset - offset.mean(axis=0, keepdims=True)
    values, vectors = np.linalg.eigh(gram(features, center=True))
    kept = values > RELATIVE_NOISE * max(values[-1], 0)
    return vectors[:, kept] * np.sqrt(values[kept])


def in_sample_r2(features_BxD, factors_BxF, periods_F):
    """R^2 of least squares with intercept, fitted and scored on the same points; (F,)."""
    design = decompose(features_BxD)
    kept = design.scales**2 > RELATIVE_NOISE * np.sum(design.scales**2)
    left, scores = design.left[:, kept], []
    for values_B, period in zip(factors_BxF.T, periods_F, strict=True):
        targets = targets_of(values_B, period)
        mean = targets.mean(axis=0, keepdims=True)
        scores.append(r2(targets, mean + left @ (left.T @ (targets - mean))))
    return np.array(scores)


class Design(NamedTuple):
    """Thin SVD of centred features: left (B, R), scales (R,), right (R, D); their mean (D,)."""

    left: np.ndarray
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
    along_RxT = design.left.T @ (targets_BxT - mean_T)
    squared_R = design.scales**2
    unit = squared_R.mean() if squared_R.any() else 1.0
    best = None
    for penalty in unit * PENALTIES:
        shrink_R = squared_R / (squared_R + penalty)
        leverage_B = 1 / len(targets_BxT) + design.left**2 @ shrink_R
        residual_BxT = targets_BxT - mean_T - design.left @ (shrink_R[:, None] * along_RxT)
        loo_mse = float(np.mean((residual_BxT / (1 - leverage_B)[:, None]) ** 2))
        if best is None or loo_mse < best[0]:
            best = loo_mse, penalty
    loo_mse, penalty = best
    gain_R = design.scales / (squared_R + penalty)
    weights_DxT = design.right.T @ (gain_R[:, None] * along_RxT)
    return Ridge(weights_DxT, mean_T - design.mean @ weights_DxT, float(penalty), loo_mse)


def _scores(features, factors, periods, held_out, fits) -> dict:
    """Every point is predicted once, by the fit whose split has it as new."""
    explained, accuracy = [], []
    for values_B, period in zip(factors.T, periods, strict=True):
        targets = targets_of(values_B, period)
        _, label_B = np.unique(values_B, return_inverse=True)
        onehot_BxK = np.eye(label_B.max() + 1)[label_B]
        predicted, classes = np.empty_like(targets), np.empty_like(onehot_BxK)
        for design, fit, new in fits:
            predicted[new] = ridge(design, targets[fit])(features[new])
            classes[new] = ridge(design, onehot_BxK[fit])(features[new])
        hit_B = np.argmax(classes, axis=1) == label_B
        regions = ~held_out, held_out
        explained.append([r2(targets[mask], predicted[mask]) for mask in regions])
        accuracy.append([hit_B[mask].mean() if mask.any() else np.nan for mask in regions])
    names = ("id_r2", "ood_r2", "id_accuracy", "ood_accuracy")
    return dict(zip(names, [*np.transpose(explained), *np.transpose(accuracy)], strict=True))


def r2(targets_BxT, predictions_BxT) -> float:
    """Over all columns together; NaN without a point or without variance."""
    if not len(targets_BxT):
        return np.nan
    total = np.sum((targets_BxT - targets_BxT.mean(axis=0, keepdims=True)) ** 2)
    return 1 - np.sum((targets_BxT - predictions_BxT) ** 2) / total if total > 0 else np.nan
