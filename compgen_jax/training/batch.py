"""A batch of trials: compiled, advanced and scored as one program.

Single runs, runs that train together and sweeps share this code. They differ in what they record.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from compgen_jax.config import Config
from compgen_jax.tasks.task import Task
from compgen_jax.training import loop
from compgen_jax.training.checkpoints import RunError
from compgen_jax.training.loop import Trial
from compgen_jax.training.trials import OverSplitTrials, join, side_by_side, split, trials_that_fit


class Slot(NamedTuple):
    """One trial as traced values; a batch has a leading axis T.

    trial: what it is trained on.  points: (P, F), where it is scored.  masks: {region: (P,) bool}.
    nearest: (P, F), what `Task.nearest` gives for these points, if the task has it.
    """

    trial: Trial
    points: jax.Array
    masks: dict
    nearest: Any = None


class BatchProgram:
    """The functions that train and score a batch of trials on this process's devices.

    Args:
        config: what the trials share; of padded tasks, the largest one's config.
        members: the tasks of the trials, the largest last.
        trials: how many train side by side at most: it decides how convolutions are computed.
        measure: (scores by name (P,), masks) of one trial -> a pytree of what is reported of it.

    Slots and states that its methods take and return are split over the devices (`trials.split`).
    """

    def __init__(self, config: Config, members: tuple[Task, ...], trials: int, measure: Callable):
        trainer = loop.make_trainer(config, trials=trials, members=members)

        def init(_, slot):
            return trainer.init(slot.trial.key, slot.trial.task_index)

        def advance(n_steps, pair):
            slot, state = pair
            return trainer.advance(slot.trial, state, n_steps)

        def score(_, pair):
            slot, state = pair
            trial = slot.trial
            scores = trainer.score(
                trial.key, state.params, slot.points, trial.task_index, slot.nearest
            )
            return measure(scores, slot.masks)

        self.chunk_steps = config.execution.chunk_steps
        self.functions = init, advance, score
        self.spread_over_devices(config.execution.trials_per_device)

    def spread_over_devices(self, trials_per_device: int):
        """Decides how many trials are vmapped on each device; 0 leaves it to the backend."""
        self._init, self._advance, self._score = (
            OverSplitTrials(function, trials_per_device) for function in self.functions
        )

    def trials_that_fit(self, slot: Slot, device) -> int | None:
        """How many trials `device` has memory for; None where it does not tell its memory."""
        init, advance, score = self.functions
        pair = slot, jax.eval_shape(init, (), slot)
        fits = [trials_that_fit(each, np.int32(0), pair, device) for each in (advance, score)]
        return None if None in fits else min(fits)

    def memory(self, slots: Slot, state) -> int:
        """Bytes that a training step needs on each device, by the compiler's estimate."""
        return self._advance.memory(np.int32(0), (slots, state))

    def compile(self, slots: Slot, with_init: bool):
        """Compiles the functions for slots (T, ...) of these shapes, and returns before it is done:
        training begins while `score` is compiled. Raises RunError for states that cannot fit."""
        init = self.functions[0]
        state = jax.eval_shape(jax.vmap(lambda slot: init((), slot)), slots)
        check_room(state, len(slots.points))
        slots, state = jax.eval_shape(split, (slots, state))
        side_by_side(  # the slowest first
            [
                lambda: self._advance.lower(np.int32(0), (slots, state)),
                lambda: self._score.lower((), (slots, state)),
            ],
            [lambda: self._init.lower((), slots, once=True)] if with_init else [],
        )

    def init(self, slots: Slot):
        """The states of the trials before the first step."""
        return self._init((), slots)

    def advance(self, slots: Slot, state, n_steps: int, count: int, after_chunk: Callable):
        """(state, losses (T, n_steps) float64) of the first `count` trials after `n_steps` steps.

        `after_chunk(losses)` is called with the losses of every chunk.
        """
        losses = []
        for step in range(0, n_steps, self.chunk_steps):
            taken = min(self.chunk_steps, n_steps - step)
            state, chunk = self._advance(np.int32(taken), (slots, state))
            losses.append(np.asarray(join(chunk, count), np.float64)[:, :taken])
            after_chunk(losses[-1])
        return state, np.concatenate(losses, axis=1)

    def score(self, slots: Slot, state, count: int):
        """What is measured of the first `count` trials, leading axis T; NumPy."""
        return jax.device_get(join(self._score((), (slots, state)), count))


def check_room(states, count: int):
    """Raises RunError where the states (shapes) of `count` trials cannot fit, which is known before
    anything is compiled: a step holds all of them before and after it, and one on each device."""
    devices = jax.local_devices()
    room = (devices[0].memory_stats() or {}).get("bytes_limit", 0) * len(devices)
    room = room or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # a CPU's devices share
    stored = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(states))
    needed = stored * (2 + min(count, len(devices)) / count)
    if needed > room:
        raise RunError(
            f"out of memory: weights and optimisers of {count:,} seed{'s' * (count > 1)} need "
            f"{needed / 2**30:,.0f} GiB or more, and there are {room / 2**30:,.0f} GiB; lower "
            "config.model.width, or train fewer of config.training.seeds in one run"
        )
