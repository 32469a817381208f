"""Takes the results of a finished `figures.make` into the documentation.

    python -m figures.results --workdir=runs/quick [--add]

Copies claims.json, the pictures and every run's summary to docs/results/SCALE, and writes its
RESULTS.md, the README's table of verdicts, docs/gallery.md and parts of docs/criteria.md,
docs/league.md and docs/sweeps.md from what is there. What is there already is replaced
or, if DIR lacks it, removed. With --add it stays, and what it lacks is added: so results of days
grow in parts, on several machines, or where the earlier networks are no longer at hand.
"""

import inspect
import json
import re
from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.config import ConfigError, fingerprint
from compgen_jax.metrics import text
from compgen_jax.old_claims import READINGS, entries, rows
from compgen_jax.runs import directory
from figures import report
from figures.forced_rendering import scaling
from figures.forced_rendering.registry import PAPER as FORCED_RENDERING
from figures.league import page as league
from figures.league.registry import PAPER as LEAGUE
from figures.league.registry import is_match
from figures.scale.registry import PAPER as SCALE
from figures.studies import Summary, committed

PAPERS = FORCED_RENDERING, SCALE, LEAGUE
FIGURES = {name: figure for paper in PAPERS for name, figure in paper.figures.items()}
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
WORKDIR = cli.define_workdir()
ADD = flags.DEFINE_bool("add", False, "Keep what is there, and add what it lacks.")
MARKS = "<!-- verdicts: python -m figures.results -->", "<!-- end of verdicts -->"
SWEEPS = ROOT / "docs" / "sweeps.md"
EXPONENTS = "<!-- exponents: python -m figures.results -->", "<!-- end of exponents -->"
CRITERIA = ROOT / "docs" / "criteria.md"
ASKED = "<!-- asked: python -m figures.results -->", "<!-- end of asked -->"
MOST_SHOWN = 7  # conditions of a reading
SYMBOLS = {"reproduced": "✓", "contradicted": "✗", "inconclusive": "–"}
SCALES = "quick", "paper"
GALLERY = """# Gallery

Every figure of `figures.make`, quick beside the paper's size as far as that was run; a figure's
name is what `--only` takes, and those marked † are drawn only where it names them. The first
paper's show networks at the end of training, tables the median of its last five evaluations.
Written by `python -m figures.results`."""


def claims(scale: str) -> list[dict]:
    """The claims of claims.json of docs/results, [] for a scale without."""
    path = RESULTS / scale / "claims.json"
    return entries(json.loads(path.read_text())) if path.exists() else []


def runs(scale: str) -> dict[str, Summary]:
    """The runs whose summaries are in docs/results, by name."""
    networks = [network for paper in PAPERS for network in paper.networks(scale)]
    return committed(RESULTS / scale / "runs", networks)


def drawn(scale: str) -> list[str]:
    """The names of the figures that are in docs/results."""
    return sorted(path.stem for path in (RESULTS / scale / "figures").glob("*.png"))


def page(scale: str) -> str:
    """RESULTS.md of what else is in docs/results; a sweep is one that was run if it is drawn."""
    swept = {FIGURES[name].sweep for name in drawn(scale)}
    return report.page(scale, PAPERS, runs(scale), swept, claims(scale), drawn(scale))


def with_added(before: list[dict], added: list[dict]) -> list[dict]:
    """Claims and those of other runs, in order. Of one that both have, the first holds: a verdict
    is not drawn again. It gives way where it lacks a number, as a network to compare with was not
    at hand, that the added has."""
    found = {_sentence(claim): claim for claim in before}
    order = list(found)
    shared = [order.index(_sentence(claim)) for claim in added if _sentence(claim) in found]
    place = min(shared, default=len(order))
    for claim in added:
        sentence = _sentence(claim)
        if sentence not in found:
            order.insert(place, sentence)
        if sentence not in found or _known(claim) > _known(found[sentence]):
            found[sentence] = claim
        place = order.index(sentence) + 1
    return sorted((found[sentence] for sentence in order), key=_place)  # stable


def _sentence(claim: dict) -> tuple:
    return claim["claim"], claim["code"], claim["statement"]


def _place(claim: dict) -> tuple:
    """Papers in order, then 'C2' before 'C10' and 'S1a' before 'S1b'."""
    letter, number, part = re.fullmatch(r"(\w)(\d+)(\w*)", claim["claim"]).groups()
    return "".join(paper.letters for paper in PAPERS).index(letter), int(number), part


def _known(claim: dict) -> set:
    """The conditions that are measured."""
    return {
        (reading, name)
        for reading in READINGS
        for name, number in claim[reading]["conditions"].items()
        if number["value"] is not None
    }


def table(by_scale: dict[str, list[dict]]) -> list[str]:
    """The README's: a row for each claim, and for each scale and reading a symbol for each code; a
    dot, or nothing, for what was not run."""
    columns = [(scale, reading) for scale in by_scale for reading in READINGS]
    rows = {}
    for scale, claims in by_scale.items():
        for claim in claims:
            statement = re.sub(r"^with the \w+ code, ", "", claim["statement"])
            # statements name numbers of their scale
            row = rows.setdefault((claim["claim"], re.sub(r"\d+", "#", statement)), {})
            row.setdefault("statement", statement)
            for reading in READINGS:
                symbol = SYMBOLS[claim[reading]["verdict"]]
                row.setdefault(claim["code"], {})[scale, reading] = symbol
    titles = [f"{scale}: {reading.replace('_', ' ')}" for scale, reading in columns]
    lines = [
        f"| claim | code | statement | {' | '.join(titles)} |",
        "|---" * (3 + len(titles)) + "|",
    ]
    for (name, _), row in rows.items():
        codes = [code for code in row if code != "statement"]
        cells = [" / ".join(row[code].get(column, "·") for code in codes) for column in columns]
        cells = [cell if set(cell) - set("· /") else "" for cell in cells]
        head = name, " / ".join(codes), row["statement"]
        lines.append(f"| {' | '.join([*head, *cells])} |")
    return lines


def with_table(page: str, by_scale: dict[str, list[dict]]) -> str:
    """The page with the table between its two marks."""
    return text.between(page, MARKS, table(by_scale))


def with_exponents(page: str, by_scale: dict[str, list[dict]]) -> str:
    """The page with a table of exponents for each scale that has them between its two marks."""
    tables = {scale: scaling.table(claims) for scale, claims in by_scale.items()}
    lines = [
        line
        for scale, table in tables.items()
        if table
        for line in (f"At {scale} scale:", "", *table, "")
    ]
    return text.between(page, EXPONENTS, lines[:-1])


def with_asked(page: str, claims: list[dict]) -> str:
    """The page with what each claim asks between its two marks, once where codes ask the same."""
    rows = {}
    for claim in claims:
        stated, stricter = (_conditions(claim[reading]) for reading in READINGS)
        rows[claim["claim"], stated, "the same" if stated == stricter else stricter] = None
    lines = ["| claim | as stated | stricter |", "|---|---|---|"]
    return text.between(page, ASKED, lines + [f"| {' | '.join(row)} |" for row in rows])


def _conditions(reading: dict) -> str:
    shown = [f"{name} {one['must be']}" for name, one in reading["conditions"].items()]
    if len(shown) > MOST_SHOWN:
        shown = [*shown[:2], f"and {len(shown) - 2} more"]
    return "; ".join(shown)


def finished(workdir: Path, scale: str) -> dict[str, Path]:
    """The run of every network of today's, by its name; not those of a config it once had."""
    configs = [network.config for paper in PAPERS for network in paper.networks(scale)]
    runs = {c.name: workdir / "trained" / f"{c.name}-{fingerprint(c)}" for c in configs}
    return {name: run for name, run in runs.items() if (run / "summary.json").exists()}


def gallery() -> str:
    """The page of all figures that are committed, at either scale, with what each shows: the
    docstring of the function that draws it."""
    parts = [GALLERY]
    there = {scale: drawn(scale) for scale in SCALES}
    for name, figure in FIGURES.items():
        shown = {scale: f"results/{scale}/figures/{name}.png" for scale in SCALES
                 if name in there[scale]}  # fmt: skip
        if not shown:
            continue
        caption = " ".join(inspect.getdoc(getattr(figure.draw, "func", figure.draw)).split())
        cells = [f"![{name}, {scale}]({path})" for scale, path in shown.items()]
        asked = " †" if figure.sweep or figure.asked else ""
        parts += [f"## {name}{asked}", f"*{caption.replace('*', '')}*",
                  "\n".join([f"| {' | '.join(shown)} |", "|---" * len(shown) + "|",
                             f"| {' | '.join(cells)} |"])]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def main():
    workdir = Path(cli.require(WORKDIR))
    if not (workdir / "claims.json").exists():
        raise ConfigError(f"--workdir={workdir}: holds no claims.json; figures.make writes it")
    target = take(workdir, ADD.value)
    write_pages()
    print(f"wrote {target.relative_to(ROOT)}")


def take(workdir: Path, add: bool) -> Path:
    """Takes over what was run in `workdir` instead of what is there or, to `add`, beside it; the
    folder in docs/results."""
    scale = (workdir / "scale").read_text().strip()
    target = RESULTS / scale
    measured = entries(json.loads((workdir / "claims.json").read_text()))
    measured = with_added(claims(scale), measured) if add else measured
    directory.write_json(target / "claims.json", rows(measured, scale))
    copied = {f"figures/{path.name}": path for path in (workdir / "figures").glob("*.png")}
    copied |= {
        f"runs/{n}.json": run / "summary.json" for n, run in finished(workdir, scale).items()
    }
    for name, path in copied.items():
        if not (add and (target / name).exists()):
            directory.write_bytes(target / name, path.read_bytes())
    for path in () if add else sorted([*target.glob("figures/*.png"), *target.glob("runs/*.json")]):
        if path.relative_to(target).as_posix() not in copied:
            path.unlink()
            print(f"removed {path.relative_to(target)} (--add keeps what is there)")
    directory.write_text(target / "RESULTS.md", page(scale))
    return target


def write_pages():
    """The README and the pages of docs, from what is in docs/results."""
    readme = ROOT / "README.md"
    by_scale = {scale: claims(scale) for scale in SCALES}
    directory.write_text(readme, with_table(readme.read_text(), by_scale))
    directory.write_text(SWEEPS, with_exponents(SWEEPS.read_text(), by_scale))
    directory.write_text(CRITERIA, with_asked(CRITERIA.read_text(), by_scale["quick"]))
    directory.write_text(ROOT / "docs" / "gallery.md", gallery())
    if played := [run for run in runs("quick").values() if is_match(run.role)]:
        told = league.with_league(league.PAGE.read_text(), played, by_scale["quick"])
        directory.write_text(league.PAGE, told)


if __name__ == "__main__":
    cli.run(main)
