"""Low rank or constancy of the embeddings of a factor's tokens (section 4.1, Figures 3b, 6),
E[t][row y, column x] = sum_k lambda_k l_k r_k^T with l_k and r_k not orthogonal."""

import numpy as np

from compgen_jax.metrics.spectra import exp_entropy
from compgen_jax.statistics import mean_of_known


def embedding_numbers(of_x_TxNxNxN, of_y_TxNxNxN, weights_Tx2NxK) -> dict:
    """By name, of every seed (T,), means over the tokens of both factors.

      top_share:         the largest squared singular value over their sum
      spectrum_entropy:  exp(entropy) of the squared singular values
      lambda_entropy:    exp(entropy) of lambda^2, which the penalty sees
      constant_share:    share of energy that is constant along the other factor's axis; .x, .y

    `weights` are the lambdas of the tokens of x and then of y. NaN without energy.
    """
    of_x, of_y, weights = (
        np.asarray(values, np.float64) for values in (of_x_TxNxNxN, of_y_TxNxNxN, weights_Tx2NxK)
    )
    singular = np.linalg.svd(np.concatenate([of_x, of_y], axis=1), compute_uv=False)
    energy = np.sum(singular**2, axis=-1)
    top_share = singular[..., 0] ** 2 / np.where(energy > 0, energy, np.nan)
    x, y = constant_share(of_x, axis=2), constant_share(of_y, axis=3)
    return {
        "top_share": mean_of_known(top_share),
        "spectrum_entropy": mean_of_known(exp_entropy(singular)),
        "lambda_entropy": mean_of_known(exp_entropy(weights)),
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
