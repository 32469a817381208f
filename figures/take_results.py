"""Takes the results of a finished `figures.make` into the documentation.

    python -m figures.take_results --workdir=runs/quick [--add]

Copies claims.json, the pictures and every run's summary to docs/results/SCALE, and writes all pages
that are made of these (`figures.pages`). What is there already is replaced or, if DIR lacks it,
removed. With --add it stays, and only what it lacks is added: so results can grow run by run, on
several machines. A verdict stays only while its criterion is the same.
"""

import json
from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.claims import BASE
from compgen_jax.config import ConfigError
from compgen_jax.runs import directory

from . import claim_rows, committed, make, pages

WORKDIR = cli.define_workdir()
ADD = flags.DEFINE_bool("add", False, "Keep what is there, and add what it lacks.")


def with_added(before: list[dict], added: list[dict]) -> list[dict]:
    """Rows of claims.json and those of other runs, in the order of the papers' claims.

    A row that both have stays, so that no verdict is drawn a second time, unless its criterion has
    changed since. Rows of claims that no paper makes go.
    """
    names = [claim.name for paper in committed.PAPERS for claim in paper.claims]
    key_of = claim_rows.key_of
    criteria = {key_of(row): row["criterion"] for row in added}
    older = [
        row for row in before if criteria.get(key_of(row), row["criterion"]) == row["criterion"]
    ]
    rows = {key_of(row): row for row in (*added, *older) if row["claim"] in names}.values()
    merged = claim_rows.merged(rows, [row for row in rows if row["setting"] == BASE])
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
        if not add or _adds(target / name, path):
            directory.write_bytes(target / name, path.read_bytes())
    patterns = () if add else ("figures/*.*", "runs/*.json", "sweeps/*.csv")
    for path in sorted(path for pattern in patterns for path in target.glob(pattern)):
        if path.relative_to(target).as_posix() not in copied:
            path.unlink()
            print(f"removed {path.relative_to(target)} (--add keeps what is there)")
    return target


def _adds(committed_path: Path, added: Path) -> bool:
    """Whether docs/results lacks a file or, of a summary or a sweep's table, some numbers. A table
    of another config gives way, as nothing reads it."""
    if not committed_path.exists():
        return True
    before, after = committed_path.read_bytes(), added.read_bytes()
    if added.name == "trials.csv":
        before, after = before.splitlines(), after.splitlines()
        config, other = (rows[-1].partition(b",")[0] for rows in (before, after))
        return config != other or len(after) > len(before)
    if added.name == "summary.json":
        return json.loads(after)["mean"].keys() > json.loads(before)["mean"].keys()
    return False


def main():
    workdir = Path(cli.require(WORKDIR))
    if not (workdir / "claims.json").exists():
        raise ConfigError(f"--workdir={workdir}: no claims.json; compgen-jax figures writes it")
    target = take(workdir, ADD.value)
    pages.write()
    print(f"wrote {target.relative_to(committed.ROOT)}")


if __name__ == "__main__":
    cli.run(main)
