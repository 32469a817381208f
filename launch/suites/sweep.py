"""Many trials in one program, as sweeps train them, against the same trials one after another: as
single runs of ours, and as PyTorch eager on the same device.

A trial of a bucket of grids is compared with trials of these grids that are not padded, and only
the work of its own grid counts as FLOPs. On an accelerator every lowering is compiled for every
number of trials, which takes many minutes.
"""

import time
from collections.abc import Callable
from itertools import cycle, islice
from statistics import mean
from typing import NamedTuple

import jax
import jax.numpy as jnp

from compgen_jax.config import Config, changed
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.tasks import sampling
from compgen_jax.training import loop, padding, trials
from launch.suites import contenders, timing
from launch.suites.programs import Program, Work, on_accelerator, on_cpu

PEER, SINGLE = "PyTorch eager, one after another", "single runs, one after another"
PROCESSES = "PyTorch eager, {} processes of a thread"
MOST_STEPS = 100  # of a program in one turn
ACCELERATORS_ROUNDS = 3
GEMM_PRECISION = {"cpu": "float32", "gpu": "float32 by TF32", "tpu": "float32 by bfloat16"}


class Contender(NamedTuple):
    """What is timed: `run` blocks until `trials` trials took `steps` steps each."""

    name: str
    grids: tuple  # of its trials
    precision: str
    waste: float  # share of the work that is padding
    steps: int = 0
    run: Callable | None = None  # None if it cannot run, as the note says
    compile_s: float | None = None  # of one device's program
    megabytes: float | None = None  # moved per step and trial, by the compiler's estimate
    note: str = ""


def run(
    rounds: int,
    works: list[Work] | None = None,
    peer=contenders.torch_steps,
    processes=contenders.torch_processes,
) -> list[dict]:
    """Rows of the benchmark; `peer(config, steps)` returns the function that `PEER` times, and
    `processes(configs, steps, count)` that of `PROCESSES`, on a CPU."""
    if jax.default_backend() != "cpu":
        rounds = min(rounds, ACCELERATORS_ROUNDS)
        works = works or on_accelerator()
    return [row for work in works or on_cpu() for row in _compare(work, rounds, peer, processes)]


def _compare(work: Work, rounds: int, peer, processes) -> list[dict]:
    found = [_peers(work, peer), _singles(work)]
    if jax.default_backend() == "cpu" and contenders.cores() > 1:
        found.append(_in_processes(work, processes))
    found += [_one_program(work, program, work.grids) for program in work.programs]
    ceilings = {p: timing.gemm(work.gemm_side, p) for p in {c.precision for c in found}}
    timed = {index: contender.run for index, contender in enumerate(found) if contender.run}
    seconds = timing.interleave(timed | {p: run for p, (run, _) in ceilings.items()}, rounds)
    peaks = {p: flops / seconds[p] for p, (_, flops) in ceilings.items()}
    per_step = [seconds[i] / c.steps / len(c.grids) if c.run else None for i, c in enumerate(found)]
    of_torch = [own for c, own in zip(found, per_step, strict=True) if c.name.startswith("PyTorch")]
    references = min(of_torch), per_step[1]
    return [
        _row(work, contender, own, references, peaks[contender.precision])
        for contender, own in zip(found, per_step, strict=True)
    ]


def _row(work: Work, contender: Contender, per_step, references, peak: float) -> dict:
    """`per_step` seconds per step and trial, and those of PyTorch's best arrangement and of
    `SINGLE`; peak in FLOP/s."""
    settings, precision = work.config.model, contender.precision
    if precision == "float32":
        precision = GEMM_PRECISION[jax.default_backend()]
    flops = mean(contenders.step_flops(_alone(work, grid)) for grid in contender.grids)
    ratio = lambda other: per_step / other if per_step and other else None
    return {
        "trials of": f"{settings.width} channels, depth {settings.depth}, grid "
        + "/".join(map(str, work.grids)),
        "trials": len(contender.grids),
        "contender": contender.name,
        "products in": precision,
        "ms per step and trial": 1e3 * per_step if per_step else None,
        "trials x steps per s": 1 / per_step if per_step else None,
        "over best PyTorch": ratio(references[0]),
        "over single runs": ratio(references[1]),
        "share of GEMM peak": flops / per_step / peak if per_step else None,
        "GEMM peak GFLOP/s": peak / 1e9,
        "compile s": contender.compile_s,
        "waste": contender.waste,
        "MB per step and trial": contender.megabytes,
        "note": contender.note,
    }


def _alone(work: Work, grid: int) -> Config:
    """A trial of one grid, with as many images as the largest grid is searched with."""
    samples = 2 * max(work.grids) ** 2
    single = {"sweep.axes": (), "sweep.search.field": "", "task.images": 0}
    own = {"task.grid": grid, "task.support.samples": samples}
    return changed(work.config, single | own)


def _grids(work: Work, count: int) -> tuple:
    return tuple(islice(cycle(work.grids), count))


def _steps(work: Work, count: int) -> int:
    return min(MOST_STEPS, max(2, work.steps // count))


def _peers(work: Work, peer) -> Contender:
    grids, steps = _grids(work, work.peers), _steps(work, work.peers)
    run = _all_of([peer(_alone(work, grid), steps) for grid in grids])
    note = f"on {contenders.torch_device()}" if peer is contenders.torch_steps else ""
    return Contender(PEER, grids, "float32", 0.0, steps, run, note=note)


def _in_processes(work: Work, processes) -> Contender:
    grids, steps = _grids(work, work.peers), _steps(work, work.peers)
    count = contenders.cores()
    run = processes([_alone(work, grid) for grid in grids], steps, count)
    return Contender(PROCESSES.format(count), grids, "float32", 0.0, steps, run)


def _singles(work: Work) -> Contender:
    """Every trial by the program of its grid alone, on one device, which on a CPU has all cores."""
    lowering = choose_lowering(backend=jax.default_backend(), trials=1)
    grids = _grids(work, work.peers)
    single = Program(SINGLE, 1, lowering, side_by_side=False)
    own = work._replace(steps=_steps(work, work.peers))
    built = {grid: _one_program(own, single, (grid,)) for grid in work.grids}
    if failed := [contender for contender in built.values() if contender.note]:
        return failed[0]._replace(grids=grids)
    moved = [built[grid].megabytes for grid in grids]
    return Contender(
        SINGLE, grids, "float32", 0.0, built[grids[0]].steps,
        _all_of([built[grid].run for grid in grids]),
        sum(contender.compile_s for contender in built.values()),
        mean(moved) if all(moved) else None,
    )  # fmt: skip


def _all_of(runs: list[Callable]) -> Callable:
    def run():
        for each in runs:
            each()

    return run


def _one_program(work: Work, program: Program, grids: tuple) -> Contender:
    """The program of trials at `grids`, compiled and run once, or the reason why it cannot."""
    own = _grids(work._replace(grids=grids), program.trials)
    contender = Contender(program.name, own, program.precision, padding.waste(own))
    try:
        return _compiled(work, program, grids, contender)
    except jax.errors.JaxRuntimeError as error:
        return contender._replace(note=str(error).splitlines()[0][:120])


def _compiled(work: Work, program: Program, grids: tuple, contender: Contender) -> Contender:
    steps, devices = _steps(work, program.trials), jax.local_devices()[: program.devices]
    values = {"training.precision": program.precision, "execution.chunk_steps": steps}
    alone = {grid: _alone(work, grid) for grid in grids}
    tasks = {grid: single.task.make() for grid, single in alone.items()}
    trainer = loop.make_trainer(
        changed(alone[max(grids)], values), program.lowering, members=tuple(tasks.values())
    )
    capacity = max(task.examples for task in tasks.values())

    def trial(seed, grid):
        key = jax.random.key(seed)
        dataset = sampling.padded(loop.dataset_of(tasks[grid], key), capacity)
        return loop.Trial(key, loop.hyper_of(alone[grid]), dataset, jnp.int32(grids.index(grid)))

    listed = [trial(seed, grid) for seed, grid in enumerate(contender.grids)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *listed)
    pairs = stacked, jax.jit(jax.vmap(trainer.init))(stacked.key, stacked.task_index)
    advance = lambda n_steps, pair: trainer.advance(pair[0], pair[1], n_steps)
    width, n_steps = program.trials if program.side_by_side else 1, jnp.int32(steps)

    share = jax.tree.map(lambda leaf: leaf[: -(-program.trials // len(devices))], pairs)
    start = time.perf_counter()
    on_device = trials.OverSplitTrials(advance, width, devices[:1]).on_device
    compiled = jax.jit(on_device).lower(n_steps, share).compile()
    seconds = time.perf_counter() - start
    at_once = len(share[0].key) if program.side_by_side else 1
    contender = contender._replace(
        compile_s=seconds, megabytes=_megabytes(compiled, at_once), note=_too_large(compiled)
    )
    if contender.note:
        return contender
    function = compiled
    if len(devices) > 1:
        function = trials.OverSplitTrials(advance, width, devices)
        pairs = trials.split(pairs, devices)
    run = lambda: jax.block_until_ready(function(n_steps, pairs))
    run()  # what memory it needs beyond the estimate, it needs here
    return contender._replace(steps=steps, run=run)


def _megabytes(compiled, at_once: int) -> float | None:
    """Moved for a step of each of `at_once` trials: the compiler counts a loop's body once."""
    moved = (compiled.cost_analysis() or {}).get("bytes accessed")
    return moved / at_once / 1e6 if moved else None


def _too_large(compiled) -> str:
    limit = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    memory = compiled.memory_analysis()
    if not limit or memory is None:
        return ""
    needed = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    if needed <= limit:
        return ""
    return f"does not fit: needs {needed / 2**30:.0f} of {limit / 2**30:.0f} GiB"
