"""Which points a training step sees: epochs through a table, or fresh points (a stream).

Both are pure functions of a key, the step and a trial's dataset. So a resumed run sees the same
points as an undisturbed one, alone or as one of many trials.
"""

import zlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp


def tag(name: str) -> int:
    """The number that a named use of randomness folds into its key: no two names share one."""
    return zlib.crc32(name.encode())


class Table(NamedTuple):
    """Training may show the first `count` (traced) of `points` (capacity, F)."""

    points: jax.Array
    count: jax.Array


def table(points) -> Table:
    return Table(points, jnp.int32(len(points)))


def padded(dataset, capacity: int):
    if not isinstance(dataset, Table):
        return dataset
    beyond = capacity - len(dataset.points)
    return dataset._replace(points=jnp.pad(dataset.points, [(0, beyond), (0, 0)]))


def capacity(dataset) -> int:
    return len(dataset.points) if isinstance(dataset, Table) else 0


def epochs(key, step, dataset: Table, batch_size: int):
    """The batch of one step: points (B, F), and whether each counts. Every epoch goes through the
    first `dataset.count` points once, in an order of its own."""
    points, count = dataset
    epoch, batch = jnp.divmod(step, -(-count // batch_size))
    shuffle = jax.random.uniform(jax.random.fold_in(key, epoch), (len(points),))
    order = jnp.argsort(jnp.where(jnp.arange(len(points)) < count, shuffle, jnp.inf))
    position_B = batch * batch_size + jnp.arange(batch_size)
    return points[order[jnp.minimum(position_B, len(points) - 1)]], position_B < count


def stream(sample: Callable) -> Callable:
    """A `Task.next_batch` that draws every point fresh: `sample(key, dataset)` (F,)."""

    def draw(key, step, dataset, batch_size: int):
        keys_B = jax.random.split(jax.random.fold_in(key, step), batch_size)
        return jax.vmap(sample, (0, None))(keys_B, dataset), jnp.ones(batch_size, bool)

    return draw


def from_table(key, dataset: Table):
    return dataset.points[jax.random.randint(key, (), 0, dataset.count)]


def by_rejection(key, first, extent, rejected: Callable):
    """One point, uniform over the part of the box from `first` (F,) to `first + extent` that is not
    `rejected`."""

    def draw(state):
        key, _ = state
        key, used = jax.random.split(key)
        return key, first + extent * jax.random.uniform(used, extent.shape)

    return jax.lax.while_loop(lambda state: rejected(state[1]), draw, draw((key, None)))[1]
