"""How much of a combination was seen: the pairs of its values that training showed together."""

from itertools import combinations

import numpy as np

from compgen_jax import grids


def pairs_seen(held_out_B, sizes):
    """(B,) int: of every cell's F (F - 1) / 2 pairs of values, how many some seen cell has too."""
    seen = grids.over_grid(~grids.checked_mask(held_out_B, sizes), sizes)
    counts, axes = np.zeros(seen.shape, int), range(seen.ndim)
    for pair in combinations(axes, 2):
        others = tuple(axis for axis in axes if axis not in pair)
        counts += seen.any(axis=others, keepdims=True)
    return counts.ravel()
