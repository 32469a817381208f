"""Which programs the sweep suite compares, on a CPU and on an accelerator."""

from typing import NamedTuple

import jax

from compgen_jax.config import Config
from compgen_jax.models.convolution import LOWERINGS, choose_lowering
from compgen_jax.papers.presets import PRESETS


class Program(NamedTuple):
    """A way to train trials, whose grids are those of its `Work` in turn."""

    name: str
    trials: int
    lowering: str
    precision: str = "float32"
    side_by_side: bool = True  # vmapped in a device, or in turn
    devices: int = 1


class Work(NamedTuple):
    """Trials of `config` at `grids`, by all `programs` and, `peers` of them, one by one."""

    config: Config
    grids: tuple
    programs: tuple
    peers: int
    steps: int  # of all trials together, in one turn of a program
    gemm_side: int


def on_cpu(config: Config = PRESETS["data_scaling_quick"], count: int = 8) -> list[Work]:
    """The quick sweep at grid 16, over all devices as sweeps do it and vmapped; and a bucket."""
    fast = choose_lowering(backend="cpu", trials=count)
    n_devices = min(count, jax.local_device_count())
    programs = (
        Program(f"in turn on {n_devices} devices", count, fast, "float32", False, n_devices),
        Program("vmapped", count, fast),
    )
    grids = (16, 20, 24)
    in_bucket = -(-count // len(grids)) * len(grids)
    bucket = (Program("vmapped, padded", in_bucket, fast),)
    return [
        Work(config, (16,), programs, count, 40 * count, 2048),
        Work(config, grids, bucket, in_bucket, 20 * in_bucket, 2048),
    ]


def on_accelerator(
    config: Config = PRESETS["data_scaling"],
    counts: tuple = (1, 4, 16, 64, 256),
    both_precisions_at: int = 64,
    buckets: tuple = ((28,), (24, 28, 32)),
    steps: int = 512,
    gemm_side: int = 8192,
) -> list[Work]:
    """The paper's decoder, vmapped: every lowering by number of trials, bfloat16 at one of them."""
    works = []
    for grids in buckets:
        programs = []
        for count in counts:
            if count < len(grids):
                continue
            whole = -(-count // len(grids)) * len(grids)  # of every grid as many
            programs += [Program(f"vmapped, {low}", whole, low) for low in LOWERINGS]
            if count == both_precisions_at:
                programs += [
                    Program(f"vmapped, {low}", whole, low, "bfloat16")
                    for low in LOWERINGS
                    if low != "winograd"
                ]
        works.append(Work(config, grids, tuple(programs), len(grids), steps, gemm_side))
    return works
