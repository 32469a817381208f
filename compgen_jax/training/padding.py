"""Different grids side by side in one program: a smaller grid lies in a corner of the largest.

Codes, images and parameters are padded with zeros, and a decoder that is told its grid masks what
lies beyond it after every nonlinearity, so that its convolutions meet the zeros of 'SAME' padding
where they would meet them alone. Padded parameters start at zero, get no gradient and stay there:
a padded run is the unpadded one, to float rounding.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from compgen_jax.config import TaskConfig
from compgen_jax.tasks import dataset
from compgen_jax.tasks.encodings import code_length


def buckets(grids, max_waste: float) -> list[tuple]:
    """The grids, largest first, cut into groups that waste less than `max_waste` of their work
    where every grid has as many trials; each in ascending order. 0 leaves each by itself."""
    found = []
    for grid in sorted(set(grids), reverse=True):
        if found and waste((*found[-1], grid)) < max_waste:
            found[-1] = (grid, *found[-1])
        else:
            found.append((grid,))
    return found


def waste(grids) -> float:
    """Share of the work that padding `grids` to their largest adds, the work of a decoder being
    proportional to its pixels."""
    return 1 - sum((grid / max(grids)) ** 2 for grid in grids) / len(grids)


def by_grid(which, functions: list[Callable], *arguments):
    """The result of the function of one grid, `which` (traced) of them; all have its shapes."""
    if len(functions) == 1:
        return functions[0](*arguments)
    return jax.lax.switch(which, functions, *arguments)


def render(factors, task: TaskConfig, size: int) -> dataset.Dataset:
    """The examples (B, 2) of `task`, padded to a grid of `size`: codes_BxE, targets_BxHxW."""
    data = dataset.from_factors(factors, task)
    per_factor, beyond = code_length(size, task.code) // 2, size - task.grid
    codes = data.codes.reshape(len(data.codes), 2, -1)
    codes = jnp.pad(codes, [(0, 0), (0, 0), (0, per_factor - codes.shape[2])])
    targets = jnp.pad(data.targets, [(0, 0), (0, beyond), (0, beyond)])
    return data._replace(codes=codes.reshape(-1, 2 * per_factor), targets=targets)


def at_grid(task: TaskConfig, grid: int) -> TaskConfig:
    """The task on another grid. Its held-out region is not scaled along."""
    return replace(task, grid=grid)
