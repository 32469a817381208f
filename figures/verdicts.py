"""The generated parts of docs/findings/claims.md: a count, a table of all verdicts, every claim.

Judged claims are those of docs/results, a list for each scale (`committed.claims`).
"""

import re
from collections.abc import Callable

from compgen_jax.claims import (
    CONTRADICTED,
    INCONCLUSIVE,
    READINGS,
    REPRODUCED,
    Claim,
    possible,
)
from compgen_jax.metrics import text
from compgen_jax.papers import robustness
from compgen_jax.papers.paper import Paper

AS_STATED, STRICTER = READINGS
SYMBOLS = {REPRODUCED: "✓", CONTRADICTED: "✗", INCONCLUSIVE: "–"}
WITH_CODE = re.compile(r"^with the [\w-]+ code, ")
DEPTH = re.compile(r"(?:(depth \d+), )?(.*)")
TITLES = {"quick": "quick", "paper": "papers' size"}


def counts(papers: tuple[Paper, ...], claims_by_scale: dict[str, list[dict]]) -> list[str]:
    """A table: how many verdicts are what, for each paper, scale and reading."""
    lines = [f"| | reading | {' | '.join(SYMBOLS)} |", "|---" * (2 + len(SYMBOLS)) + "|"]
    for paper in papers:
        for scale, claims in claims_by_scale.items():
            of_paper = [row for row in claims if row["claim"][0] in paper.letters]
            for name in READINGS if of_paper else ():
                verdicts = [row[name]["verdict"] for row in of_paper]
                numbers = " | ".join(str(verdicts.count(one)) for one in SYMBOLS)
                head = f"{paper.title}, {TITLES[scale]}" if name == AS_STATED else ""
                lines.append(f"| {head} | {name.replace('_', ' ')} | {numbers} |")
    return lines


def table(claims_by_scale: dict[str, list[dict]]) -> list[str]:
    """A row for each sentence; for each scale and reading the verdict of each code, with the share
    of settings that agree."""
    columns = [(scale, reading) for scale in claims_by_scale for reading in READINGS]
    rows = {}
    for scale, claims in claims_by_scale.items():
        for claim in claims:
            statement = WITH_CODE.sub("", claim["statement"])
            # statements name numbers of their scale
            key = claim["claim"], robustness.of_any_scale(statement)
            _, cells = rows.setdefault(key, (statement, {}))
            for reading in READINGS:
                verdict = f"{claim['code']} {_symbol(claim[reading])}".strip()
                cells.setdefault((scale, reading), []).append(verdict)
    titles = [f"{TITLES[scale]}, {reading.replace('_', ' ')}" for scale, reading in columns]
    lines = [f"| claim | {' | '.join(titles)} |", "|---" * (1 + len(titles)) + "|"]
    for (name, _), (statement, cells) in sorted(rows.items(), key=_in_order_of(rows)):
        shown = ["<br>".join(cells.get(column, ())) for column in columns]
        lines.append(f"| **{name}** {statement} | {' | '.join(shown)} |")
    return lines


def _in_order_of(rows: dict) -> Callable:
    """A sort key: claims and their sentences as `rows` has them first, each by depth."""
    first = {}
    for name, statement in rows:
        first.setdefault((name, _apart(statement)[1]), len(first))
    names = [name for name, _ in first]

    def place(item):
        (name, statement), _ = item
        depth, sentence = _apart(statement)
        return names.index(name), first[name, sentence], depth

    return place


def _symbol(reading: dict) -> str:
    """'✓ 14/16': of 16 trained settings 14 agree."""
    share = robustness.share(reading).replace(" of ", "/")
    return f"{SYMBOLS[reading['verdict']]} {share}".strip()


# --- every claim -------------------------------------------------------------------------------


def lines(papers: tuple[Paper, ...], claims_by_scale: dict[str, list[dict]]) -> list[str]:
    """For each claim its sentence, what decides it, its verdicts and the strongest objection; one
    section for claims of the same name and sentence."""
    found, shown = [], []
    for paper in papers:
        found += ["", f"## {paper.title}"]
        for claim in paper.claims:
            for statement, rows in _rows(claim, claims_by_scale).items():
                judged = [row for by_scale in rows.values() for row in by_scale.values()]
                if not all(any(row is one for one in shown) for row in judged):
                    shown += judged
                    found += ["", *_section(claim, statement, rows)]
        if not_run := unjudged(paper, claims_by_scale):
            found += ["", f"### Not run of {paper.title}", "", *not_run]
    earlier = sorted({
        f"{row['claim']} at {scale} scale"
        for scale, claims in claims_by_scale.items() for row in claims
        if not any(row is one for one in shown)
    })  # fmt: skip
    if earlier:
        found += ["", f"Judged under an earlier sentence, and not shown: {', '.join(earlier)}."]
    return found[1:]


def unjudged(paper: Paper, claims_by_scale: dict[str, list[dict]]) -> list[str]:
    """A line for each sentence of a paper that has no verdict at any scale."""
    return list(dict.fromkeys(
        f"- {claim.name}: {_apart(statement)[1]}."
        for claim in paper.claims if not _rows(claim, claims_by_scale)
        for _, statement, _ in possible(claim)
    ))  # fmt: skip


def _apart(statement: str) -> tuple[str, str]:
    """'depth 6', and the rest of a statement without its code."""
    depth, rest = DEPTH.fullmatch(WITH_CODE.sub("", statement)).groups()
    return depth or "", rest


def _rows(claim: Claim, claims_by_scale: dict) -> dict[str, dict[str, dict]]:
    """{sentence: {code and depth: {scale: judged row}}} of a claim: those with its statement,
    fields filled in. A sentence stands for those of all scales, which name other numbers."""
    own = re.compile(re.sub(r"\\{.+?\\}", ".*", re.escape(claim.statement)))
    sentences, found = {}, {}
    for scale, claims in claims_by_scale.items():
        for row in claims:
            if row["claim"] == claim.name and own.fullmatch(row["statement"]):
                depth, sentence = _apart(row["statement"])
                sentence = sentences.setdefault(robustness.of_any_scale(sentence), sentence)
                about = ", ".join(filter(None, [row["code"], depth]))
                found.setdefault(sentence, {}).setdefault(about, {})[scale] = row
    return found


def _section(claim: Claim, sentence: str, rows: dict[str, dict]) -> list[str]:
    scales = list(dict.fromkeys(scale for by_scale in rows.values() for scale in by_scale))
    of_paper = f" ({claim.figure})" * bool(claim.figure)
    titles = [_measured(rows), *(TITLES[scale] for scale in scales)]
    found = [f"### {claim.name}: {sentence}{of_paper}", "",
             f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]  # fmt: skip
    codes = [about.partition(", depth ")[0] for about in rows]
    for _, about in sorted(zip(map(codes.index, codes), rows, strict=True)):
        cells = [_cell(rows[about][one]) if one in rows[about] else "" for one in scales]
        found.append(f"| {' | '.join([about, *cells])} |")
    return found + (["", f"Objection: {claim.objection}"] if claim.objection else [])


def _measured(rows: dict[str, dict]) -> str:
    """The first number of the reading as stated and its bound; for each scale where they differ."""
    found = {}
    for by_scale in rows.values():
        for scale, row in by_scale.items():
            name, number = next(iter(row[AS_STATED]["conditions"].items()))
            found.setdefault(scale, f"{name}, {number['must be']}")
    if len(set(found.values())) == 1:
        return found.popitem()[1]
    return "; ".join(f"{TITLES[scale]}: {head}" for scale, head in found.items())


def _cell(row: dict) -> str:
    """The first number of the reading as stated, both verdicts, the reason and the settings."""
    reading = row[AS_STATED]
    verdicts = " / ".join(f"**{SYMBOLS[row[name]['verdict']]}**" for name in READINGS)
    number = {"value": reading["measured"], "ci95": reading["ci95"]}
    parts = [f"{text.with_interval(number)} {verdicts}", reading["reason"]]
    if settings := reading.get("settings"):
        differ = f" (not {robustness.named(settings['differ'])})" if settings["differ"] else ""
        parts.append(
            f"{robustness.share(reading)} settings agree{differ}" * bool(settings["trained"])
        )
        parts.append(f"{settings['untrained']} did not learn" * bool(settings["untrained"]))
    return "; ".join(part for part in parts if part)
