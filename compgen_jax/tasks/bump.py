"""Images of a point: bump, stripes and plus (paper section 3.1 and Figure 4a).

The one owner of the axis order (`image[y, x]`, pixel centres at the integers 0..N-1) and of
the polarity. A *signal* is 0 on a blank image and `amplitude` where a bump peaks; an *image*
is what a decoder is asked for: the signal itself ('upright') or one minus it ('inverted').
"""

import jax.numpy as jnp

from compgen_jax.config import ImageConfig


def profile(coordinate, grid: int, sigma: float):
    """exp(-(i - c)^2 / (2 sigma^2)) at the pixel centres i = 0..N-1; shape (N,).

    `coordinate` is a scalar in pixels; a missing factor (`is_missing`) has the profile 1
    everywhere.
    """
    missing, coordinate = is_missing(coordinate)
    offset_N = jnp.arange(grid, dtype=jnp.float32) - coordinate
    return jnp.where(missing, 1.0, jnp.exp(-jnp.square(offset_N) / (2 * sigma**2)))


def is_missing(coordinate):
    """Whether a scalar coordinate is that of a missing factor, None or NaN, and the coordinate
    with 0 instead, of which any function has a derivative."""
    coordinate = (
        jnp.float32(jnp.nan) if coordinate is None else jnp.asarray(coordinate, jnp.float32)
    )
    missing = jnp.isnan(coordinate)
    return missing, jnp.where(missing, 0.0, coordinate)


def bump(x, y, grid: int, config: ImageConfig):
    """Signal of the product of the present factors; shape (N, N), range [0, amplitude].

    A bump for two coordinates; for a missing y (None or NaN) the vertical stripe at x, for a
    missing x the horizontal stripe at y.
    """
    row_H = profile(y, grid, config.sigma)
    column_W = profile(x, grid, config.sigma)
    return config.amplitude * row_H[:, None] * column_W[None, :]


def plus(x, y, grid: int, config: ImageConfig):
    """Signal of the additive conjunction: both stripes summed; range [0, 2 amplitude]."""
    return bump(x, None, grid, config) + bump(None, y, grid, config)


def to_image(signal, config: ImageConfig):
    """The decoder's target for a signal, in the configured polarity."""
    return 1.0 - signal if config.polarity == "inverted" else signal


def to_signal(image, config: ImageConfig):
    """Inverse of `to_image`; for a decoder's output too."""
    return 1.0 - image if config.polarity == "inverted" else image
