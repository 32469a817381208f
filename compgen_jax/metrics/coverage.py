"""How much of a combination was seen: the sets of its values that training showed together."""

from itertools import combinations

import numpy as np


def subsets_seen(indices_BxF, seen_B, order: int):
    """(B,) int: of every combination's sets of `order` values, how many some seen combination has
    too; `indices` are those of each factor's values. Memory grows with the number of cells."""
    seen_B, index_FxB = np.asarray(seen_B), np.transpose(indices_BxF)
    counts = np.zeros(len(seen_B), int)
    for subset in combinations(index_FxB, order):
        group_B = np.zeros_like(counts)
        for index_B in subset:
            group_B = group_B * (index_B.max() + 1) + index_B
        seen = np.zeros(group_B.max() + 1, bool)
        seen[group_B[seen_B]] = True
        counts += seen[group_B]
    return counts
