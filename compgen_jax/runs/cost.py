"""What a training would cost: steps, FLOPs, memory and time; nothing is written.

FLOPs are XLA's count for one step of one seed, before XLA optimises the program. A loop inside a
step, such as one that draws points until one is seen, counts once. Evaluations are not counted.
"""

import sys
import time
from typing import NamedTuple

import jax

from compgen_jax.config import Config, changed
from compgen_jax.metrics import text
from compgen_jax.models import model as models
from compgen_jax.runs import experiment, results
from compgen_jax.tasks.task import Task
from compgen_jax.training import loop
from compgen_jax.training.loop import Trial
from compgen_jax.training.program import Program, check_room

FIRST_STEPS, SECONDS = 3, 2.0  # timed steps: so many first, then about so long
MOST_SEEDS = 32  # that are timed


class Timing(NamedTuple):
    """Measured seconds of the trials of one program.

    compile: until its first step was taken.  step: one step of all trials.  steps: so many were
    timed.  score: one evaluation of all trials.  memory: bytes on each device, by the compiler.
    """

    compile: float
    step: float
    steps: int
    score: float
    memory: int


def describe(config: Config) -> list[str]:
    """The lines of `launch.train --dry_run`. Compiles the training and takes a few steps of it,
    with `MOST_SEEDS` at most: others are taken to cost as much. Raises ConfigError as
    `experiment.train` does, and RunError where the seeds cannot fit into the memory."""
    began, seeds = time.perf_counter(), len(config.training.seeds)
    experiment.check_single(config)
    check_room(loop.template(config), seeds)
    timed = config.training.seeds[:MOST_SEEDS]
    task, program, slots = experiment.rehearse(changed(config, {"training.seeds": timed}))
    steps, evaluations = loop.total_steps(config, task), len(loop.evaluations(config, task))
    timing, more = measure(program, slots, len(timed), began), seeds / len(timed)
    flops = flops_of_step(config, task)
    seconds = timing.compile + more * (steps * timing.step + evaluations * timing.score)
    by = f"from {len(timed)} of {seeds} seeds, " * (more > 1) + "by the compiler's estimate"
    return [
        *(f"{config.name}: {line}" for line in results.describe(task)),
        f"{config.name}: seeds {seeds}, steps of each {steps:,}, evaluations {evaluations}",
        f"parameters of one network: {parameters(config):,}",
        f"FLOPs: {text.number(flops)} for a step of one seed, "
        f"{text.number(flops * steps * seeds)} in all",
        f"memory: {in_bytes(more * timing.memory)} on each device, {by}",
        f"time on {machine()}: about {in_time(seconds)}, from {timing.steps} steps that were timed "
        f"after compiling ({in_time(timing.compile)})",
        "nothing was written",
    ]


def measure(program: Program, slots: Trial, count: int, began: float) -> Timing:
    """Seconds of `count` trials; `began` is when compiling did, on `time.perf_counter`."""
    print("compiling, and timing a few steps ...", file=sys.stderr)
    state, _ = _advance(program, slots, program.init(slots), 1, count)
    compiled = time.perf_counter() - began
    state, first = _advance(program, slots, state, FIRST_STEPS, count)
    steps = max(FIRST_STEPS, min(program.chunk_steps, int(SECONDS / first * FIRST_STEPS)))
    state, seconds = _advance(program, slots, state, steps, count)
    program.score(slots, state, count)  # waits until it is compiled
    start = time.perf_counter()
    program.score(slots, state, count)
    return Timing(
        compiled, seconds / steps, steps, time.perf_counter() - start, program.memory(slots, state)
    )


def _advance(program: Program, slots: Trial, state, steps: int, count: int):
    """The state after so many steps, and the seconds that they took."""
    start = time.perf_counter()
    state, _ = program.advance(slots, state, steps, count, lambda losses: None)
    return jax.block_until_ready(state), time.perf_counter() - start


def flops_of_step(config: Config, task: Task, lowering: str | None = None) -> float:
    """XLA's count for one training step of one seed, with the convolutions that the backend would
    choose or by another lowering; NaN where the backend has none."""

    def trial_of(key):
        return loop.Trial(key, loop.hyper_of(config), loop.dataset_of(task, key), 0)

    trainer, key = loop.make_trainer(config, lowering), jax.eval_shape(jax.random.key, 0)
    shapes = jax.eval_shape(trial_of, key), jax.eval_shape(trainer.init, key)
    # a loop of unknown length counts once: this is one step
    counts = jax.jit(trainer.advance).lower(*shapes, 1).cost_analysis()
    return (counts or {}).get("flops", float("nan"))


def parameters(config: Config) -> int:
    """The number of trained parameters of one network."""
    trained = models.trained(loop.template(config).params)
    return models.size(trained) // len(config.training.seeds)


def machine() -> str:
    """'2 cpu devices'."""
    count, kind = jax.local_device_count(), jax.local_devices()[0].device_kind
    return f"{count} {kind} device" + "s" * (count > 1)


def in_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.3g} {unit}"
        count /= 1000


def in_time(seconds: float) -> str:
    for length, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} s"
