"""Joins factors, codes and targets into a Dataset."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from compgen_jax.config import TaskConfig
from compgen_jax.tasks import supports
from compgen_jax.tasks.bump import bump, to_image
from compgen_jax.tasks.encodings import encode


class Dataset(NamedTuple):
    """factors_Bx2 (x, y in pixels; NaN for a missing one), codes_BxE, targets_BxHxW and
    weights_B of the loss."""

    factors: jax.Array
    codes: jax.Array
    targets: jax.Array
    weights: jax.Array


def example(x, y, task: TaskConfig, amplitude: float = 1.0) -> Dataset:
    """One point, or the stripe of one coordinate (None for the other), without the axis B.

    `amplitude` is relative to that of the task's bump.
    """
    present = [jnp.float32(jnp.nan) if c is None else jnp.asarray(c, jnp.float32) for c in (x, y)]
    signal = amplitude * bump(x, y, task.grid, task.image)
    return Dataset(
        factors=jnp.stack(present),
        codes=encode(x, y, task.grid, task.code),
        targets=to_image(signal, task.image),
        weights=jnp.float32(1.0),
    )


def from_factors(factors, task: TaskConfig) -> Dataset:
    """The points (B, 2) as a Dataset."""
    return jax.vmap(lambda point: example(point[0], point[1], task))(jnp.asarray(factors))


def stripes(task: TaskConfig) -> Dataset:
    """The vertical stripes at x = 0..N-1, then the horizontal ones at y = 0..N-1, once each
    (paper Figures 4a and 7a)."""
    draw = lambda x, y: example(x, y, task, task.stripes.amplitude)
    pixels = jnp.arange(task.grid, dtype=jnp.float32)
    vertical = jax.vmap(lambda x: draw(x, None))(pixels)
    horizontal = jax.vmap(lambda y: draw(None, y))(pixels)
    return _concatenate([vertical, horizontal])


def training_set(key, task: TaskConfig) -> Dataset:
    """The stripes, `copies` times over, and behind them the points drawn from the seen region:
    its first n examples are all stripes and n - 2N copies points."""
    points = from_factors(supports.sample(key, task), task)
    return _concatenate([stripes(task)] * task.stripes.copies + [points])


def size(task: TaskConfig) -> int:
    """Examples in a training set."""
    return supports.n_samples(task) + 2 * task.grid * task.stripes.copies


def every_cell(task: TaskConfig) -> Dataset:
    """All N*N cells, held out or not, in the order of `supports.cells`."""
    return from_factors(supports.cells(task.grid), task)


def _concatenate(datasets) -> Dataset:
    return jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *datasets)
