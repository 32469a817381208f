"""Adds the results of a finished `figures.make` to the documentation.

    python -m figures.take_results --workdir=runs/quick

Copies claims.json, the pictures and every run's summary to docs/results/SCALE, and writes all pages
that are made of these (`figures.pages`). What is there stays, but for a summary or a table that has
more numbers now, and verdicts whose criterion has changed: so results can grow run by run, on
several machines.
"""

import json
from pathlib import Path

from compgen_jax import cli
from compgen_jax.claims import BASE
from compgen_jax.config import ConfigError
from compgen_jax.runs import directory

from . import committed, make, pages

WORKDIR = cli.define_workdir()


def with_added(before: list[dict], added: list[dict]) -> list[dict]:
    """Rows of claims.json and those of other runs, in the order of the papers' claims.

    A row that both have stays, so that no verdict is drawn a second time, unless its criterion has
    changed since. Rows of claims that no paper makes go.
    """
    rows, key_of = {committed.key_of(row): row for row in added}, committed.key_of
    for row in before:
        if rows.get(key_of(row), row)["criterion"] == row["criterion"]:
            rows[key_of(row)] = row
    names = [claim.name for paper in committed.PAPERS for claim in paper.claims]
    rows = [row for row in rows.values() if row["claim"] in names]
    rows = committed.merged(rows, [row for row in rows if row["setting"] == BASE])
    return sorted(rows, key=lambda row: names.index(row["claim"]))  # stable


def take(workdir: Path) -> Path:
    """Adds what was run in `workdir` to a folder of docs/results, and returns that."""
    scale = (workdir / "scale").read_text().strip()
    target = committed.RESULTS / scale
    rows = json.loads((workdir / "claims.json").read_text())
    directory.write_json(target / "claims.json", with_added(committed.rows(scale), rows))
    taken = {
        f"figures/{path.name}": path
        for path in (workdir / "figures").iterdir()
        if path.suffix in (".png", ".csv") and path.stem in committed.FIGURES
    }
    for config in committed.configs(scale).values():
        path = make.run_directory(workdir, config)
        if config.is_sweep:  # its table is small, and another machine goes on from it
            taken[f"sweeps/{config.name}.csv"] = path / "trials.csv"
        else:
            taken[f"runs/{config.name}.json"] = path / "summary.json"
    for name, path in taken.items():
        if amount(path) > amount(target / name):
            directory.write_bytes(target / name, path.read_bytes())
    return target


def amount(path: Path) -> int:
    """How many numbers a summary or rows a table has, 0 of another file, -1 of none."""
    if not path.exists():
        return -1
    if path.suffix == ".json":
        return len(json.loads(path.read_text())["mean"])
    return len(path.read_text().splitlines()) if path.suffix == ".csv" else 0


def main():
    workdir = Path(cli.require(WORKDIR))
    if not (workdir / "claims.json").exists():
        raise ConfigError(f"--workdir={workdir}: no claims.json; compgen-jax figures writes it")
    target = take(workdir)
    pages.write()
    print(f"wrote {target.relative_to(committed.ROOT)}")


if __name__ == "__main__":
    cli.run(main)
