"""Compares two finished runs of one task, seed by seed.

    compgen-jax compare runs/a runs/b

Prints, for every score, both means, the difference B - A with its 95% interval, and how many seeds
would settle it. Writes compare.json to compare_A_B/ or --out.
"""

from pathlib import Path

import numpy as np
from absl import flags

from compgen_jax import cli
from compgen_jax.config import ABSENT, differences
from compgen_jax.metrics import text
from compgen_jax.runs import directory, judge_run, results
from compgen_jax.runs.run import Run
from compgen_jax.settings import demand
from compgen_jax.statistics import LEAST_CELLS, mean_with_interval, of_share, seeds_to_settle
from compgen_jax.tasks import task as tasks

A = flags.DEFINE_string("a", None, "The directory of a finished run.")
B = flags.DEFINE_string("b", None, "The directory of another one, of the same task.")
OUT = cli.define_out()
cli.define_trust()
NOTE = """settled: the interval leaves out 0. A number: about so many seeds would settle it. A dash:
no number of seeds would. docs/how_to/compare.md says how to read it."""


def main():
    paths = [Path(cli.require(holder)) for holder in (A, B)]
    runs = [Run.load(path, with_networks=False) for path in paths]
    check_same_task(*runs)
    seeds = [seed for seed in runs[0].seeds if seed in runs[1].seeds]
    of_each = " and ".join(", ".join(map(str, run.seeds)) for run in runs)
    demand(seeds, f"the runs have no seed in common: {of_each}")
    task, summaries = runs[0].task, [run.summary for run in runs]
    shares = set.intersection(*(judge_run.shares(task, run.late.cells.scores) for run in runs))
    scores = compare(*summaries, seeds, task, shares)
    differ = [
        f"{name} " + " | ".join(text.UNKNOWN if value is ABSENT else str(value) for value in values)
        for name, values in differences(*(run.config for run in runs)).items()
    ]
    for letter, path, run in zip("AB", paths, runs, strict=True):
        print(f"{letter}: {path} ({run.config.name})")
    print("their configs differ in: " + (", ".join(differ) or "nothing"))
    print(f"{len(seeds)} common seeds: {', '.join(map(str, seeds))}")
    print("\n".join(table(scores)))
    print(NOTE)
    # by the last names of the paths, and by those above them where these agree
    first, second = (path.resolve().parts for path in paths)
    longest = range(1, max(len(first), len(second)))
    count = next((n for n in longest if first[-n:] != second[-n:]), 1)
    letters = ("-".join(parts[-count:]) for parts in (first, second))
    out = Path(OUT.value or "_".join(["compare", *letters]))
    report = {"a": str(paths[0]), "b": str(paths[1]), "seeds": seeds, "differ": differ}
    directory.write_json(out / "compare.json", report | {"scores": scores})
    print(f"wrote {out}/compare.json")


def check_same_task(a: Run, b: Run):
    first, second = (
        {
            "have other cells": tasks.points(task),
            "hold out other cells": tasks.regions(task)["ood"],
            "ask for other outputs": results.truths_at(task, tasks.points(task)),
        }
        for task in (a.task, b.task)
    )
    for what, values in first.items():
        alike = values.shape == second[what].shape
        alike = alike and np.allclose(values, second[what], atol=1e-6, equal_nan=True)
        demand(alike, f"{a.path} and {b.path} are of different tasks: they {what}")


def compare(summary_a: dict, summary_b: dict, seeds: list, task, shares: set) -> dict:
    """{'REGION.SCORE': means, difference, whether it is settled, and the seeds that would settle it
    or None} of two summaries."""
    compared = {}
    for region in ("id", "ood"):
        cells = max(tasks.regions(task)[region].sum(), 1)
        for score in tasks.number_names(task):
            name = f"{region}.{score}"
            first, second = (  # as floats: None is NaN
                np.array([summary["seeds"][str(seed)].get(name) for seed in seeds], np.float64)
                for summary in (summary_a, summary_b)
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
        means = "".join(f"{text.number(row[letter]['value']):10}" for letter in "ab")
        needed = "settled" if row["settled"] else text.number(row["seeds"], 6)
        if np.isnan(row["difference"]["ci95"]).any():
            needed = "unknown"
        lines.append(f"{name:{width}}  {means}{text.with_interval(row['difference']):32}{needed}")
    return lines


if __name__ == "__main__":
    cli.run(main, positional=(A, B))
