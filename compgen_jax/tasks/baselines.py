"""Trivial predictors: what a model that composes nothing would say.

Each maps what is asked to predictions (B, ...).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp


class Asked(NamedTuple):
    """What a model is asked at B points, and what is known of them.

    points (B, F); inputs: leaves (B, ...); truths (B, ...); nearest (B, ...): the truths that the
    same questions would have at the nearest seen points; held_out (B,) bool.
    """

    points: Any
    inputs: Any
    truths: Any
    nearest: Any
    held_out: Any


def best_constant(asked: Asked):
    """One number for all entries: the mean truth, of seen and of held-out points apart, so that it
    is fitted to the region that it is scored on, as strong as can be."""
    means_B = jnp.mean(asked.truths, axis=tuple(range(1, asked.truths.ndim)))

    def level(mask_B):
        return jnp.sum(jnp.where(mask_B, means_B, 0.0)) / jnp.sum(mask_B)

    levels_B = jnp.where(asked.held_out, level(asked.held_out), level(~asked.held_out))
    shape = (-1,) + (1,) * (asked.truths.ndim - 1)
    return jnp.broadcast_to(levels_B.reshape(shape), asked.truths.shape)


def nearest_seen(asked: Asked):
    """What is true at the nearest seen point."""
    return asked.nearest


BASELINES = {"best_constant": best_constant, "nearest_seen": nearest_seen}
