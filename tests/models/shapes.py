"""Shapes that models are built from."""

import jax
import jax.numpy as jnp

from compgen_jax.models.model import Shapes


def of_image(length: int, side: int, lowering: str = "lax") -> Shapes:
    """A vector of so many numbers to a square image."""
    struct = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
    return Shapes(struct(length), struct(side, side), lowering)
