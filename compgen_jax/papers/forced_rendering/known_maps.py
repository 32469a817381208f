"""Maps from positions to images whose answer is known: what a criterion must decide rightly.

Each draws seen combinations as they are, true bumps, and held-out ones in its own way. Held out is
a square with seen cells next to it on each row and column, or a corner.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

GAIN, PIXELS = 0.05, 0.01  # standard deviations of a seed's jitter: of the gain, of every pixel
NEAR = 1.0  # pixels from a seen combination: what `edge` composes
FAINT = 0.01  # the height of `faint`, in bumps


class World(NamedTuple):
    """draw: (x, y) -> signal (N, N), a stripe where one is NaN.  grid: N.  low, high: the first and
    the last held-out value of x and of y; high is N - 1 for a corner.  amplitude: of a bump."""

    draw: Callable
    grid: int
    low: int
    high: int
    amplitude: float = 1.0


def world_of(targets_BxNxN, held_out_B) -> World:
    """Of the true signals of all cells. ValueError unless the held-out cells are a square on the
    diagonal."""
    targets, grid = jnp.asarray(targets_BxNxN), targets_BxNxN.shape[-1]
    y, x = np.divmod(np.flatnonzero(held_out_B), grid)
    if not len(x) or len(x) != (np.ptp(x) + 1) ** 2 or (x.min(), x.max()) != (y.min(), y.max()):
        raise ValueError("known maps need a held-out square on the diagonal")
    amplitude = float(targets.max())

    def draw(x, y):
        column, row = (jnp.where(jnp.isnan(c), 0, c).astype(jnp.int32) for c in (x, y))
        image = targets[jnp.clip(row * grid + column, 0, len(targets) - 1)]
        column_N, row_N = image.max(axis=0, keepdims=True), image.max(axis=1, keepdims=True)
        stripe = jnp.where(jnp.isnan(y), column_N, row_N)
        return jnp.where(jnp.isnan(x) | jnp.isnan(y), stripe, image)

    return World(draw, grid, int(x.min()), int(x.max()), amplitude)


def neighbours(point, world: World):
    """The seen points next on the row and on the column of a held-out one, (4, 2), their distances
    (4,), and whether there is one (4,)."""
    x, y = point
    before, after = jnp.float32(world.low - 1), jnp.float32(world.high + 1)
    points = [(before, y), (after, y), (x, before), (x, after)]
    distances = jnp.stack([x - before, after - x, y - before, after - y])
    exists = jnp.array([True, world.high < world.grid - 1] * 2)
    return jnp.array(points), distances, exists


def _bump(point, world):
    return world.draw(*point)


def _faint(point, world):
    return FAINT * _bump(point, world)


def _plus(point, world, level=0.0):
    x, y = point
    stripes = world.draw(x, jnp.float32(jnp.nan)) + world.draw(jnp.float32(jnp.nan), y)
    return stripes + level * world.amplitude


def _lookup(point, world):
    points, distances, exists = neighbours(point, world)
    return world.draw(*points[jnp.argmin(jnp.where(exists, distances, jnp.inf))])


def _superposer(point, world):
    points, distances, exists = neighbours(point, world)
    weights = jnp.where(exists, 1 / distances, 0.0)
    images = jax.vmap(lambda one: world.draw(*one))(points)
    return jnp.tensordot(weights / weights.sum(), images, axes=1)


def _sum(point, world):
    x, y = point
    values = jnp.arange(world.grid, dtype=jnp.float32)
    seen = ((values < world.low) | (values > world.high)).astype(jnp.float32)
    row = jax.vmap(lambda value: world.draw(value, y))(values)
    column = jax.vmap(lambda value: world.draw(x, value))(values)
    return jnp.tensordot(seen, row + column, axes=1)


def _edge(point, world):
    _, distances, exists = neighbours(point, world)
    near = jnp.where(exists, distances, jnp.inf).min() <= NEAR
    return jnp.where(near, _bump(point, world), _superposer(point, world))


def _blank(point, world):
    return jnp.zeros((world.grid, world.grid))


def _noise(point, world):
    cell = jnp.round(point).astype(jnp.int32)
    key = jax.random.fold_in(jax.random.key(0), cell[0] + world.grid * cell[1])
    return world.amplitude * jax.random.uniform(key, (world.grid, world.grid))


class KnownMap(NamedTuple):
    """render: held-out point (2,), world -> signal (N, N).  draws: what, in words.  height: of what
    is drawn, in bumps, where jitter must be in proportion to it."""

    render: Callable
    draws: str
    height: float = 1.0


MAPS = {
    "bump": KnownMap(_bump, "the bump that is asked for"),
    "faint": KnownMap(_faint, "the bump that is asked for, at a hundredth of its height", FAINT),
    "plus": KnownMap(_plus, "its two stripes, added"),
    "plus - 0.4": KnownMap(partial(_plus, level=-0.4), "the plus, less .4 of the amplitude"),
    "plus - 1": KnownMap(partial(_plus, level=-1.0), "the plus, less the amplitude"),
    "lookup": KnownMap(_lookup, "the nearest seen image"),
    "superposer": KnownMap(
        _superposer, "the seen bumps next on its row and column, weighted by 1 / distance"
    ),
    "sum": KnownMap(_sum, "the sum of all seen bumps on its row and on its column"),
    "edge": KnownMap(_edge, "the bump within a pixel of a seen one, else what `superposer` draws"),
    "blank": KnownMap(_blank, "nothing"),
    "noise": KnownMap(_noise, "independent uniform pixels"),
}


def render(name: str, world: World) -> Callable:
    """point (2,) -> signal (N, N)."""

    def of_point(point):
        inside = (jnp.round(point) >= world.low) & (jnp.round(point) <= world.high)
        true, own = _bump(point, world), MAPS[name].render(point, world)
        return jnp.where(inside.all(), own, true)

    return of_point


def images(name: str, world: World):
    """(B, N, N) of a map at every cell, x varying fastest."""
    y, x = jnp.divmod(jnp.arange(world.grid**2), world.grid)
    points = jnp.stack([x, y], axis=1).astype(jnp.float32)
    return np.asarray(jax.jit(jax.vmap(render(name, world)))(points))


def jittered(images, seeds: int, amplitude: float = 1.0):
    """(T, ...) copies of images, each with a gain and pixels of its own."""
    images, copies = np.asarray(images, np.float64), []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        gain, noise = 1 + GAIN * rng.normal(), PIXELS * amplitude * rng.normal(size=images.shape)
        copies.append(gain * images + noise)
    return np.stack(copies).astype(np.float32)
