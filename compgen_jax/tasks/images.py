"""Scores of images that show one thing at a place.

The one owner of where a peak is, of what counts as right and of the error. Images are *signals*,
0 where the image is blank: a task's `prediction` undoes the polarity. Positions are (x, y)
in pixels, x the column.
"""

import jax.numpy as jnp

# what counts as rendered
LEAST_R2 = 0.75
LEAST_GAIN, MOST_GAIN = 0.5, 2.0


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


def rendered(prediction_HxW, truth_HxW, nearest_HxW=None):
    """Whether the prediction shows the truth; a scalar bool, under `jit` and `vmap` too.

    It does if
      (i) its correlation with the truth over all pixels is positive, and squared at least
        `LEAST_R2`: a bump shifted by half a sigma keeps .88, by a whole sigma .60;
      (ii) its gain, the slope of its least-squares fit by the truth and a constant, is from
        `LEAST_GAIN` to `MOST_GAIN`;
      (iii) it correlates more with the truth than with `nearest_HxW`, if that is given: the true
        image at the ID cell nearest to a held-out point. A constant image correlates with nothing.

    So the prediction's level does not matter. A constant prediction, and one with a pixel that is
    not finite, is not rendered.
    """
    covariance = _covariance(prediction_HxW, truth_HxW)
    variance, truth_variance = (_covariance(x, x) for x in (prediction_HxW, truth_HxW))
    gain = covariance / truth_variance
    alike = (covariance > 0) & (covariance**2 >= LEAST_R2 * variance * truth_variance)
    found = alike & (LEAST_GAIN <= gain) & (gain <= MOST_GAIN)
    if nearest_HxW is None:
        return found
    # both correlations times the prediction's standard deviation
    nearest_variance = _covariance(nearest_HxW, nearest_HxW)
    of_truth = covariance * jnp.sqrt(nearest_variance)
    of_nearest = _covariance(prediction_HxW, nearest_HxW) * jnp.sqrt(truth_variance)
    return found & ((nearest_variance == 0) | (of_truth > of_nearest))


def _covariance(a_HxW, b_HxW):
    return jnp.mean((a_HxW - jnp.mean(a_HxW)) * (b_HxW - jnp.mean(b_HxW)))


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
