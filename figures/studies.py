"""What a figure is drawn from: a finished run, and what is made of it."""

from functools import cached_property
from pathlib import Path

import numpy as np

from compgen_jax.runs import inspection, results


def held_out_cells(results, points):
    """Indices of the held-out cells nearest to points given in shares of the hole's width and
    height: the same places for every network."""
    hole = results.factors[results.held_out]
    low, high = hole.min(axis=0), hole.max(axis=0)
    allowed = np.flatnonzero(results.held_out)
    return [
        allowed[np.argmin(np.square(results.factors[allowed] - point).sum(axis=1))]
        for point in np.round(low + (high - low) * np.array(points))
    ]


class Study:
    """A finished run in its directory; everything else is made when it is first asked for."""

    def __init__(self, path: Path):
        self.path = path
        self.run = results.load(path)
        self.config, self.summary = self.run.config, self.run.summary

    @cached_property
    def results(self):
        """What it draws at every cell: `analysis.evaluation.CellResults`."""
        return results.evaluate_cells(self.run)

    @cached_property
    def fine_errors(self):
        """(T, M, M), indexed [y, x]: its errors at every half pixel."""
        return results.fine_error_map(self.run)

    @cached_property
    def inspection(self):
        """What every layer does, kept in its directory: `inspection.Inspection`."""
        return inspection.inspect_directory(self.path)

    @cached_property
    def stripes(self):
        """Signals (T, 2N, N, N) for one factor alone, and the true ones (2N, N, N)."""
        return results.stripes(self.run)
