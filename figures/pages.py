"""The generated parts of the documentation.

    python -m figures.pages [--check] [--criteria]

Writes RESULTS.md of both scales, docs/findings/gallery.md, docs/reference/presets.md and parts of
README.md, docs/findings/{index,claims,criteria,league,real_factors}.md, docs/how_to/hold_out.md,
docs/limits.md and docs/reference/config.md, all from docs/results and from the code. What
docs/findings/criteria.md says of known answers takes some minutes and is computed only with
--criteria. With --check nothing is written: a page that differs is named, and so is a picture that
is not the one of its digest; then the command fails.
"""

import inspect
import sys
from pathlib import Path

from absl import flags

from compgen_jax import cli
from compgen_jax.metrics import text
from compgen_jax.papers.paper import SCALES
from compgen_jax.runs import directory
from compgen_jax.tasks import holdouts

from . import committed, criteria, digests, fields, findings, presets, report, verdicts
from .league import page as league
from .papers import FIGURES, PAPERS

ROOT, DOCS = committed.ROOT, committed.ROOT / "docs"
CHECK = flags.DEFINE_bool("check", False, "Write nothing, and fail if a page is not up to date.")
CRITERIA = flags.DEFINE_bool("criteria", False, "Compute the tables of criteria.md, too.")
GALLERY = """# Gallery

What does each figure show?

A figure's name is what `compgen-jax figures --only` takes; those marked † are drawn only if it
names them. The quick one stands above the one at the papers' size. The first paper's figures show
networks at the end of training; tables have the median of the last five evaluations."""
OLDER = """These pictures are older than what they show, as a caption, drawing code or a run has
changed since. For those with *no digest* nobody recorded what drew them."""
NONE_UNJUDGED = "None. Some are inconclusive only because a network to compare with was not run."
SIZES = verdicts.TITLES


def pages(with_criteria: bool = False) -> dict[Path, str]:
    """What every generated page should hold; the tables of criteria as they are unless asked."""
    claims = {scale: committed.claims(scale) for scale in SCALES}
    made = {DOCS / "results" / scale / "RESULTS.md": committed.page(scale) for scale in SCALES}
    made |= {DOCS / "findings/gallery.md": gallery(), DOCS / "reference/presets.md": presets.page()}
    unjudged = [line for paper in PAPERS for line in verdicts.unjudged(paper, claims)]
    parts = {
        ROOT / "README.md": {"findings": findings.lines(claims["quick"], claims["paper"])},
        DOCS / "findings/index.md": {
            "findings": findings.lines(claims["quick"], claims["paper"], results="../results/quick")
        },
        DOCS / "findings/claims.md": {
            "counts": verdicts.counts(PAPERS, claims),
            "verdicts": verdicts.table(claims),
            "claims": verdicts.lines(PAPERS, claims),
        },
        DOCS / "reference/config.md": {"fields": fields.lines()},
        DOCS / "how_to/hold_out.md": {"published": published()},
        DOCS / "findings/real_factors.md": {
            "found": findings.real_factors(claims["quick"], committed.drawn("quick"))
        },
        DOCS / "findings/criteria.md": {
            "asked": criteria.asked(claims["quick"]),
            "changed": criteria.changed(PAPERS),
        }
        | (criteria.parts() if with_criteria else {}),
        DOCS / "findings/league.md": {"league": league.lines(committed.runs("quick"))},
        DOCS / "limits.md": {
            f"not run, {scale}": report.not_run(scale, PAPERS, committed.ran(scale))
            for scale in SCALES
        }
        | {"unjudged": unjudged or [NONE_UNJUDGED]},
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


def published() -> list[str]:
    """A table of the published hold-outs."""
    rows = [f"| `{name}` | `{text}` |" for name, text in holdouts.PUBLISHED.items()]
    return ["| name | holds out |", "|---|---|", *rows]


def gallery() -> str:
    """All figures in docs/results, one picture to a row, with their captions."""
    parts, there = [GALLERY], {scale: committed.drawn(scale) for scale in SCALES}
    if older := [line for scale in SCALES for line in _older(scale)]:
        parts += [OLDER, "\n".join(older)]
    captions = {}
    for name, figure in FIGURES.items():
        shown = [scale for scale in SCALES if name in there[scale]]
        if shown:
            caption = " ".join(inspect.getdoc(figure.draw).split()).replace("*", "")
            same = captions.setdefault(caption, name)
            caption = caption if same == name else f"As {same}."
            caption += "" if figure.by_default else " †"
            pictures = [f"![{name}, {SIZES[scale]}](../results/{scale}/figures/{name}.png)"
                        for scale in shown]  # fmt: skip
            parts += [f"## {name}", *pictures, f"*{caption}*"]
    return "\n\n".join(parts) + "\n"


def _older(scale: str) -> list[str]:
    """Lines on the figures of a scale that are older than what they show, by what changed."""
    by_change = {}
    for name, what in committed.changes_since(scale).items():
        by_change.setdefault(", ".join(what), []).append(name)
    return [f"- {scale}, {what}: {', '.join(names)}." for what, names in by_change.items() if what]


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
    wrong = [
        line for scale in SCALES for line in digests.wrong(committed.RESULTS / scale / "figures")
    ]
    for line in wrong:
        print(line, file=sys.stderr)
    if stale:
        sys.exit("python -m figures.pages writes what the code and docs/results say")
    if wrong:
        sys.exit("python -m figures.results takes pictures together with their digests")


if __name__ == "__main__":
    cli.run(main)
