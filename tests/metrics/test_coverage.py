"""Pairs of values seen, against a loop over all cells."""

from itertools import combinations

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics.coverage import pairs_seen


def test_pairs_are_those_of_some_seen_cell():
    held_out = np.random.default_rng(7).random(36) < 0.8
    cells, expected = grids.indices((2, 3, 2, 3)), np.zeros(36)
    for pair in combinations(range(4), 2):
        same = (cells[:, None, pair] == cells[~held_out][:, pair]).all(axis=2)
        expected += same.any(axis=1)
    np.testing.assert_array_equal(pairs_seen(held_out, (2, 3, 2, 3)), expected)
