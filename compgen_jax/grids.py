"""Grids of factor values: the order of their cells, their seen neighbours and their sub-grids.

The cells of F factors are all combinations of their values; the first factor varies fastest.
`sizes` is (V_1, ..., V_F), B their product. An array over the cells, (B, ...), laid out as a grid
has the shape (V_F, ..., V_1, ...): [y, x] for factors x and y; factor f (from 0) is axis F - 1 - f.
Points are (B, F) and held-out cells (B,) bool.
"""

import math
from collections.abc import Sequence

import numpy as np


def over_grid(values_Bx, sizes):
    """Values over the cells, (B, ...), laid out as (V_F, ..., V_1, ...); a view if possible."""
    values = np.asarray(values_Bx)
    return values.reshape(*sizes[::-1], *values.shape[1:])


def unfold(values_Bx, sizes, factor: int = 0):
    """Values over the cells as a matrix of the other factors by one factor, (B/V_f, V_f, ...). For
    two factors, factor 0 gives [y, x]."""
    factors, values = len(sizes), over_grid(values_Bx, sizes)
    moved = np.moveaxis(values, factors - 1 - factor, factors - 1)
    return moved.reshape(-1, sizes[factor], *values.shape[factors:])


def lines_through(maps_PxG, places) -> list:
    """For each axis of P maps over a grid, (P, V, V', ...), the values (P, V) along it through a
    cell of each map; `places` are indices (P,) for each axis."""
    lines = []
    for axis, size in enumerate(maps_PxG.shape[1:]):
        index = [place_P[:, None] for place_P in places]
        index[axis] = np.arange(size)[None, :]
        lines.append(maps_PxG[np.arange(len(maps_PxG))[:, None], *index])
    return lines


def products(functions, count: int):
    """(P, R) products of functions (P, V) over all cells of their axes; ones (`count`, 1) of
    none."""
    product_PxR = np.ones((count, 1)) if not functions else functions[0]
    for function in functions[1:]:
        product_PxR = (product_PxR[:, :, None] * function[:, None, :]).reshape(count, -1)
    return product_PxR


def indices(sizes):
    """(B, F) int: the index of every cell's value of each factor."""
    return np.indices(sizes[::-1]).reshape(len(sizes), -1)[::-1].T


def points(axes):
    """(B, F) float32: all combinations of the values of F axes, the first varying fastest."""
    columns = zip(axes, indices(tuple(map(len, axes))).T, strict=True)
    return np.stack([np.asarray(axis, np.float32)[index] for axis, index in columns], axis=1)


def offsets(sizes, ordered: Sequence[bool] | None = None, periods: Sequence | None = None) -> list:
    """Distances between the values of each factor, in cells; F arrays (V_f, V_f).

    Args:
      ordered: for each factor, whether its values have neighbours; any two others are 1 apart.
      periods: for each factor, after how many cells it repeats, or None.
    """
    ordered, periods = ordered or (True,) * len(sizes), periods or (None,) * len(sizes)
    distances = []
    for size, has_neighbours, period in zip(sizes, ordered, periods, strict=True):
        apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        if not has_neighbours:
            apart = np.minimum(apart, 1)
        elif period is not None:
            apart = np.minimum(apart % period, -apart % period)
        distances.append(apart)
    return distances


def distance_to_seen(held_out_B, sizes, ordered=None, periods=None):
    """(B,) Euclidean distance in cells to the nearest seen cell, 0 for a seen one; see `offsets`.
    Raises ValueError if no cell is seen."""
    return np.sqrt(_nearest(held_out_B, sizes, ordered, periods)[0])


def nearest_seen(held_out_B, sizes, ordered=None, periods=None, fixed=None):
    """(B,) int: the index of the nearest seen cell of every cell, the first of several; among those
    with the same value of `fixed` factors, if there are any. Raises ValueError if no cell is
    seen."""
    index = _nearest(held_out_B, sizes, ordered, periods)[1]
    if fixed is None:
        return index
    squared, same = _nearest(held_out_B, sizes, ordered, periods, fixed)
    return np.where(np.isfinite(squared), same, index)


def _nearest(held_out_B, sizes, ordered, periods, fixed=None):
    """Squared distance and index; infinite where no seen cell has the `fixed` values. It is
    minimised along one factor after the other, without pairs of cells in memory."""
    held_out = checked_mask(held_out_B, sizes)
    if held_out.all():
        raise ValueError("held_out must leave some cell seen")
    squared = over_grid(np.where(held_out, np.inf, 0.0), sizes)
    index = over_grid(np.arange(held_out.size), sizes)
    tables = offsets(sizes, ordered, periods)
    for factor in np.flatnonzero(fixed) if fixed is not None else ():
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
    return squared.ravel(), index.ravel()


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


def box_sizes(held_out_B, sizes) -> tuple[int, ...] | None:
    """The sizes of the held-out cells as a grid of their own; None if they are none, or not all
    combinations of some values."""
    places_QxF = indices(sizes)[checked_mask(held_out_B, sizes)]
    counts = tuple(len(np.unique(column)) for column in places_QxF.T)
    return counts if 0 < math.prod(counts) == len(places_QxF) else None


def subgrid(sizes, limit: int, seed: int = 0, held_out_B=None):
    """A grid of at most `limit` of the cells: their indices (B',) int, ascending, and its sizes.

    Whole values are left out, of the factor with the most values first, down to 2. A factor keeps a
    random value of each of k runs of equal length. Where no `held_out` cell would be left, the
    values of the middle one are kept. Raises ValueError if the limit is below the smallest such
    grid.
    """
    counts = list(sizes)
    while math.prod(counts) > limit:
        largest = counts.index(max(counts))
        if counts[largest] <= 2:
            smallest = math.prod(counts)
            raise ValueError(f"limit must be at least {smallest}, not {limit}: sizes {sizes}")
        counts[largest] -= 1
    rng = np.random.default_rng(seed)
    chosen = []
    for size, count in zip(sizes, counts, strict=True):
        ends = np.arange(count + 1) * size // count
        chosen.append(rng.integers(ends[:-1], ends[1:]))
    cells = over_grid(np.arange(math.prod(sizes)), sizes)
    index = cells[np.ix_(*reversed(chosen))].ravel()
    if held_out_B is not None and np.any(held_out_B) and not held_out_B[index].any():
        held_out = np.flatnonzero(held_out_B)
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
