"""Joins factors, codes and targets into a Dataset."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from compgen_jax.config import TaskConfig
from compgen_jax.tasks import supports
from compgen_jax.tasks.bump import bump, to_image
from compgen_jax.tasks.encodings import encode


class Dataset(NamedTuple):
    """factors_Bx2 (x, y in pixels), codes_BxE, targets_BxHxW and weights_B of the loss."""

    factors: jax.Array
    codes: jax.Array
    targets: jax.Array
    weights: jax.Array


def example(factors, task: TaskConfig) -> Dataset:
    """One point (2,) as a Dataset without the axis B."""
    x, y = factors
    return Dataset(
        factors=factors,
        codes=encode(x, y, task.grid, task.code),
        targets=to_image(bump(x, y, task.grid, task.image), task.image),
        weights=jnp.float32(1.0),
    )


def from_factors(factors, task: TaskConfig) -> Dataset:
    """The points (B, 2) as a Dataset."""
    return jax.vmap(lambda point: example(point, task))(jnp.asarray(factors))


def training_set(key, task: TaskConfig) -> Dataset:
    return from_factors(supports.sample(key, task), task)


def every_cell(task: TaskConfig) -> Dataset:
    """All N*N cells, held out or not, in the order of `supports.cells`."""
    return from_factors(supports.cells(task.grid), task)
