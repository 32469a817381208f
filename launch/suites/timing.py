"""Interleaved timings: contenders take turns, so that a noisy machine is unfair to none."""

import time
from collections.abc import Callable
from statistics import median

import jax
import jax.numpy as jnp


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
    """A square matrix product in jax's default precision, the machine's practical ceiling, and its
    FLOPs."""
    a = jnp.ones((side, side), dtype)
    product = jax.jit(jnp.matmul)
    return lambda: product(a, a).block_until_ready(), 2.0 * side**3


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
