"""Interleaved timings: contenders take turns, so that a noisy machine is unfair to none."""

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pandas

PEER = "PyTorch"  # the names of its contenders begin with it


class Contender(NamedTuple):
    """A way to train: `run` blocks until each of `trials` trials has taken its steps."""

    name: str
    trials: int
    run: Callable | None = None  # None if it cannot run: `note` says why
    compile_s: float | None = None
    waste: float = 0.0  # share of the work that is padding
    note: str = ""


def compare(
    contenders: list[Contender], single: str, rounds: int, steps: int, flops: float, side: int
) -> pandas.DataFrame:
    """A row for each contender: its time beside that of PyTorch's best contender, of the contender
    named `single`, and of a matrix product of that side.

    steps: of every trial in a turn.  flops: of a step of a trial, padding not counted.
    """
    product, product_flops = gemm(side)
    turns = {c.name: c.run for c in contenders if c.run}
    seconds = interleave({"gemm": product} | turns, rounds)
    peak = product_flops / seconds["gemm"]
    table = pandas.DataFrame(contenders).set_index("name", drop=False)
    per_step = table["name"].map(seconds) / steps / table["trials"]
    best_of_torch = per_step[per_step.index.str.startswith(PEER)].min()
    columns = table[["trials", "compile_s", "waste", "note"]].rename(
        columns={"compile_s": "compile s"}
    )
    columns.insert(1, "ms per step and trial", 1e3 * per_step)
    columns.insert(2, "over best PyTorch", per_step / best_of_torch)
    columns.insert(3, "over single runs", per_step / per_step[single])
    columns.insert(4, "share of GEMM peak", flops / per_step / peak)
    columns.insert(5, "GEMM peak GFLOP/s", peak / 1e9)
    return columns.rename_axis("contender").reset_index()


def interleave(contenders: dict[str, Callable], rounds: int) -> dict[str, float]:
    """Median seconds of each contender, a function, until its work and what it returns are done.

    Each is called once to warm up (and compile), then once per round, in turn.
    """
    for run in contenders.values():
        jax.block_until_ready(run())
    seconds = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


def gemm(side: int) -> tuple[Callable, float]:
    """A square matrix product in jax's default precision (TF32 on a GPU, bfloat16 on a TPU), the
    machine's practical ceiling, and its FLOPs."""
    a = jnp.ones((side, side), "float32")
    product = jax.jit(jnp.matmul)
    return lambda: product(a, a), 2.0 * side**3
