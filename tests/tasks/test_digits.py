"""Digits of the font: their outline's area, their holes, their place, and which way is up."""

import numpy as np
import pytest
from scipy import ndimage

from compgen_jax.tasks import digits

SIDES = (8, 16, 28)
HOLES = {0: 1, 4: 1, 6: 1, 8: 2, 9: 1}


@pytest.mark.parametrize("digit", range(10))
def test_the_ink_is_the_area_of_the_outline(digit):
    """By the shoelace formula: outlines and their holes go round in opposite directions."""
    polygons = digits._outline(digit)
    corners = np.concatenate(polygons)
    middle = (corners.min(0) + corners.max(0)) / 2
    scale = 12.5 / max(np.hypot(*(corner - middle)) for corner in corners)
    area = abs(sum(
        np.sum(p[:-1, 0] * p[1:, 1] - p[1:, 0] * p[:-1, 1]) / 2 for p in polygons
    )) * scale**2  # fmt: skip
    image = digits.drawn(digit, 28)
    assert image.dtype == np.float32 and image.shape == (28, 28)
    assert image.sum(dtype=np.float64) == pytest.approx(area, rel=0.01)
    assert 0 <= image.min() and image.max() == 1
    assert ((image > 0) & (image < 1)).any()  # antialiased


@pytest.mark.parametrize("digit", range(10))
def test_every_digit_is_one_piece_with_its_holes(digit):
    image = digits.drawn(digit, 28)
    assert ndimage.label(image > 0.5)[1] == 1
    _, blanks = ndimage.label(image < 0.5)
    assert blanks - 1 == HOLES.get(digit, 0)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("digit", range(10))
def test_a_digit_is_centred_and_within_the_inscribed_circle(digit, side):
    image = digits.drawn(digit, side)
    for axis in (0, 1):  # of the antialiased edges of the box, the ink there included
        inked = np.flatnonzero(image.any(axis=axis))
        assert abs(inked[0] + inked[-1] - (side - 1)) <= 1
    offset = np.arange(side) - (side - 1) / 2
    radius = np.hypot(offset[:, None], offset[None, :])
    assert image[radius > (side - 1) / 2].max() == 0
    assert image[radius > (side - 1) / 2 - 2.5].max() > 0  # as large as can be


def test_row_0_is_the_bottom():
    """A 7 has its bar at the top, a 4 its open half and at the right a stem; 6 turned is 9."""
    seven, four = digits.drawn(7, 28), digits.drawn(4, 28)
    rows = np.flatnonzero(seven.any(axis=1))
    assert (seven[rows[-3]] > 0.5).sum() > 2 * (seven[rows[2]] > 0.5).sum()
    rows = np.flatnonzero(four.any(axis=1))
    right = lambda row: four[row, 14:].sum() - four[row, :14].sum()
    assert right(rows[1]) > 3 and right(rows[-2]) > 0
    widest = np.argmax((four > 0.5).sum(axis=1))
    assert widest < 12  # the crossbar lies low
    np.testing.assert_allclose(digits.drawn(6, 28)[::-1, ::-1], digits.drawn(9, 28), atol=0.15)


def test_drawing_is_cached_and_cannot_be_written_to():
    image = digits.drawn(3, 16)
    assert digits.drawn(3, 16) is image
    again = digits.drawn.__wrapped__(3, 16)
    assert again is not image
    np.testing.assert_array_equal(again, image)
    with pytest.raises(ValueError, match="read-only"):
        image[0, 0] = 1
