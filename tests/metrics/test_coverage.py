"""Pairs of values seen, against a loop over all cells."""

from itertools import combinations

import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics.coverage import pairs_seen


@pytest.mark.parametrize("sizes", [(4, 3), (2, 3, 2, 3), (5,)])
@pytest.mark.parametrize("share", [0.2, 0.9])
def test_pairs_are_those_of_some_seen_cell(sizes, share):
    held_out = np.random.default_rng(7).random(np.prod(sizes)) < share
    cells, pairs = grids.indices(sizes), list(combinations(range(len(sizes)), 2))
    seen = [{tuple(cell[[i, j]]) for cell in cells[~held_out]} for i, j in pairs]
    expected = [
        sum(tuple(cell[[i, j]]) in of_pair for (i, j), of_pair in zip(pairs, seen, strict=True))
        for cell in cells
    ]
    np.testing.assert_array_equal(pairs_seen(held_out, sizes), expected)
