"""Scores of images that show one thing at a place.

The one owner of where a peak is, of what counts as right and of the error. Images are *signals*,
0 where the image is blank: a task's `prediction` undoes the polarity. Positions are (x, y)
in pixels, x the column.
"""

import jax.numpy as jnp


def mean_squared_error(signal_HxW, truth_HxW):
    """Over pixels; leading axes are carried through."""
    return jnp.mean(jnp.square(signal_HxW - truth_HxW), axis=(-2, -1))


def brightest_pixel(signal_HxW):
    """(x, y) of the largest pixel. Not-a-number images have no position: (-inf, -inf)."""
    row, column = jnp.unravel_index(jnp.argmax(signal_HxW), signal_HxW.shape)
    position = jnp.array([column, row], jnp.float32)
    return jnp.where(jnp.isfinite(signal_HxW).all(), position, -jnp.inf)


def position_error(signal_HxW, position):
    """Chebyshev distance in pixels from the brightest pixel to the requested (x, y)."""
    return jnp.max(jnp.abs(brightest_pixel(signal_HxW) - position))


def scores(signal_HxW, truth_HxW, position, position_tolerance: float, image_tolerance: float):
    """`mse`; whether the brightest pixel is the requested one (`exact_accuracy`), or within
    `position_tolerance` pixels on both axes (`position_accuracy`); whether the error is at most
    `image_tolerance` of a blank image's (`image_accuracy`); and that error (`blank_mse`)."""
    error = mean_squared_error(signal_HxW, truth_HxW)
    blank = mean_squared_error(jnp.zeros_like(truth_HxW), truth_HxW)
    distance = position_error(signal_HxW, position)
    return {
        "mse": error,
        "exact_accuracy": distance < 0.5,
        "position_accuracy": distance <= position_tolerance,
        "image_accuracy": error <= image_tolerance * blank,
        "blank_mse": blank,
    }
