"""What a training would cost; nothing is written.

FLOPs are XLA's count for one step of one trial, where a loop counts once. The program with the most
work is timed, and the others by their FLOPs.
"""

import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import jax

from compgen_jax.config import Config, changed
from compgen_jax.metrics import text
from compgen_jax.models import model as models
from compgen_jax.runs import results, study, sweep_table
from compgen_jax.tasks.task import Task
from compgen_jax.training import contracts, loop
from compgen_jax.training.loop import Trial
from compgen_jax.training.program import check_room

FIRST_STEPS, SECONDS = 3, 2.0  # timed steps: so many first, then about so long
MOST_TIMED = 32  # trials that are timed


def describe(config: Config) -> list[str]:
    """The lines of `--dry_run`. Raises ConfigError as training does, and RunError where seeds
    cannot fit into memory."""
    began, evaluations = time.perf_counter(), 1
    if config.is_sweep:
        trials = sweep_table.first_trials(config)
        sweep_table.check(config, trials)
        singles = [sweep_table.single_run(config, trial) for trial in trials]
    else:
        contracts.check(config)
        check_room(loop.template(config), len(config.training.seeds))
        single = sweep_table.single_run(config, sweep_table.SweepTrial((), 0))
        evaluations = len(loop.evaluations(config, single.task))
        singles = [single] * len(config.training.seeds)
    programs = {single.program: single for single in singles}
    flops = {name: flops_of_step(run.config, run.task) for name, run in programs.items()}
    work, counts = dict.fromkeys(programs, 0.0), Counter(single.program for single in singles)
    for single in singles:
        work[single.program] += single.steps * flops[single.program]
    largest = max(programs, key=work.get)
    timed = min(counts[largest], MOST_TIMED)
    seeds = {"training.seeds": tuple(range(timed))}
    job = study.Job(changed(programs[largest].config, seeds), programs[largest].task, Path())
    program, trials = study.compiled([job])
    print("compiling, and timing a few steps ...", file=sys.stderr)

    def advance(state, steps: int):
        """The state after so many steps, and the seconds that they took."""
        start = time.perf_counter()
        state, _ = program.advance(trials, state, steps, timed, lambda losses: None)
        return jax.block_until_ready(state), time.perf_counter() - start

    state, _ = advance(program.init(trials), 1)
    compiling = time.perf_counter() - began
    state, first = advance(state, FIRST_STEPS)
    timed_steps = max(FIRST_STEPS, min(program.chunk_steps, int(SECONDS / first * FIRST_STEPS)))
    state, stepping = advance(state, timed_steps)
    program.score(trials, state, timed)  # waits until it is compiled
    start = time.perf_counter()
    program.score(trials, state, timed)
    scoring = (time.perf_counter() - start) / timed * len(singles)
    training = stepping / (timed_steps * timed * flops[largest]) * sum(work.values())
    seconds = len(programs) * compiling + training + evaluations * scoring
    memory = program.memory(trials, state) / 1e6
    sizes = [parameters(single.config) for single in programs.values()]
    steps, number = sum(single.steps for single in singles), text.number
    devices = f"{jax.local_device_count()} x {jax.local_devices()[0].device_kind}"
    whole, compiling = (timedelta(seconds=round(s)) for s in (seconds, compiling))
    lines = [
        *results.describe(programs[largest].task),
        f"{len(singles)} trials, {steps:,} steps in all, programs: {len(programs)}",
        f"parameters of one network: {min(sizes):,} to {max(sizes):,}",
        f"FLOPs: {number(sum(work.values()))} in all, {number(flops[largest])} for a step of one "
        "trial of the program with the most work",
        f"memory: {memory:,.1f} MB on each device for {timed} of its trials, by the "
        "compiler's estimate",
        f"time on {devices}: about {whole} (h:m:s), from {timed_steps} of its steps that were "
        f"timed after compiling ({compiling})",
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


def parameters(config: Config) -> int:
    """The number of trained parameters of one network."""
    trained = models.trained(loop.template(config).params)
    return models.size(trained) // len(config.training.seeds)
