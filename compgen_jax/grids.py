"""Grids of factor values: the order of their cells, their seen neighbours and their sub-grids.

The cells of F factors are all combinations of their values; the first factor varies fastest.
`sizes` is (V_1, ..., V_F), B their product. An array over the cells, (B, ...), laid out as a grid
has the shape (V_F, ..., V_1, ...): [y, x] for factors x and y. Points are (B, F) and held-out cells
(B,) bool.
"""

import math

import numpy as np


def over_grid(values_Bx, sizes):
    """Values over the cells, (B, ...), laid out as (V_F, ..., V_1, ...); a view if possible."""
    values = np.asarray(values_Bx)
    return values.reshape(*sizes[::-1], *values.shape[1:])


def lines_through(maps_PxG, places) -> list:
    """For each axis of P maps over a grid, (P, V, V', ...), the values (P, V) along it through a
    cell of each map; `places` are indices (P,) for each axis."""
    maps, lines = np.arange(len(maps_PxG))[:, None], []
    for axis, size in enumerate(maps_PxG.shape[1:]):
        index = [place_P[:, None] for place_P in places]
        index[axis] = np.arange(size)[None, :]
        lines.append(maps_PxG[maps, *index])
    return lines


def indices(sizes):
    """(B, F) int: the index of every cell's value of each factor."""
    return np.indices(sizes[::-1]).reshape(len(sizes), -1)[::-1].T


def points(axes):
    """(B, F) float32: all combinations of the values of F axes, the first varying fastest."""
    columns = zip(axes, indices([len(axis) for axis in axes]).T, strict=True)
    return np.stack([np.asarray(axis, np.float32)[index] for axis, index in columns], axis=1)


def nearest_seen(held_out_B, sizes, ordered=None, periods=None, fixed=()):
    """The nearest seen cell of every cell: its index (B,) int, the first of several, and its
    Euclidean distance (B,), in cells. It is one with the same values of `fixed` factors, (F,) bool,
    if there are any. Raises ValueError if no cell is seen.

    Args:
      ordered: for each factor, whether its values have neighbours; any two others are 1 apart.
      periods: for each factor, after how many cells it repeats, or None.

    The distance is minimised along one factor after the other, without pairs of cells in memory.
    """
    held_out = checked_mask(held_out_B, sizes)
    if held_out.all():
        raise ValueError("held_out must leave some cell seen")
    squared = over_grid(np.where(held_out, np.inf, 0.0), sizes)
    index = over_grid(np.arange(held_out.size), sizes)
    ordered, periods = ordered or (True,) * len(sizes), periods or (None,) * len(sizes)
    tables = []  # distances between the values of each factor
    for size, has_neighbours, period in zip(sizes, ordered, periods, strict=True):
        apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        if not has_neighbours:
            apart = np.minimum(apart, 1)
        elif period is not None:
            apart = np.minimum(apart % period, -apart % period)
        tables.append(apart)
    for factor in np.flatnonzero(fixed):
        tables[factor] = np.where(tables[factor] > 0, np.inf, 0.0)
    for axis, apart in enumerate(reversed(tables)):
        before, index_before = np.moveaxis(squared, axis, -1), np.moveaxis(index, axis, -1)
        least, first = [], []
        for apart_V in apart:
            sums = before + apart_V.astype(np.float64) ** 2
            least.append(sums.min(axis=-1))
            nearest = sums == least[-1][..., None]
            first.append(np.where(nearest, index_before, held_out.size).min(axis=-1))
        squared, index = np.stack(least, axis=axis), np.stack(first, axis=axis)
    index, distance = index.ravel(), np.sqrt(squared.ravel())
    if np.isfinite(distance).all():
        return index, distance
    pair = zip((index, distance), nearest_seen(held_out, sizes, ordered, periods), strict=True)
    return tuple(np.where(np.isfinite(distance), same, anywhere) for same, anywhere in pair)


def border(width: int, sizes, ordered=None, periods=None):
    """(B,) bool: the cells at either end of an ordered factor without a period. An end is `width`
    values or an eighth of them, whichever is less."""
    ordered, periods = ordered or (True,) * len(sizes), periods or (None,) * len(sizes)
    on_border = np.zeros(math.prod(sizes), bool)
    for index, size, has_ends, period in zip(
        indices(sizes).T, sizes, ordered, periods, strict=True
    ):
        if has_ends and not period:
            end = min(width, size // 8)
            on_border |= (index < end) | (index >= size - end)
    return on_border


def subgrid(sizes, limit: int, held_out_B=()):
    """A grid of at most `limit` of the cells: their indices (B',) int, ascending, and its sizes.

    Whole values are left out, of the factor with the most values first, down to 2. A factor keeps a
    random value of each of k runs of equal length; where no `held_out` cell would be left, those of
    the middle one. Raises ValueError if the limit is below the smallest such grid.
    """
    counts = list(sizes)
    while math.prod(counts) > limit:
        largest = counts.index(max(counts))
        if counts[largest] <= 2:
            smallest = math.prod(counts)
            raise ValueError(f"limit must be at least {smallest}, not {limit}: sizes {sizes}")
        counts[largest] -= 1
    rng = np.random.default_rng(0)
    ends = [np.arange(k + 1) * size // k for size, k in zip(sizes, counts, strict=True)]
    chosen = [rng.integers(ends_V[:-1], ends_V[1:]) for ends_V in ends]
    cells = over_grid(np.arange(math.prod(sizes)), sizes)
    index = cells[np.ix_(*reversed(chosen))].ravel()
    held_out = np.flatnonzero(held_out_B)
    if len(held_out) and not np.isin(index, held_out).any():
        middle = indices(sizes)[held_out[len(held_out) // 2]]
        for values, value, size in zip(chosen, middle, sizes, strict=True):
            values[(value * len(values) + len(values) - 1) // size] = value
        index = cells[np.ix_(*reversed(chosen))].ravel()
    return index, tuple(counts)


def checked_mask(held_out_B, sizes):
    """The mask as an array. Raises ValueError if it is not (B,) bool."""
    held_out, cells = np.asarray(held_out_B), math.prod(sizes)
    if held_out.dtype != bool or held_out.shape != (cells,):
        raise ValueError(f"held_out must be ({cells},) bool, not {held_out.shape} {held_out.dtype}")
    return held_out
