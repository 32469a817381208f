"""Joins factors, codes and targets into a Dataset."""

import zlib
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


def example(x, y, task: TaskConfig) -> Dataset:
    """One point, or the stripe of one coordinate (None or NaN for the other), without axis B."""
    factors = jnp.stack([jnp.float32(jnp.nan if c is None else c) for c in (x, y)])
    amplitude = jnp.where(jnp.isnan(factors).any(), task.stripes.amplitude, 1.0)
    signal = amplitude * bump(x, y, task.grid, task.image)
    return Dataset(
        factors=factors,
        codes=encode(x, y, task.grid, task.code),
        targets=to_image(signal, task.image),
        weights=jnp.float32(1.0),
    )


def from_factors(factors, task: TaskConfig) -> Dataset:
    """The points (B, 2), and the stripes where a factor is NaN, as a Dataset."""
    return jax.vmap(lambda point: example(point[0], point[1], task))(jnp.asarray(factors))


def stripes(task: TaskConfig) -> Dataset:
    """The vertical stripes at x = 0..N-1, then the horizontal ones at y = 0..N-1, once each
    (paper Figures 4a and 7a)."""
    return from_factors(_stripe_factors(task.grid), task)


def _stripe_factors(grid: int):
    pixels, missing = jnp.arange(grid, dtype=jnp.float32), jnp.full(grid, jnp.nan)
    vertical, horizontal = jnp.stack([pixels, missing], 1), jnp.stack([missing, pixels], 1)
    return jnp.concatenate([vertical, horizontal])


def training_factors(key, task: TaskConfig):
    """(size, 2): the stripes, `copies` times over, and behind them the points drawn from the seen
    region. The first n are the same whatever the number of points is."""
    stripes = jnp.tile(_stripe_factors(task.grid), (task.stripes.copies, 1))
    if task.stripes.order == "shuffled":
        own_key = jax.random.fold_in(key, zlib.crc32(b"stripes"))
        stripes = jax.random.permutation(own_key, stripes)
    stripes = stripes[: len(stripes) - task.stripes.left_out]
    return jnp.concatenate([stripes, supports.sample(key, task)])


def training_set(key, task: TaskConfig) -> Dataset:
    """All that training may show, in the order of `training_factors`."""
    return from_factors(training_factors(key, task), task)


def size(task: TaskConfig) -> int:
    """Examples in a training set."""
    stripes = 2 * task.grid * task.stripes.copies - task.stripes.left_out
    return stripes + supports.n_samples(task)


def every_cell(task: TaskConfig) -> Dataset:
    """All N*N cells, held out or not, in the order of `supports.cells`."""
    return from_factors(supports.cells(task.grid), task)
