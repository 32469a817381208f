"""Many trials in one program, as sweeps train them, against the same trials one after another: as
single runs of ours, and as PyTorch eager on the same device.

A trial of a padded group of grids is compared with trials of these grids that are not padded, and
only the work of its own grid counts as FLOPs. On an accelerator every lowering is compiled for
every number of trials, which takes many minutes.
"""

from collections.abc import Callable
from itertools import cycle, islice
from statistics import mean
from typing import NamedTuple

import jax

from compgen_jax.config import Config, changed
from compgen_jax.models.convolution import LOWERINGS, choose_lowering
from compgen_jax.papers.presets import PRESETS

from . import timing
from .contenders import in_turn, program, torch_arrangements
from .decoders import step_flops, torch_decoders

SINGLE = "single runs, one after another"
MOST_STEPS = 100  # of a program in one turn
ACCELERATORS_ROUNDS = 3


class Work(NamedTuple):
    """Trials of `config` at `grids` in turn: `peers` of them one by one, and programs of ours.

    programs: (trials, lowering, precision, side by side?, devices).  steps: of all trials of a
    program together, in one turn."""

    config: Config
    grids: tuple
    programs: tuple
    peers: int
    steps: int


def run(rounds: int) -> list[dict]:
    """The rows of `timing.compare` for every work."""
    if jax.default_backend() == "cpu":
        return [row for work in on_cpu() for row in compare(work, rounds)]
    rounds = min(rounds, ACCELERATORS_ROUNDS)
    return [row for work in on_accelerator() for row in compare(work, rounds)]


def on_cpu(count: int = 8) -> list[Work]:
    """The quick sweep at grid 16, over all devices as sweeps do it and vmapped; and a padded group
    of grids."""
    config, fast = PRESETS["data_scaling_quick"], choose_lowering(backend="cpu", trials=count)
    devices = min(count, jax.local_device_count())
    programs = (count, fast, "float32", False, devices), (count, fast, "float32", True, 1)
    padded = -(-count // 3) * 3
    group = ((padded, fast, "float32", True, 1),)
    return [
        Work(config, (16,), programs, count, 40 * count),
        Work(config, (16, 20, 24), group, padded, 20 * padded),
    ]


def on_accelerator(counts: tuple = (1, 4, 16, 64, 256), both_precisions_at: int = 64) -> list[Work]:
    """The paper's decoder, vmapped: every lowering by number of trials, bfloat16 at one of them."""
    works = []
    for grids in ((28,), (24, 28, 32)):
        programs = []
        for count in (count for count in counts if count >= len(grids)):
            whole = -(-count // len(grids)) * len(grids)  # of every grid as many
            programs += [(whole, lowering, "float32", True, 1) for lowering in LOWERINGS]
            if count == both_precisions_at:
                rounded = [lowering for lowering in LOWERINGS if lowering != "winograd"]
                programs += [(whole, lowering, "bfloat16", True, 1) for lowering in rounded]
        works.append(Work(PRESETS["data_scaling"], grids, tuple(programs), len(grids), 512))
    return works


def compare(work: Work, rounds: int, peer: Callable = torch_decoders, side: int = 0) -> list[dict]:
    """The rows of a work; `peer` trains PyTorch's decoders."""
    fast = choose_lowering(backend=jax.default_backend(), trials=1)
    steps_of = lambda count: min(MOST_STEPS, max(2, work.steps // count))
    singles, steps = singles_of(work, work.peers), steps_of(work.peers)
    flops_of = lambda singles: mean(step_flops(single) for single in singles)
    contenders = torch_arrangements(peer, singles, steps, flops_of(singles), "one after another")
    one_of = {grid: singles_of(work._replace(grids=(grid,)), 1) for grid in work.grids}
    built = {
        grid: program(SINGLE, one, steps, flops_of(one), lowering=fast)
        for grid, one in one_of.items()
    }
    single = next((c for c in built.values() if c.note), built[work.grids[0]])
    single = single._replace(trials=len(singles), flops=flops_of(singles))
    if single.run:
        runs = [built[single.task.grid].run for single in singles]
        seconds = sum(each.compile_s for each in built.values())
        single = single._replace(run=in_turn(runs), compile_s=seconds)
    contenders.append(single)
    for count, lowering, precision, vmapped, n_devices in work.programs:
        how = "vmapped" if vmapped else f"in turn on {n_devices} devices"
        contenders.append(
            program(
                f"{count} {how}, {lowering}, {precision}",
                each := singles_of(work, count),
                steps_of(count),
                flops_of(each),
                count if vmapped else 1,
                jax.local_devices()[:n_devices],
                lowering,
                precision,
            )
        )
    model, grids = work.config.model, "/".join(map(str, work.grids))
    heading = {"trials of": f"{model.width} channels, depth {model.depth}, grid {grids}"}
    return timing.compare(heading, contenders, SINGLE, rounds, side or timing.gemm_side())


def singles_of(work: Work, count: int) -> list[Config]:
    """Single runs at the grids in turn, each of a seed of its own, with as many images as the
    largest grid is searched with."""
    values = {"sweep.axes": (), "sweep.search.field": "", "task.images": 0}
    values |= {"task.support.samples": 2 * max(work.grids) ** 2}
    return [
        changed(work.config, values | {"task.grid": grid, "training.seeds": (seed,)})
        for seed, grid in enumerate(islice(cycle(work.grids), count))
    ]
