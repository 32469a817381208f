"""Sets of values seen, against a loop over all combinations."""

from itertools import combinations

import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics.coverage import subsets_seen


def seen_in_loops(points_BxF, seen_SxF, order: int):
    """(B,) how many sets of `order` values of each row some seen row has too."""
    count = np.zeros(len(points_BxF))
    for subset in combinations(range(points_BxF.shape[1]), order):
        same = (points_BxF[:, None, subset] == seen_SxF[:, subset]).all(axis=2)
        count += same.any(axis=1)
    return count


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_sets_of_values_are_those_of_some_seen_cell(order):
    held_out = np.random.default_rng(7).random(36) < 0.8
    cells = grids.indices((2, 3, 2, 3))
    expected = seen_in_loops(cells, cells[~held_out], order)
    np.testing.assert_array_equal(subsets_seen(cells, ~held_out, order), expected)
