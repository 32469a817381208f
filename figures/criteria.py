"""The criteria on maps whose answer is known, as tables of docs/criteria.md.

    python -m figures.criteria

Writes the tables into docs/criteria.md; nothing is trained.
"""

import re
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.analysis import evaluation
from compgen_jax.analysis.statistics import t_interval
from compgen_jax.claims.forced_rendering import admission, known_maps
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.supports import SupportConfig

PAGE = Path(__file__).parents[1] / "docs" / "criteria.md"
# the holes and corners of the quick and of the paper's presets
SUPPORTS = {
    (16, "donut"): SupportConfig(region="donut", low=3, high=12),
    (16, "corner"): SupportConfig(region="corner", low=7),
    (28, "donut"): SupportConfig(region="donut", low=6, high=22),
    (28, "corner"): SupportConfig(region="corner", low=12),
}
BEGIN, END = "<!-- tables: python -m figures.criteria -->", "<!-- end of tables -->"
COVERAGE = "<!-- coverage: python -m figures.criteria -->", "<!-- end of coverage -->"
SAMPLES = 100_000
# values over seeds: how a sample is drawn, and its mean
LAWS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "log-normal, sd .5 of the log": (
        lambda rng, shape: np.exp(rng.normal(0, 0.5, shape)), np.exp(0.125)
    ),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "share of 81 cells, means .3 to .7": (
        lambda rng, shape: rng.binomial(81, rng.uniform(0.3, 0.7, shape)) / 81, 0.5
    ),
    "share of 81 cells, means .9 to 1": (
        lambda rng, shape: rng.binomial(81, rng.uniform(0.9, 1.0, shape)) / 81, 0.95
    ),
    "share of 81 cells, mostly 1": (
        lambda rng, shape: rng.binomial(81, np.where(rng.random(shape) < 0.7, 1, 0.95)) / 81, 0.985
    ),
}  # fmt: skip
SEEDS = (3, 4, 5, 6, 10)
LETTERS = {"reproduced": "**R**", "contradicted": "c", "inconclusive": "–"}


@cache
def task_of(grid: int, region: str):
    return Bump(grid=grid, support=SUPPORTS[grid, region]).make()


def held_out(task):
    return np.asarray(task.held_out(tasks.cells(task.factors)))


def truths(task):
    """(B, N, N): the true signal of every cell."""
    key = jax.random.key(0)
    true = lambda point: tasks.truth(task, task.example(key, point).target)
    return np.asarray(jax.jit(jax.vmap(true))(jnp.asarray(tasks.cells(task.factors))))


def results_of(task, signals_TxBxNxN) -> evaluation.CellResults:
    """Given signals of every cell, as if networks had drawn them."""
    points, held, true = tasks.cells(task.factors), held_out(task), truths(task)
    score = jax.jit(jax.vmap(jax.vmap(task.scores), (0, None, None)))
    return evaluation.CellResults(
        seeds=tuple(range(len(signals_TxBxNxN))),
        signals=signals_TxBxNxN,
        targets=true,
        factors=points,
        held_out=held,
        distance=grids.distance_to_seen(held, **tasks.geometry(task)),
        sizes=tasks.sizes(task),
        scores=jax.tree.map(np.asarray, score(jnp.asarray(signals_TxBxNxN), true, points)),
    )


def tables() -> dict:
    """{(N, region): {claim: {map: (as stated, stricter)}}}"""
    found = {}
    for grid, region in SUPPORTS:
        task = task_of(grid, region)
        known = admission.shown(
            lambda signals, task=task: results_of(task, signals),
            truths(task), held_out(task), region,
        )  # fmt: skip
        found[grid, region] = admission.verdicts(known, region)
    return found


def coverage() -> dict:
    """{law: shares of samples whose 95% interval of the mean holds the law's mean, by `SEEDS`}."""
    found = {}
    for name, (draw, mean) in LAWS.items():
        rng = np.random.default_rng(0)
        found[name] = [_covered(draw(rng, (SAMPLES, count)), mean) for count in SEEDS]
    return found


def _covered(values_RxT, mean) -> float:
    count = values_RxT.shape[1]
    # the half width is that of `t_interval` of values of standard deviation 1
    unit = (
        np.sqrt(count - 1) * np.linspace(-1, 1, count) / np.linalg.norm(np.linspace(-1, 1, count))
    )
    half = t_interval(unit)[1] * values_RxT.std(axis=1, ddof=1)
    return float(np.mean(np.abs(values_RxT.mean(axis=1) - mean) <= half + 1e-12))


def with_coverage(page: str, found: dict) -> str:
    """The page with this table between its two marks."""
    lines = [f"| values | {' | '.join(f'{count} seeds' for count in SEEDS)} |",
             "|---" * (1 + len(SEEDS)) + "|"]  # fmt: skip
    for name, shares in found.items():
        lines.append(f"| {name} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    begin, end = COVERAGE
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.S)
    return between.sub(lambda _: "\n".join([begin, "", *lines, "", end]), page)


def with_tables(page: str, found: dict) -> str:
    """The page with these tables between its two marks."""
    lines = []
    names = list(known_maps.MAPS)
    for (grid, region), table in found.items():
        lines += ["", f"N = {grid}, {region}:", "", f"| claim | {' | '.join(names)} |"]
        lines.append("|---" * (1 + len(names)) + "|")
        for claim, row in table.items():
            cells = [" / ".join(LETTERS[verdict] for verdict in row[name]) for name in names]
            lines.append(f"| {claim} | {' | '.join(cells)} |")
    between = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.S)
    return between.sub(lambda _: "\n".join([BEGIN, *lines, "", END]), page)


def main():
    found = tables()
    wrong = [line for table in found.values() for line in admission.wrongly_decided(table)]
    PAGE.write_text(with_coverage(with_tables(PAGE.read_text(), found), coverage()))
    print("\n".join(wrong) or f"every criterion decides rightly; wrote {PAGE.name}")


if __name__ == "__main__":
    main()
