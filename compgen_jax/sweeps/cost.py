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
    singles = {trial: groups.single_run(config, trial) for trial in trials}
    programs = {single.program: single for single in singles.values()}
    flops = {
        program: cost.flops_of_step(single.config, single.task)
        for program, single in programs.items()
    }
    numbers = sorted({cost.parameters(single.config) for single in programs.values()})
    work = {trial: single.steps * flops[single.program] for trial, single in singles.items()}
    compile_groups = groups.compile_groups(config, trials)
    group = max(compile_groups, key=lambda each: sum(map(work.get, each.sweep_trials)))
    batch = group.batches(group.sweep_trials)[0]
    began = time.perf_counter()
    program, slots = group.rehearse(batch)
    timing = cost.measure(program, slots, group.size, began)
    # a batch's empty places are computed too, each as its largest trial
    of_batch = lambda size, batch: size * max(map(work.get, batch))
    per_flop = timing.step * singles[batch[0]].steps / of_batch(group.size, batch)
    batches = [
        (each.size, one) for each in compile_groups for one in each.batches(each.sweep_trials)
    ]
    seconds = len(compile_groups) * timing.compile + per_flop * sum(
        of_batch(*one) for one in batches
    )
    steps = sum(single.steps for single in singles.values())
    sizes = f"{numbers[0]:,}" + f" to {numbers[-1]:,}" * (len(numbers) > 1)
    lines = [
        f"{config.name}: {len(trials)} trials, {steps:,} steps in all, "
        f"{len(compile_groups)} programs",
        f"parameters of one network: {sizes}",
        f"FLOPs: {text.number(sum(work.values()))} in all",
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
