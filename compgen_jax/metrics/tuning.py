"""Which factors a unit responds to: its map over the grid (Figures 4e, 4f and 15; section 4.2).
What one product of functions of single factors explains tells a bump from noise."""

from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import NamedTuple

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import spectra
from compgen_jax.metrics.kernels import check_finite

CACHED = 2**20  # numbers of a block of units
SWEEPS = 15  # a true bump's product is then within 1e-6, a wide one's within 1e-3
VANISHING = 1e-12  # of a product's mean square: a smaller variance is rounding
ACTIVE = 1e-3  # of the layer's largest variance: units below are dead or near-constant
TUNING_NUMBERS = tuple(
    f"tuning.{name}"
    for name in (
        "one_factor",
        "interaction",
        "product",
        "bump",
        "stripe",
        "weighted_one_factor",
        "weighted_product",
        "active",
    )
)


class Tuning(NamedTuple):
    """Shares of each unit's variance: main (F, D), interaction and, part of it, product (D,), NaN
    for a constant or inactive unit; variance (D,); active (D,) bool."""

    main: np.ndarray
    interaction: np.ndarray
    product: np.ndarray
    variance: np.ndarray
    active: np.ndarray


def tuning(features_BxD, sizes) -> Tuning:
    """Share of every unit's variance over the grid in one factor alone, in interactions (A.2,
    Figure 15) and in one product, which is exact for two factors and, for more, a lower bound by
    alternating least squares. ValueError if the features are not finite."""
    check_finite("features", features_BxD)
    features, width = np.asarray(features_BxD), CACHED // len(features_BxD)
    blocks = [features[:, start : start + width] for start in range(0, features.shape[1], width)]
    with ThreadPoolExecutor() as threads:  # NumPy's loops run side by side
        parts = list(threads.map(lambda block: _variances(block, sizes), blocks))
    *terms, product, mean_square = np.concatenate(parts, axis=1)
    variance = sum(terms)
    varies = variance > 1e-14 * mean_square
    shares = np.stack([*terms, product]) / np.where(varies, variance, np.nan)
    active = varies & (variance >= ACTIVE * variance.max(initial=0))
    product = np.where(active, shares[-1], np.nan)
    return Tuning(shares[:-2], shares[-2], product, variance, active)


def _variances(features_BxD, sizes):
    """(F + 3, D): variances of the factors' effects, of all interactions and of the best product of
    single-factor functions in them; mean square; zeros of constant units."""
    block = features_BxD.copy()
    varying = (block != block[:1]).any(axis=0)
    features_DxB = np.ascontiguousarray(block[:, varying].T, np.float64)
    maps = features_DxB.reshape(-1, *sizes[::-1])
    cells = tuple(range(1, maps.ndim))
    mean_square_D = _mean_square(maps)
    maps -= maps.mean(axis=cells, keepdims=True)
    others = [tuple(axis for axis in cells if axis != factor) for factor in reversed(cells)]
    effects = [maps.mean(axis=axes, keepdims=True) for axes in others]
    for effect in effects:
        maps -= effect
    rows = np.zeros((len(sizes) + 3, len(varying)))
    variances = map(_mean_square, (*effects, maps))
    rows[:, varying] = *variances, _product_variance(maps), mean_square_D
    return rows


def _mean_square(maps):
    values_DxB = maps.reshape(len(maps), prod(maps.shape[1:]))
    return np.einsum("db,db->d", values_DxB, values_DxB) / values_DxB.shape[1]


def _product_variance(maps):
    """(D,) variance that the best product of single-factor functions explains in interactions,
    (D, V_F, ..., V_1)."""
    if maps.ndim == 2 or not maps.size:  # one factor has no interaction
        return np.zeros(len(maps))
    if maps.ndim == 3:
        return spectra.largest_squares(maps) / prod(maps.shape[1:])
    matrices = [
        np.moveaxis(maps, axis, -1).reshape(len(maps), -1, maps.shape[axis])
        for axis in range(1, maps.ndim)
    ]
    # from two starts: the first singular vectors of the matrices (D, R, V), and the map through its
    # largest cell. Some units need the one, some the other
    squares = (np.swapaxes(matrix, 1, 2) @ matrix for matrix in matrices)
    singular = [np.linalg.eigh(square)[1][..., -1] for square in squares]
    largest = np.abs(maps).reshape(len(maps), -1).argmax(axis=1)
    lines = grids.lines_through(maps, np.unravel_index(largest, maps.shape[1:]))
    return np.maximum(*(_alternate(matrices, start) for start in (singular, lines)))


def _alternate(matrices, functions):
    """(D,) variance that a product of functions explains, each fitted in turn to the others'
    product w: its mean is E[R w] / C, its deviation the residual of R on w over A; A is the
    variance of w, C that of its interactions."""
    functions = list(functions)
    for _ in range(SWEEPS):
        for axis, matrix_DxRxV in enumerate(matrices):
            others = functions[:axis] + functions[axis + 1 :]
            w_DxR = others[0]
            for other in others[1:]:
                w_DxR = (w_DxR[:, :, None] * other[:, None, :]).reshape(len(w_DxR), -1)
            values_DxV = (w_DxR[:, None, :] @ matrix_DxRxV)[:, 0] / w_DxR.shape[1]
            level_Dx1 = values_DxV.mean(axis=1, keepdims=True)
            deviation_DxV = values_DxV - level_Dx1
            over_a, over_c = _inverse_variances(others)
            function = deviation_DxV * over_a[:, None] + level_Dx1 * over_c[:, None]
            size = np.sqrt(np.mean(function**2, axis=1, keepdims=True))
            functions[axis] = function / np.where(size > 0, size, 1)
    return np.mean(deviation_DxV**2, axis=1) * over_a + level_Dx1[:, 0] ** 2 * over_c


def _inverse_variances(functions):
    """1 / A and 1 / C (D,): see `_alternate`; 0 where it has none."""
    squared_means = [function.mean(axis=1) ** 2 for function in functions]
    variances = [function.var(axis=1) for function in functions]
    mean_square = np.prod([np.mean(function**2, axis=1) for function in functions], axis=0)
    whole = mean_square - np.prod(squared_means, axis=0)
    single = sum(
        variance * np.prod(squared_means[:k] + squared_means[k + 1 :], axis=0)
        for k, variance in enumerate(variances)
    )
    return [
        np.divide(1, part, out=np.zeros_like(part), where=part > VANISHING * mean_square)
        for part in (whole, whole - single)
    ]


def layer_tuning(features_BxD, sizes) -> dict:
    """Means over active units of the largest share of one factor, the interaction and the product
    share (`weighted_`: by variance); shares of units that are a bump (product above a half), a
    stripe (one factor above a half), active."""
    of_units = tuning(features_BxD, sizes)
    active_share = float(np.mean(of_units.active))
    if not of_units.active.any():
        return dict.fromkeys(TUNING_NUMBERS, np.nan) | {"tuning.active": active_share}
    one_factor = of_units.main.max(axis=0)[of_units.active]
    interaction, product = of_units.interaction[of_units.active], of_units.product[of_units.active]
    values = one_factor, interaction, product, product > 0.5, one_factor > 0.5
    weights = of_units.variance[of_units.active]
    weighted = [float(np.average(value, weights=weights)) for value in (one_factor, product)]
    numbers = [*(float(np.mean(value)) for value in values), *weighted, active_share]
    return dict(zip(TUNING_NUMBERS, numbers, strict=True))


def choose_units(tuning: Tuning, count: int):
    """Indices of `count` active units, or of all if fewer, at the quantiles (k + 1/2) / count of
    the interaction share."""
    active = np.flatnonzero(tuning.active)
    ordered = active[np.argsort(tuning.interaction[active], kind="stable")]
    count = min(count, len(ordered))
    middles = (2 * np.arange(count) + 1) * len(ordered) // (2 * max(count, 1))
    return ordered[middles]
