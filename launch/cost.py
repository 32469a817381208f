"""What a training would cost; nothing is written.

FLOPs are XLA's count for one step of one trial. The program with the most work is timed.
"""

import sys
import time
from collections import Counter
from datetime import timedelta

import jax

from compgen_jax.config import Config, changed
from compgen_jax.metrics import text
from compgen_jax.models import model as models
from compgen_jax.runs import study, sweep_table
from compgen_jax.tasks.task import Task
from compgen_jax.training import contracts, loop
from compgen_jax.training.loop import Trial
from compgen_jax.training.program import check_room

SECONDS = 1.0  # that the timed steps take at least
MOST_TIMED = 32  # trials that are timed


def describe(config: Config) -> list[str]:
    """The lines of `--dry_run`. Raises ConfigError as training does, and RunError where seeds
    cannot fit into memory."""
    began = time.perf_counter()
    if config.is_sweep:
        trials = sweep_table.first_trials(config)
        sweep_table.check(config, trials)
    else:
        contracts.check(config)
        check_room(loop.template(config), len(config.training.seeds))
        trials = [sweep_table.SweepTrial((), seed) for seed in config.training.seeds]
    singles = [sweep_table.single_run(config, trial) for trial in trials]
    programs = {single.program: single for single in singles}
    flops = {name: flops_of_step(run.config, run.task) for name, run in programs.items()}
    work = Counter()
    for single in singles:
        work[single.program] += single.steps * flops[single.program]
    largest = max(programs, key=work.get)
    count = min(sum(single.program == largest for single in singles), MOST_TIMED)
    seeds = {"training.seeds": tuple(range(count))}
    job = study.new_job(changed(programs[largest].config, seeds), workdir="")
    program, trials = study.compiled([job])
    print("compiling, and timing a few steps ...", file=sys.stderr)
    state, steps, seconds = program.init(trials), 1, 0.0
    state, _ = program.advance(trials, state, steps, count, lambda losses: None)
    compiling = time.perf_counter() - began
    while seconds < SECONDS and steps <= program.chunk_steps:
        steps, start = 2 * steps, time.perf_counter()
        state, _ = program.advance(trials, state, steps, count, lambda losses: None)
        seconds = time.perf_counter() - start
    training = seconds / (steps * count * flops[largest]) * work.total()
    memory = program.memory() / 1e6
    states = [loop.template(single.config) for single in programs.values()]
    sizes = [models.size(models.trained(state.params)) for state in states]  # of one seed
    total, number = sum(single.steps for single in singles), text.number
    devices = f"{jax.local_device_count()} x {jax.local_devices()[0].device_kind}"
    whole = timedelta(seconds=round(len(programs) * compiling + training))
    lines = [
        *programs[largest].task.describe(),
        f"{len(singles)} trials, {total:,} steps in all, programs: {len(programs)}",
        f"parameters of one network: {min(sizes):,} to {max(sizes):,}",
        f"FLOPs: {number(work.total())} in all, {number(flops[largest])} for a step of one "
        "trial of the program with the most work",
        f"memory: {memory:,.1f} MB on each device for {count} of its trials, by the "
        "compiler's estimate",
        f"time on {devices}: about {whole} (h:m:s), evaluations aside, from {steps} of its "
        f"steps that were timed after compiling ({compiling:.0f} s)",
    ]
    if search := config.sweep.search.field:
        lines.append(f"a search along {search} adds trials, which are not counted here")
    return [*(f"{config.name}: {line}" for line in lines), "nothing was written"]


def flops_of_step(config: Config, task: Task, lowering: str | None = None) -> float:
    """XLA's count for one training step of one seed; NaN where the backend has none."""

    trainer, key = loop.make_trainer(config, lowering), jax.eval_shape(jax.random.key, 0)
    trial = Trial(key, loop.hyper_of(config), jax.eval_shape(task.dataset, key), 0)
    state = jax.eval_shape(trainer.init, key)
    # a loop of unknown length counts once: this is one step
    counts = jax.jit(trainer.advance).lower(trial, state, 1).cost_analysis()
    return (counts or {}).get("flops", float("nan"))
