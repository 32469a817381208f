"""The generated parts of the documentation, from docs/results and from the code.

    python -m figures.pages [--check] [--criteria]

A page is written by a person; a part between two marks, `<!-- NAME: python -m figures.pages -->`
and `<!-- end of NAME -->`, is written here, and so are the numbers in README and findings
(`filled`). What docs/findings/criteria.md says of metrics on known maps and of intervals takes some
minutes and is computed only with --criteria. With --check nothing is written: a page that differs
is named, and the command fails.
"""

import inspect
import itertools
import re
import sys
from math import isfinite
from pathlib import Path

import pandas as pd
from absl import flags

from compgen_jax import claims, cli
from compgen_jax.claims import BASE
from compgen_jax.config import changed
from compgen_jax.metrics import text
from compgen_jax.papers.paper import Paper
from compgen_jax.papers.variations import SCALES
from compgen_jax.presets import PAPERS as PRESETS_OF_PAPERS
from compgen_jax.runs import directory
from compgen_jax.tasks import holdouts
from compgen_jax.training import loop

from . import committed, criteria, fields, panels, quoted
from .benchmark import benchmark_page as league
from .explorer import page as explorer
from .papers import FIGURES, PAPERS, TABLES
from .tables import table

ROOT, DOCS = committed.ROOT, committed.ROOT / "docs"
CAPTIONS = Path(__file__).with_name("captions.md")  # of the figures; without one, a docstring
CHECK = flags.DEFINE_bool("check", False, "Write nothing, and fail if a page is not up to date.")
CRITERIA = flags.DEFINE_bool("criteria", False, "Compute the slow tables of criteria.md, too.")
SIGNS = *quoted.SYMBOLS.values(), quoted.FAILS_HERE
AGAIN = {"yes": " again", "no": " once"}  # after a verdict that was asked at fresh seeds
SIZES = {"quick": "quick", "paper": "papers' size"}
PLAIN = {
    "onehot": "one-hot",
    "positional": "sines",
    "cos_sin": "angle",
    "donut": "square",
    "usual decoder": "convolutional decoder",
    "as_many_parameters": "as many parameters",
    "two_objects": "two objects",
    "fewshot": "16 examples in place of a code",
    "interval shuffle": "shuffled intervals",
    "non compositional": "a module never seen",
    "disconnected": "two groups that never meet",
    "unpopular": "some modules in one set each",
    "popular": "a few modules meet all others",
    "equal": "each module in equally many",
    "middle scale": "16 modules",
    "data": "8 modules",
}
NEAR = {  # whose shares rendered by distance are shown
    "bump_cnn": "convolutional decoder, bump code",
    "ramp_cnn": "the same, ramp code",
    "onehot_cnn": "the same, one-hot code",
    "positional_cnn": "the same, sines and cosines",
    "bump_cnn_stripes": "the same, bump code, single-factor images (stripes) added",
    "pixels_own_bump": "per pixel, own weights",
    "pixels_shared_bump": "per pixel, shared weights",
}
CHANCE = 0.025  # that a 95% interval lies wholly on one side of what it should cover
PRESETS = {name: one for presets in PRESETS_OF_PAPERS.values() for name, one in presets.items()}
GALLERY = """# Gallery

What does each figure show?

A figure's name is what `compgen-jax figures --only` takes; those marked † are drawn only if it
names them. The quick one stands above the one at the papers' size. The first paper's figures show
networks at the end of training; tables have the median of the last five evaluations. Pictures at
the papers' size were drawn earlier, with other colours and marks, as were fig4c and sprites_pairs:
their runs are not kept."""
PRESETS_PAGE = """# Presets

Which runs come with the package, how long do they take, and what came out?

`--config=NAME` takes a preset from any directory, `--config.KEY=VALUE` changes a field. Times are
of all seeds on 2 CPU cores, unless the row says otherwise. Results are means over seeds with 95%
intervals, cut at 0 and 1: the share of images *rendered* or, where that is not measured, the
accuracy that is named ([terms](../glossary.md)). Where training shows stripes, most images ID are
not among those shown.
`python -m figures.pages` writes this page."""


def pages(with_criteria: bool = False) -> dict[Path, str]:
    """What every generated page should hold; the slow tables as they are unless asked."""
    rows = {scale: committed.rows(scale) for scale in SCALES}
    made = {
        DOCS / "results" / scale / "RESULTS.md": results(
            scale, PAPERS, committed.ran(scale), rows[scale], committed.drawn(scale)
        )
        for scale in SCALES
    }
    by_key = quoted.by_key(rows)
    made |= {
        DOCS / "findings/gallery.md": gallery(),
        DOCS / "findings/papers.md": panels.page(by_key, committed.runs("paper")),
        DOCS / "reference/presets.md": presets(),
    }
    path = DOCS / "results/quick/explorer.html"
    made[path] = explorer.with_verdicts(path.read_text(), rows["quick"])
    known = {f"known answers, {one.title}": known_answers(one) for one in PAPERS if one.matrices}
    published = [(f"`{name}`", f"`{words}`") for name, words in holdouts.PUBLISHED.items()]
    parts = {
        DOCS / "findings/claims.md": {
            "counts": counts(rows),
            "at a glance": glance(PAPERS, rows),
            "claims": verdicts(PAPERS, rows),
        },
        DOCS / "findings/criteria.md": {"asked": asked(rows["quick"])}
        | known
        | (criteria.parts() if with_criteria else {}),
        DOCS / "findings/recombine.md": {"by distance": by_distance()},
        DOCS / "findings/league.md": {"league": league.lines(committed.runs("quick"))},
        DOCS / "reference/config.md": {"fields": fields.lines()},
        DOCS / "how_to/hold_out.md": {"published": table(("name", "holds out"), published)},
        DOCS / "limits.md": {
            f"not run, {scale}": not_run(scale, PAPERS, committed.ran(scale)) for scale in SCALES
        },
    }
    for path, by_name in parts.items():
        page = path.read_text()
        for name, lines in by_name.items():
            marks = f"<!-- {name}: python -m figures.pages -->", f"<!-- end of {name} -->"
            if marks[0] not in page:
                raise ValueError(f"{path.name} lacks its mark {marks[0]}")
            page = text.between(page, marks, lines)
        made[path] = page
    for path in sorted((DOCS / "findings").glob("*.md")):
        made[path] = filled(made.get(path) or path.read_text(), by_key)
    readme = ROOT / "README.md"
    made[readme] = with_panels(readme.read_text(), panels.readme_table(by_key))
    return made


def with_panels(readme: str, lines: list[str]) -> str:
    """README with these lines for its table of the papers' panels."""
    head = re.escape(lines[0])
    return re.sub(rf"^{head}\n(?:\|.*\n)*", lambda _: "\n".join(lines) + "\n", readme, flags=re.M)


# --- verdicts ----------------------------------------------------------------------------------


def counts(rows: dict[str, list[dict]]) -> list[str]:
    """How many claims, at their base settings, have which verdict, for each paper and scale."""
    lines = []
    for paper in PAPERS:
        for scale, of_scale in rows.items():
            signs = [quoted.symbol(row) for row in of_paper(paper, of_scale)]
            if signs:
                numbers = (str(signs.count(one)) for one in SIGNS)
                lines.append((f"{paper.title}, {SIZES[scale]}", *numbers))
    return table(("", *SIGNS), lines)


def of_paper(paper: Paper, rows: list[dict]) -> list[dict]:
    """The rows of a paper's claims at their base settings."""
    return [row for row in rows if row["claim"][0] in paper.letters and row["setting"] == BASE]


def verdicts(papers, rows: dict[str, list[dict]]) -> list[str]:
    """For each claim its sentence, a row for each case and, where a paper's own networks or text
    have other settings, for these; then the objection to it, and what was changed."""
    lines = []
    for paper in papers:
        prose, lacking = _prose(paper), []
        lines += ["", f"## {paper.title}"] if paper.claims else []
        for claim in paper.claims:
            settings = {BASE} | {case.get("setting") for case in claim.cases}
            of_claim = [row for of_scale in rows.values() for row in of_scale
                        if row["claim"] == claim.name and row["setting"] in settings]  # fmt: skip
            if of_claim:
                lines += ["", *_section(claim, of_claim), *prose.get(claim.name, [])]
            else:
                lacking.append(f"- {general(claim)} ({claim.name}).")
        lines += ["", f"### Not run of {paper.title}", "", *lacking] if lacking else []
    return lines[1:]


def glance(papers, rows: dict[str, list[dict]]) -> list[str]:
    """A row for each main claim, which has no dot in its name, with the verdict of each case."""
    lines = []
    for claim in (one for paper in papers for one in paper.claims if "." not in one.name):
        came = [
            "; ".join(
                f"{plain(row['case'])} {quoted.symbol(row)}".strip()
                + AGAIN.get(row.get("confirmed"), "")
                for row in rows[scale]
                if row["claim"] == claim.name and row["setting"] == BASE
            )
            for scale in SCALES
        ]
        lines.append((claim.name, general(claim), *came))
    return table(("claim", "says", *SIZES.values()), lines)


def general(claim: claims.Claim) -> str:
    """The sentence with the name of what differs where its cases differ."""
    case = dict(claim.cases[0])
    differ = {name for one in claim.cases for name in one if one[name] != case.get(name)}
    return claim.statement(case | {name: f"[{name}]" for name in differ})


def plain(case: str) -> str:
    """A case in the words of the pages."""
    return re.sub(rf"\b({'|'.join(PLAIN)})\b", lambda found: PLAIN[found[0]], case)


def _section(claim: claims.Claim, rows: list[dict]) -> list[str]:
    by_case = {}
    for row in rows:
        at = f", {row['setting']}" * (row["setting"] != BASE)
        by_case.setdefault(f"{row['case']}{at}", {})[row["scale"]] = row
    scales = [scale for scale in SCALES if any(scale in one for one in by_case.values())]
    name, number = next(iter(rows[0]["conditions"].items()))
    judged_own = {(row["scale"], row["case"], row["setting"]) for row in rows}
    cells = []
    for case, of_case in by_case.items():
        row = next(iter(of_case.values()))
        own = row.get("own")
        own_judged = ("paper", row["case"], own) in judged_own
        cells.append((
            plain(case),
            *(_cell(of_case[scale]) if scale in of_case else "" for scale in scales),
            ", ".join(filter(None, (one.get("confirmed") for one in of_case.values()))) or "–",
            "" if own is None else "judged" if own_judged else "not judged",
        ))  # fmt: skip
    head = f"{name}, {number['must be']}", *(SIZES[scale] for scale in scales)
    head = *head, "confirmed", "the figure's own network"
    number = ", ".join(filter(None, (claim.name, claim.figure)))
    return [f"### {general(claim)} ({number})", "", *table(head, cells)]


def _cell(row: dict) -> str:
    """The first number with its sign, the verdict where that is another, the reason and the
    settings."""
    (name, first), settings = next(iter(row["conditions"].items())), row.get("settings")
    key = {(row["scale"], row["claim"], row["case"]): row}
    sign = quoted.sign(f"{row['scale']} {row['claim']}/{row['case']}; {name}", key)
    verdict = quoted.symbol(row)
    parts = [f"{text.with_interval(first)} **{sign}**"]
    parts += [f"verdict **{verdict}**"] if sign != verdict else []
    parts.append(row["reason"])
    if settings and settings["trained"]:
        differ = f" (not {claims.first_of(settings['differ'])})" if settings["differ"] else ""
        parts.append(f"{claims.share(row)} settings agree{differ}")
    if settings and settings["untrained"]:
        parts.append(f"{settings['untrained']} did not learn")
    return "; ".join(part for part in parts if part)


def _prose(paper: Paper) -> dict[str, list[str]]:
    """{claim: lines} of the paper's claims.md, from which this page takes them."""
    if paper.folder is None:
        return {}
    page = (paper.folder / "claims.md").read_text()
    _, *sections = re.split(r"^#{2,3} (\S+)\n", page, flags=re.M)
    bodies = [["", *body.strip().splitlines()] for body in sections[1::2]]
    return dict(zip(sections[::2], bodies, strict=True))


def asked(rows: list[dict]) -> list[str]:
    """The criterion of each judged claim, once for cases that ask the same."""
    criteria_of = {}
    for row in rows:
        if row["setting"] == BASE:
            criteria_of.setdefault(row["claim"], {})[row["criterion"]] = None
    lines = [(name, "<br>".join(each)) for name, each in criteria_of.items()]
    return table(("claim", "criterion"), lines)


def known_answers(paper: Paper) -> list[str]:
    """What each known answer does, and whether each claim reproduces it: a table for every set of
    known answers, with a column for each size."""
    lines, groups = [], {}
    for matrix in paper.matrices:
        groups.setdefault(tuple(matrix.does.items()), []).append(matrix)
    for does, matrices in groups.items():
        names = [name for name, _ in does]
        rows = {}
        for matrix in matrices:
            for claim, letters in matrix.rows.items():
                letters = tuple(letters.get(name, "") for name in names)
                rows.setdefault((claim, letters), []).append(matrix.title)
        lines += ["", "; ".join(f"*{name}*: {what}" for name, what in does) + ".", ""]
        lines += table(
            ("claim", "at", *names),
            [(claim, "; ".join(titles), *letters) for (claim, letters), titles in rows.items()],
        )
    return lines[1:]


# --- sentences ---------------------------------------------------------------------------------

# <!-- [quick C1/bump; NUMBER; %] -->6%<!-- ] -->: what is asked, and what stands in the page
MARK = re.compile(
    r"(<!-- \[(?:(confirmed)|((?:quick|paper|fresh) [\w.]+/[^;=\]]*)"
    r"(?:(; .+?); (\S+)| = (\w+)\.))\] -->).*?<!-- \] -->"
)


def filled(page: str, rows: dict[tuple, dict]) -> str:
    """A page whose marks have the numbers and verdicts that they name (`quoted`).

    `[quick C1/bump; NUMBER; %]` is a number and how it is printed. `[quick C1/bump = reproduced.]`
    is the verdict that its sentence was written for; nothing is printed. `[confirmed]` is how many
    verdicts were confirmed of those asked. Raises ValueError where a verdict is another.

    Args: rows: those of `quoted.by_key`.
    """
    asked = [row["confirmed"] for row in rows.values() if row.get("confirmed")]

    def fill(match) -> str:
        mark, count, of, number, how, verdict = match.groups()
        if count:
            return f"{mark}{asked.count('yes')} of {len(asked)}<!-- ] -->"
        if number:
            return f"{mark}{quoted.printed(f'{of}{number}; {how}', rows)}<!-- ] -->"
        row = rows.get(quoted.parts(of)[0])
        if row is None or row["verdict"] != verdict:
            raise ValueError(
                f"{mark}: the verdict is now {row and row['verdict']}: rewrite its sentence"
            )
        return f"{mark}<!-- ] -->"

    return MARK.sub(fill, page)


# --- results, presets, gallery -----------------------------------------------------------------


def results(scale: str, papers, runs: dict, rows: list[dict], drawn: list[str]) -> str:
    """RESULTS.md: the numbers and verdicts of one scale.

    Args: runs: by name, what ran (a sweep's value is not looked at); rows: of claims.json; drawn:
    names of figures.
    """
    lines = [
        f"# Results at {scale} scale",
        "",
        "Numbers are means over seeds with 95% intervals (Student's t; of shares, cut at 0 and 1), "
        "computed by `figures.make` from the runs in `trained/`. This command makes all of it "
        "again, pictures included:",
        "",
        f"    python -m figures.make --scale={scale} --workdir=DIR --only={','.join(drawn)}",
    ]
    base = [row for row in rows if row["setting"] == BASE]
    if base:
        lines += ["", "## Verdicts", "", *by_chance(rows), ""]
        every = (
            "claims.json has every condition with its interval, at other settings the first one."
        )
        lines += [every, ""]
        judged = [
            (row["claim"], row["case"], row["statement"], quoted.symbol(row), _cell(row))
            for row in base
        ]
        head = "claim", "case", "sentence", "verdict", "its first number"
        lines += table(head, judged)
    for paper in papers:
        ran = {name: runs[name] for name, config in paper.runs(scale).items()
               if name in runs and not config.is_sweep}  # fmt: skip
        made = TABLES[paper.title](ran) if paper.title in TABLES and ran else []
        lines += ["", f"## {paper.title}: errors and baselines", "", *made] if made else []
        lines += ["", paper.note] if paper.note and of_paper(paper, rows) else []
    if missing := not_run(scale, papers, runs):
        lines += ["", "## Not run", "", "Not run at this scale, with the cost of all seeds:", ""]
        lines += missing
    return "\n".join(lines) + "\n"


def by_chance(rows: list[dict]) -> list[str]:
    """Lines on how many conditions were judged, and how many chance alone would decide."""
    measured = {
        (row["claim"], name, one["must be"], one["value"], *one["ci95"])
        for row in rows
        if row["setting"] == BASE
        for name, one in row["conditions"].items()
        if None not in one["ci95"] and all(map(isfinite, one["ci95"]))
    }
    settings = sum(row["setting"] not in (BASE, claims.FRESH) for row in rows)
    beside = f" Rows have {settings} verdicts at other settings beside them." if settings else ""
    asked = [row["confirmed"] for row in rows if row.get("confirmed")]
    if asked:
        beside += (
            f" {asked.count('yes')} of {len(asked)} verdicts were confirmed at seeds that nobody "
            "had looked at before."
        )
    return [
        f"This page judges {len(measured)} conditions, each by a 95% interval. If every true value "
        f"lay at its bound, chance alone would have {CHANCE * len(measured):.1f} of them hold "
        f"({CHANCE:.1%}) and as many fail.{beside}",
    ]


def by_distance() -> list[str]:
    """A table of the share rendered by distance to the nearest ID cell, by network and by KRR."""
    folder = committed.RESULTS / "quick/figures"
    both = pd.concat([pd.read_csv(folder / f"{name}.csv") for name in ("codes", "drawings")])
    lines = []
    for (run, title), who in itertools.product(NEAR.items(), ("cells", "interpolator")):
        of_run = both[(both.run == run) & (both.predictor == who)].drop_duplicates("distance")
        numbers = [
            {"value": row.rendered, "ci95": [row.low, row.high]} for row in of_run.itertuples()
        ]
        how, name = ("%", title) if who == "cells" else ("%.", "*interpolation*")
        lines.append((name, *(quoted.formatted(number, how) for number in numbers)))
    levels = sorted(both.distance.unique())
    return table(("network", *(f"{level:g}" for level in levels)), lines)


def not_run(scale: str, papers, runs: dict) -> list[str]:
    """A table of what was not trained, with its cost: optimiser steps of all seeds, and the time of
    a preset. A paper of which nothing ran is one row, as are networks of the same cost whose names
    differ in numbers alone."""
    costs = {}
    for paper in papers:
        missing = {n: one for n, one in paper.runs(scale).items() if n not in runs}
        steps = {
            one.name: len(one.training.seeds)
            * (one.training.steps or loop.total_steps(one, one.task.make()))
            for one in missing.values()
            if not one.is_sweep
        }
        if len(missing) == len(paper.runs(scale)) > 1 and len(papers) > 1:
            steps = {f"all {len(steps)} networks of {paper.title}": sum(steps.values())}
        costs |= {name: f"{count:,} steps{_time(name, ', ')}" for name, count in steps.items()}
        sweeps = [one.name for one in missing.values() if one.is_sweep]
        costs |= {name: _time(name) or "a sweep" for name in sweeps}
    alike = {}
    for name, cost in costs.items():
        alike.setdefault((re.sub(r"\d+", "", name), cost), []).append(name)
    rows = []
    for (_, cost), names in alike.items():
        several = f"{names[0]} to {names[-1]}", str(len(names)), f"{cost} each"
        rows.append(several if len(names) > 1 else (names[0], "1", cost))
    return table(("network or sweep", "number", "cost"), rows) if rows else []


def _time(name: str, before: str = "") -> str:
    """'about 4 h on 2 cores' for a preset, else ''; a time by FLOPs may be that of a GPU."""
    takes = PRESETS[name].takes if name in PRESETS else ""
    return before + takes + " on 2 cores" * ("FLOPs" not in takes) if takes else ""


def presets() -> str:
    """docs/reference/presets.md: under the name of each paper a table of its presets."""
    unnamed = lambda config: changed(config, {"name": "run"})  # a figure's run equals its preset
    ran = {unnamed(run.config): run for scale in SCALES for run in committed.runs(scale).values()}
    parts = [PRESETS_PAGE]
    for paper, of_paper in PRESETS_OF_PAPERS.items():
        rows = []
        for name, one in of_paper.items():
            main = "sweep" if one.config.is_sweep else "train"
            command = f"`compgen-jax {main} --config={name} --workdir=runs/{name}`"
            result = _result(one, ran.get(unnamed(one.config)))
            rows.append((f"`{name}`", command, one.takes, result))
        head = "preset", "command", "time on 2 cores", "result"
        parts.append("\n".join([f"## {paper}", "", *table(head, rows)]))
    return "\n\n".join(parts) + "\n"


def _result(preset, run) -> str:
    """'rendered ID 1, OOD 0.043 [0.027, 0.06]', and what the preset says."""
    if run is None:
        return preset.result or "not run yet"
    mean = run.summary["mean"]
    score = "rendered" if "ood.rendered" in mean else preset.config.task.make().accuracy
    shares = []
    for region in ("ID", "OOD"):
        number = mean[f"{region.lower()}.{score}"]
        shares.append(f"{region} {text.with_interval(number, digits=2)}")
    found = f"{score.replace('_', ' ')} {', '.join(shares)}"
    return f"{found}: {preset.result}" if preset.result else found


def gallery() -> str:
    """All figures in docs/results, one picture to a row, with their captions."""
    parts, there = [GALLERY], {scale: committed.drawn(scale) for scale in SCALES}
    _, *sections = re.split(r"^## (\S+)\n", CAPTIONS.read_text(encoding="utf-8"), flags=re.M)
    captions = dict(zip(sections[::2], sections[1::2], strict=True))
    for name, figure in FIGURES.items():
        scales = [scale for scale in SCALES if name in there[scale]]
        if scales:
            caption = " ".join((captions.get(name) or inspect.getdoc(figure.draw)).split())
            caption += "" if figure.by_default else " †"
            pictures = [f"![{name}, {SIZES[scale]}](../results/{scale}/figures/{name}.png)"
                        for scale in scales]  # fmt: skip
            parts += [f"## {name}", *pictures, f"*{caption}*"]
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
    stale = [path for path, page in pages(CRITERIA.value).items() if path.read_text() != page]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not up to date", file=sys.stderr)
    if stale:
        sys.exit("python -m figures.pages writes what the code and docs/results say")


if __name__ == "__main__":
    cli.run(main)
