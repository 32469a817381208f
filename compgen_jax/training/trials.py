"""Many trials at once: `vmap` inside a device, `pmap` across devices (its only home)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp


def over_trials(fn: Callable, trials_per_device: int = 0, devices=None) -> Callable:
    """fn(shared, trial) -> result, for all trials in one program.

    Returns run(shared, trials) where every leaf of `trials`, and of the results, has a leading
    axis T. Each device (all local ones by default) runs its share of the trials,
    `trials_per_device` of them side by side and the rest in turn; 0 lets the backend choose.
    With several devices the last trial is repeated until they divide the trials.
    """
    devices = list(devices or jax.local_devices())
    width = trials_per_device or default_trials_per_device(devices[0].platform)

    def on_device(shared, trials):
        count = len(jax.tree.leaves(trials)[0])
        one = lambda trial: fn(shared, trial)  # noqa: E731
        if width == 1:
            return jax.lax.map(one, trials)
        if width is None or width >= count:
            return jax.vmap(one)(trials)
        return jax.lax.map(one, trials, batch_size=width)

    if len(devices) == 1:
        return jax.jit(on_device)
    on_devices = jax.pmap(on_device, in_axes=(None, 0), devices=devices)

    def run(shared, trials):
        count = len(jax.tree.leaves(trials)[0])
        index = jnp.minimum(jnp.arange(-(-count // len(devices)) * len(devices)), count - 1)
        split = jax.tree.map(lambda x: x[index].reshape(len(devices), -1, *x.shape[1:]), trials)
        # through the host, as pmap takes back no array that was resharded on the devices
        results = jax.device_get(on_devices(shared, split))
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], results)

    return run


def default_trials_per_device(platform: str) -> int | None:
    """How many trials to vmap: all (None) on an accelerator, which one small decoder leaves
    idle; one at a time on a CPU, whose caches hold one trial's working set better than several
    (`launch.benchmark --suite=train` measures both)."""
    return 1 if platform == "cpu" else None
