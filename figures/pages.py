"""The generated pages of the documentation, from docs/results and from the code.

    python -m figures.pages [--check]

A page is generated whole, from its text in templates/, or written by a person;
`tests/test_pages.py` compares the numbers of these with the committed ones. With --check nothing is
written: a page that differs is named, and the command fails.
"""

import itertools
import re
import sys
from pathlib import Path

import jinja2
import numpy as np
from absl import flags

from compgen_jax import claims, cli
from compgen_jax.claims import BASE
from compgen_jax.metrics import text
from compgen_jax.papers.variations import SCALES
from compgen_jax.presets import PAPERS as PRESETS_OF_PAPERS
from compgen_jax.runs import directory
from compgen_jax.training import loop

from . import committed, fields, holdout_atlas, quoted
from .explorer import page as explorer
from .papers import FIGURES, PAPERS, TABLES
from .playground import playground_page
from .quoted import SYMBOLS
from .tables import table

HERE, DOCS = Path(__file__).parent, committed.ROOT / "docs"
CHECK = flags.DEFINE_bool("check", False, "Write nothing, and fail if a page is not up to date.")
ENVIRONMENT = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
# a heading of one word, and what follows it up to the next
SECTION = re.compile(r"^##+ (\S+)\n(.*?)(?=^##+ \S+\n|\Z)", re.M | re.S)
SIZES = {"quick": "quick", "paper": "papers' size"}
VERDICTS = "claim", "case", "sentence", "verdict", "its first number"
PLAIN = quoted.read("cases")


def pages() -> dict[Path, str]:
    """What every generated page should hold."""
    rows = {scale: committed.rows(scale) for scale in SCALES}
    parts = {
        "counts": counts(rows),
        "claims": verdicts(rows),
        "asked": criteria(rows["quick"]),
        "figures": gallery(),
        "sizes": SIZES,
        "panels": quoted.panels(rows),
        "fields": fields.groups(),
        "public": fields.public,
        "surface": fields.surface,
        "families": fields.families,
        "presets": PRESETS_OF_PAPERS,
        "atlas": holdout_atlas.lines(),
    }
    pages, folder = {}, HERE / "templates"
    for path in sorted(folder.rglob("*.md")):
        template = ENVIRONMENT.from_string(path.read_text())
        pages[DOCS / path.relative_to(folder)] = template.render(parts)
    for scale in SCALES:
        configs, drawn = committed.configs(scale), committed.drawn(scale)
        names = {name for figure in drawn for name in FIGURES[figure].shows(configs, scale)}
        ran = {name: None for name in names if configs[name].is_sweep} | committed.runs(scale)
        page = results(scale, PAPERS, ran, [], drawn)  # claims.md has the verdicts
        pages[DOCS / "results" / scale / "RESULTS.md"] = page
    path = DOCS / "results/quick/explorer.html"
    pages[path] = explorer.with_verdicts(path.read_text(), rows["quick"])
    pages[DOCS / "playground.html"] = playground_page.text()
    return pages


# --- verdicts ----------------------------------------------------------------------------------


def counts(rows: dict[str, list[dict]]) -> dict[str, list[int]]:
    """How many claims, at their base settings, have which verdict, for each paper and scale."""
    counts = {}
    for paper, (scale, of_scale) in itertools.product(PAPERS, rows.items()):
        names = {claim.name for claim in paper.claims}
        verdicts = [
            row["verdict"] for row in of_scale if row["claim"] in names and row["setting"] == BASE
        ]
        if verdicts:
            title = f"{paper.title}, {SIZES[scale]}"
            counts[title] = [verdicts.count(verdict) for verdict in SYMBOLS]
    return counts


def verdicts(rows: dict[str, list[dict]]) -> list[str]:
    """For each claim its sentence, a row for each case and, where a paper's own networks or text
    have other settings, for these; then the prose of the paper's claims.md."""
    lines, by_claim = [], {}
    for row in itertools.chain(*rows.values()):
        by_claim.setdefault(row["claim"], []).append(row)
    for paper in PAPERS:
        prose, lacking = {}, []
        if paper.folder is not None:
            prose = dict(SECTION.findall((paper.folder / "claims.md").read_text()))
        lines += ["", f"## {paper.title}"] if paper.claims else []
        for claim in paper.claims:
            if claim.name in by_claim:
                number = ", ".join(filter(None, (claim.name, claim.figure)))
                number += "; after" if claim.after else ""
                lines += ["", f"### {general(claim)} ({number})", "", *_cases(claim, by_claim)]
                if claim.name in prose:
                    lines += ["", *prose[claim.name].strip().splitlines()]
            else:
                lacking.append(f"- {general(claim)} ({claim.name}).")
        lines += ["", f"### Not run of {paper.title}", "", *lacking] if lacking else []
    return lines[1:]


def _cases(claim: claims.Claim, rows: dict[str, list[dict]]) -> list[str]:
    """A table of a claim: a line for each case and setting, its numbers at each scale. The number
    is that of the first condition that a claim without a dot does not have as well; cells
    say what of its name is not in the head."""
    settings, by_case = {BASE} | {case.get("setting") for case in claim.cases}, {}
    main = claim.name.partition(".")[0]
    known = {name for row in rows.get(main, ()) for name in row["conditions"]}
    for row in (row for row in rows[claim.name] if row["setting"] in settings):
        case = row["case"] if row["setting"] == BASE else f"{row['case']}, {row['setting']}"
        by_case.setdefault(case, {})[row["scale"]] = row
    scales = [scale for scale in SCALES if any(scale in by_scale for by_scale in by_case.values())]
    lines, head = [], []
    for case, by_scale in by_case.items():
        cells = {}
        for scale, row in by_scale.items():
            added = [name for name in row["conditions"] if main == claim.name or name not in known]
            name = next(iter(added or row["conditions"]))
            words = [
                *name.removesuffix(", post hoc").split(", "),
                row["conditions"][name]["must be"],
            ]
            head = head or words
            others = ", ".join(word for word in words if word not in head)
            cell = _cell(row, name, rows[claim.name])
            cells[scale] = f"{cell}; {others}" if others else cell
        networks = dict.fromkeys(row["network"] for row in by_scale.values())
        lines.append((plain(case), *(cells.get(s, "") for s in scales), ", ".join(networks)))
    return table((", ".join(head), *(SIZES[scale] for scale in scales), "network"), lines)


def _cell(row: dict, name: str, rows: list[dict]) -> str:
    """A condition's number with its sign, the verdict where that is another, the reason where that
    is another number, whether it is near its bound, and the verdicts at other settings among the
    rows."""
    number = row["conditions"][name]
    sign, verdict = quoted.SIGNS[quoted.holds(row, number)], SYMBOLS[row["verdict"]]
    value = f"{text.with_interval(number)} **{sign}**"
    verdicts = {
        other["setting"]: SYMBOLS[other["verdict"]]
        for other in rows
        if committed.key_of(other)[:3] == committed.key_of(row)[:3]
    }
    reason = "" if name in row["reason"] else row["reason"]
    near = "near its bound" if name in claims.near_bounds(row) else ""
    parts = value, f"verdict **{verdict}**" if sign != verdict else "", reason, near
    settings = quoted.at_settings(verdicts) if row["setting"] == BASE else ""
    return "; ".join(filter(None, (*parts, settings)))


def general(claim: claims.Claim) -> str:
    """The sentence with the name of what differs where its cases differ."""
    first = dict(claim.cases[0])
    differ = {name for case in claim.cases for name in case if case[name] != first.get(name)}
    return claim.statement(first | {name: f"[{name}]" for name in differ})


def plain(case: str) -> str:
    """A case in the words of the pages."""
    return re.sub(rf"\b({'|'.join(PLAIN)})\b", lambda match: PLAIN[match[0]], case)


def criteria(rows: list[dict]) -> dict[str, dict]:
    """The criterion of each judged claim, once for cases that ask the same."""
    by_claim = {}
    for row in rows:
        if row["setting"] == BASE:
            by_claim.setdefault(row["claim"], {})[row["criterion"]] = None
    return by_claim


# --- results, presets, gallery -----------------------------------------------------------------


def results(scale: str, papers, runs: dict, rows: list[dict], drawn: list[str]) -> str:
    """RESULTS.md: the numbers and verdicts of one scale.

    Args: runs: by name, what ran (a sweep's value is not looked at); rows: of claims.json; drawn:
    names of figures.
    """
    base, sections = [row for row in rows if row["setting"] == BASE], []
    measured = {
        (row["claim"], name, number["must be"], number["value"], *number["ci95"])
        for row in base
        for name, number in row["conditions"].items()
        if np.isfinite(np.array(number["ci95"], float)).all()  # None is NaN
    }
    verdicts = [
        (
            row["claim"],
            row["case"],
            row["statement"],
            SYMBOLS[row["verdict"]],
            _cell(row, next(iter(row["conditions"])), rows),
        )
        for row in base
    ]
    for paper in papers:
        configs = paper.runs(scale)
        ran = {n: runs[n] for n, config in configs.items() if n in runs and not config.is_sweep}
        errors = TABLES[paper.title](ran) if paper.title in TABLES and ran else []
        is_judged = {row["claim"] for row in base} & {claim.name for claim in paper.claims}
        sections.append((paper.title, errors, paper.note if is_judged else ""))
    return ENVIRONMENT.from_string((HERE / "RESULTS.md.jinja").read_text()).render(
        scale=scale,
        drawn=drawn,
        conditions=len(measured),
        verdicts=verdicts and table(VERDICTS, verdicts),
        sections=sections,
        missing=not_run(scale, papers, runs),
    )


def not_run(scale: str, papers, runs: dict) -> list[tuple]:
    """Names of what was not trained, with its cost: optimiser steps of all seeds, and the time of a
    preset. A paper of which nothing ran is one row, as are networks of the same cost whose names
    differ in numbers alone."""
    takes = {
        name: preset.takes if "FLOPs" in preset.takes else f"{preset.takes} on 2 cores"  # or a GPU
        for group in PRESETS_OF_PAPERS.values()
        for name, preset in group.items()
        if preset.takes
    }
    costs = {}
    for paper in papers:
        configs = paper.runs(scale)
        missing = [config for name, config in configs.items() if name not in runs]
        steps = {
            config.name: len(config.training.seeds)
            * (config.training.steps or loop.schedule_of(config, config.task.make()).total)
            for config in missing
            if not config.is_sweep
        }
        if len(missing) == len(configs) > 1 and len(papers) > 1:
            steps = {f"all {len(steps)} networks of {paper.title}": sum(steps.values())}
        costs |= {name: f"{count:,} steps" for name, count in steps.items()}
        costs |= {config.name: "" for config in missing if config.is_sweep}
    groups = {}
    for name, cost in costs.items():
        cost = ", ".join(filter(None, (cost, takes.get(name)))) or "a sweep"
        groups.setdefault((re.sub(r"\d+", "", name), cost), []).append(name)
    return [(names, cost) for (_, cost), names in groups.items()]


def gallery() -> list[tuple]:
    """All figures in docs/results: name, scales and caption, in the order of captions.md."""
    drawn, figures = {scale: committed.drawn(scale) for scale in SCALES}, []
    for name, caption in SECTION.findall((HERE / "captions.md").read_text()):
        scales = [scale for scale in SCALES if name in drawn[scale]]
        caption = " ".join(caption.split()) + ("" if FIGURES[name].by_default else " †")
        figures += [(name, scales, caption)] if scales else []
    return figures


def write(check: bool = False) -> bool:
    """Writes every page that is not up to date or, to `check`, names it; whether there was any."""
    made = pages().items()
    stale = {path: page for path, page in made if not path.exists() or path.read_text() != page}
    for path, page in stale.items():
        if not check:
            directory.write_text(path, page)
        print(f"{'stale:' if check else 'wrote'} {path.relative_to(committed.ROOT)}")
    return bool(stale)


def main():
    if write(CHECK.value) and CHECK.value:
        sys.exit("python -m figures.pages writes what the code and docs/results say")


if __name__ == "__main__":
    cli.run(main)
