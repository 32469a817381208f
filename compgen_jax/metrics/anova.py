"""What the factors do alone and jointly: the variance of features over a grid, and of kernels.

The analysis of variance of Appendix A.2 for any number of factors, one observation per cell;
cells in the order of `grids`. `decomposition` says what the shares tell apart.
"""

from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics.kernels import BLOCK, check_finite


class AnovaShares(NamedTuple):
    """main (F, D), a row for each factor, and interactions (F - 1, D), of all pairs, all triples,
    ...: shares of each unit's variance, which sum to 1 and are NaN where `varies` (D,) is False;
    `variance` (D,)."""

    main: np.ndarray
    interactions: np.ndarray
    variance: np.ndarray
    varies: np.ndarray

    @property
    def interaction(self):
        """(D,) share of the interactions of all orders."""
        return self.interactions.sum(axis=0)


def anova_shares(features_BxD, sizes) -> AnovaShares:
    """Share of every unit's variance over the grid in one factor alone and in interactions.

    Analysis of variance with one observation per cell (A.2, Figure 15), one factor, pair, triple
    of factors after the other: 2^F projections. A unit whose standard deviation is below 1e-7 of
    its root mean square does not vary. ValueError if the features are not a finite (B >= 2, D)
    over the cells of the grid.
    """
    maps = checked_maps(features_BxD, sizes)
    factors = len(sizes)
    parts = [_anova(block) for block in blocks_of_units(maps)]
    *terms, mean_square = np.concatenate(parts, axis=1)
    variance = sum(terms)
    varies = variance > 1e-14 * mean_square
    shares = np.stack(terms) / np.where(varies, variance, np.nan)
    return AnovaShares(shares[:factors], shares[factors:], variance, varies)


def checked_maps(features_BxD, sizes):
    """The units' maps over the grid, (V_F, ..., V_1, D). Errors as in `anova_shares`."""
    features = np.asarray(features_BxD)
    cells = prod(grids.checked_sizes(sizes))
    if features.ndim != 2 or len(features) != cells or cells < 2:
        raise ValueError(f"features must be ({max(cells, 2)}, D), not {features.shape}")
    check_finite("features", features)
    return grids.over_grid(features, sizes)


def blocks_of_units(maps_GxD):
    """Float64 copies of the maps of so many units at a time as memory allows."""
    width = max(1, min(BLOCK, BLOCK * 1024 // prod(maps_GxD.shape[:-1])))
    for start in range(0, maps_GxD.shape[-1], width):
        yield maps_GxD[..., start : start + width].astype(np.float64)


def _anova(maps):
    """(2F, D): variances of the main effects and of the interactions by order; mean square."""
    factors = maps.ndim - 1
    every_cell = tuple(range(factors))
    mean_square_D = np.mean(maps**2, axis=every_cell)
    maps -= maps.mean(axis=every_cell, keepdims=True)
    effects, by_order = {}, [[] for _ in range(factors + 1)]
    for chosen in _subsets(factors)[1:]:
        left_out = tuple(axis for axis in every_cell if factors - 1 - axis not in chosen)
        effect = maps.mean(axis=left_out, keepdims=True) if left_out else maps
        for smaller in effects:
            if set(smaller) < set(chosen):
                effect = effect - effects[smaller]
        effects[chosen] = effect
        by_order[len(chosen)].append(np.mean(effect**2, axis=every_cell))
    return np.stack([*by_order[1], *(sum(order) for order in by_order[2:]), mean_square_D])


def _subsets(factors: int) -> list:
    """All sets of factors, smaller ones first: (), (0,), (1,), (0, 1) of two."""
    orders = range(factors + 1)
    return [chosen for order in orders for chosen in combinations(range(factors), order)]


class KernelAnova(NamedTuple):
    """Shares of a Gram matrix's trace, which sum to 1: constant; main (F,), of each factor;
    interactions (F - 1,), of all pairs, all triples, ..."""

    constant: float
    main: np.ndarray
    interactions: np.ndarray

    @property
    def interaction(self) -> float:
        """Share of the interactions of all orders."""
        return float(self.interactions.sum())


def kernel_anova(gram_BxB, sizes) -> KernelAnova:
    """Traces of P K P over that of K for the projections on functions of nothing, of each factor
    alone and of their interactions (Hoeffding).

    The features' `anova_shares`, weighted by variance, with the squared mean as a further part.
    ValueError if the matrix is not square over the grid, or 0.
    """
    gram, factors = checked_gram(gram_BxB, sizes), len(sizes)
    kernel = gram.reshape(*sizes[::-1], *sizes[::-1])
    rows, traces, orders = list(range(factors))[::-1], {}, np.zeros(factors + 1)
    for chosen in _subsets(factors):
        columns = [f if f in chosen else factors + f for f in rows]
        others = prod(size for f, size in enumerate(sizes) if f not in chosen)
        pairs = np.einsum(kernel, rows + columns, []) if chosen else kernel.sum()
        traces[chosen] = pairs / others
        for smaller in traces:
            if set(smaller) < set(chosen):
                traces[chosen] -= traces[smaller]
        orders[len(chosen)] += traces[chosen]
    total = np.einsum(kernel, rows * 2, [])
    main = np.array([traces[f,] for f in range(factors)])
    return KernelAnova(float(orders[0] / total), main / total, orders[2:] / total)


def checked_gram(gram_BxB, sizes):
    """The matrix in float64. ValueError if it is not finite and square over the grid, or is 0."""
    gram_BxB = np.asarray(gram_BxB, np.float64)
    if gram_BxB.ndim != 2 or gram_BxB.shape[0] != gram_BxB.shape[1]:
        raise ValueError(f"gram must be square, not {gram_BxB.shape}")
    if prod(grids.checked_sizes(sizes)) != len(gram_BxB):
        raise ValueError(f"gram: {len(gram_BxB)} points are no grid of sizes {tuple(sizes)}")
    check_finite("gram", gram_BxB)
    if not gram_BxB.any():
        raise ValueError("gram is 0: the features are constant or dead")
    return gram_BxB
