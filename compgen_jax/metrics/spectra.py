"""How many dimensions a layer uses: the spectrum of its covariance (E18 to E20)."""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics.kernels import gram

RANK_TOLERANCE = 1e-3  # of the largest eigenvalue
ENERGY = 0.99


class Spectrum(NamedTuple):
    """Eigenvalues (B,) of the covariance, largest first, and three counts of dimensions:
    eigenvalues above `RANK_TOLERANCE` of the largest, the fewest that sum to `ENERGY` of the total,
    (sum l)^2 / sum l^2."""

    eigenvalues: np.ndarray
    numerical_rank: int
    energy_rank: int
    participation_ratio: float


def spectrum(features_BxD) -> Spectrum:
    """Of the (1/B) covariance of features (B, D), from the centred Gram matrix. ValueError if they
    are not finite."""
    eigenvalues = np.linalg.eigvalsh(gram(features_BxD, center=True))[::-1] / len(features_BxD)
    eigenvalues = np.maximum(eigenvalues, 0)
    total = np.cumsum(eigenvalues)
    return Spectrum(
        eigenvalues,
        int(np.sum(eigenvalues > RANK_TOLERANCE * np.max(eigenvalues))),
        int(np.searchsorted(total, ENERGY * total[-1]) + 1),
        float(np.sum(eigenvalues) ** 2 / np.sum(np.square(eigenvalues))),
    )


def exp_entropy(values_xK):
    """(...) exp(entropy) of the shares of the squared values: from 1, a single one, to K, all
    equal; NaN of zeros."""
    total = np.sum(values_xK**2, axis=-1, keepdims=True)
    share_xK = values_xK**2 / np.where(total > 0, total, np.nan)
    log_xK = np.log(np.where(share_xK > 0, share_xK, 1))
    return np.exp(-np.sum(share_xK * log_xK, axis=-1))
