"""Many trials at once: `vmap` inside a device, `pmap` across devices (its only home)."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

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
        return join(program(shared, split(trials, program.devices)), count, program.devices)

    return run


def split(trials, devices=None):
    """Trials (T, ...) as the devices' shares (D, T/D, ...), the last one repeated to fill them; on
    a single device as they are."""
    count, available = len(jax.tree.leaves(trials)[0]), len(devices or jax.local_devices())
    if available == 1:
        return trials
    return _split(trials, count, -(-count // -(-count // available)))


@partial(jax.jit, static_argnums=(1, 2))
def _split(trials, count: int, used: int):
    index = np.minimum(np.arange(-(-count // used) * used), count - 1)
    share = len(index) // used  # not -1, which an empty leaf leaves open
    return jax.tree.map(lambda x: x[index].reshape(used, share, *x.shape[1:]), trials)


def join(results, count: int, devices=None):
    """The results (T, ...) of `count` trials that were split."""
    if len(devices or jax.local_devices()) == 1:
        return results
    # through the host, as pmap takes back no array that was resharded on the devices
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], jax.device_get(results))


class MappedTrials:
    """The program of `over_trials` for trials and results that are `split`: results stay on their
    devices, for the next call."""

    def __init__(self, fn: Callable, trials_per_device: int = 0, devices=None):
        self.devices = list(devices or jax.local_devices())
        self.compiled: dict[tuple, Future] = {}  # by shapes
        self.mapped = {}  # by number of devices: jax keeps there what it has compiled

        def on_device(shared, trials):
            count = len(jax.tree.leaves(trials)[0])
            width = trials_side_by_side(count, trials_per_device, self.devices[0].platform)
            of_trial = lambda trial: fn(shared, trial)
            if width == 1:
                return jax.lax.map(of_trial, trials)
            if width == count:
                return jax.vmap(of_trial)(trials)
            return jax.lax.map(of_trial, trials, batch_size=width)

        self.on_device, self.on_one_device = on_device, jax.jit(on_device)

    def __call__(self, shared, trials):
        compiled = self.compiled.get(_shapes((shared, trials)))
        program = compiled.result() if compiled else self._over_devices(trials)
        return program(shared, trials)

    def compile(self, compilers: ThreadPoolExecutor, shared, trials, once: bool = False):
        """Traces the program and compiles it in another thread, for which a call waits; with less
        effort if it runs `once`."""
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), (shared, trials))
        lowered = self._over_devices(trials).lower(*shapes)
        options = LITTLE_EFFORT if once and self.devices[0].platform == "cpu" else None
        compiled = compilers.submit(lowered.compile, compiler_options=options)
        self.compiled[_shapes(shapes)] = compiled
        return compiled

    def memory(self, shared, trials) -> int:
        """Bytes on each device of a program from `compile`, by the compiler's estimate."""
        return needed_memory(self.compiled[_shapes((shared, trials))].result())

    def _over_devices(self, trials):
        if len(self.devices) == 1:
            return self.on_one_device
        used = len(jax.tree.leaves(trials)[0])
        if used not in self.mapped:
            self.mapped[used] = jax.pmap(
                self.on_device, in_axes=(None, 0), devices=self.devices[:used]
            )
        return self.mapped[used]


def _shapes(tree) -> tuple:
    return tuple((jax.numpy.shape(x), str(jax.numpy.result_type(x))) for x in jax.tree.leaves(tree))


def trials_that_fit(fn: Callable, shared, trial, device) -> int | None:
    """How many trials fit into 7/8 of the memory of `device`, by the estimate for one; None where
    it does not tell."""
    limit = (device.memory_stats() or {}).get("bytes_limit")
    if not limit:
        return None
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct((1, *x.shape), x.dtype), trial)
    compiled = jax.jit(jax.vmap(fn, (None, 0))).lower(shared, one).compile()
    return max(1, int(7 / 8 * limit / needed_memory(compiled)))


def needed_memory(compiled) -> int:
    """Bytes of a compiled program on each device."""
    memory = compiled.memory_analysis()
    sizes = memory.temp_size_in_bytes + memory.argument_size_in_bytes
    return sizes + memory.output_size_in_bytes - memory.alias_size_in_bytes


def trials_side_by_side(count: int, trials_per_device: int, platform: str) -> int:
    """How many of `count` trials are vmapped: by default all on an accelerator, and one on a CPU,
    for its caches."""
    return min(count, trials_per_device or (1 if platform == "cpu" else count))
