"""Analysis of variance of features over a grid, and of kernels (Appendix A.2); cells in the order
of `grids`."""

from math import prod
from typing import NamedTuple

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics.kernels import BLOCK, check_finite, finite


class AnovaShares(NamedTuple):
    """Shares of each unit's variance, main (F, D) and interaction (D,), which sum to 1 and are NaN
    where `varies` (D,) is False; variance (D,)."""

    main: np.ndarray
    interaction: np.ndarray
    variance: np.ndarray
    varies: np.ndarray


def anova_shares(features_BxD, sizes) -> AnovaShares:
    """Share of every unit's variance over the grid in one factor alone and in interactions (A.2,
    Figure 15). ValueError if the features are not finite, or not over the cells of the grid."""
    maps = checked_maps(features_BxD, sizes)
    parts = [_anova(block) for block in blocks_of_units(maps)]
    *terms, mean_square = np.concatenate(parts, axis=1)
    variance = sum(terms)
    varies = variance > 1e-14 * mean_square
    shares = np.stack(terms) / np.where(varies, variance, np.nan)
    return AnovaShares(shares[:-1], shares[-1], variance, varies)


def checked_maps(features_BxD, sizes):
    """The units' maps over the grid, (V_F, ..., V_1, D). Errors as in `anova_shares`."""
    check_finite("features", features_BxD)
    return grids.over_grid(np.asarray(features_BxD), sizes)


def blocks_of_units(maps_GxD):
    """Float64 copies of the maps of as many units at a time as memory allows."""
    width = max(1, min(BLOCK, BLOCK * 1024 // prod(maps_GxD.shape[:-1])))
    for start in range(0, maps_GxD.shape[-1], width):
        yield maps_GxD[..., start : start + width].astype(np.float64)


def _anova(maps):
    """(F + 2, D): variances of the factors' effects and of all interactions; mean square."""
    cells = tuple(range(maps.ndim - 1))
    mean_square_D = np.mean(maps**2, axis=cells)
    maps -= maps.mean(axis=cells, keepdims=True)
    effects, interactions = [], maps
    for factor in reversed(cells):
        others = tuple(axis for axis in cells if axis != factor)
        effects.append(maps.mean(axis=others, keepdims=True) if others else maps)
        interactions = interactions - effects[-1]
    parts = [np.mean(part**2, axis=cells) for part in (*effects, interactions)]
    return np.stack([*parts, mean_square_D])


def kernel_anova(gram_BxB, sizes) -> tuple:
    """Shares of the trace of K of the projections on constants, on functions of each factor alone
    (F,) and on their interactions."""
    kernel = checked_gram(gram_BxB, sizes).reshape(*sizes[::-1], *sizes[::-1])
    factors, cells = len(sizes), prod(sizes)
    rows = list(range(factors))[::-1]
    total = np.einsum(kernel, rows * 2, [])
    constant, main = kernel.sum() / cells, []
    for f, size in enumerate(sizes):
        columns = [g if g == f else factors + g for g in rows]
        main.append(np.einsum(kernel, rows + columns, []) / (cells // size) - constant)
    return constant / total, np.array(main) / total, (total - constant - sum(main)) / total


def interaction(gram_BxB, sizes) -> float:
    """Share of the features' variance that is in no factor alone; NaN for dead features."""
    if not np.any(gram_BxB):
        return np.nan
    _, main, interactions = kernel_anova(gram_BxB, sizes)
    varying = main.sum() + interactions
    return interactions / varying if varying > 1e-12 else np.nan


def checked_gram(gram_BxB, sizes):
    """The matrix in float64. ValueError unless it is finite, square over the grid and not 0."""
    gram_BxB = finite("gram", gram_BxB, 2)
    if not gram_BxB.shape[0] == gram_BxB.shape[1] == prod(sizes):
        raise ValueError(f"gram {gram_BxB.shape} is not square over the grid {tuple(sizes)}")
    if not gram_BxB.any():
        raise ValueError("gram is 0: the features are constant or dead")
    return gram_BxB
