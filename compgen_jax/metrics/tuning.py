"""Which factors a unit responds to: its map over the grid (Figures 4e, 4f and 15; section 4.2).

For any number of factors, cells in the order of `grids`. Shares of a unit's variance over the
N x N cells of two factors, in closed form:

    unit                          x share      y share      interaction
    stripe, a function of x       1            0            0
    plus, equal stripes           1/2          1/2          0
    bump, r = 2 sqrt(pi) s / N    r / (1 + r)  r / (1 + r)  (1 - r) / (1 + r)
    iid noise, expected           1 / (N + 1)  1 / (N + 1)  (N - 1) / (N + 1)

for a bump of width s away from the border. With s = 1 its interaction is .64 at N = 16 and .78
at N = 28; it exceeds a half for s < N / 10.6 only (1.5 and 2.6 pixels), so a wider bump does not
count as bump-tuned. Noise has .88 and .93: the shares tell stripe from bump, not bump from noise.
What does is the *product share*, the part of the variance that one product of functions of the
single factors explains beyond the sum of such functions: all of a bump's interaction, and of
noise's, of two factors, only the first of its singular values, .20 at N = 16 and .12 at N = 28.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics.anova import anova_shares, blocks_of_units, checked_maps

SWEEPS = 15  # a true bump's product is then within 1e-6, a wide one's within 1e-3
VANISHING = 1e-12  # of a product's mean square: a smaller variance is rounding
ACTIVE = 1e-3  # of the layer's largest variance: units below are dead or near-constant
TUNING_NUMBERS = tuple(
    f"tuning.{name}"
    for name in (
        "one_factor", "interaction", "product", "bump", "stripe",
        "weighted_one_factor", "weighted_product", "active",
    )
)  # fmt: skip


def marginals(maps_GxD) -> tuple:
    """Tuning curves of units with maps (V_F, ..., V_1, D), see `grids.over_grid`: for each factor
    the mean over the others as a function of its values, (V_f, D) float64."""
    maps = np.asarray(maps_GxD)
    axes = range(maps.ndim - 1)
    others = [tuple(axis for axis in axes if axis != kept) for kept in reversed(axes)]
    return tuple(maps.mean(axis=left_out, dtype=np.float64) for left_out in others)


class Tuning(NamedTuple):
    """main (F, D), a row for each factor, interaction and, part of it, product (D,): shares of
    each unit's variance, NaN for a constant unit (product, for every unit that is not active);
    variance (D,); active (D,) bool."""

    main: np.ndarray
    interaction: np.ndarray
    product: np.ndarray
    variance: np.ndarray
    active: np.ndarray


def tuning(features_BxD, sizes) -> Tuning:
    """How every unit's variance over the grid divides between single factors and interactions.

    Active are the units that vary, by at least `ACTIVE` of the largest variance of the layer.
    The product share is exact for two factors and, for more, a lower bound found by alternating
    least squares (1.5 ms a unit for 16^3 cells). ValueError if the features are not a finite
    (B >= 2, D) over the grid's cells.
    """
    maps = checked_maps(features_BxD, sizes)
    shares = anova_shares(features_BxD, sizes)
    largest = shares.variance.max(initial=0)
    active = shares.varies & (shares.variance >= ACTIVE * largest)
    product = np.full(len(active), np.nan)
    product[active] = _product_variance(maps[..., active]) / shares.variance[active]
    return Tuning(shares.main, shares.interaction, product, shares.variance, active)


def _product_variance(maps_GxD):
    """(D,) variance over cells that the best product of a function of each factor explains in
    each unit's interactions."""
    explained = [np.zeros(0)]
    for block in blocks_of_units(maps_GxD):
        maps = np.moveaxis(block, -1, 0)
        cells = tuple(range(1, maps.ndim))
        means = [maps.mean(axis=tuple(a for a in cells if a != kept), keepdims=True)
                 for kept in reversed(cells)]  # fmt: skip
        for mean in means:
            maps = maps - mean
        maps -= maps.mean(axis=cells, keepdims=True)
        if len(cells) == 2:
            energies_DxN = np.linalg.eigvalsh(maps @ np.swapaxes(maps, 1, 2))
            explained.append(energies_DxN[:, -1] / maps[0].size)
        elif len(cells) > 2:
            matrices = [np.moveaxis(maps, axis, -1).reshape(len(maps), -1, maps.shape[axis])
                        for axis in cells]  # fmt: skip
            # from two starts: the first singular vectors of the matrices (D, R, V), and the map
            # through its largest cell. Some units need the one, some the other
            squares = (np.swapaxes(matrix, 1, 2) @ matrix for matrix in matrices)
            singular = [np.linalg.eigh(square)[1][..., -1] for square in squares]
            largest = np.abs(maps).reshape(len(maps), -1).argmax(axis=1)
            lines = grids.lines_through(maps, np.unravel_index(largest, maps.shape[1:]))
            bounds = [_alternate(matrices, start) for start in (singular, lines)]
            explained.append(np.maximum(*bounds))
        else:
            explained.append(np.zeros(len(maps)))  # one factor has no interaction
    return np.concatenate(explained)


def _alternate(matrices, functions):
    """(D,) variance that a product of functions explains, each fitted in turn to the others'.

    What a product adds to the single factors is its own interaction part, so with the others'
    product w given, the best function v has the mean E[R w] / C and deviates from it by what is
    left of the regression of R on w, over A: A the variance of w and C that of its interactions.
    The alternation never lowers what is explained.
    """
    functions = list(functions)
    for _ in range(SWEEPS):
        for axis, matrix_DxRxV in enumerate(matrices):
            others = functions[:axis] + functions[axis + 1 :]
            w_DxR = grids.products(others, len(matrix_DxRxV))
            values_DxV = (w_DxR[:, None, :] @ matrix_DxRxV)[:, 0] / w_DxR.shape[1]
            level_Dx1 = values_DxV.mean(axis=1, keepdims=True)
            deviation_DxV = values_DxV - level_Dx1
            over_a, over_c = _inverse_variances(others)
            function = deviation_DxV * over_a[:, None] + level_Dx1 * over_c[:, None]
            size = np.sqrt(np.mean(function**2, axis=1, keepdims=True))
            functions[axis] = function / np.where(size > 0, size, 1)
    return np.mean(deviation_DxV**2, axis=1) * over_a + level_Dx1[:, 0] ** 2 * over_c


def _inverse_variances(functions):
    """1 / A and 1 / C (D,) of a product of functions (D, V): its variance over the cells, and
    that of its interactions; 0 where it has none."""
    squared_means = [function.mean(axis=1) ** 2 for function in functions]
    variances = [function.var(axis=1) for function in functions]
    mean_square = np.prod([np.mean(function**2, axis=1) for function in functions], axis=0)
    whole = mean_square - np.prod(squared_means, axis=0)
    single = sum(
        variance * np.prod(squared_means[:k] + squared_means[k + 1 :], axis=0)
        for k, variance in enumerate(variances)
    )
    exists = [part > VANISHING * mean_square for part in (whole, whole - single)]
    return [
        np.divide(1, part, out=np.zeros_like(part), where=there)
        for part, there in zip((whole, whole - single), exists, strict=True)
    ]


def layer_tuning(features_BxD, sizes) -> dict:
    """`TUNING_NUMBERS` of one layer, each from 0 to 1; errors as in `tuning` (claim C13).

    Means over the active units, NaN if there are none: 'tuning.one_factor', of the largest of
    a unit's shares of one factor (1 for a stripe, 1/2 for a plus of two), 'tuning.interaction' and
    'tuning.product', of these shares, and the shares of these units that are tuned to a bump
    ('tuning.bump': product share above a half) and to a stripe ('tuning.stripe': one factor above
    a half, with a plus on the edge); 'tuning.weighted_one_factor' and '.weighted_product' are means
    in proportion to a unit's variance, so that what hardly varies hardly counts; 'tuning.active' is
    the share of all units that are active.
    """
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
    """Indices of `count` active units, or of all if fewer, by rising interaction share; int.

    They sit at its quantiles (k + 1/2) / count: a fixed rule, so that no unit is picked by hand.
    ValueError if `count` is below 1.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    active = np.flatnonzero(tuning.active)
    ordered = active[np.argsort(tuning.interaction[active], kind="stable")]
    count = min(count, len(ordered))
    middles = (2 * np.arange(count) + 1) * len(ordered) // (2 * max(count, 1))
    return ordered[middles]
