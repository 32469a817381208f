"""Takes the results of a finished `figures.make` into the documentation.

    python -m figures.results --workdir=runs/quick [--add]

Copies claims.json, the pictures with their digests and every run's summary to docs/results/SCALE,
and writes all pages that are made of these (`figures.pages`). What is there already is replaced or,
if DIR lacks it, removed. With --add it stays, and only what it lacks is added: so results can grow
run by run, on several machines. A verdict stays only while its criterion is the same, and a picture
while what draws it is.
"""

import json
import re
from pathlib import Path

import numpy as np
from absl import flags

from compgen_jax import cli
from compgen_jax.claims import READINGS, from_rows, possible, rows
from compgen_jax.config import ConfigError
from compgen_jax.papers import robustness
from compgen_jax.papers.paper import SCALES
from compgen_jax.runs import directory

from . import committed, digests, make, pages, report

WORKDIR = cli.define_workdir()
ADD = flags.DEFINE_bool("add", False, "Keep what is there, and add what it lacks.")


def with_added(before: list[dict], added: list[dict]) -> list[dict]:
    """Judged claims and those of other runs, in order.

    A claim that both have keeps its first verdict: none is drawn a second time. It gives way if its
    criterion has changed since, if it lacks a number that the added one has, as a run to compare
    with was not at hand, or if both have the same numbers, as the added one may say more of them.
    """
    by_sentence = {_sentence(claim): claim for claim in before}
    order = list(by_sentence)
    shared = [order.index(_sentence(one)) for one in added if _sentence(one) in by_sentence]
    place = min(shared, default=len(order))
    for claim in added:
        sentence = _sentence(claim)
        if sentence not in by_sentence:
            order.insert(place, sentence)
        if sentence not in by_sentence or _gives_way(by_sentence[sentence], claim):
            by_sentence[sentence] = claim
        place = order.index(sentence) + 1
    return sorted((by_sentence[sentence] for sentence in order), key=_place)  # stable


def _gives_way(before: dict, added: dict) -> bool:
    asked, newly = _asked(before), _asked(added)
    if asked == newly:
        return _known(added) > _known(before) or _same_numbers(before, added)
    # where fewer networks are at hand, a claim over depths, say, has some of its conditions alone
    return not newly < asked


def _same_numbers(before: dict, added: dict) -> bool:
    """Whether all conditions have the same values and intervals, up to rounding."""
    first, second = (
        [
            (np.nan if number is None else number)
            for _, _, one in _conditions(claim)
            for number in (one["value"], *one["ci95"])
        ]
        for claim in (before, added)
    )
    return np.allclose(first, second, rtol=1e-6, atol=1e-9, equal_nan=True)


def _asked(claim: dict) -> set:
    """The criteria of both readings, condition by condition."""
    return {(reading, name, one["must be"]) for reading, name, one in _conditions(claim)}


def _known(claim: dict) -> set:
    """The conditions that are measured."""
    conditions = _conditions(claim)
    return {(reading, name) for reading, name, one in conditions if one["value"] is not None}


def _conditions(claim: dict) -> list[tuple]:
    """(reading, name, number with its bound) of every condition."""
    return [(name, *each) for name in READINGS for each in claim[name]["conditions"].items()]


def still_judged(before: list[dict]) -> list[dict]:
    """Those judged claims that a paper still makes, by the criterion that it still has, as far as
    that can be told without its runs."""
    asked = [one for paper in committed.PAPERS for claim in paper.claims for one in possible(claim)]
    return [row for row in before if any(_is_asked(row, *one) for one in asked)]


def _is_asked(row: dict, name: str, statement: str, criteria: dict) -> bool:
    same = (row["claim"], row["statement"]) == (name, statement)
    return same and all(row[reading]["criterion"] == text for reading, text in criteria.items())


def _sentence(claim: dict) -> tuple:
    return claim["claim"], claim["code"], claim["statement"]


def _place(claim: dict) -> tuple:
    """Papers in order, then 'C2' before 'C10' and 'S1a' before 'S1b'."""
    letter, number, part = re.fullmatch(r"(\w)(\d+)(\w*)", claim["claim"]).groups()
    return "".join(paper.letters for paper in committed.PAPERS).index(letter), int(number), part


def take(workdir: Path, add: bool) -> Path:
    """Takes what was run in `workdir` instead of what is in docs/results or, to `add`, beside it.
    Returns the folder in docs/results."""
    scale = (workdir / "scale").read_text().strip()
    target = committed.RESULTS / scale
    judged = from_rows(json.loads((workdir / "claims.json").read_text()))
    judged = with_added(still_judged(committed.claims(scale)), judged) if add else judged
    directory.write_json(target / "claims.json", rows(judged, scale))
    copied = {}
    for one in committed.configs(scale).values():
        name, path = f"runs/{one.name}.json", make.run_directory(workdir, one) / "summary.json"
        if one.is_sweep:  # its table is small, and another machine goes on from it
            name, path = f"sweeps/{one.name}.csv", path.with_name("trials.csv")
        if path.exists():
            copied[name] = path
    for name, path in copied.items():
        _take(path, target, name, not add)
    if (workdir / "settings.json").exists() or (add and (target / "settings.json").exists()):
        copied["settings.json"] = workdir / "settings.json"
        _take_settings(workdir, scale, add)
    changes = committed.changes_since(scale)  # of runs that were taken just now as well
    pictures = {f"figures/{path.name}": path for path in (workdir / "figures").glob("*.png")
                if path.stem in committed.FIGURES}  # fmt: skip
    lines, made = (digests.read(one / "figures") for one in (target, workdir))
    for name, path in pictures.items():
        if _take(path, target, name, not add or bool(changes.get(path.stem))):
            lines[path.stem] = made.get(path.stem)
    copied |= pictures
    patterns = "figures/*.png", "runs/*.json", "sweeps/*.csv", "settings.json"
    there = [path for pattern in patterns for path in target.glob(pattern)]
    for path in () if add else sorted(there):
        if path.relative_to(target).as_posix() not in copied:
            path.unlink()
            print(f"removed {path.relative_to(target)} (--add keeps what is there)")
    digests.write(target / "figures", lines)
    _draw_settings(scale)
    for each in [each for each in SCALES if (committed.RESULTS / each / "claims.json").exists()]:
        quick = committed.settings("quick") if each == "paper" else []
        judged = robustness.with_settings(committed.claims(each), committed.settings(each), quick)
        directory.write_json(committed.RESULTS / each / "claims.json", rows(judged, each))
    directory.write_text(target / "RESULTS.md", committed.page(scale))
    return target


def _take_settings(workdir: Path, scale: str, add: bool):
    """The verdicts at settings. To `add`, those of other claims and settings stay; here as well, no
    verdict is drawn a second time. Those at the base are of claims.json."""
    judged, there = committed.claims(scale), committed.settings(scale) if add else []
    rows = robustness.merged([*there, *report.settings(workdir, judged)], there)
    rows = robustness.merged(rows, robustness.bases_of(rows, judged))
    directory.write_json(committed.RESULTS / scale / "settings.json", rows)


def _draw_settings(scale: str):
    """Draws the picture of settings.json again, if it is there and older than these."""
    rows, target = committed.settings(scale), committed.RESULTS / scale
    changes = committed.changes_since(scale) if rows else {}
    for figure in committed.FIGURES.values():
        if figure.of_settings and changes.get(figure.name):
            summaries = {"settings": target / "settings.json"}
            make.save(target / "figures", figure, figure.draw(rows), summaries, formats=("png",))


def _take(path: Path, target: Path, name: str, replace: bool) -> bool:
    """Copies a file if it is to replace what is there, or adds to it; whether it was copied."""
    copy = replace or _adds(target / name, path)
    if copy:
        directory.write_bytes(target / name, path.read_bytes())
    return copy


def _adds(there: Path, added: Path) -> bool:
    """Whether docs/results lacks a file or, of a summary or a sweep's table, some numbers. A table
    of another config gives way, as nothing reads it."""
    if not there.exists():
        return True
    if added.name == "trials.csv":
        before, after = (path.read_text().splitlines() for path in (there, added))
        config, other = (rows[-1].partition(",")[0] for rows in (before, after))
        return config != other or len(after) > len(before)
    if added.name != "summary.json":
        return False
    before, after = (json.loads(path.read_text())["mean"].keys() for path in (there, added))
    return after > before


def main():
    workdir = Path(cli.require(WORKDIR))
    if not (workdir / "claims.json").exists():
        raise ConfigError(f"--workdir={workdir}: no claims.json; compgen-jax figures writes it")
    target = take(workdir, ADD.value)
    pages.write()
    print(f"wrote {target.relative_to(committed.ROOT)}")


if __name__ == "__main__":
    cli.run(main)
