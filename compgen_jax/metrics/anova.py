"""How composite a Gram matrix over a grid is (Appendix A); cells in the order of `grids`."""

import itertools
from math import prod

import numpy as np

from compgen_jax import grids

ANGLES = "rank", "largest_cosine", "mean_squared_cosine"
ENERGY = 0.95  # of a factor's main effects, in the dimensions that count
VANISHING = 1e-12  # of the variance, in a factor without main effects


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


def subspaces(centred_BxB, sizes) -> dict:
    """The subspaces of the factors' main effects, the mean features of each value (Uselis et al.
    2026: linear factorization into orthogonal subspaces of low rank).

    A subspace has the fewest principal dimensions with `ENERGY` of a factor's main effects: `rank`
    is their mean number, the other two are of the cosines of principal angles between pairs of
    subspaces. NaN unless two factors have main effects.
    """
    cells, bases = grids.indices(sizes), []
    for column, size in zip(cells.T, sizes, strict=True):
        average_VxB = (column[None] == np.arange(size)[:, None]) * (size / len(cells))
        energies, vectors = np.linalg.eigh(average_VxB @ centred_BxB @ average_VxB.T)
        energies = np.maximum(energies[::-1], 0)
        if energies[0] > VANISHING * np.trace(centred_BxB) / len(cells):
            rank = np.searchsorted(np.cumsum(energies), ENERGY * energies.sum()) + 1
            basis = vectors[:, ::-1][:, :rank] / np.sqrt(energies[:rank])
            bases.append(basis.T @ average_VxB)
    if len(bases) < 2:
        return dict.fromkeys(ANGLES, np.nan)
    cosines = [
        np.linalg.svd(first @ centred_BxB @ second.T, compute_uv=False)
        for first, second in itertools.combinations(bases, 2)
    ]
    largest, squares = max(map(np.max, cosines)), [np.mean(of_pair**2) for of_pair in cosines]
    numbers = np.mean([*map(len, bases)]), min(1.0, largest), np.mean(squares)
    return dict(zip(ANGLES, numbers, strict=True))
