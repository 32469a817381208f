"""Low rank or constancy of the embeddings of a factor's tokens (section 4.1, Figures 3b, 6),
E[t][row y, column x] = sum_k lambda_k l_k r_k^T with l_k and r_k not orthogonal."""

import numpy as np

from compgen_jax.metrics.kernels import finite
from compgen_jax.statistics import mean_of_known


def embedding_numbers(of_x_TxNxNxN, of_y_TxNxNxN, weights_Tx2NxK) -> dict:
    """By name, of every seed (T,), means over the tokens of both factors.

      top_share:         the largest squared singular value over their sum
      spectrum_entropy:  exp(entropy) of the squared singular values
      lambda_entropy:    exp(entropy) of lambda^2, which the penalty sees
      constant_share:    share of energy that is constant along the other factor's axis; .x, .y

    `of_x[t, k]` is the matrix [row y, column x] of token k, `weights` are the lambdas of the tokens
    of x and then of y. NaN without energy.
    """
    of_x, of_y = finite("of_x", of_x_TxNxNxN, 4), finite("of_y", of_y_TxNxNxN, 4)
    weights = finite("weights", weights_Tx2NxK, 3)
    singular = np.linalg.svd(np.concatenate([of_x, of_y], axis=1), compute_uv=False)
    x, y = constant_share(of_x, axis=2), constant_share(of_y, axis=3)
    return {
        "top_share": mean_of_known(_energy_shares(singular).max(axis=2)),
        "spectrum_entropy": mean_of_known(_terms(singular)),
        "lambda_entropy": mean_of_known(_terms(weights)),
        "constant_share": (x + y) / 2,
        "constant_share.x": x,
        "constant_share.y": y,
    }


def constant_share(matrices_TxVxHxW, axis: int):
    """(T,) share of the squared norm that is constant along an axis: 2 of x, 3 of y."""
    means = matrices_TxVxHxW.mean(axis=axis, keepdims=True)
    varying_T, energy_T = (
        np.sum(part**2, axis=(2, 3)).sum(axis=1)
        for part in (matrices_TxVxHxW - means, matrices_TxVxHxW)
    )
    # from what varies, not from the means' energy, so that 1 is exact and never exceeded
    return np.clip(1 - varying_T / np.where(energy_T > 0, energy_T, np.nan), 0, 1)


def _energy_shares(values_xK):
    total = np.sum(values_xK**2, axis=-1, keepdims=True)
    return values_xK**2 / np.where(total > 0, total, np.nan)


def _terms(values_xK):
    """(...) exp(entropy) of the shares of the squared values: from 1, a single one, to K, all
    equal."""
    share_xK = _energy_shares(values_xK)
    log_xK = np.log(np.where(share_xK > 0, share_xK, 1))
    return np.exp(-np.sum(share_xK * log_xK, axis=-1))
