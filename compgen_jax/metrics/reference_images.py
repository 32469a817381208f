"""Reference images: what known rules draw at the held-out cells of a square on the diagonal, as
controls for what networks draw there."""

import zlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.metrics import kernels, registry
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.metrics.layers import Layer


class World(NamedTuple):
    """draw: (x, y) -> signal (N, N), a stripe where one is NaN.  grid: N.  low, high: the first and
    the last held-out value of x and of y; high is N - 1 for a corner.  amplitude: of a bump."""

    draw: Callable
    grid: int
    low: int
    high: int
    amplitude: float = 1.0


def world_of(targets_BxNxN, held_out_B) -> World:
    """The world with these true signals at its cells. ValueError unless the held-out cells are a
    square on the diagonal."""
    targets, grid = jnp.asarray(targets_BxNxN), targets_BxNxN.shape[-1]
    y, x = np.divmod(np.flatnonzero(held_out_B), grid)
    if not len(x) or len(x) != (np.ptp(x) + 1) ** 2 or (x.min(), x.max()) != (y.min(), y.max()):
        raise ValueError("reference images need a held-out square on the diagonal")

    def draw(x, y):
        column, row = (jnp.where(jnp.isnan(c), 0, c).astype(jnp.int32) for c in (x, y))
        image = targets[jnp.clip(row * grid + column, 0, len(targets) - 1)]
        column_N, row_N = image.max(axis=0, keepdims=True), image.max(axis=1, keepdims=True)
        stripe = jnp.where(jnp.isnan(y), column_N, row_N)
        return jnp.where(jnp.isnan(x) | jnp.isnan(y), stripe, image)

    return World(draw, grid, int(x.min()), int(x.max()), float(targets.max()))


def neighbours(point, world: World) -> tuple:
    """The ID points next on row and column of a held-out one, (4, 2), their distances (4,), and the
    images there (4, N, N)."""
    x, y = point
    before, after = jnp.float32(world.low - 1), jnp.float32(world.high + 1)
    points = jnp.array([(before, y), (after, y), (x, before), (x, after)])
    distances = jnp.stack([x - before, after - x, y - before, after - y])
    exists = jnp.array([True, world.high < world.grid - 1] * 2)
    near = jax.vmap(lambda neighbour: world.draw(*neighbour))(points)
    return points, jnp.where(exists, distances, jnp.inf), near


def true_image(point, world: World):
    return world.draw(*point)


def superposer(point, world: World):
    """The ID bumps next on the row and column, weighted by 1 / distance."""
    _, distances, near = neighbours(point, world)
    return jnp.tensordot(1 / distances / (1 / distances).sum(), near, axes=1)


def lookup(point, world: World):
    """The nearest ID image."""
    _, distances, near = neighbours(point, world)
    return near[jnp.argmin(distances)]


def images(rule: Callable, world: World):
    """(B, N, N): true images at ID cells, those of rule(point, world) at the others."""

    def of_point(point):
        inside = (jnp.round(point) >= world.low) & (jnp.round(point) <= world.high)
        return jnp.where(inside.all(), rule(point, world), world.draw(*point))

    y, x = jnp.divmod(jnp.arange(world.grid**2), world.grid)
    points = jnp.stack([x, y], axis=1).astype(jnp.float32)
    return np.asarray(jax.jit(jax.vmap(of_point))(points))


def output_numbers(signals_BxNxN, cells: CellResults) -> dict:
    """Similarity and superposition metrics of signals at every cell, by name."""
    outputs, truths = (
        signals.reshape(len(signals), -1) for signals in (signals_BxNxN, cells.truths)
    )
    layer = Layer(
        outputs,
        cells.factors,
        cells.held_out,
        distance=cells.distance,
        true_kernel=kernels.cosine(kernels.gram(truths)),
    )
    metrics = [metric for metric in registry.METRICS if metric.names[0].startswith("output.")]
    return registry.numbers(metrics, layer)


_computed: dict = {}  # by rule, true images and hold-out, which many runs share


def reference_numbers(rule: Callable, cells: CellResults) -> dict:
    """`output_numbers` of a rule's images around the held-out square of some results."""
    key = rule, zlib.crc32(np.ascontiguousarray(cells.truths)), cells.held_out.tobytes()
    if key not in _computed:
        drawn = images(rule, world_of(cells.truths, cells.held_out))
        _computed[key] = output_numbers(drawn, cells)
    return _computed[key]
