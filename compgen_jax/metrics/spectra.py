"""How many dimensions a layer uses: the spectrum of its covariance (E18 to E20).

All points and all features enter, where the authors sampled at most 1,000 columns.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics.kernels import gram


class Spectrum(NamedTuple):
    """eigenvalues (B,), largest first; the three counts of its dimensions, each from 1 to B - 1."""

    eigenvalues: np.ndarray
    numerical_rank: int
    energy_rank: int
    participation_ratio: float


def spectrum(features_BxD, threshold: float = 1e-3, energy: float = 0.99) -> Spectrum:
    """Spectrum and effective ranks of features (B, D); `covariance_eigenvalues` has the errors."""
    eigenvalues = covariance_eigenvalues(features_BxD)
    return Spectrum(
        eigenvalues,
        numerical_rank(eigenvalues, threshold),
        energy_rank(eigenvalues, energy),
        participation_ratio(eigenvalues),
    )


def covariance_eigenvalues(features_BxD):
    """Eigenvalues of the (1/B) covariance of the features, largest first; (B,), at least 0.

    Those of the centred Gram matrix over B: a layer of 50,176 features needs no covariance of
    that size. ValueError if the features are constant over the points or not finite.
    """
    eigenvalues = np.linalg.eigvalsh(gram(features_BxD, center=True))[::-1] / len(features_BxD)
    if eigenvalues[0] <= 0:
        raise ValueError("features: constant over the points, so they have no spectrum")
    return np.maximum(eigenvalues, 0)


def numerical_rank(eigenvalues_B, threshold: float = 1e-3) -> int:
    """Eigenvalues above `threshold` times the largest (the authors' 1e-3: standard deviations
    above 3% of the largest)."""
    return int(np.sum(eigenvalues_B > threshold * np.max(eigenvalues_B)))


def energy_rank(eigenvalues_B, energy: float = 0.99) -> int:
    """Fewest eigenvalues, largest first, that sum to at least `energy` of the total."""
    total_B = np.cumsum(eigenvalues_B)
    return int(np.searchsorted(total_B, energy * total_B[-1]) + 1)


def participation_ratio(eigenvalues_B) -> float:
    """(sum l)^2 / sum l^2: the number of equal eigenvalues as spread out as these."""
    return float(np.sum(eigenvalues_B) ** 2 / np.sum(np.square(eigenvalues_B)))
