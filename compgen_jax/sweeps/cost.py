"""What a sweep would cost: trials, steps, FLOPs, memory and time; nothing is written.

FLOPs are counted as in `runs.cost`, for every program of the sweep. Steps are timed for the program
with the most work; the others' time is taken to be in proportion to their FLOPs. A batch that its
trials do not fill takes as long as a full one.
"""

import time

from compgen_jax.config import Config
from compgen_jax.metrics import text
from compgen_jax.runs import cost
from compgen_jax.sweeps import groups, plan, sweep


def describe(config: Config) -> list[str]:
    """The lines of `launch.sweep --dry_run`. Compiles one program, or on an accelerator, to learn
    how many trials it holds, all of them, and takes a few steps. Raises ConfigError as `sweep.run`
    does."""
    trials = plan.first_trials(config)
    sweep.check(config, trials)
    compile_groups = groups.compile_groups(config, trials)
    of_program = {}  # FLOPs of a step
    work, steps, numbers = [], 0, set()
    for group in compile_groups:
        work.append(0.0)
        for trial in group.sweep_trials:
            single = groups.single_run(config, trial)
            if single.program not in of_program:
                of_program[single.program] = cost.flops_of_step(single.config, single.task)
                numbers.add(cost.parameters(single.config))
            steps += single.steps
            work[-1] += single.steps * of_program[single.program]
    group = compile_groups[max(range(len(work)), key=work.__getitem__)]
    batch = group.batches(group.sweep_trials)[0]
    began = time.perf_counter()
    program, slots = group.rehearse(batch)
    timing = cost.measure(program, slots, group.size, began)
    per_flop = timing.step / _flops_of_step(group, batch, of_program)
    flops = sum(
        groups.single_run(config, batch[0]).steps * _flops_of_step(each, batch, of_program)
        for each in compile_groups
        for batch in each.batches(each.sweep_trials)
    )
    seconds = len(work) * timing.compile + flops * per_flop
    sizes = f"{min(numbers):,}" + f" to {max(numbers):,}" * (len(numbers) > 1)
    lines = [
        f"{config.name}: {len(trials)} trials, {steps:,} steps in all, {len(work)} programs",
        f"parameters of one network: {sizes}",
        f"FLOPs: {text.number(sum(work))} in all",
        f"memory: {cost.in_bytes(timing.memory)} on each device for the largest program, by the "
        "compiler's estimate",
        f"time on {cost.machine()}: about {cost.in_time(seconds)}, from {timing.steps} steps of "
        f"the largest program that were timed after compiling ({cost.in_time(timing.compile)}); "
        "the others' by their FLOPs",
    ]
    if config.sweep.search.field:
        lines.append(
            f"a search adds trials in each of its {config.sweep.search.refinements} refinements, "
            "which depend on the results and are not counted here"
        )
    return [*lines, "nothing was written"]


def _flops_of_step(group: groups.CompileGroup, batch, of_program: dict) -> float:
    """The cost of a batch. Its empty places are computed too, each as its largest trial."""
    programs = {groups.single_run(group.config, trial).program for trial in batch}
    return group.size * max(of_program[program] for program in programs)
