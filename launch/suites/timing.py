"""Interleaved timings: contenders take turns, so that a noisy machine is unfair to none."""

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import jax
import jax.numpy as jnp

PEER = "PyTorch"  # the names of its contenders begin with it


class Contender(NamedTuple):
    """A way to train: `run` blocks until each of `trials` trials has taken `steps` steps."""

    name: str
    trials: int
    steps: int
    flops: float  # of a step of a trial, padding not counted
    run: Callable | None = None  # None if it cannot run: `note` says why
    precision: str = "float32"
    compile_s: float | None = None
    waste: float = 0.0  # share of the work that is padding
    note: str = ""


def compare(heading: dict, contenders: list[Contender], single: str, rounds: int, side: int):
    """A row for each contender: its time beside that of PyTorch's best contender, of the contender
    named `single`, and of a matrix product of that side in the same precision."""
    ceilings = {p: gemm(side, p) for p in {c.precision for c in contenders}}
    turns = {p: product for p, (product, _) in ceilings.items()}
    turns |= {c.name: c.run for c in contenders if c.run}
    seconds = interleave(turns, rounds)
    per_step = {c.name: seconds[c.name] / c.steps / c.trials for c in contenders if c.run}
    best = min((per_step[name] for name in per_step if name.startswith(PEER)), default=None)
    rows = []
    for c in contenders:
        peak, own = ceilings[c.precision][1] / seconds[c.precision], per_step.get(c.name)
        over = lambda other, own=own: own / other if own and other else None
        rows.append(
            heading
            | {
                "contender": c.name,
                "trials": c.trials,
                "products in": c.precision,
                "ms per step and trial": own and 1e3 * own,
                "over best PyTorch": over(best),
                "over single runs": over(per_step.get(single)),
                "share of GEMM peak": own and c.flops / own / peak,
                "GEMM peak GFLOP/s": peak / 1e9,
                "compile s": c.compile_s,
                "waste": c.waste,
                "note": c.note,
            }
        )
    return rows


def interleave(contenders: dict[str, Callable], rounds: int) -> dict[str, float]:
    """Median seconds of each contender, a function that blocks until its work is done.

    Each is called once to warm up (and compile), then once per round, in turn.
    """
    for run in contenders.values():
        run()
    seconds = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


def gemm(side: int = 2048, dtype="float32") -> tuple[Callable, float]:
    """A square matrix product in jax's default precision (TF32 on a GPU, bfloat16 on a TPU), the
    machine's practical ceiling, and its FLOPs."""
    a = jnp.ones((side, side), dtype)
    product = jax.jit(jnp.matmul)
    return lambda: product(a, a).block_until_ready(), 2.0 * side**3


def gemm_side() -> int:
    """The side of a product that is large for this device."""
    return 2048 if jax.default_backend() == "cpu" else 8192


def table(rows: list[dict]) -> str:
    """The rows as aligned columns, headed by the keys of the first."""
    cells = [list(rows[0])] + [[_show(value) for value in row.values()] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _show(value) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
