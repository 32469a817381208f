"""Many trials at once: `vmap` inside a device, `pmap` across devices (its only home)."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp


def over_trials(fn: Callable, trials_per_device: int = 0, devices=None) -> Callable:
    """fn(shared, trial) -> result, for all trials in one program.

    Returns run(shared, trials) where every leaf of `trials`, and of the results, has a leading
    axis T. Each device (all local ones by default) runs its share of the trials,
    `trials_per_device` of them side by side and the rest in turn (see `trials_side_by_side`).
    With several devices the last trial is repeated until they divide the trials; devices that
    would not make the largest share smaller stay idle.
    """
    devices = list(devices or jax.local_devices())

    def on_device(shared, trials):
        count = len(jax.tree.leaves(trials)[0])
        width = trials_side_by_side(count, trials_per_device, devices[0].platform)
        one = lambda trial: fn(shared, trial)
        if width == 1:
            return jax.lax.map(one, trials)
        if width == count:
            return jax.vmap(one)(trials)
        return jax.lax.map(one, trials, batch_size=width)

    if len(devices) == 1:
        return jax.jit(on_device)
    on_devices = functools.cache(
        lambda used: jax.pmap(on_device, in_axes=(None, 0), devices=devices[:used])
    )

    def run(shared, trials):
        count = len(jax.tree.leaves(trials)[0])
        used = -(-count // -(-count // len(devices)))
        index = jnp.minimum(jnp.arange(-(-count // used) * used), count - 1)
        split = jax.tree.map(lambda x: x[index].reshape(used, -1, *x.shape[1:]), trials)
        # through the host, as pmap takes back no array that was resharded on the devices
        results = jax.device_get(on_devices(used)(shared, split))
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], results)

    return run


def trials_side_by_side(count: int, trials_per_device: int, platform: str) -> int:
    """How many of `count` trials are vmapped: what the user says; else all on an accelerator,
    which one small decoder leaves idle, and one at a time on a CPU, whose caches hold one
    trial's working set better than several (`launch.benchmark --suite=train` measures both)."""
    return min(count, trials_per_device or (1 if platform == "cpu" else count))
