"""The size that is read off drawn bumps, which were drawn by a formula of the test's own."""

import numpy as np
import pytest

from compgen_jax.metrics.readout import drawn_size

GRID, SIGMAS = 9, (0.6, 1.0, 1.5, 2.2)


def bump(x, y, sigma):
    rows, columns = np.mgrid[:GRID, :GRID]
    return np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2))


TARGETS = np.array(
    [bump(x, y, sigma) for sigma in SIGMAS for y in range(GRID) for x in range(GRID)]
)


def test_sizes_of_true_images_are_their_own_wherever_they_are():
    found = drawn_size(TARGETS[None], TARGETS)
    np.testing.assert_array_equal(found, [np.arange(len(TARGETS)) // GRID**2])


def test_size_is_read_at_the_place_that_is_drawn_and_is_the_nearest():
    drawn = np.array(
        [[bump(2, 7, 1.45), 0.9 * bump(6, 1, 0.65)], [bump(0, 0, 2.0), bump(4, 4, 1.1)]]
    )
    np.testing.assert_array_equal(drawn_size(drawn, TARGETS), [[2, 0], [3, 1]])


def test_cells_that_are_no_grid_are_refused():
    with pytest.raises(ValueError, match="targets"):
        drawn_size(TARGETS[None, :, :4], TARGETS)
    with pytest.raises(ValueError, match="targets"):
        drawn_size(TARGETS[None], TARGETS[:-1])
