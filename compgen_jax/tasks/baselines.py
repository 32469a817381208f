"""Trivial predictors: what a model that composes nothing would say.

Each maps the truths of all cells (B, ...), the index of every cell's nearest seen cell (B,) and
which cells are held out (B,) to predictions (B, ...).
"""

import jax.numpy as jnp


def best_constant(truths, nearest_seen, held_out):
    """One number for all entries: the mean truth, of seen and of held-out cells apart, so that it
    is fitted to the region that it is scored on, as strong as can be."""
    means_B = jnp.mean(truths, axis=tuple(range(1, truths.ndim)))

    def level(mask_B):
        return jnp.sum(jnp.where(mask_B, means_B, 0.0)) / jnp.sum(mask_B)

    levels_B = jnp.where(held_out, level(held_out), level(~held_out))
    shape = (-1,) + (1,) * (truths.ndim - 1)
    return jnp.broadcast_to(levels_B.reshape(shape), truths.shape)


def nearest_seen(truths, nearest_seen, held_out):
    """The truth of the nearest seen cell."""
    return truths[nearest_seen]


BASELINES = {"best_constant": best_constant, "nearest_seen": nearest_seen}
