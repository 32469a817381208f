"""Losses of a batch; smaller is better, all are means so that they do not grow with the batch."""

import chex
import jax.numpy as jnp


def pixel_loss(images, targets, weights):
    """Weighted mean over examples of the mean squared error over pixels (paper Eq 12).

    Args: images and targets (B, H, W); weights (B,), not all zero.
    """
    chex.assert_equal_shape([images, targets])
    errors_B = jnp.mean(jnp.square(images - targets), axis=(1, 2))
    return jnp.sum(weights * errors_B) / jnp.sum(weights)
