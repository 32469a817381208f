"""Many trials at once: `vmap` inside a device, `pmap` across devices (its only home)."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import numpy as np

LITTLE_EFFORT = {"xla_backend_optimization_level": 1}
COMPILERS = 2  # programs that are compiled at the same time


def over_trials(fn: Callable, trials_per_device: int = 0, devices=None) -> Callable:
    """run(shared, trials): fn(shared, trial) for all trials, leading axis T of leaves and results.
    Each device runs its share, `trials_per_device` side by side and the rest in turn."""
    program = MappedTrials(fn, trials_per_device, devices)

    def run(shared, trials):
        count = len(jax.tree.leaves(trials)[0])
        return join(program(shared, split(trials, devices)), count, devices)

    return run


def split(trials, devices=None):
    """Trials (T, ...) as the devices' shares (D, T/D, ...), the last one repeated to fill them; on
    a single device as they are."""
    count, devices = len(jax.tree.leaves(trials)[0]), len(devices or jax.local_devices())
    if devices == 1:
        return trials
    index = np.minimum(np.arange(-(-count // devices) * devices), count - 1).reshape(devices, -1)
    return jax.tree.map(lambda leaf: leaf[index], trials)


def join(results, count: int, devices=None):
    """The results (T, ...) of `count` trials that were split."""
    if len(devices or jax.local_devices()) == 1:
        return results
    # through the host, as pmap takes back no array that was resharded on the devices
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], jax.device_get(results))


class MappedTrials:
    """The program of `over_trials` for split trials; results stay on their devices."""

    def __init__(self, fn: Callable, trials_per_device: int = 0, devices=None):
        devices = devices or jax.local_devices()
        self.compiled: Future | None = None

        def on_device(shared, trials):
            count = len(jax.tree.leaves(trials)[0])
            width = trials_side_by_side(count, trials_per_device)
            of_trial = lambda trial: fn(shared, trial)
            if width == 1:
                return jax.lax.map(of_trial, trials)
            if width == count:
                return jax.vmap(of_trial)(trials)
            return jax.lax.map(of_trial, trials, batch_size=width)

        self.program = jax.jit(on_device)
        if len(devices) > 1:
            self.program = jax.pmap(on_device, in_axes=(None, 0), devices=devices)

    def __call__(self, shared, trials):
        program = self.compiled.result() if self.compiled else self.program
        return program(shared, trials)

    def compile(self, compilers: ThreadPoolExecutor, shared, trials, once: bool = False):
        """Compiles the program for all calls, of these shapes, in another thread; with less effort
        if it runs `once`."""
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), (shared, trials))
        lowered = self.program.lower(*shapes)
        options = LITTLE_EFFORT if once and jax.default_backend() == "cpu" else None
        self.compiled = compilers.submit(lowered.compile, compiler_options=options)
        return self.compiled


def needed_memory(compiled: Future) -> int:
    """Bytes of a compiled program on each device."""
    memory = compiled.result().memory_analysis()
    sizes = memory.temp_size_in_bytes + memory.argument_size_in_bytes
    return sizes + memory.output_size_in_bytes - memory.alias_size_in_bytes


def trials_side_by_side(count: int, trials_per_device: int) -> int:
    """How many of `count` trials are vmapped: by default all, and one on a CPU, for its caches."""
    return min(count, trials_per_device or (1 if jax.default_backend() == "cpu" else count))
