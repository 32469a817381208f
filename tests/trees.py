"""How far apart the results of two programs, and two trained networks, may be."""

import chex
import numpy as np
from jax.flatten_util import ravel_pytree

# Two compiled programs agree to rounding only: what is added, fused and contracted first is the
# compiler's choice, and another one on another processor. A program that runs twice has the same
# bits.
TWO_PROGRAMS = {"rtol": 1e-5, "atol": 1e-6}


def share_apart(params, others, atol: float) -> float:
    """The share of all weights that differ by more than `atol`. AdamW moves a weight by the sign of
    its gradient, which rounding decides where the gradient vanishes: a few may differ."""
    chex.assert_trees_all_equal_shapes(params, others)
    one, other = (ravel_pytree(each)[0] for each in (params, others))
    return np.mean(np.abs(one - other) > atol)
