"""Which factor combinations are seen: held-out regions and sampling (paper Figure 1a).

The one owner of inclusivity: regions are sets of integer cells, every bound is inclusive, and a
real point belongs to its nearest cell. Regions are a property of the task, not of a seed, and
are computed in NumPy before any compilation.
"""

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import ConfigError, SupportConfig, TaskConfig


def is_held_out(x, y, task: TaskConfig):
    """Whether the points (x, y) are held out; elementwise, for NumPy or JAX arrays (pixels)."""
    support, last = task.support, task.grid - 1
    array = jnp if isinstance(x, jax.Array) else np
    x, y = array.round(x), array.round(y)
    if support.region == "donut":
        return _between(x, support) & _between(y, support)
    if support.region == "cross":
        return _between(x, support) | _between(y, support)
    if support.region == "corner":
        vertical, horizontal = support.corner.split("_")
        right = x >= support.low if horizontal == "right" else x <= last - support.low
        top = y >= support.low if vertical == "top" else y <= last - support.low
        return right & top
    if support.region == "random":
        column, row = (array.clip(c, 0, last).astype(int) for c in (x, y))
        return array.asarray(_random_cells(support, task.grid))[row, column]
    return (x != x) & (y != y)  # 'none' holds nothing out


def _between(coordinate, support: SupportConfig):
    return (coordinate >= support.low) & (coordinate <= support.high)


def _random_cells(support: SupportConfig, grid: int):
    """`share` of the cells, exactly (rounded), without regard to the training seeds."""
    held_out = np.zeros(grid * grid, bool)
    count = round(support.share * grid * grid)
    held_out[np.random.default_rng(support.seed).permutation(grid * grid)[:count]] = True
    return held_out.reshape(grid, grid)


def cells(grid: int):
    """All N*N integer cells as (x, y) rows, y outer and x inner; (N*N, 2) float32 NumPy."""
    y, x = np.mgrid[0:grid, 0:grid]
    return np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)


def held_out_mask(task: TaskConfig):
    """(N, N) bool, indexed [y, x]: the cells that training never shows."""
    x, y = cells(task.grid).T
    return is_held_out(x, y, task).reshape(task.grid, task.grid)


def seen_cells(task: TaskConfig):
    """The cells that training may show, as (x, y) rows in the order of `cells`."""
    return cells(task.grid)[~held_out_mask(task).ravel()]


def n_samples(task: TaskConfig) -> int:
    """Points that are drawn; 'every_cell' takes each seen cell once, whatever `samples`."""
    if task.support.sampling == "every_cell":
        return len(seen_cells(task))
    return task.support.samples


def sample(key, task: TaskConfig):
    """Training factors from the seen region, (n_samples, 2) float32, in pixels.

    Integer cells with or without replacement, every seen cell once, or real coordinates
    uniform over the seen part of [0, N-1]^2.
    """
    support, n = task.support, n_samples(task)
    seen = jnp.asarray(seen_cells(task))
    if support.sampling == "with_replacement":
        return seen[jax.random.randint(key, (n,), 0, len(seen))]
    if support.sampling == "without_replacement":
        return jax.random.permutation(key, seen)[:n]
    if support.sampling == "every_cell":
        return seen
    return jax.vmap(lambda k: _sample_real(k, task))(jax.random.split(key, n))


def _sample_real(key, task: TaskConfig):
    """One real point by rejection: exact for any region."""

    def draw(state):
        key, _ = state
        key, used = jax.random.split(key)
        return key, jax.random.uniform(used, (2,), maxval=task.grid - 1.0)

    return jax.lax.while_loop(
        lambda state: is_held_out(state[1][0], state[1][1], task), draw, draw((key, None))
    )[1]


def missing_marginals(x, y, grid: int):
    """The integer values of x, and those of y, that no point rounds to: two lists."""
    shown = [np.asarray(c)[~np.isnan(c)].round().astype(int).tolist() for c in (x, y)]
    return tuple(sorted(set(range(grid)) - set(values)) for values in shown)


def check(task: TaskConfig):
    """Raises ConfigError where the support cannot serve: before any compilation."""
    support, mask = task.support, held_out_mask(task)
    region = _describe(support)
    if mask.all():
        raise ConfigError(f"{region}: holds out every cell of the {task.grid}x{task.grid} grid")
    if support.region != "none" and not mask.any():
        raise ConfigError(
            f"{region}: holds out no cell of the {task.grid}x{task.grid} grid "
            "(for full coverage say config.task.support.region='none')"
        )
    seen = seen_cells(task)
    if support.sampling == "without_replacement" and support.samples > len(seen):
        raise ConfigError(
            f"config.task.support.samples={support.samples}: only {len(seen)} cells are seen, "
            "so at most that many can be drawn without replacement"
        )
    if not task.stripes.copies:  # which show every value, or, some left out, a seed's choice
        check_marginals(seen, task, region)


def check_marginals(factors, task: TaskConfig, source="the training sample"):
    """Raises ConfigError if the task demands marginals and a value of x or y never occurs.

    `factors` (n, 2), concrete: the seen cells, or one seed's training draw.
    """
    if not task.support.require_marginals:
        return
    factors = np.asarray(factors)
    for name, missing in zip("xy", missing_marginals(*factors.T, task.grid), strict=True):
        if missing:
            raise ConfigError(
                f"{source}: no training point has {name} in {missing}, and "
                "config.task.support.require_marginals=True demands every value"
            )


def _describe(support: SupportConfig) -> str:
    shown = {
        "donut": ("low", "high"),
        "cross": ("low", "high"),
        "corner": ("low", "corner"),
        "random": ("share", "seed"),
        "none": (),
    }[support.region]
    settings = [f"{name}={getattr(support, name)!r}" for name in ("region", *shown)]
    return "config.task.support: " + ", ".join(settings)
