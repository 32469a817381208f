"""Disentangled codes of a point (paper section 3.1): x and y are coded by separate units.

Each code is defined for one continuous coordinate in pixels; a point's code is the
concatenation [code(x); code(y)].
"""

import jax
import jax.numpy as jnp

from compgen_jax.config import CodeConfig
from compgen_jax.tasks.bump import is_missing, profile


def encode(x, y, grid: int, config: CodeConfig):
    """Code of the point (x, y), shape (E,); None or NaN is a missing factor."""
    return jnp.concatenate([encode_coordinate(x, grid, config), encode_coordinate(y, grid, config)])


def encode_coordinate(coordinate, grid: int, config: CodeConfig):
    """Code of one scalar coordinate, shape (E/2,), or of a missing one (None or NaN)."""
    code = CODES[config.name]
    missing, coordinate = is_missing(coordinate)
    if config.missing == "zero":
        absent = jnp.zeros(code_length(grid, config) // 2)
    else:
        absent = code(jnp.float32(config.missing_coordinate), grid, config)
    return jnp.where(missing, absent, code(coordinate, grid, config))


def code_length(grid: int, config: CodeConfig) -> int:
    """E, the length of a point's code."""
    per_factor = {"bump": grid, "onehot": grid, "ramp": 1, "positional": 2 * config.frequencies}
    return 2 * per_factor[config.name]


def bump_code(coordinate, grid, config):
    """exp(-(i - c)^2 / (2 w sigma^2)) for i = 0..N-1: `width` w multiplies the variance."""
    return profile(coordinate, grid, config.width**0.5 * config.sigma)


def ramp_code(coordinate, grid, config):
    """The coordinate itself, in pixels or as a fraction of the grid (0 to 1)."""
    scale = 1.0 if config.scale == "pixels" else 1.0 / (grid - 1)
    return scale * coordinate[None]


@jax.custom_jvp
def _nearest_pixel(coordinate):
    return jnp.round(coordinate)


@_nearest_pixel.defjvp
def _no_derivative(primals, tangents):
    raise ValueError(
        "config.task.code.name='onehot': a one-hot code is a step function and has no derivative "
        "in x or y; codes with one: bump, ramp, positional"
    )


def onehot_code(coordinate, grid, config):
    """1 for the nearest pixel, 0 elsewhere (all 0 off the grid). Differentiating it raises
    ValueError."""
    return (jnp.arange(grid) == _nearest_pixel(coordinate)).astype(jnp.float32)


def positional_code(coordinate, grid, config):
    """[sin(w_k c); cos(w_k c)], k = 0..F-1, for geometric frequencies w_k.

    The paper names this code and gives no formula; here the wavelengths run from 2N pixels, so
    that no two coordinates share a code, down to 4 pixels, which turns the code of neighbouring
    pixels by a quarter.
    """
    exponent_F = jnp.arange(config.frequencies) / (config.frequencies - 1)
    phase_F = coordinate * (jnp.pi / grid) * (grid / 2.0) ** exponent_F
    return jnp.concatenate([jnp.sin(phase_F), jnp.cos(phase_F)])


CODES = {
    "bump": bump_code,
    "ramp": ramp_code,
    "onehot": onehot_code,
    "positional": positional_code,
}
