"""Many trials as one program: compiled, advanced and scored together."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import numpy as np

from compgen_jax.config import Config
from compgen_jax.tasks.task import Task
from compgen_jax.training import loop, padding
from compgen_jax.training.checkpoints import RunError
from compgen_jax.training.loop import Trial
from compgen_jax.training.trials import COMPILERS, MappedTrials, join, needed_memory, split


class Program:
    """The functions that train and score trials on this process's devices.

    members: the trials' tasks, the largest last.  trials: how many train side by side at most.
    measure: (scores by name (P,), masks) -> report.  Its methods take and return split trials.
    """

    def __init__(self, config: Config, members: tuple[Task, ...], trials: int, measure: Callable):
        network = partial(padding.PaddedNetwork, members=members)
        if len(members) == 1:
            network = partial(loop.Network, task=members[0])
        trainer = loop.make_trainer(config, trials=trials, network=network)

        def init(_, trial):
            return trainer.init(trial.key, trial.task_index)

        def advance(n_steps, pair):
            return trainer.advance(*pair, n_steps)

        def score(_, pair):
            trial, state = pair
            where = trial.points, trial.task_index, trial.nearest
            return measure(trainer.predict(trial.key, state.params, *where)[2], trial.masks)

        self.chunk_steps = config.execution.chunk_steps
        self.functions = init, advance, score
        self.spread_over_devices(config.execution.trials_per_device)

    def spread_over_devices(self, trials_per_device: int):
        """How many trials are vmapped on each device; 0 leaves it to the backend."""
        self._init, self._advance, self._score = (
            MappedTrials(function, trials_per_device) for function in self.functions
        )

    def compile(self, trials: Trial, with_init: bool):
        """Compiles for trials (T, ...) of these shapes in other threads. Raises RunError for states
        that cannot fit."""
        init = self.functions[0]
        state = jax.eval_shape(jax.vmap(lambda trial: init((), trial)), trials)
        check_room(state, len(trials.points))
        trials, state = jax.eval_shape(split, (trials, state))
        compilers = ThreadPoolExecutor(COMPILERS)
        self._advance.compile(compilers, np.int32(0), (trials, state))
        if with_init:
            self._init.compile(compilers, (), trials, once=True)
        self._score.compile(compilers, (), (trials, state))
        compilers.shutdown(wait=False)

    def memory(self) -> int:
        """Bytes on each device of what is compiled, by the compiler's estimate."""
        return max(needed_memory(mapped.compiled) for mapped in (self._advance, self._score))

    def init(self, trials: Trial):
        """The states of the trials before the first step."""
        return self._init((), trials)

    def advance(self, trials: Trial, state, n_steps: int, count: int, after_chunk: Callable):
        """(state, losses (T, n_steps) float64) of the first `count` trials after `n_steps` steps.
        `after_chunk` is given the losses of every chunk."""
        losses = []
        for step in range(0, n_steps, self.chunk_steps):
            taken = min(self.chunk_steps, n_steps - step)
            state, chunk = self._advance(np.int32(taken), (trials, state))
            losses.append(np.asarray(join(chunk, count), np.float64)[:, :taken])
            after_chunk(losses[-1])
        return state, np.concatenate(losses, axis=1)

    def score(self, trials: Trial, state, count: int):
        """What is measured of the first `count` trials, leading axis T; NumPy."""
        return jax.device_get(join(self._score((), (trials, state)), count))


def check_room(states, count: int):
    """Raises RunError where the states (shapes) of `count` trials cannot fit."""
    devices = jax.local_devices()
    room = (devices[0].memory_stats() or {}).get("bytes_limit", 0) * len(devices)
    room = room or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # a CPU's devices share
    stored = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(states))
    needed = stored * (2 + min(count, len(devices)) / count)
    if needed > room:
        raise RunError(
            f"out of memory: weights and optimisers, of {count:,} in all, need "
            f"{needed / 2**30:,.0f} GiB or more, and there are {room / 2**30:,.0f} GiB; lower "
            "config.model.width, or train fewer of config.training.seeds in one run"
        )
