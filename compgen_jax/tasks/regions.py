"""What is held out, for any task: a mask over the cells of its factors, in NumPy.

A point between the cells belongs to its nearest cell.
"""

import functools
import math

import numpy as np

from compgen_jax import grids
from compgen_jax.tasks import task as tasks


def random_cells(options_B, share: float, seed: int):
    """(B,) bool: exactly the share (rounded) of the cells that are options, drawn with `seed`."""
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(options_B))
    held_out = np.zeros(len(options_B), bool)
    held_out[chosen[: round(share * len(chosen))]] = True
    return held_out


class Cells:
    """The combinations of factors as `points` (B, F), and which are `held_out` (B,) bool; NumPy.

    Args:
      points: the combinations that exist, where not every one does.
    """

    def __init__(self, factors, held_out, points=None):
        self.factors, self.is_grid, self.held_out = tuple(factors), points is None, held_out
        self.sizes = tasks.counts(self.factors)
        self.points = tasks.cells(factors) if self.is_grid else np.asarray(points, np.float32)

    def index(self, points):
        """(...,) int: the cell of each point (..., F), NumPy or JAX."""
        combination = tasks.nearest_cell(self.factors, points)
        if self.is_grid:
            return combination
        return tasks.numpy_of(points).asarray(self._cell_of_combination)[combination]

    def is_held_out(self, points):
        """(...,) bool: a point that lacks a factor is not held out."""
        numpy = tasks.numpy_of(points)
        incomplete = numpy.isnan(points[..., : len(self.factors)]).any(axis=-1)
        return numpy.asarray(self.held_out)[self.index(points)] & ~incomplete

    def nearest_seen(self, points):
        """(..., F): the nearest ID cell of each point's cell, NaN for a point that is ID or lacks a
        factor."""
        numpy = tasks.numpy_of(points)
        incomplete = numpy.isnan(points[..., : len(self.factors)]).any(axis=-1, keepdims=True)
        nearest = numpy.asarray(self._nearest_seen_of_cell)[self.index(points)]
        return numpy.where(incomplete, numpy.nan, nearest)

    def _nearest_of(self, cells_B):
        """(combinations,) int: the nearest of these cells for all combinations of values."""
        cell = np.full(math.prod(self.sizes), -1)
        cell[self._combination_of_cell[cells_B]] = np.flatnonzero(cells_B)
        return cell[grids.nearest_seen(cell < 0, **tasks.geometry(self.factors))[0]]

    @functools.cached_property
    def _combination_of_cell(self):
        if self.is_grid:
            return np.arange(len(self.points))
        return tasks.nearest_cell(self.factors, self.points)

    @functools.cached_property
    def _cell_of_combination(self):
        return self._nearest_of(np.ones(len(self.points), bool))

    @functools.cached_property
    def _nearest_seen_of_cell(self):
        nearest = self.points[self._nearest_of(~self.held_out)[self._combination_of_cell]]
        return np.where(self.held_out[:, None], nearest, np.float32(np.nan))
