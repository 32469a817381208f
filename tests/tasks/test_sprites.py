"""Sprites against dSprites' pixel counts, and against loops over pixels in float64."""

import colorsys
import math
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.tasks.sprites import CountsConfig, Sprites, picture

DSPRITES = Sprites(
    side=64, supersample=1, counts=CountsConfig(6, 39, 1, 32, 32), turn="whole", measured=8
)
# White pixels of the data set's images at orientation 0 in the first place, scale .5 to 1.
WHITE = {
    1: (100, 144, 196, 256, 324, 400),
    2: (76, 104, 144, 184, 228, 288),
    3: (58, 84, 108, 140, 182, 222),
}
# The heart's radius every 10 degrees from the cleft to the tip, measured on the same images.
RADII = (.0879, .1254, .1520, .1672, .1750, .1750, .1699, .1613, .1422, .1266, .1133, .1031, .0969,
         .0918, .0918, .0969, .1008, .1133, .1375)  # fmt: skip


def draw(points, settings=DSPRITES):
    return np.asarray(jax.jit(jax.vmap(partial(picture, settings=settings)))(np.float32(points)))


def excess(shape, scale, orientation, pos_x, pos_y, row, column):
    """How far, in pixels or so, a pixel's centre lies beyond the edge; after the data set's
    description, with the measured radii of the heart."""
    dx, dy = column + 0.5 - (16 + 32 * pos_x), row + 0.5 - (16 + 32 * pos_y)
    u = dx * math.cos(orientation) - dy * math.sin(orientation)
    v = dx * math.sin(orientation) + dy * math.cos(orientation)
    if shape == 1:
        return max(abs(u), abs(v)) - 9.6 * scale
    if shape == 2:
        return 7.2 * (math.hypot(u / 12.768, v / 7.2128) - scale)
    angle = math.degrees(math.atan2(abs(u), -v))
    return math.hypot(u, v) - 64 * scale * np.interp(angle, 10 * np.arange(19), RADII)


def test_as_many_pixels_are_white_as_in_dsprites():
    points = [(shape, 0.5 + k / 10, 0, 0, 0) for shape in WHITE for k in range(6)]
    images = draw(points)
    assert images.shape == (18, 64, 64) and set(np.unique(images)) == {0, 1}
    assert_array_equal(images.sum((1, 2)), np.concatenate(list(WHITE.values())))


@pytest.mark.parametrize("shape", WHITE)
def test_a_loop_over_pixels_draws_the_same(shape):
    """Where a pixel's centre lies within rounding of the edge, either is right. The measured radii
    of the heart are 10 degrees apart; up to 8 pixels differ from the data set's."""
    points = [(shape, 0.5 + k / 10, 0.37 + 1.1 * k, k / 31, 1 - k / 5) for k in range(6)]
    most, tolerance = (8, 0.4) if shape == 3 else (64**2, 1e-3)
    for point, image in zip(points, draw(points), strict=True):
        excess_HxW = np.array([[excess(*point, y, x) for x in range(64)] for y in range(64)])
        wrong = (image == 1) != (excess_HxW <= 0)
        assert wrong.sum() <= most and not (wrong & (abs(excess_HxW) > tolerance)).any()


def test_grey_edges_are_the_mean_of_points():
    """Points of 2 x 2 in 32 pixels are the centres of 64 pixels."""
    points = [[3, 0.9, 1.2, 0.3, 0.6]]
    expected = draw(points).reshape(1, 32, 2, 32, 2).mean((2, 4))
    half = draw(points, replace(DSPRITES, side=32, supersample=2))
    assert_allclose(half, expected, atol=1e-6)


def test_hue_colours_the_shape_alone():
    settings = Sprites(side=16, supersample=1, counts=CountsConfig(1, 1, 10, 4, 1))
    hues = (0.0, 0.1, 0.45, 0.9)
    for hue, image in zip(hues, draw([[1, hue, 0.4] for hue in hues], settings), strict=True):
        inside = image.any(axis=-1)
        assert 0 < inside.sum() < 64
        of_shape = np.broadcast_to(colorsys.hsv_to_rgb(hue, 1, 1), (inside.sum(), 3))
        assert_allclose(image[inside], of_shape, atol=1e-5)
