"""Takes the results of a finished `figures.make` into the documentation.

    python -m figures.take_results --workdir=runs/quick [--add]

Copies claims.json, the pictures and every run's summary to docs/results/SCALE, and writes all pages
that are made of these (`figures.pages`). What is there already is replaced or, if DIR lacks it,
removed. With --add it stays, but for a summary or a table that has more numbers now: so results can
grow run by run, on several machines. A verdict stays only while its criterion is the same.
"""

import json
from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.claims import BASE
from compgen_jax.config import ConfigError
from compgen_jax.runs import directory

from . import committed, make, pages

WORKDIR = cli.define_workdir()
ADD = flags.DEFINE_bool("add", False, "Keep what is there, and add what it lacks.")


def with_added(before: list[dict], added: list[dict]) -> list[dict]:
    """Rows of claims.json and those of other runs, in the order of the papers' claims.

    A row that both have stays, so that no verdict is drawn a second time, unless its criterion has
    changed since. Rows of claims that no paper makes go.
    """
    names = [claim.name for paper in committed.PAPERS for claim in paper.claims]
    key_of = committed.key_of
    criteria = {key_of(row): row["criterion"] for row in added}
    older = [
        row for row in before if criteria.get(key_of(row), row["criterion"]) == row["criterion"]
    ]
    rows = {key_of(row): row for row in (*added, *older) if row["claim"] in names}.values()
    merged = committed.merged(rows, [row for row in rows if row["setting"] == BASE])
    return sorted(merged, key=lambda row: names.index(row["claim"]))  # stable


def take(workdir: Path, add: bool) -> Path:
    """Takes what was run in `workdir` instead of what is in docs/results or, to `add`, beside it.
    Returns the folder in docs/results."""
    scale = (workdir / "scale").read_text().strip()
    target = committed.RESULTS / scale
    rows = json.loads((workdir / "claims.json").read_text())
    directory.write_json(
        target / "claims.json", with_added(committed.rows(scale) if add else [], rows)
    )
    copied = {}
    for config in committed.configs(scale).values():
        path = make.run_directory(workdir, config) / "summary.json"
        name = f"runs/{config.name}.json"
        if config.is_sweep:  # its table is small, and another machine goes on from it
            name, path = f"sweeps/{config.name}.csv", path.with_name("trials.csv")
        if path.exists():
            copied[name] = path
    for path in (workdir / "figures").iterdir():
        if path.suffix in (".png", ".csv") and path.stem in committed.FIGURES:
            copied[f"figures/{path.name}"] = path
    for name, path in copied.items():
        if not add or amount(path) > amount(target / name):
            directory.write_bytes(target / name, path.read_bytes())
    patterns = () if add else ("figures/*.*", "runs/*.json", "sweeps/*.csv")
    for path in sorted(path for pattern in patterns for path in target.glob(pattern)):
        if path.relative_to(target).as_posix() not in copied:
            path.unlink()
            print(f"removed {path.relative_to(target)} (--add keeps what is there)")
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
    target = take(workdir, ADD.value)
    pages.write()
    print(f"wrote {target.relative_to(committed.ROOT)}")


if __name__ == "__main__":
    cli.run(main)
