"""Regularisers of low-rank embeddings (section 4.1, Eq 9 to 11; appendix C, Eq 45, 46)."""

from dataclasses import dataclass

import jax.numpy as jnp

from compgen_jax.settings import choice, number

SMALLEST_SHARE = 1e-8  # of a token's energy: below it the logarithm is cut off, as the authors do


@dataclass(frozen=True)
class PenaltyConfig:
    """Added to the loss (paper Eq 10, 11).

    `entropy` and `variance` are their coefficients; both are summed or averaged over tokens;
    the variance is that of the raw vectors (the authors' code) or, scale-free, that of the
    vectors as used, weighted by their share of the embedding's energy.
    """

    entropy: float = number(0.0, low=0, high=1e6, traced=True)
    variance: float = number(0.0, low=0, high=1e6, traced=True)
    tokens: str = choice("sum", "sum", "mean")
    vectors: str = choice("raw", "raw", "scale_free")


def energy_shares(values_NxK):
    """(N, K): the share of every term in its token's energy, lambda_k^2 / sum lambda^2; 0 for a
    token without any."""
    energy_NxK = jnp.square(values_NxK)
    total_Nx1 = jnp.sum(energy_NxK, axis=1, keepdims=True)
    return energy_NxK / jnp.where(total_Nx1 > 0, total_Nx1, 1.0)


def entropy(values_NxK):
    """(N,) entropy in nats of every token's energy over its terms (paper Eq 9, 10; 45): log K
    for K equal terms, 0 for one."""
    shares_NxK = energy_shares(values_NxK)
    return -jnp.sum(shares_NxK * jnp.log(jnp.maximum(shares_NxK, SMALLEST_SHARE)), axis=1)


def variance(vectors_NxKxH, weights_NxK=None):
    """(N,) unbiased variance of the entries of every vector, summed over a token's terms (paper
    Eq 11; 46), or averaged with weights that sum to 1: 0 for constant vectors."""
    spread_NxK = jnp.var(vectors_NxKxH, axis=2, ddof=1)
    return jnp.sum(spread_NxK if weights_NxK is None else weights_NxK * spread_NxK, axis=1)


def embedding_penalty(factors, entropy_weight, variance_weight, config: PenaltyConfig):
    """The regularisers of the embeddings of both factors, weighted; a scalar.

    `factors` are `models.lowrank.Factor`s. On authors' settings (sum over tokens, raw vectors,
    N = K = 32) the two terms start near 17.6 and 1.28.
    """
    over_tokens = jnp.sum if config.tokens == "sum" else jnp.mean

    def vector_variance(factor):
        if config.vectors == "raw":
            return variance(factor.raw_left) + variance(factor.raw_right)
        shares = energy_shares(factor.values)
        return variance(factor.left, shares) + variance(factor.right, shares)

    return sum(
        entropy_weight * over_tokens(entropy(factor.values))
        + variance_weight * over_tokens(vector_variance(factor))
        for factor in factors
    )
