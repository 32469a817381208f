"""How many dimensions a layer uses: the spectrum of its covariance (E18 to E20)."""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics.kernels import gram


class Spectrum(NamedTuple):
    """Eigenvalues (B,) of the covariance, largest first, and three counts of dimensions:
    eigenvalues above a threshold times the largest, the fewest that sum to a share of the total,
    (sum l)^2 / sum l^2."""

    eigenvalues: np.ndarray
    numerical_rank: int
    energy_rank: int
    participation_ratio: float


def spectrum(features_BxD, threshold: float = 1e-3, energy: float = 0.99) -> Spectrum:
    """Spectrum and effective ranks of the (1/B) covariance of features (B, D), from the centred
    Gram matrix. ValueError if they are constant over the points or not finite."""
    eigenvalues = np.linalg.eigvalsh(gram(features_BxD, center=True))[::-1] / len(features_BxD)
    if eigenvalues[0] <= 0:
        raise ValueError("features: constant over the points, so they have no spectrum")
    eigenvalues = np.maximum(eigenvalues, 0)
    total = np.cumsum(eigenvalues)
    return Spectrum(
        eigenvalues,
        int(np.sum(eigenvalues > threshold * np.max(eigenvalues))),
        int(np.searchsorted(total, energy * total[-1]) + 1),
        float(np.sum(eigenvalues) ** 2 / np.sum(np.square(eigenvalues))),
    )
