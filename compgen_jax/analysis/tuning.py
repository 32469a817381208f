"""Which factors a unit responds to: its map over the grid (Figures 4e, 4f and 15; section 4.2).

Shares of a unit's variance over the N x N cells, in closed form:

    unit                          x share      y share      interaction
    stripe, a function of x       1            0            0
    plus, equal stripes           1/2          1/2          0
    bump, r = 2 sqrt(pi) s / N    r / (1 + r)  r / (1 + r)  (1 - r) / (1 + r)
    iid noise, expected           1 / (N + 1)  1 / (N + 1)  (N - 1) / (N + 1)

for a bump of width s away from the border. With s = 1 its interaction is .64 at N = 16 and .78
at N = 28; it exceeds a half for s < N / 10.6 only (1.5 and 2.6 pixels), so a wider bump does not
count as bump-tuned. Noise has .88 and .93: the shares tell stripe from bump, not bump from noise.
What does is the *product share*, the part of the variance that one product of a function of x and
one of y explains beyond the two sums: all of a bump's interaction, and of noise's only the first
of its singular values, .20 at N = 16 and .12 at N = 28.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.analysis.decomposition import anova_shares
from compgen_jax.analysis.kernels import BLOCK

ACTIVE = 1e-3  # of the layer's largest variance: units below are dead or near-constant
TUNING_NUMBERS = tuple(
    f"tuning.{name}"
    for name in ("one_factor", "interaction", "product", "bump", "stripe", "active")
)


def unit_maps(features_BxD, grid: int):
    """(N, N, D) maps[y, x] of every unit, from its activations at all cells in row-major order.

    ValueError if the features are not (N*N, D).
    """
    features = np.asarray(features_BxD)
    if features.ndim != 2 or len(features) != grid**2:
        raise ValueError(f"features must be ({grid**2}, D), not {features.shape}")
    return features.reshape(grid, grid, -1)


def marginals(maps_NxNxD):
    """Tuning curves: (mean over y as a function of x, mean over x as a function of y), (N, D)."""
    maps = np.asarray(maps_NxNxD)
    return maps.mean(axis=0, dtype=np.float64), maps.mean(axis=1, dtype=np.float64)


class Tuning(NamedTuple):
    """x, y, interaction and, part of it, product (D,): shares of each unit's variance, NaN for a
    constant unit (product, for every unit that is not active); variance (D,); active (D,) bool."""

    x: np.ndarray
    y: np.ndarray
    interaction: np.ndarray
    product: np.ndarray
    variance: np.ndarray
    active: np.ndarray


def tuning(features_BxD, grid: int) -> Tuning:
    """How every unit's variance over the grid divides between x, y and their interaction.

    Active are the units that vary, by at least `ACTIVE` of the largest variance of the layer.
    ValueError if the features are not finite or not (N*N, D) with N >= 2.
    """
    maps = unit_maps(features_BxD, grid)
    shares = anova_shares(maps)
    largest = shares.variance.max(initial=0)
    active = shares.varies & (shares.variance >= ACTIVE * largest)
    product = np.full(len(active), np.nan)
    product[active] = _product_variance(maps[..., active]) / shares.variance[active]
    return Tuning(shares.x, shares.y, shares.interaction, product, shares.variance, active)


def _product_variance(maps_NxNxD):
    """(D,) variance over cells of the best product of a function of x and one of y in each
    unit's interaction: the square of its first singular value."""
    blocks = []
    for start in range(0, maps_NxNxD.shape[2], BLOCK):
        maps = np.moveaxis(maps_NxNxD[..., start : start + BLOCK].astype(np.float64), 2, 0)
        maps = maps - maps.mean(axis=1, keepdims=True) - maps.mean(axis=2, keepdims=True)
        maps -= maps.mean(axis=(1, 2), keepdims=True)
        energies_DxN = np.linalg.eigvalsh(maps @ np.swapaxes(maps, 1, 2))
        blocks.append(energies_DxN[:, -1] / maps[0].size)
    return np.concatenate(blocks) if blocks else np.zeros(0)


def layer_tuning(features_BxD, grid: int) -> dict:
    """`TUNING_NUMBERS` of one layer, each from 0 to 1; errors as in `tuning` (claim C13).

    Means over the active units, NaN if there are none: 'tuning.one_factor', of the larger of a
    unit's x and y shares (1 for a stripe, 1/2 for a plus), 'tuning.interaction' and
    'tuning.product', of these shares, and the shares of these units that are tuned to a bump
    ('tuning.bump': product share above a half) and to a stripe ('tuning.stripe': one factor above
    a half, with a plus on the edge); 'tuning.active' is the share of all units that are active.
    """
    found = tuning(features_BxD, grid)
    active_share = float(np.mean(found.active))
    if not found.active.any():
        return dict.fromkeys(TUNING_NUMBERS, np.nan) | {"tuning.active": active_share}
    one_factor = np.maximum(found.x, found.y)[found.active]
    interaction, product = found.interaction[found.active], found.product[found.active]
    values = one_factor, interaction, product, product > 0.5, one_factor > 0.5
    numbers = [*(float(np.mean(value)) for value in values), active_share]
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


def unit_index(side: int, channels: int, channel: int, row: int, column: int) -> int:
    """Index of a convolutional unit among features flattened from (side, side, channels).

    Figure 4f shows channel 1 at (row 2, column 4) of the first layer and channel 0 at (13, 11)
    of layer 3, sides 7 and 28 at N = 28; a first layer of N = 16, side 4, has no such unit.
    ValueError if the layer has none at this place.
    """
    places = {"channel": (channel, channels), "row": (row, side), "column": (column, side)}
    for name, (value, size) in places.items():
        if not 0 <= value < size:
            raise ValueError(f"{name} must be from 0 to {size - 1}, not {value}")
    return (row * side + column) * channels + channel
