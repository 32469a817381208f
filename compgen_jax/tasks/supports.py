"""Which combinations of a grid's factors are seen: held-out regions and sampling (Figure 1a).

A region is a set of cells. Every bound is inclusive, and a point between the cells belongs to its
nearest cell. A region belongs to the task, not to a seed: it is computed in NumPy before anything
compiles.
"""

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.settings import ConfigError, choice, number, require
from compgen_jax.tasks import sampling
from compgen_jax.tasks.task import numpy_of


@dataclass(frozen=True)
class SupportConfig:
    """Which factor combinations are held out, and how the others are sampled for training.

    donut  holds out the cells low <= x <= high and low <= y <= high;
    cross  holds out the cells low <= x <= high or  low <= y <= high (a band of each factor);
    corner holds out the square from `low` to the grid's edge in the top right corner, or its
           mirror image in another corner ('top' is large y);
    random holds out `share` of the cells, drawn with `seed`.

    A `side` above 0 replaces `low` and `high`: it is the side of the held-out square as a share of
    N, rounded to pixels; a donut's square is then centred. A third factor has bounds of its own
    (`SizeConfig`), so that a donut is a box. `of` names the factors that bound the region (none:
    all); it takes any value of the others.

    `samples` points are drawn once for each seed. With `in_proportion`, their number is `samples`
    times the share that is not held out. `fresh` points are drawn at each step instead, from the
    seen cells or from the real points around them; they have no epochs.
    """

    region: str = choice("donut", "donut", "corner", "cross", "random", "none")
    low: int = number(6, low=0)
    high: int = number(22, low=0)
    side: float = number(0.0, low=0, high=0.99)
    of: tuple = ()
    corner: str = choice("top_right", "top_right", "top_left", "bottom_right", "bottom_left")
    share: float = number(0.37, low=0, high=1)
    seed: int = number(0, low=0)
    sampling: str = choice(
        "with_replacement", "with_replacement", "without_replacement", "every_cell", "real"
    )
    samples: int = number(2000, low=0, high=10**7)
    in_proportion: bool = False
    fresh: str = choice("no", "no", "cells", "real", traced=False)
    require_marginals: bool = True


class Axis(NamedTuple):
    """One factor of a grid: `count` values, `step` apart, from `first` on. Those of a held-out box
    are number `low` to `high`; those of a corner, number `low` and all after it."""

    name: str
    count: int
    first: float
    step: float
    low: int
    high: int


class Grid(NamedTuple):
    """The support of one task: its settings and its factors."""

    axes: tuple[Axis, ...]
    settings: SupportConfig

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(axis.count for axis in self.axes)


def bounds(settings: SupportConfig, grid: int) -> tuple[int, int]:
    """The first and the last pixel of the held-out square along x and along y."""
    if not settings.side:
        return settings.low, settings.high
    held_out = round(settings.side * grid)
    low = grid - held_out if settings.region == "corner" else (grid - held_out) // 2
    return low, low + held_out - 1


# --- regions ---------------------------------------------------------------------------------


def _donut(index, grid: Grid):
    return _all((axis.low <= i) & (i <= axis.high) for i, axis in _bounded(index, grid))


def _cross(index, grid: Grid):
    return ~_all((i < axis.low) | (axis.high < i) for i, axis in _bounded(index, grid))


def _corner(index, grid: Grid):
    vertical, horizontal = grid.settings.corner.split("_")
    mirrored = {"x": horizontal == "left", "y": vertical == "bottom"}
    return _all(
        (i <= axis.count - 1 - axis.low) if mirrored.get(axis.name) else (i >= axis.low)
        for i, axis in _bounded(index, grid)
    )


def _random(index, grid: Grid):
    """`share` of the cells, exactly (rounded); the same for all training seeds."""
    held_out = np.zeros(np.prod(grid.counts), bool)
    chosen = np.random.default_rng(grid.settings.seed).permutation(len(held_out))
    held_out[chosen[: round(grid.settings.share * len(held_out))]] = True
    table = numpy_of(index[0]).asarray(held_out.reshape(grid.counts[::-1]))
    return table[_within(index, grid)]


def _none(index, grid: Grid):
    return numpy_of(index[0]).zeros(index[0].shape, bool)


def _bounded(index, grid: Grid) -> list:
    """(index, axis) for the factors that bound the region."""
    names = grid.settings.of or [axis.name for axis in grid.axes]
    pairs = zip(index, grid.axes, strict=True)
    return [(i, axis) for i, axis in pairs if axis.name in names]


def _all(masks):
    return functools.reduce(operator.and_, masks)


class Region(NamedTuple):
    """held_out: indices by factor, grid -> bool.  shown: the settings that say where it lies."""

    held_out: Callable
    shown: tuple[str, ...]


REGIONS = {
    "donut": Region(_donut, ("low", "high", "side", "of")),
    "cross": Region(_cross, ("low", "high", "side", "of")),
    "corner": Region(_corner, ("low", "side", "corner", "of")),
    "random": Region(_random, ("share", "seed")),
    "none": Region(_none, ()),
}


def is_held_out(points, grid: Grid):
    """Whether the points (..., F) are held out; for NumPy or JAX arrays."""
    return REGIONS[grid.settings.region].held_out(_nearest(points, grid), grid)


def nearest_seen(points, grid: Grid):
    """(..., F): for each held-out point (..., F), the seen cell nearest to its own cell.

    NaN for a point that is seen, and for a stripe, which lacks a factor. Distances are in cells.
    For NumPy or JAX arrays.
    """
    numpy = numpy_of(points)
    index = [numpy.nan_to_num(i) for i in _nearest(points, grid)]
    nearest = numpy.asarray(_nearest_seen_cells(grid))[_within(index, grid)]
    return numpy.where(numpy.isnan(points).any(axis=-1, keepdims=True), numpy.nan, nearest)


@functools.lru_cache(maxsize=64)
def _nearest_seen_cells(grid: Grid):
    """(V_F, ..., V_1, F) float32 NumPy: `nearest_seen` of every cell."""
    every = cells(grid)
    held_out = is_held_out(every, grid)
    nearest = every[grids.nearest_seen(held_out, grid.counts)]
    return np.where(held_out[:, None], nearest, np.float32(np.nan)).reshape(*grid.counts[::-1], -1)


def _nearest(points, grid: Grid) -> list:
    """Indices of the nearest cell, whole numbers, by factor."""
    scaled = [
        c if (axis.first, axis.step) == (0.0, 1.0) else (c - axis.first) / axis.step
        for c, axis in zip(_columns(points), grid.axes, strict=True)
    ]
    return [numpy_of(points).round(c) for c in scaled]


def _columns(points) -> list:
    return [points[..., k] for k in range(points.shape[-1])]


def _within(index, grid: Grid) -> tuple:
    """Indices by factor as those of an array over the cells, (V_F, ..., V_1)."""
    pairs = zip(index, grid.counts, strict=True)
    return tuple(i.astype(int).clip(0, count - 1) for i, count in pairs)[::-1]


# --- cells and samples -----------------------------------------------------------------------


def axis_values(axis: Axis):
    """(V,) float32 NumPy."""
    return (axis.first + axis.step * np.arange(axis.count)).astype(np.float32)


def cells(grid: Grid):
    """All cells as points (B, F), the first factor varying fastest; float32 NumPy."""
    return grids.points([axis_values(axis) for axis in grid.axes])


def seen_cells(grid: Grid):
    """The cells that training may show, in the order of `cells`."""
    every = cells(grid)
    return every[~is_held_out(every, grid)]


def n_samples(grid: Grid) -> int:
    """The number of points that are drawn. 'every_cell' takes each seen cell once."""
    if grid.settings.sampling == "every_cell":
        return len(seen_cells(grid))
    share = seen_share(grid) if grid.settings.in_proportion else 1
    return round(share * grid.settings.samples)


def seen_share(grid: Grid) -> float:
    """The share of the cells that is not held out; of real points, the share of the volume."""
    region, held_out = grid.settings.region, 1.0
    if grid.settings.sampling != "real" or region == "none":
        return 1 - is_held_out(cells(grid), grid).mean()
    unknown = f"the share of real points in the region {region!r} is not known"
    hint = f"{unknown}; say donut, corner or none"
    require(region in ("donut", "corner"), "task.support.in_proportion", True, hint)
    for _, axis in _bounded(grid.axes, grid):  # half of an outermost cell lies beyond real points
        last = axis.count - 1
        end = last if region == "corner" else min(axis.high + 0.5, last)
        held_out *= (end - max(axis.low - 0.5, 0)) / last
    return 1 - held_out


def sample(key, grid: Grid, n: int):
    """n training points of the seen region, (n, F) float32: cells with or without replacement,
    every seen cell once, or real points, uniform between the outermost cells."""
    sampling = grid.settings.sampling
    if sampling == "real":
        draw = lambda key: _by_rejection(key, grid, lambda point: is_held_out(point, grid))
        return jax.vmap(draw)(jax.random.split(key, n))
    seen = jnp.asarray(seen_cells(grid))
    if sampling == "with_replacement":
        return seen[jax.random.randint(key, (n,), 0, len(seen))]
    if sampling == "without_replacement":
        return jax.random.permutation(key, seen)[:n]
    return seen


def _by_rejection(key, grid: Grid, rejected: Callable):
    first = jnp.array([axis.first for axis in grid.axes])
    extent = jnp.array([axis.step * (axis.count - 1.0) for axis in grid.axes])
    return sampling.by_rejection(key, first, extent, rejected)


def fresh_source(grid: Grid):
    """What a stream draws from: the seen cells as a table or, for real points, which cells are
    seen, (V_F, ..., V_1) bool."""
    if grid.settings.fresh == "cells":
        return sampling.table(jnp.asarray(seen_cells(grid)))
    return jnp.asarray(~is_held_out(cells(grid), grid).reshape(grid.counts[::-1]))


def fresh_draw(grid: Grid):
    """How a stream draws its next batch; see `Task.next_batch`."""
    if grid.settings.fresh == "cells":
        return sampling.stream(sampling.from_table)

    def sample_seen(key, seen):
        rejected = lambda point: ~seen[_within(_nearest(point, grid), grid)]
        return _by_rejection(key, grid, rejected)

    return sampling.stream(sample_seen)


# --- checks ----------------------------------------------------------------------------------


def check(grid: Grid, points: int, asked: str, shows_every_value: bool):
    """Raises ConfigError where the support cannot serve, before anything compiles.

    Args:
      points: how many are drawn.  asked: the field and value that say so, for the message.
      shows_every_value: whether training has stripes, so that the points need not show all values.
    """
    settings, names = grid.settings, [axis.name for axis in grid.axes]
    hint = f"must name some of {', '.join(names)}"
    require(set(settings.of) <= set(names), "task.support.of", settings.of, hint)
    held_out = is_held_out(cells(grid), grid)
    region, whole = describe(settings), "x".join(map(str, grid.counts))
    if held_out.all():
        raise ConfigError(f"{region}: holds out every cell of the {whole} grid")
    if settings.region != "none" and not held_out.any():
        raise ConfigError(
            f"{region}: holds out no cell of the {whole} grid "
            "(for full coverage say config.task.support.region='none')"
        )
    seen = len(held_out) - held_out.sum()
    if settings.sampling == "without_replacement" and points > seen:
        raise ConfigError(
            f"{asked}: only {seen} cells are seen, so at most that many can be drawn without "
            "replacement"
        )
    if not shows_every_value:
        check_marginals(cells(grid)[~held_out], grid, f"{region}: ")


def check_marginals(points, grid: Grid, where: str = ""):
    """Raises ConfigError if the task demands marginals and some value of a factor occurs in none
    of the points (n, F), NumPy: the seen cells, or one seed's training set."""
    if not grid.settings.require_marginals:
        return
    for axis, column in zip(grid.axes, _nearest(np.asarray(points), grid), strict=True):
        shown = column[~np.isnan(column)].astype(int).tolist()
        if missing := sorted({*range(axis.count)} - {*shown}):
            raise ConfigError(
                f"{where}no training point has {axis.name} in {missing}, and "
                "config.task.support.require_marginals=True demands every value"
            )


def describe(settings: SupportConfig) -> str:
    """The settings that say which region is held out."""
    optional = [name for name in ("side", "of") if not getattr(settings, name)]
    names = [name for name in REGIONS[settings.region].shown if name not in optional]
    shown = [f"{name}={getattr(settings, name)!r}" for name in ("region", *names)]
    return "config.task.support: " + ", ".join(shown)
