"""Low rank or spatial constancy: the embeddings of a factor's tokens (section 4.1, Figures 3b, 6).

Token t of one factor has the matrix E[t][row y, column x]. The paper's entropy penalty sees the
weights lambda of E = sum_k lambda_k l_k r_k^T, with l_k and r_k of unit norm but not orthogonal:
they are no singular values, so a matrix can be near rank one while their entropy is high. What
composes is a stripe: an embedding of x that is constant along y. A rank-one matrix is one only
if its left vector is constant, hence `constant_share` beside the measures of rank.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics.kernels import check_finite


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


def embedding_numbers(of_x_TxNxNxN, of_y_TxNxNxN, weights_Tx2NxK) -> dict:
    """By name, of every seed (T,): means over the tokens of both factors of

    top_share:        the largest squared singular value over their sum; 1 is rank one.
    spectrum_entropy: exp(entropy) of the squared singular values; 1 is rank one.
    lambda_entropy:   exp(entropy) of lambda^2, which the penalty sees and which are none;

    constant_share:   share of energy that is constant along the other factor's axis, mean of the
                      factors; constant_share.x and .y are of one.

    `of_x[t, k]` and `of_y[t, k]` are the matrices [row y, column x] of token k, `weights` the
    lambdas of the tokens of x and then of y. Zero matrices are left out of the first three. NaN
    without energy; ValueError if the seeds or the tokens differ, and as the functions above.
    """
    of_x, of_y, weights = (
        np.asarray(each) for each in (of_x_TxNxNxN, of_y_TxNxNxN, weights_Tx2NxK)
    )
    if (
        not (of_x.ndim == of_y.ndim == 4 and weights.ndim == 3)
        or not len(of_x) == len(of_y) == len(weights)
        or of_x.shape[1] + of_y.shape[1] != weights.shape[1]
    ):
        raise ValueError(
            "matrices (T, N, N, N) of x and of y and weights (T, 2N, K) needed, not "
            f"{of_x.shape}, {of_y.shape} and {weights.shape}"
        )
    numbers = []
    for one_x, one_y, one_weights in zip(of_x, of_y, weights, strict=True):
        singular = singular_values(np.concatenate([one_x, one_y]))
        x, y = constant_share(one_x, "y").overall, constant_share(one_y, "x").overall
        numbers.append(
            {
                "top_share": _mean_of_known(top_share(singular)),
                "spectrum_entropy": _mean_of_known(spectrum_entropy(singular)),
                "lambda_entropy": _mean_of_known(lambda_entropy(one_weights)),
                "constant_share": (x + y) / 2,
                "constant_share.x": x,
                "constant_share.y": y,
            }
        )
    return {name: np.array([each[name] for each in numbers]) for name in numbers[0]}


def _mean_of_known(values):
    return np.nan if np.isnan(values).all() else np.nanmean(values)


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
