"""How composite a Gram matrix over a grid is (Appendix A); cells in the order of `grids`."""

from math import prod

import numpy as np


def interaction(gram_BxB, sizes) -> float:
    """Share of the features' variance that is in no factor alone (A.2), from the traces of the
    projections on constants and on functions of each factor; NaN for dead features."""
    kernel = gram_BxB.reshape(*sizes[::-1], *sizes[::-1])
    factors, cells = len(sizes), prod(sizes)
    rows = list(range(factors))[::-1]
    total = np.einsum(kernel, rows * 2, [])
    if not total:
        return np.nan
    constant, main = kernel.sum() / cells, []
    for f, size in enumerate(sizes):
        columns = [g if g == f else factors + g for g in rows]
        main.append(np.einsum(kernel, rows + columns, []) / (cells // size) - constant)
    interactions = (total - constant - sum(main)) / total
    varying = np.sum(np.array(main) / total) + interactions
    return interactions / varying if varying > 1e-12 else np.nan
