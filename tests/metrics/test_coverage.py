"""Pairs of values seen, against a loop over all cells."""

from itertools import combinations

import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics.coverage import pairs_seen


def by_hand(held_out_B, sizes):
    cells = [tuple(cell) for cell in grids.indices(sizes).tolist()]
    seen = [cell for cell, hidden in zip(cells, held_out_B, strict=True) if not hidden]
    return [
        sum(
            any((other[i], other[j]) == (cell[i], cell[j]) for other in seen)
            for i, j in combinations(range(len(sizes)), 2)
        )
        for cell in cells
    ]


@pytest.mark.parametrize("sizes", [(4, 3), (3, 4, 2), (2, 3, 2, 3), (5,)])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.9])
def test_pairs_are_those_of_some_seen_cell(sizes, share):
    held_out = np.random.default_rng(7).random(np.prod(sizes)) < share
    np.testing.assert_array_equal(pairs_seen(held_out, sizes), by_hand(held_out, sizes))
