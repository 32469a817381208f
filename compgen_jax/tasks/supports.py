"""Which combinations of factors are held out, and what is drawn of the others (Figure 1a).

A point between the cells belongs to its nearest cell.
"""

import functools
import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.settings import choice, demand, number
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks


@dataclass(frozen=True)
class SupportConfig:
    """Which combinations are held out, and how the others are sampled.

    donut  the cells low <= x <= high and low <= y <= high;
    corner the square from `low` to the grid's edge, top right;
    random `share` of the cells, drawn with `seed`.

    A `side` above 0 replaces `low` and `high`: it is the held-out square's, as a share of N; a
    donut's is then centred. `of` names the factors that bound the region (none: all). A sentence
    `held_out`, of x and y, replaces the region (docs/how_to/hold_out.md). `samples` points are
    drawn once for each seed; `in_proportion`, times the share that is not held out.
    """

    region: str = choice("donut", "donut", "corner", "random", "none")
    low: int = number(6, low=0)
    high: int = number(22, low=0)
    side: float = number(0.0, low=0, high=0.99)
    of: tuple = ()
    held_out: str = ""
    share: float = number(0.37, low=0, high=1)
    seed: int = number(0, low=0)
    sampling: str = choice(
        "with_replacement", "with_replacement", "without_replacement", "every_cell", "real"
    )
    samples: int = number(2000, low=0, high=10**7)
    in_proportion: bool = False
    require_marginals: bool = True


def value_indices(factor: tasks.Factor, column):
    """(n,) int: which of the factor's values, ascending, is nearest to each number (n,)."""
    values = np.asarray(factor.values, np.float64)
    return np.searchsorted((values[1:] + values[:-1]) / 2, column)


def random_cells(options_B, share: float, seed: int):
    """(B,) bool: exactly the share (rounded) of the cells that are options, drawn with `seed`."""
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(options_B))
    held_out = np.zeros(len(options_B), bool)
    held_out[chosen[: round(share * len(chosen))]] = True
    return held_out


class Cells:
    """The combinations of factors as `points` (B, F), by default all, and which are `held_out`."""

    def __init__(self, factors, held_out, points=None):
        self.factors, self.is_grid, self.held_out = tuple(factors), points is None, held_out
        self.sizes = tasks.counts(self.factors)
        self.points = tasks.cells(factors) if self.is_grid else np.asarray(points, np.float32)
        # of each combination of values, by the nearest cell
        self._held_out = held_out
        if not self.is_grid:
            self._held_out = held_out[self._nearest_of(np.ones(len(self.points), bool))]

    def is_held_out(self, points):
        """(...,) bool of points (..., F), NumPy or JAX; one that lacks a factor is not held out."""
        numpy = tasks.numpy_of(points)
        incomplete = numpy.isnan(points[..., : len(self.factors)]).any(axis=-1)
        return numpy.asarray(self._held_out)[tasks.nearest_cell(self.factors, points)] & ~incomplete

    def nearest_seen(self, points):
        """(..., F): the ID cell nearest to each point's cell, NaN for a point that is ID or lacks a
        factor."""
        numpy = tasks.numpy_of(points)
        incomplete = numpy.isnan(points[..., : len(self.factors)]).any(axis=-1, keepdims=True)
        nearest = numpy.asarray(self._nearest_seen)[tasks.nearest_cell(self.factors, points)]
        return numpy.where(incomplete, numpy.nan, nearest)

    def _nearest_of(self, cells_B):
        """(combinations,) int: the nearest of these cells for every combination of values."""
        cell = np.full(math.prod(self.sizes), -1)
        cell[tasks.nearest_cell(self.factors, self.points[cells_B])] = np.flatnonzero(cells_B)
        return cell[grids.nearest_seen(cell < 0, **tasks.geometry(self.factors))[0]]

    @functools.cached_property
    def _nearest_seen(self):
        nearest = self.points[self._nearest_of(~self.held_out)]
        return np.where(self._held_out[:, None], nearest, np.float32(np.nan))


class Support(Cells):
    """The cells of evenly spaced factors, and what is drawn from those that are seen. `box` says
    {factor: (first, last)} of the values that bound a donut, or a corner, which has no last;
    `held_out` (B,) bool replaces all regions."""

    def __init__(self, settings: SupportConfig, factors, box: dict, held_out=None):
        self.settings, self.box, sizes = settings, {}, tasks.counts(factors)
        if held_out is not None:
            super().__init__(factors, held_out)
            return
        if settings.region == "donut":
            self.box = box
        if settings.region == "corner":
            self.box = {name: (low, np.inf) for name, (low, _) in box.items()}
        held_out = np.full(np.prod(sizes), settings.region != "none")
        if settings.region == "random":
            held_out = random_cells(held_out, settings.share, settings.seed)
        for factor, index_B in zip(factors, grids.indices(sizes).T, strict=True):
            low, high = self.box.get(factor.name, (0, np.inf))
            held_out &= (low <= index_B) & (index_B <= high)
        super().__init__(factors, held_out)
        hint = f"holds out all or none of the {len(held_out)} cells; say 'none' for none"
        is_some = held_out.any() and not held_out.all()
        demand(
            is_some or settings.region == "none",
            f"config.task.support.region={settings.region!r}: {hint}",
        )

    def n_samples(self) -> int:
        settings = self.settings
        if settings.sampling == "every_cell":
            return int((~self.held_out).sum())
        if not settings.in_proportion:
            return settings.samples
        held_out = self.held_out.mean()
        if settings.sampling == "real" and (settings.held_out or settings.region != "none"):
            hint = f"the share of real points in the region {settings.region!r} is not known"
            demand(self.box, f"config.task.support.in_proportion=True: {hint}")
            held_out = 1.0
            for factor, size in zip(self.factors, self.sizes, strict=True):
                last = size - 1  # half of an outermost cell lies beyond real points
                low, high = self.box.get(factor.name, (0, np.inf))
                held_out *= (min(high + 0.5, last) - max(low - 0.5, 0)) / last
        return round((1 - held_out) * settings.samples)

    def sample(self, key, n: int):
        """n training points of the seen region, (n, F) float32; see `SupportConfig`."""
        kind = self.settings.sampling
        if kind == "real":
            first, last = (jnp.array([f.values[end] for f in self.factors]) for end in (0, -1))
            region = {"first": first, "extent": last - first, "rejected": self.is_held_out}
            draw = partial(sampling.by_rejection, **region)
            return jax.vmap(draw)(jax.random.split(key, n))
        seen = jnp.asarray(self.points[~self.held_out])
        if kind == "with_replacement":
            return seen[jax.random.randint(key, (n,), 0, len(seen))]
        return jax.random.permutation(key, seen)[:n] if kind == "without_replacement" else seen

    def check_marginals(self, points):
        """Raises ConfigError if some value occurs in none of the points (n, F), NumPy, and must."""
        for factor, column in zip(self.factors, points.T, strict=True):
            present = value_indices(factor, column[~np.isnan(column)])
            missing = np.setdiff1d(np.arange(len(factor.values)), present).tolist()
            demand(
                not (missing and self.settings.require_marginals),
                "config.task.support.require_marginals=True: no training point has "
                f"{factor.name} in {missing}",
            )
