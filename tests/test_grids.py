import numpy as np

from compgen_jax import grids


def test_the_first_factor_varies_fastest():
    a, b, c = np.unravel_index(np.arange(24), (3, 4, 2), order="F")
    np.testing.assert_array_equal(grids.indices((3, 4, 2)), np.stack([a, b, c], axis=1))
    values = np.arange(48).reshape(24, 2)
    np.testing.assert_array_equal(grids.over_grid(values, (3, 4, 2))[c, b, a], values)


def test_nearest_seen_against_all_pairs():
    """Of an angle, of labels, any two of which are 1 apart, and of numbers."""
    sizes, cells = (7, 4, 3), grids.indices((7, 4, 3))
    held_out = (cells[:, 0] > 1) | (np.random.default_rng(0).uniform(size=84) < 0.6)
    turn, label, number = np.abs(cells[:, None] - cells).T
    squared = np.minimum(turn, 8.5 - turn) ** 2 + (label > 0) + number**2
    squared[:, held_out] = np.inf
    found, distances = grids.nearest_seen(held_out, sizes, (True, False, True), (8.5, None, None))
    np.testing.assert_allclose(distances, np.sqrt(squared.min(axis=1)))
    np.testing.assert_array_equal(found, squared.argmin(axis=1))  # the first of several


def test_a_subgrid_is_a_reproducible_product_within_the_limit():
    sizes = (28, 28, 28)
    cells, kept = grids.subgrid(sizes, 4096)
    assert kept == (16, 16, 16) and len(cells) == 4096 and (np.diff(cells) > 0).all()
    places = grids.indices(sizes)[cells]
    for f, values in enumerate(grids.indices(kept).T):  # in the order of a grid of their own
        distinct = np.unique(places[:, f])
        np.testing.assert_array_equal(places[:, f], distinct[values])
        assert np.diff(distinct).max() <= 3  # no part of a factor is left out


def test_a_subgrid_keeps_one_held_out_cell_at_least():
    for hidden in (0, 17 + 30 * 11, 599):
        held_out = np.arange(30 * 20) == hidden
        cells, kept = grids.subgrid((30, 20), 12, held_out_B=held_out)
        assert hidden in cells and len(np.unique(cells)) == np.prod(kept) == len(cells)


def test_the_border_is_of_ordered_factors_without_a_period():
    sizes = (16, 9, 3)
    x, y, _ = grids.indices(sizes).T
    found = grids.border(2, sizes)  # an eighth of 9 is 1, of 3 nothing
    np.testing.assert_array_equal(found, np.isin(x, (0, 1, 14, 15)) | np.isin(y, (0, 8)))
    found = grids.border(1, sizes, ordered=(True, True, False), periods=(None, 9.0, None))
    np.testing.assert_array_equal(found, np.isin(x, (0, 15)))
