"""Similarity of points: Gram matrices, ideal kernels and their agreement (Figures 1e, 8; A.4)."""

import numpy as np

BLOCK = 4096  # features cast to float64 at a time
OVERLAP_THRESHOLD = 0.7  # of the amplitude: the authors' inverted pixels below 0.3
VANISHING = 1e-12  # a kernel whose entries vary by less, relative to their size, is constant
EXPLAINED = 1e-6  # what float32 features leave of a kernel that its control explains


def gram(features_BxD, center: bool = False):
    """(B, B) inner products of all pairs of points (Eq 2, 34); float64, as in float32 a true bump
    has a Schmidt rank of 26. ValueError unless features are a finite (B >= 2, D)."""
    return grams(features_BxD)[int(center)]


def grams(features_BxD) -> tuple:
    """`gram` of features and of centred ones, which are read once."""
    features = np.asarray(features_BxD)
    if features.ndim != 2 or features.shape[0] < 2 or features.shape[1] < 1:
        raise ValueError(f"features must be (B >= 2, D >= 1), not {features.shape}")
    check_finite("features", features)
    first_D = features[0].astype(np.float64)
    offsets_BxB, shift_B = np.zeros((len(features), len(features))), np.zeros(len(features))
    varying = np.flatnonzero((features != features[:1]).any(axis=0))  # half of a rectified layer
    for start in range(0, len(varying), BLOCK):
        units = varying[start : start + BLOCK]
        block = features[:, units].astype(np.float64) - first_D[units]
        offsets_BxB += block @ block.T
        shift_B += block @ first_D[units]
    gram_BxB = offsets_BxB + np.add.outer(shift_B, shift_B) + first_D @ first_D
    shown_B = features.any(axis=1)  # a point of zeros has 0, and not what rounding leaves
    mean_B = offsets_BxB.mean(axis=0)
    centred_BxB = offsets_BxB - mean_B[:, None] - (mean_B - mean_B.mean())
    return gram_BxB * np.outer(shown_B, shown_B), centred_BxB


def cosine(gram_BxB):
    """Cosine similarity from a Gram matrix; 0 for a point of zero norm."""
    norm_B = np.sqrt(np.diag(gram_BxB))
    norm_B[norm_B == 0] = 1
    return gram_BxB / norm_B[:, None] / norm_B[None, :]


def l2(gram_BxB):
    """Minus the Euclidean distance. Distances below 1e-8 of the norms are lost to cancellation."""
    square_B = np.diag(gram_BxB)
    squared_BxB = square_B[:, None] + square_B[None, :] - 2 * gram_BxB
    return -np.sqrt(np.maximum(squared_BxB, 0))


def overlap(signals_BxHxW, threshold: float = OVERLAP_THRESHOLD, amplitude: float = 1.0):
    """(B, B) share of the pixels where both signals exceed `threshold * amplitude` (Figure 8)."""
    signals = np.asarray(signals_BxHxW)
    check_finite("signals", signals)
    dark_BxP = (signals > threshold * amplitude).reshape(len(signals), -1).astype(np.float32)
    return (dark_BxP @ dark_BxP.T).astype(np.float64) / dark_BxP.shape[1]


def binary(factors_BxF):
    """Ideal kernel (Eq 3, 4): the share of factors that two points have in common; (B, B)."""
    same = [values[:, None] == values[None, :] for values in np.asarray(factors_BxF).T]
    return sum(equal.astype(np.float64) for equal in same) / len(same)


def correlation(a_P, b_P) -> float:
    """Pearson correlation of two kernels' entries; NaN if one is constant."""
    centred_a, centred_b = a_P - a_P.mean(), b_P - b_P.mean()
    norms = np.linalg.norm(centred_a), np.linalg.norm(centred_b)
    if norms[0] <= VANISHING * np.linalg.norm(a_P) or norms[1] <= VANISHING * np.linalg.norm(b_P):
        return float("nan")
    return float(centred_a @ centred_b / norms[0] / norms[1])


def partial_correlation(a_P, b_P, control_P) -> float:
    """Correlation of a and b beyond a control; NaN if it explains one of them."""
    regressors = np.stack([np.ones(len(control_P)), control_P], axis=1)
    entries = np.stack([a_P, b_P], axis=1)
    residuals = entries - regressors @ np.linalg.lstsq(regressors, entries)[0]
    norms = np.linalg.norm(residuals, axis=0)
    if (norms <= EXPLAINED * np.linalg.norm(entries, axis=0)).any():
        return float("nan")
    return correlation(*residuals.T)


def check_finite(name: str, values_Bx):
    """ValueError naming the first points with a NaN or infinite value."""
    finite = np.isfinite(values_Bx)
    if not finite.all():
        points = np.flatnonzero(~finite.reshape(len(finite), -1).all(axis=1))
        raise ValueError(f"{name}: NaN or infinite values at points {points[:8].tolist()}")
