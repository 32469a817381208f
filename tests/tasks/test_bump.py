import math

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import ImageConfig
from compgen_jax.tasks import bump

N = 8
POINTS = [(0.0, 0.0), (5.0, 2.0), (3.25, 6.75), (-1.0, 8.5)]


def by_hand(x, y, sigma, amplitude):
    """The definition in float64, pixel by pixel: row is y, column is x."""
    image = np.zeros((N, N))
    for row in range(N):
        for column in range(N):
            exponent = 0.0
            if x is not None:
                exponent += (column - x) ** 2
            if y is not None:
                exponent += (row - y) ** 2
            image[row, column] = amplitude * math.exp(-exponent / (2 * sigma**2))
    return image


@pytest.mark.parametrize(("x", "y"), [*POINTS, (5.0, None), (None, 2.5), (None, None)])
@pytest.mark.parametrize(("sigma", "amplitude"), [(1.0, 1.0), (1.5, 0.7)])
def test_bump_and_stripes_equal_their_definition(x, y, sigma, amplitude):
    config = ImageConfig(sigma=sigma, amplitude=amplitude)
    signal = bump.bump(x, y, N, config)
    chex.assert_shape(signal, (N, N))
    np.testing.assert_allclose(signal, by_hand(x, y, sigma, amplitude), rtol=1e-5, atol=1e-7)


def test_plus_is_the_sum_of_its_stripes():
    config = ImageConfig(sigma=1.2, amplitude=0.5)
    expected = by_hand(5.0, None, 1.2, 0.5) + by_hand(None, 2.0, 1.2, 0.5)
    np.testing.assert_allclose(bump.plus(5.0, 2.0, N, config), expected, rtol=1e-5, atol=1e-7)


def test_polarity_and_its_inverse():
    upright, inverted = (ImageConfig(polarity=name) for name in ("upright", "inverted"))
    signal = bump.bump(5.0, 2.0, N, upright)
    assert float(bump.to_image(signal, upright)[2, 5]) == 1.0  # image[y, x]
    assert float(bump.to_image(signal, inverted)[2, 5]) == 0.0
    for config in (upright, inverted):
        np.testing.assert_allclose(
            bump.to_signal(bump.to_image(signal, config), config), signal, atol=1e-7
        )


def test_blank_error_is_the_known_baseline():
    """A blank image's MSE at N = 28, sigma = 1: pi sigma^2 / N^2 in the interior (0.00401)."""
    signal = bump.bump(14.0, 14.0, 28, ImageConfig())
    assert float(jnp.mean(jnp.square(signal))) == pytest.approx(math.pi / 28**2, rel=1e-3)
