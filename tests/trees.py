"""How far apart two trained networks are."""

import chex
import jax
import numpy as np


def share_apart(params, others, atol: float) -> float:
    """The share of all weights that differ by more than `atol`. AdamW moves a weight by the sign of
    its gradient, which rounding decides where the gradient vanishes: a few may differ."""
    chex.assert_trees_all_equal_shapes(params, others)
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(others), strict=True)
    apart = [np.abs(np.ravel(one) - np.ravel(other)) > atol for one, other in pairs]
    return float(np.mean(np.concatenate(apart)))
