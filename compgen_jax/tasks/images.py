"""Scores of images that show one object at a place.

An image here is a *signal*, which is 0 where nothing is drawn. Positions are (x, y) in pixels.
"""

import jax.numpy as jnp

from compgen_jax.tasks.task import mean_squared_error

POSITION_TOLERANCE = 1.0  # pixels on either axis
IMAGE_TOLERANCE = 0.25  # of a blank image's error
# what counts as rendered
LEAST_R2 = 0.75
LEAST_GAIN, MOST_GAIN = 0.5, 2.0


def brightest_pixel(signal_HxW):
    """(x, y) of the largest pixel; (-inf, -inf) for an image that is not finite."""
    row, column = jnp.unravel_index(jnp.argmax(signal_HxW), signal_HxW.shape)
    position = jnp.array([column, row], jnp.float32)
    return jnp.where(jnp.isfinite(signal_HxW).all(), position, -jnp.inf)


def scores(signal_HxW, truth_HxW, position):
    """The scores of one image, whose object should be at `position`, by name: `exact_accuracy`
    whether the brightest pixel is the requested one, `position_accuracy` and `image_accuracy`
    whether it and the error are within their tolerance."""
    error = mean_squared_error(signal_HxW, truth_HxW)
    blank = jnp.mean(jnp.square(truth_HxW))
    distance = jnp.max(jnp.abs(brightest_pixel(signal_HxW) - position))
    return {
        "mse": error,
        "exact_accuracy": distance < 0.5,
        "position_accuracy": distance <= POSITION_TOLERANCE,
        "image_accuracy": error <= IMAGE_TOLERANCE * blank,
        "blank_mse": blank,
    }


def rendered(prediction_HxW, truth_HxW, nearest_HxW=None, is_seen=False):
    """Whether the prediction shows the truth: a scalar bool. A prediction is rendered if

      (i) its correlation with the truth is positive, and squared at least `LEAST_R2` (a bump
        shifted by half a sigma keeps .88, by a whole sigma .60);
      (ii) its gain, the slope of its least-squares fit by the truth and a constant, is between
        `LEAST_GAIN` and `MOST_GAIN`;
      (iii) unless the point is seen, it correlates more with the truth than with `nearest_HxW`, the
        true image at the nearest ID cell.

    What is constant or not finite is not rendered.
    """
    covariance = _covariance(prediction_HxW, truth_HxW)
    variance, truth_variance = (_covariance(x, x) for x in (prediction_HxW, truth_HxW))
    gain = covariance / truth_variance
    alike = (covariance > 0) & (covariance**2 >= LEAST_R2 * variance * truth_variance)
    is_rendered = alike & (LEAST_GAIN <= gain) & (gain <= MOST_GAIN)
    if nearest_HxW is None:
        return is_rendered
    nearest_variance = _covariance(nearest_HxW, nearest_HxW)
    # both correlations, times the standard deviations of all three images
    with_truth = covariance * jnp.sqrt(nearest_variance)
    with_nearest = _covariance(prediction_HxW, nearest_HxW) * jnp.sqrt(truth_variance)
    return is_rendered & (is_seen | (nearest_variance == 0) | (with_truth > with_nearest))


def squared_correlation(prediction_HxW, truth_HxW):
    """0 for one that is not positive."""
    covariance = _covariance(prediction_HxW, truth_HxW)
    variances = _covariance(prediction_HxW, prediction_HxW) * _covariance(truth_HxW, truth_HxW)
    positive = (covariance > 0) & (variances > 0)
    return jnp.where(positive, covariance**2 / jnp.where(positive, variances, 1.0), 0.0)


def _covariance(a_HxW, b_HxW):
    return jnp.mean((a_HxW - jnp.mean(a_HxW)) * (b_HxW - jnp.mean(b_HxW)))
