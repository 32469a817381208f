"""The generated parts of the documentation.

    python -m figures.pages [--check] [--criteria]

Writes the README's table of verdicts, RESULTS.md of both scales, docs/gallery.md, docs/presets.md
and parts of docs/config.md, criteria.md, league.md and sweeps.md, all from docs/results and from
the code. The tables of docs/criteria.md take ten minutes and are computed only with --criteria.
With --check nothing is written; a page that differs is named, and the command fails.
"""

import inspect
import re
import sys
from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.claims import READINGS
from compgen_jax.metrics import text
from compgen_jax.papers.paper import SCALES
from compgen_jax.runs import directory

from . import criteria, fields, presets, results
from .forced_rendering import tables
from .league import page as league
from .papers import FIGURES

ROOT, DOCS = results.ROOT, results.ROOT / "docs"
CHECK = flags.DEFINE_bool("check", False, "Write nothing, and fail if a page is not up to date.")
CRITERIA = flags.DEFINE_bool("criteria", False, "Compute the tables of docs/criteria.md, too.")
SYMBOLS = {"reproduced": "✓", "contradicted": "✗", "inconclusive": "–"}
MOST_SHOWN = 7  # conditions of a reading
GALLERY = """# Gallery

Every figure of `figures.make`, quick beside the paper's size if that was run. A figure's name is
what `--only` takes; those marked † are drawn only if it names them. The first paper's figures show
networks at the end of training; tables have the median of the last five evaluations.
`python -m figures.pages` writes this page."""


def pages(with_criteria: bool = False) -> dict[Path, str]:
    """What every generated page should hold; the tables of criteria as they are unless asked."""
    claims = {scale: results.claims(scale) for scale in SCALES}
    made = {DOCS / "results" / scale / "RESULTS.md": results.page(scale) for scale in SCALES}
    made |= {DOCS / "gallery.md": gallery(), DOCS / "presets.md": presets.page()}
    parts = {
        ROOT / "README.md": {"verdicts": verdicts(claims)},
        DOCS / "config.md": {"fields": fields.lines()},
        DOCS / "criteria.md": {"asked": asked(claims["quick"])}
        | (criteria.parts() if with_criteria else {}),
        DOCS / "league.md": {"league": league.lines(results.runs("quick"), claims["quick"])},
        DOCS / "sweeps.md": {"exponents": exponents(claims)},
    }
    for path, by_name in parts.items():
        page = path.read_text()
        for name, lines in by_name.items():
            marks = f"<!-- {name}: python -m figures.pages -->", f"<!-- end of {name} -->"
            if marks[0] not in page:
                raise ValueError(f"{path.name} lacks its mark {marks[0]}")
            page = text.between(page, marks, lines)
        made[path] = page
    return made


def verdicts(claims_by_scale: dict[str, list[dict]]) -> list[str]:
    """The README's table: a row for each claim; for each scale and reading a symbol for each code;
    a dot, or nothing, for what was not run."""
    columns = [(scale, reading) for scale in claims_by_scale for reading in READINGS]
    table = {}
    for scale, claims in claims_by_scale.items():
        for claim in claims:
            statement = re.sub(r"^with the \w+ code, ", "", claim["statement"])
            # statements name numbers of their scale
            row = table.setdefault((claim["claim"], re.sub(r"\d+", "#", statement)), {})
            row.setdefault("statement", statement)
            for reading in READINGS:
                symbol = SYMBOLS[claim[reading]["verdict"]]
                row.setdefault(claim["code"], {})[scale, reading] = symbol
    titles = [f"{scale}: {reading.replace('_', ' ')}" for scale, reading in columns]
    lines = [
        f"| claim | code | statement | {' | '.join(titles)} |",
        "|---" * (3 + len(titles)) + "|",
    ]
    for (name, _), row in table.items():
        codes = [code for code in row if code != "statement"]
        cells = [" / ".join(row[code].get(column, "·") for code in codes) for column in columns]
        cells = [cell if set(cell) - set("· /") else "" for cell in cells]
        head = name, " / ".join(codes), row["statement"]
        lines.append(f"| {' | '.join([*head, *cells])} |")
    return lines


def asked(claims: list[dict]) -> list[str]:
    """What each claim asks, once for codes that ask the same."""
    table = {}
    for claim in claims:
        stated, stricter = (_conditions(claim[reading]) for reading in READINGS)
        table[claim["claim"], stated, "the same" if stated == stricter else stricter] = None
    lines = [f"| {' | '.join(row)} |" for row in table]
    return ["| claim | as stated | stricter |", "|---|---|---|", *lines]


def _conditions(reading: dict) -> str:
    shown = [f"{name} {one['must be']}" for name, one in reading["conditions"].items()]
    if len(shown) > MOST_SHOWN:
        shown = [*shown[:2], f"and {len(shown) - 2} more"]
    return "; ".join(shown)


def exponents(claims_by_scale: dict[str, list[dict]]) -> list[str]:
    """A table of exponents for each scale that has them."""
    lines = []
    for scale, claims in claims_by_scale.items():
        if table := tables.exponents(claims):
            lines += ["", f"At {scale} scale:", "", *table]
    return lines[1:]


def gallery() -> str:
    """All figures in docs/results, at either scale, with their captions."""
    parts, there = [GALLERY], {scale: results.drawn(scale) for scale in SCALES}
    for name, figure in FIGURES.items():
        shown = {scale: f"results/{scale}/figures/{name}.png" for scale in SCALES
                 if name in there[scale]}  # fmt: skip
        if not shown:
            continue
        caption = " ".join(inspect.getdoc(figure.draw).split())
        cells = [f"![{name}, {scale}]({path})" for scale, path in shown.items()]
        mark = "" if figure.by_default else " †"
        parts += [f"## {name}{mark}", f"*{caption.replace('*', '')}*",
                  "\n".join([f"| {' | '.join(shown)} |", "|---" * len(shown) + "|",
                             f"| {' | '.join(cells)} |"])]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def write(with_criteria: bool = False):
    """Writes every page that is not up to date."""
    for path, page in pages(with_criteria).items():
        if not path.exists() or path.read_text() != page:
            directory.write_text(path, page)
            print(f"wrote {path.relative_to(ROOT)}")


def main():
    if not CHECK.value:
        write(CRITERIA.value)
        return
    made = pages(CRITERIA.value)
    stale = [path for path, page in made.items() if path.read_text() != page]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not up to date", file=sys.stderr)
    if stale:
        sys.exit("python -m figures.pages writes what the code and docs/results say")


if __name__ == "__main__":
    cli.run(main)
