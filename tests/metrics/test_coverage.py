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
    cells, pairs = grids.indices(sizes), map(list, combinations(range(len(sizes)), 2))
    same = [(cells[:, None, p] == cells[None, ~held_out][..., p]).all(axis=2) for p in pairs]
    expected = sum((one.any(axis=1).astype(int) for one in same), np.zeros(len(cells), int))
    np.testing.assert_array_equal(pairs_seen(held_out, sizes), expected)
