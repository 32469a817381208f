import itertools

import numpy as np
import pytest

from compgen_jax import grids

SIZES = (3, 4, 2)


def cells_of(sizes):
    """Every cell by nested loops, the first factor innermost."""
    return [cell[::-1] for cell in itertools.product(*(range(size) for size in sizes[::-1]))]


def test_the_first_factor_varies_fastest():
    assert grids.indices(SIZES).tolist() == [list(cell) for cell in cells_of(SIZES)]
    values = np.arange(24)[:, None] * [1, 100]
    laid_out = grids.over_grid(values, SIZES)
    assert laid_out.shape == (2, 4, 3, 2)
    for number, (a, b, c) in enumerate(cells_of(SIZES)):
        assert laid_out[c, b, a].tolist() == [number, 100 * number]
    assert grids.over_grid(np.arange(6), (3, 2))[1, 2] == 5  # [y, x]


def apart(a, b, size, ordered, period):
    if not ordered:
        return float(a != b)
    return abs(a - b) if period is None else min(abs(a - b + k * period) for k in (-2, -1, 0, 1, 2))


@pytest.mark.parametrize(
    ("sizes", "ordered", "periods"),
    [((5, 4, 3), None, None), ((7, 2, 3), (True, False, True), (8.5, None, None))],
)
def test_nearest_seen_against_loops(sizes, ordered, periods):
    held_out = np.random.default_rng(0).uniform(size=np.prod(sizes)) < 0.6
    cells = cells_of(sizes)
    found, distances = grids.nearest_seen(held_out, sizes, ordered, periods)
    settings = list(zip(sizes, ordered or [True] * 9, periods or [None] * 9, strict=False))
    for here, cell in enumerate(cells):
        squared = [
            np.inf if hidden else sum(apart(a, b, *setting) ** 2 for a, b, setting
                                      in zip(cell, other, settings, strict=True))
            for other, hidden in zip(cells, held_out, strict=True)
        ]  # fmt: skip
        assert distances[here] == pytest.approx(np.sqrt(min(squared)))
        assert found[here] == np.argmin(squared)  # the first of several
    assert not distances[~held_out].any()


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
