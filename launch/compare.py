"""Compares two finished runs of one task, seed by seed.

    compgen-jax compare runs/a runs/b

Prints, for every score, both means, the difference B - A with its 95% interval, and how many seeds
would settle it. Writes compare.json and compare.png, a map of where they differ, to compare_A_B/
or --out.
"""

from pathlib import Path

import numpy as np
from absl import flags

from compgen_jax import cli
from compgen_jax.claims import LEAST_CELLS, of_share
from compgen_jax.config import ABSENT, differences
from compgen_jax.metrics import text
from compgen_jax.runs import directory, results
from compgen_jax.runs.run import Run
from compgen_jax.settings import demand
from compgen_jax.statistics import mean_with_interval, seeds_to_settle
from compgen_jax.tasks import task as tasks

from . import cell_maps

A = flags.DEFINE_string("a", None, "The directory of a finished run.")
B = flags.DEFINE_string("b", None, "The directory of another one, of the same task.")
OUT = cli.define_out()
REGIONS = ("id", "ood")
NOTE = """settled: the interval leaves out 0. A number: about so many seeds would settle it. A dash:
no number of seeds would. docs/how_to/compare.md says how to read it."""


def main():
    places = [Path(cli.require(holder)) for holder in (A, B)]
    runs = [Run.load(place, with_networks=False) for place in places]
    _check_same_task(*runs)
    task = runs[0].task
    seeds = [seed for seed in runs[0].seeds if seed in runs[1].seeds]
    of_each = " and ".join(", ".join(map(str, run.seeds)) for run in runs)
    demand(seeds, f"the runs have no seed in common: {of_each}")
    shares = set.intersection(*(directory.share_names(run.path) for run in runs)) - {task.error}
    scores = compare(*(run.summary for run in runs), seeds, task, shares)
    fields = differences(*(run.config for run in runs)).items()
    shown = lambda value: text.UNKNOWN if value is ABSENT else value
    differs = [f"{name} {shown(of_a)} | {shown(of_b)}" for name, (of_a, of_b) in fields]
    for letter, place, run in zip("AB", places, runs, strict=True):
        print(f"{letter}: {place} ({run.config.name})")
    print("their configs differ in: " + (", ".join(differs) or "nothing"))
    print(f"{len(seeds)} common seeds: {', '.join(map(str, seeds))}")
    print("\n".join(table(scores)))
    print(NOTE)
    out = Path(OUT.value or default_out(*places))
    report = {"a": str(places[0]), "b": str(places[1]), "seeds": seeds, "differ": differs}
    directory.write_json(out / "compare.json", report | {"scores": scores})
    cells = cell_differences(*runs, seeds)
    directory.write_bytes(out / "compare.png", cell_maps.draw(task, cells, "B - A", signed=True))
    print(f"wrote {out}/compare.json and compare.png")


def _check_same_task(a: Run, b: Run):
    """Raises ConfigError unless both are scored alike, on the same cells with the same targets."""
    parts = {
        "they have other cells": tasks.points,
        "they hold out other cells": lambda task: tasks.regions(task)["ood"],
        "they ask for other outputs": lambda task: results.truths_at(task, tasks.points(task)),
    }
    of_different = f"{a.path} and {b.path} are of different tasks"
    alike = tasks.number_names(a.task) == tasks.number_names(b.task)
    demand(alike, f"{of_different}: they have other scores")
    for what, part in parts.items():
        first, second = part(a.task), part(b.task)
        alike = first.shape == second.shape
        alike = alike and np.allclose(first, second, atol=1e-6, equal_nan=True)
        demand(alike, f"{of_different}: {what}")


def default_out(a: Path, b: Path) -> str:
    """'compare_A_B' by the last names of two paths, and by those above them where these agree."""
    ends = [path.resolve().parts for path in (a, b)]
    longest = max(map(len, ends))
    count = next((n for n in range(1, longest) if ends[0][-n:] != ends[1][-n:]), 1)
    return "_".join(["compare", *("-".join(parts[-count:]) for parts in ends)])


def compare(of_a: dict, of_b: dict, seeds: list, task, shares: set) -> dict:
    """{'REGION.SCORE': a, b and difference, each with its interval; whether it is settled, and the
    seeds that would settle it, None if no number does} of two summaries."""
    compared = {}
    for region in REGIONS:
        cells = max(tasks.regions(task)[region].sum(), 1)
        for score in tasks.number_names(task):
            name = f"{region}.{score}"
            first, second = (  # as floats: None is NaN
                np.array([each["seeds"][str(seed)].get(name) for seed in seeds], np.float64)
                for each in (of_a, of_b)
            )
            difference, least = mean_with_interval(second - first), 0.0
            if score in shares:  # as claims judge them
                difference, least = of_share(difference, cells, least=-1.0), LEAST_CELLS / cells
            low, high = difference["ci95"]
            compared[name] = {
                "a": mean_with_interval(first, name),
                "b": mean_with_interval(second, name),
                "difference": difference,
                "settled": bool(low > 0 or high < 0),
                "seeds": seeds_to_settle(second - first, least),
            }
    return compared


def table(compared: dict) -> list[str]:
    width = max(map(len, compared))
    lines = [f"{'':{width}}  {'A':10}{'B':10}{'B - A':32}seeds"]
    for name, row in compared.items():
        means = "".join(f"{text.number(row[of]['value']):10}" for of in "ab")
        needed = "settled" if row["settled"] else text.number(row["seeds"], 6)
        if np.isnan(row["difference"]["ci95"]).any():
            needed = "unknown"
        lines.append(f"{name:{width}}  {means}{text.with_interval(row['difference']):32}{needed}")
    return lines


def cell_differences(a: Run, b: Run, seeds: list) -> dict:
    """B - A of every score at every cell, (T, B), for these seeds."""
    rows_a, rows_b = ([run.seeds.index(seed) for seed in seeds] for run in (a, b))
    of_a, of_b = (directory.read_cells(run.path) for run in (a, b))
    return {name: of_b[name][rows_b] - of_a[name][rows_a] for name in of_a.keys() & of_b.keys()}


if __name__ == "__main__":
    cli.run(main, positional=(A, B))
