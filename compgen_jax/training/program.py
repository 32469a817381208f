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
from compgen_jax.training.trials import (
    COMPILERS,
    MappedTrials,
    join,
    split,
    trials_side_by_side,
    trials_that_fit,
)


class Program:
    """The functions that train and score trials on this process's devices.

    config: what the trials share.  members: their tasks, the largest last.  trials: how many train
    side by side at most.  measure: (scores by name (P,), masks) -> report.
    Trials and states that its methods take and return are split over the devices.
    """

    def __init__(self, config: Config, members: tuple[Task, ...], trials: int, measure: Callable):
        network = partial(padding.PaddedNetwork, members=members)
        if len(members) == 1:
            network = partial(loop.Network, task=members[0])
        trainer = loop.make_trainer(config, trials=trials, network=network)

        def init(_, trial):
            return trainer.init(trial.key, trial.task_index)

        def advance(n_steps, pair):
            trial, state = pair
            return trainer.advance(trial, state, n_steps)

        def score(_, pair):
            trial, state = pair
            scores = trainer.score(
                trial.key, state.params, trial.points, trial.task_index, trial.nearest
            )
            return measure(scores, trial.masks)

        self.chunk_steps = config.execution.chunk_steps
        self.functions = init, advance, score
        self.spread_over_devices(config.execution.trials_per_device)

    def spread_over_devices(self, trials_per_device: int):
        """How many trials are vmapped on each device; 0 leaves it to the backend."""
        self._init, self._advance, self._score = (
            MappedTrials(function, trials_per_device) for function in self.functions
        )

    def trials_that_fit(self, trial: Trial, device) -> int | None:
        """How many trials `device` has memory for; None where it does not tell."""
        init, advance, score = self.functions
        pair = trial, jax.eval_shape(init, (), trial)
        counts = [
            trials_that_fit(function, np.int32(0), pair, device) for function in (advance, score)
        ]
        return None if None in counts else min(counts)

    def compile(self, trials: Trial, with_init: bool):
        """Compiles the functions for trials (T, ...) of these shapes in other threads. Raises
        RunError for states that cannot fit."""
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

    def memory(self, trials: Trial, state) -> int:
        """Bytes that a training step needs on each device, by the compiler's estimate."""
        return self._advance.memory(np.int32(0), (trials, state))

    def init(self, trials: Trial):
        """The states of the trials before the first step."""
        return self._init((), trials)

    def advance(self, trials: Trial, state, n_steps: int, count: int, after_chunk: Callable):
        """(state, losses (T, n_steps) float64) of the first `count` trials after `n_steps` steps.
        `after_chunk(losses)` is called with the losses of every chunk."""
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


def side_by_side(config: Config, count: int) -> int:
    """How many of `count` trials train side by side on a device, memory aside."""
    platform = jax.local_devices()[0].platform
    return trials_side_by_side(count, config.execution.trials_per_device, platform)


def check_room(states, count: int):
    """Raises RunError where the states (shapes) of `count` trials cannot fit, twice and one more on
    each device."""
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
