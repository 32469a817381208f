"""How many dimensions a layer uses: the spectrum of its covariance (E18 to E20)."""

import math
from typing import NamedTuple

import numpy as np

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


def spectrum(centred_BxB) -> Spectrum:
    """Of the (1/B) covariance of features with this centred Gram matrix."""
    eigenvalues = np.linalg.eigvalsh(centred_BxB)[::-1] / len(centred_BxB)
    eigenvalues = np.maximum(eigenvalues, 0)
    total = np.cumsum(eigenvalues)
    return Spectrum(
        eigenvalues,
        int(np.sum(eigenvalues > RANK_TOLERANCE * np.max(eigenvalues))),
        int(np.searchsorted(total, ENERGY * total[-1]) + 1),
        float(np.sum(eigenvalues) ** 2 / np.sum(np.square(eigenvalues))),
    )


def singular_values_of_pairs(pairs):
    """Singular values, largest first, of a kernel (V, V, ...) from pairs of values of one factor to
    pairs of the others. Swapping both pairs changes nothing, so symmetric and antisymmetric ones do
    not mix."""
    size, others = len(pairs), math.isqrt(pairs.size // len(pairs) ** 2)
    pairs, values = pairs.reshape(size, size, others, others), []
    for sign in (1, -1):
        both = pairs + sign * pairs.swapaxes(0, 1)
        rows, columns = (np.triu_indices(n, k=int(sign < 0)) for n in (size, others))
        block = both[rows][:, *columns]
        for axis, (first, second) in enumerate((rows, columns)):
            block *= np.expand_dims(np.where(first == second, np.sqrt(0.5), 1), 1 - axis)
        values.append(np.linalg.svd(block, compute_uv=False))
    return np.sort(np.concatenate(values))[::-1]


def exp_entropy(values_xK):
    """(...) exp(entropy) of the shares of the squared values: from 1, a single one, to K, all
    equal; NaN of zeros."""
    total = np.sum(values_xK**2, axis=-1, keepdims=True)
    share_xK = values_xK**2 / np.where(total > 0, total, np.nan)
    log_xK = np.log(np.where(share_xK > 0, share_xK, 1))
    return np.exp(-np.sum(share_xK * log_xK, axis=-1))
