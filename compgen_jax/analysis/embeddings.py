"""Low rank or spatial constancy: the embeddings of a factor's tokens (section 4.1, Figures 3b, 6).

Token t of one factor has the matrix E[t][row y, column x]. The paper's entropy penalty sees the
weights lambda of E = sum_k lambda_k l_k r_k^T, with l_k and r_k of unit norm but not orthogonal:
they are no singular values, so a matrix can be near rank one while their entropy is high. What
composes is a stripe: an embedding of x that is constant along y. A rank-one matrix is one only
if its left vector is constant, hence `constant_share` beside the measures of rank.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.analysis.kernels import check_finite


def singular_values(matrices_TxHxW):
    """Singular values of every token's matrix, largest first; (T, min(H, W)) float64.

    ValueError if the matrices are not a finite (T, H, W) without empty axis.
    """
    return np.linalg.svd(_checked_matrices(matrices_TxHxW), compute_uv=False)


def spectrum_entropy(values_TxK):
    """exp(entropy) of p = s^2 / sum s^2 per token: from 1, rank one, to K, all equal; (T,).

    `values` are singular values. NaN for a zero matrix; ValueError if not a finite (T, K).
    """
    share_TxK = _energy_shares(values_TxK)
    log_TxK = np.log(np.where(share_TxK > 0, share_TxK, 1))
    return np.exp(-np.sum(share_TxK * log_TxK, axis=1))


def lambda_entropy(values_TxK):
    """exp(entropy) of p = lambda^2 / sum lambda^2 per token, from 1 to K; (T,).

    Its log, in nats, summed over the tokens is the paper's penalty, from weights of any sign.
    It is the `spectrum_entropy` of the matrices only if the l_k, and the r_k, are orthonormal.
    Errors and NaN as there.
    """
    return spectrum_entropy(values_TxK)


def top_share(values_TxK):
    """s_1^2 / sum s^2 per token, from 1/K to 1, rank one; (T,). NaN for a zero matrix."""
    return _energy_shares(values_TxK).max(axis=1)


def participation(values_TxK):
    """(sum s^2)^2 / sum s^4 per token: from 1, rank one, to K; (T,). NaN for a zero matrix."""
    return 1 / np.sum(_energy_shares(values_TxK) ** 2, axis=1)


class ConstantShare(NamedTuple):
    """tokens (T,) and, weighted by the tokens' energy, overall: 0 to 1; NaN without energy."""

    tokens: np.ndarray
    overall: float


def constant_share(matrices_TxHxW, axis: str) -> ConstantShare:
    """Share of the embeddings' squared norm that is constant along the irrelevant axis.

    `axis` is 'y' (over the rows) for embeddings of x, whose stripe is vertical, and 'x' (over
    the columns) for those of y. It is 1 if and only if the matrices are constant along that
    axis, and expected to be 1/H ('y') or 1/W ('x') for iid noise. ValueError for another axis or
    matrices that are not a finite (T, H, W).
    """
    if axis not in ("y", "x"):
        raise ValueError(f"axis must be 'y' or 'x', not {axis!r}")
    matrices = _checked_matrices(matrices_TxHxW)
    number = {"y": 1, "x": 2}[axis]
    means = matrices.mean(axis=number, keepdims=True)
    varying_T = np.sum((matrices - means) ** 2, axis=(1, 2))
    energy_T = np.sum(matrices**2, axis=(1, 2))
    energies = np.append(energy_T, energy_T.sum())
    # what is left, and not the means' energy, so that 1 is exact and never exceeded
    shares = 1 - _ratio(np.append(varying_T, varying_T.sum()), energies)
    shares = np.clip(shares, 0, 1)
    return ConstantShare(shares[:-1], float(shares[-1]))


def _checked_matrices(matrices_TxHxW):
    matrices = np.asarray(matrices_TxHxW, np.float64)
    if matrices.ndim != 3 or 0 in matrices.shape:
        raise ValueError(f"matrices must be (T, H, W), not {matrices.shape}")
    check_finite("matrices", matrices)
    return matrices


def _energy_shares(values_TxK):
    values = np.asarray(values_TxK, np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"values must be (T, K), not {values.shape}")
    check_finite("values", values)
    return _ratio(values**2, np.sum(values**2, axis=1, keepdims=True))


def _ratio(part, total):
    total = np.broadcast_to(total, part.shape)
    return np.divide(part, total, out=np.full(part.shape, np.nan), where=total > 0)
