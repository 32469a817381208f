"""How a network is told where a pixel is."""

import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import require

LONGEST = 10_000.0  # the sinusoids' wavelengths are from 2 pi to nearly 2 pi times this, in pixels


def position_code(grid: int, width: int) -> np.ndarray:
    """(N, N, width), indexed [y, x]: [sin(w_i x); cos(w_i x); sin(w_i y); cos(w_i y)], w_i =
    10000^(-4 i / width), i = 0..width/4 - 1 (Vaswani et al. 2017, section 3.5, for each axis).
    """
    frequencies = LONGEST ** (-np.arange(width // 4) / (width // 4))
    phases = np.arange(grid)[:, None] * frequencies
    axis = np.concatenate([np.sin(phases), np.cos(phases)], axis=-1)
    shape = (grid, grid, width // 2)
    along_x, along_y = np.broadcast_to(axis, shape), np.broadcast_to(axis[:, None], shape)
    return np.concatenate([along_x, along_y], axis=-1).astype(np.float32)


def check_width(width: int, name: str):
    """Raises ConfigError for a number of channels that `position_code` cannot fill."""
    why = "its position code has a sine and a cosine for each axis"
    require(width % 4 == 0, "model.width", width, f"must be divisible by 4 for {name} ({why})")


def with_coordinates(x, side):
    """x (..., H, H, C) with two more channels: a pixel's x and its y, which rise from -1 to 1 over
    the first `side` pixels."""
    along = 2 * jnp.arange(x.shape[-2]) / (side - 1) - 1
    channels = jnp.stack(jnp.meshgrid(along, along), axis=-1)
    return jnp.concatenate([x, jnp.broadcast_to(channels, (*x.shape[:-1], 2))], axis=-1)
