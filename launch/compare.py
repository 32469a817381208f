"""Compares two finished runs of one task, seed by seed.

    compgen-jax compare runs/a runs/b

Prints, for every score, both means, the difference B - A with its 95% interval, and how many seeds
would settle it. Writes compare.json and compare.png, a map of where they differ, to compare_A_B/
or --out.
"""

from pathlib import Path

import numpy as np
from absl import flags

from compgen_jax import cli, settings
from compgen_jax.claims import LEAST_CELLS, of_share
from compgen_jax.config import Config, ConfigError, to_dict
from compgen_jax.metrics import text
from compgen_jax.runs import directory, judge_run, results
from compgen_jax.runs.run import Run
from compgen_jax.statistics import mean_with_interval, seeds_to_settle
from compgen_jax.tasks import task as tasks

from . import cell_maps

A = flags.DEFINE_string("a", None, "The directory of a finished run.")
B = flags.DEFINE_string("b", None, "The directory of another one, of the same task.")
OUT = cli.define_out()
REGIONS = ("id", "ood")
NOTE = """settled: the interval is on one side of 0. A number: so many seeds would be the least for
that, if difference and spread stay as they are here. A new sample of this size settles it about
every second time, and a few seeds tell the spread badly. A dash: no number of seeds would, as the
means differ by nothing, or by less than 1.5 cells. Unknown: one seed shows no spread, or a score
is not known. Each interval is of one score alone."""


def main():
    places = [Path(cli.require(holder)) for holder in (A, B)]
    runs = [Run.load(place, with_networks=False) for place in places]
    _check_same_task(*runs)
    task = runs[0].task
    seeds = [seed for seed in runs[0].seeds if seed in runs[1].seeds]
    if not seeds:
        shown = " and ".join(", ".join(map(str, run.seeds)) for run in runs)
        raise ConfigError(f"the runs have no seed in common: {shown}")
    cells = [_of_seeds(directory.read_cells(run.path), run.seeds, seeds) for run in runs]
    shares = set.intersection(*(directory.share_names(run.path) for run in runs)) - {task.error}
    found = compare(*(run.summary for run in runs), seeds, task, shares)
    differs = differences(*(run.config for run in runs))
    for letter, place, run in zip("AB", places, runs, strict=True):
        print(f"{letter}: {place} ({run.config.name})")
    print("their configs differ in: " + (", ".join(differs) or "nothing"))
    print(f"{len(seeds)} common seeds: {', '.join(map(str, seeds))}")
    print("\n".join(table(found)))
    print(NOTE)
    out = Path(OUT.value or default_out(*places))
    directory.write_json(
        out / "compare.json",
        {"a": str(places[0]), "b": str(places[1]), "seeds": seeds, "differ": differs}
        | {"scores": found},
    )
    directory.write_bytes(out / "compare.png", cell_maps.draw(task, panels(*cells, task)))
    print(f"wrote {out}/compare.json and compare.png")


def _check_same_task(a: Run, b: Run):
    """Raises ConfigError unless both are scored alike, on the same cells with the same targets."""
    other = ""
    if tasks.number_names(a.task) != tasks.number_names(b.task):
        other = "they have other scores"
    elif not _equal(tasks.points(a.task), tasks.points(b.task)):
        other = "they have other cells"
    elif not _equal(tasks.regions(a.task)["ood"], tasks.regions(b.task)["ood"]):
        other = "they hold out other cells"
    elif not _equal(results.truths_at(a.task, tasks.points(a.task)),
                    results.truths_at(b.task, tasks.points(b.task))):  # fmt: skip
        other = "they ask for other outputs at the same cells"
    if other:
        raise ConfigError(f"{a.path} and {b.path} are of different tasks: {other}")


def _equal(first, second) -> bool:
    return first.shape == second.shape and np.allclose(first, second, atol=1e-6, equal_nan=True)


def differences(a: Config, b: Config) -> list[str]:
    """'model.depth 4 | 2': the fields whose values differ, the name aside."""
    of_a, of_b = (settings.flat(to_dict(config), "") for config in (a, b))
    value = lambda fields, name: fields.get(name, text.UNKNOWN)
    return [
        f"{name[1:]} {value(of_a, name)} | {value(of_b, name)}"
        for name in {**of_a, **of_b}
        if value(of_a, name) != value(of_b, name)
        and not name.startswith((".execution.", ".name", ".training.keep"))
    ]


def default_out(a: Path, b: Path) -> str:
    """'compare_A_B' by the last names of two paths, and by those above them where these agree."""
    ends = [path.resolve().parts for path in (a, b)]
    longest = max(map(len, ends))
    count = next((n for n in range(1, longest) if ends[0][-n:] != ends[1][-n:]), 1)
    return "_".join(["compare", *("-".join(parts[-count:]) for parts in ends)])


def compare(of_a: dict, of_b: dict, seeds: list, task, shares: set) -> dict:
    """{'REGION.SCORE': a, b and difference, each with its interval; whether it is settled, and the
    seeds that would settle it, None if no number does} of two summaries."""
    masks, found = tasks.regions(task), {}
    for region in REGIONS:
        for score in tasks.number_names(task):
            name = f"{region}.{score}"
            first, second = (_values(each, name, seeds) for each in (of_a, of_b))
            apart = second - first
            difference, least = mean_with_interval(apart), 0.0
            if score in shares:  # as claims judge them
                cells = max(masks[region].sum(), 1)
                difference, least = of_share(difference, cells, least=-1.0), LEAST_CELLS / cells
            low, high = difference["ci95"]
            found[name] = {
                "a": mean_with_interval(first),
                "b": mean_with_interval(second),
                "difference": difference,
                "settled": bool(low > 0 or high < 0),
                "seeds": seeds_to_settle(apart, least),
            }
    return found


def _values(summary: dict, name: str, seeds) -> np.ndarray:
    # as floats: None is NaN
    return np.array([summary["seeds"][str(seed)].get(name) for seed in seeds], np.float64)


def table(found: dict) -> list[str]:
    width = max(map(len, found))
    lines = [f"{'':{width}}  {'A':10}{'B':10}{'B - A':32}seeds"]
    for name, row in found.items():
        means = "".join(f"{text.number(row[of]['value']):10}" for of in "ab")
        needed = "settled" if row["settled"] else text.number(row["seeds"], 6)
        if np.isnan(row["difference"]["ci95"]).any():
            needed = "unknown"
        lines.append(f"{name:{width}}  {means}{text.with_interval(row['difference']):32}{needed}")
    return lines


def panels(of_a: dict, of_b: dict, task) -> list[cell_maps.Panel]:
    """B - A at every cell, mean over seeds: the error, and the share of what is right."""
    names = dict.fromkeys(name for name in (task.error, judge_run.headline(task)) if name)
    return [
        cell_maps.Panel(f"{name}: B - A", (of_b[name] - of_a[name]).mean(axis=0), signed=True)
        for name in names
    ]


def _of_seeds(cells: dict, given: tuple, wanted: list) -> dict:
    index = [given.index(seed) for seed in wanted]
    return {name: values_TxB[index] for name, values_TxB in cells.items()}


if __name__ == "__main__":
    cli.run(main, positional=(A, B))
