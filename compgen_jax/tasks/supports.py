"""Which combinations of a grid's factors are seen: held-out regions and sampling (Figure 1a).

The one owner of regions, of their bounds and of inclusivity: regions are sets of cells, every bound
is inclusive, and a real point belongs to its nearest cell. A region is a property of the task, not
of a seed, and is computed in NumPy before any compilation.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.settings import ConfigError, choice, number
from compgen_jax.tasks import sampling


@dataclass(frozen=True)
class SupportConfig:
    """Which factor combinations are held out, and how the others are sampled for training.

    donut  holds out the cells low <= x <= high and low <= y <= high;
    cross  holds out the cells low <= x <= high or  low <= y <= high (a band of each factor);
    corner holds out the square from `low` to the grid's edge in the top right corner, or its
           mirror image in another corner ('top' is large y);
    random holds out `share` of the cells, drawn with `seed`.

    A `side` above 0 is that of the donut's hole, which it puts in the centre, or of the corner,
    over the grid's N, rounded, and takes the place of `low` and `high`. A third factor has bounds
    of its own (`SizeConfig`): the donut is then a box. A donut, cross or corner of the factors
    named in `of` (none: of all) takes any value of the others.

    `samples` points are drawn once for each seed; in proportion to the seen area, they are
    `samples` times the share that is not held out. `fresh` ones are drawn a batch at each step
    instead, from the seen cells or from the real points around them, and have no epochs.
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
    """One factor of a grid: its values lie `step` apart from `first` on; the cells from `low` to
    `high`, or from `low` on in a corner, are those of a held-out box."""

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


def bounds(settings: SupportConfig, grid: int) -> tuple[int, int]:
    """The first and the last pixel of the held-out square along x and along y."""
    if not settings.side:
        return settings.low, settings.high
    held_out = round(settings.side * grid)
    low = grid - held_out if settings.region == "corner" else (grid - held_out) // 2
    return low, low + held_out - 1


def _donut(index, grid: Grid):
    return _all(_between(i, axis) for i, axis in _bounded(index, grid))


def _cross(index, grid: Grid):
    return ~_all(~_between(i, axis) for i, axis in _bounded(index, grid))


def _corner(index, grid: Grid):
    vertical, horizontal = grid.settings.corner.split("_")
    mirrored = {"x": horizontal == "left", "y": vertical == "bottom"}
    return _all(
        (i <= axis.count - 1 - axis.low) if mirrored.get(axis.name) else (i >= axis.low)
        for i, axis in _bounded(index, grid)
    )


def _bounded(index, grid: Grid) -> list:
    """Indices with the axes of the factors that bound the region."""
    names = grid.settings.of or [axis.name for axis in grid.axes]
    pairs = zip(index, grid.axes, strict=True)
    return [(i, axis) for i, axis in pairs if axis.name in names]


def _random(index, grid: Grid):
    """`share` of the cells, exactly (rounded), without regard to the training seeds."""
    counts = [axis.count for axis in grid.axes]
    held_out = np.zeros(np.prod(counts), bool)
    chosen = np.random.default_rng(grid.settings.seed).permutation(len(held_out))
    held_out[chosen[: round(grid.settings.share * len(held_out))]] = True
    table = _array(index[0]).asarray(held_out.reshape(counts[::-1]))
    return table[
        tuple(i.clip(0, n - 1).astype(int) for i, n in zip(index, counts, strict=True))[::-1]
    ]


def _none(index, grid: Grid):
    return _all(i != i for i in index)


class Region(NamedTuple):
    """held_out: rounded indices by factor, grid -> bool.  shown: the settings that say where it
    lies."""

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


def _nearest(points, grid: Grid) -> list:
    """Indices of the nearest cell, whole numbers, by factor."""
    array = _array(points)
    columns = [points[..., k] for k in range(len(grid.axes))]
    scaled = [
        c if (axis.first, axis.step) == (0.0, 1.0) else (c - axis.first) / axis.step
        for c, axis in zip(columns, grid.axes, strict=True)
    ]
    return [array.round(c) for c in scaled]


def _array(values):
    return jnp if isinstance(values, jax.Array) else np


def _between(index, axis: Axis):
    return (index >= axis.low) & (index <= axis.high)


def _all(masks):
    first, *others = masks
    for mask in others:
        first = first & mask
    return first


def axis_values(axis: Axis):
    """(V,) float32 NumPy."""
    return (axis.first + axis.step * np.arange(axis.count)).astype(np.float32)


def cells(grid: Grid):
    """All cells as points (B, F), the first factor varying fastest; float32 NumPy."""
    index_BxF = grids.indices(tuple(axis.count for axis in grid.axes))
    columns = [axis_values(axis)[i] for axis, i in zip(grid.axes, index_BxF.T, strict=True)]
    return np.stack(columns, axis=1)


def seen_cells(grid: Grid):
    """The cells that training may show, in the order of `cells`."""
    every = cells(grid)
    return every[~is_held_out(every, grid)]


def n_samples(grid: Grid) -> int:
    """Points that are drawn; 'every_cell' takes each seen cell once, whatever `samples`."""
    if grid.settings.sampling == "every_cell":
        return len(seen_cells(grid))
    share = seen_share(grid) if grid.settings.in_proportion else 1
    return round(share * grid.settings.samples)


def seen_share(grid: Grid) -> float:
    """Share of the cells, or of the volume between the outermost of them, that is not held out."""
    every = cells(grid)
    if grid.settings.sampling != "real" or grid.settings.region == "none":
        return 1 - is_held_out(every, grid).mean()
    if grid.settings.region not in ("donut", "corner"):
        raise ConfigError(
            f"config.task.support.in_proportion=True: of real points the region "
            f"{grid.settings.region!r} has no known share; say donut, corner or none"
        )
    held_out = 1.0
    for _, axis in _bounded(grid.axes, grid):  # half of an outermost cell lies beyond real points
        last = axis.count - 1
        end = last if grid.settings.region == "corner" else min(axis.high + 0.5, last)
        held_out *= (end - max(axis.low - 0.5, 0)) / last
    return 1 - held_out


def sample(key, grid: Grid, n: int):
    """n training points from the seen region, (n, F) float32.

    Cells with or without replacement, every seen cell once, or real points uniform over the seen
    part of the box that the outermost cells span.
    """
    sampling = grid.settings.sampling
    if sampling == "real":
        return jax.vmap(lambda k: sample_real(k, grid))(jax.random.split(key, n))
    seen = jnp.asarray(seen_cells(grid))
    if sampling == "with_replacement":
        return seen[jax.random.randint(key, (n,), 0, len(seen))]
    if sampling == "without_replacement":
        return jax.random.permutation(key, seen)[:n]
    return seen


def sample_real(key, grid: Grid):
    """One real point of the seen region."""
    return _by_rejection(key, grid, lambda point: is_held_out(point, grid))


def _by_rejection(key, grid: Grid, rejected: Callable):
    first = jnp.array([axis.first for axis in grid.axes])
    extent = jnp.array([axis.step * (axis.count - 1.0) for axis in grid.axes])
    return sampling.by_rejection(key, first, extent, rejected)


def fresh_source(grid: Grid):
    """What a stream draws from: the seen cells as a table or, of real points, which cells are seen,
    (V_F, ..., V_1) bool."""
    if grid.settings.fresh == "cells":
        return sampling.table(jnp.asarray(seen_cells(grid)))
    counts = [axis.count for axis in grid.axes]
    return jnp.asarray(~is_held_out(cells(grid), grid).reshape(counts[::-1]))


def fresh_draw(grid: Grid):
    """How a stream draws its next batch; see `Task.next_batch`."""
    if grid.settings.fresh == "cells":
        return sampling.stream(sampling.from_table)

    def sample_seen(key, seen):
        return _by_rejection(key, grid, lambda point: ~seen[_cell(point, grid)])

    return sampling.stream(sample_seen)


def _cell(points, grid: Grid) -> tuple:
    """Where the nearest cells of points (..., F) lie in an array over the cells."""
    array = _array(points)
    index = [array.nan_to_num(i).astype(int) for i in _nearest(points, grid)]
    return tuple(i.clip(0, axis.count - 1) for i, axis in zip(index, grid.axes, strict=True))[::-1]


def nearest_seen(points, grid: Grid):
    """(..., F): the seen cell that is nearest to the cell of each point (..., F), in cells; NaN for
    a point that is seen itself, or lacks a factor. For NumPy or JAX arrays."""
    array = _array(points)
    nearest = array.asarray(_nearest_seen_cells(grid))[_cell(points, grid)]
    return array.where(array.isnan(points).any(axis=-1, keepdims=True), array.nan, nearest)


@functools.lru_cache(maxsize=64)
def _nearest_seen_cells(grid: Grid):
    """(V_F, ..., V_1, F) float32 NumPy: `nearest_seen` of every cell."""
    every, counts = cells(grid), tuple(axis.count for axis in grid.axes)
    held_out = is_held_out(every, grid)
    nearest = np.where(held_out[:, None], every[grids.nearest_seen(held_out, counts)], np.nan)
    return nearest.astype(np.float32).reshape(*counts[::-1], len(counts))


def missing_marginals(points, grid: Grid) -> dict[str, list]:
    """Indices of each factor's values that no point rounds to."""
    found = {}
    for axis, column in zip(grid.axes, _nearest(np.asarray(points), grid), strict=True):
        shown = set(column[~np.isnan(column)].astype(int).tolist())
        found[axis.name] = sorted(set(range(axis.count)) - shown)
    return found


def check(grid: Grid, points: int, asked: str, shows_every_value: bool):
    """Raises ConfigError where the support cannot serve, before any compilation: so many points,
    which a field `asked` for. Stripes show every value or, some left out, a seed's choice."""
    settings, names = grid.settings, [axis.name for axis in grid.axes]
    if not set(settings.of) <= set(names):
        raise ConfigError(
            f"config.task.support.of={settings.of!r}: must name some of {', '.join(names)}"
        )
    held_out = is_held_out(cells(grid), grid)
    region, whole = describe(settings), "x".join(str(axis.count) for axis in grid.axes)
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
        check_marginals(cells(grid)[~held_out], grid, region)


def check_marginals(points, grid: Grid, of: str = ""):
    """Raises ConfigError if the task demands marginals and a value of a factor never occurs among
    the points (n, F), concrete: the seen cells, or one seed's training draw."""
    if not grid.settings.require_marginals:
        return
    for name, missing in missing_marginals(points, grid).items():
        if missing:
            raise ConfigError(
                f"{of}{': ' * bool(of)}no training point has {name} in {missing}, and "
                "config.task.support.require_marginals=True demands every value"
            )


def describe(settings: SupportConfig) -> str:
    optional = [name for name in ("side", "of") if not getattr(settings, name)]
    names = [name for name in REGIONS[settings.region].shown if name not in optional]
    shown = [f"{name}={getattr(settings, name)!r}" for name in ("region", *names)]
    return "config.task.support: " + ", ".join(shown)
