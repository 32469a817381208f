"""Verdicts at both scales, for docs/findings/claims.md: a table of all, and the claims one by one.

Judged claims are those of docs/results, a list for each scale (`committed.claims`).
"""

import re

from compgen_jax.claims import READINGS, Claim
from compgen_jax.metrics import text
from compgen_jax.papers import robustness
from compgen_jax.papers.paper import Paper

AS_STATED, STRICTER = READINGS
SYMBOLS = {"reproduced": "✓", "contradicted": "✗", "inconclusive": "–"}
WITH_CODE = re.compile(r"^with the [\w-]+ code, ")


# --- the table of all verdicts -----------------------------------------------------------------


def table(claims_by_scale: dict[str, list[dict]]) -> list[str]:
    """A row for each claim; for each scale and reading a symbol for each code, with the share of
    settings that agree; a dot, or nothing, for what was not run."""
    columns = [(scale, reading) for scale in claims_by_scale for reading in READINGS]
    rows = {}
    for scale, claims in claims_by_scale.items():
        for claim in claims:
            statement = WITH_CODE.sub("", claim["statement"])
            # statements name numbers of their scale
            row = rows.setdefault((claim["claim"], robustness.of_any_scale(statement)), {})
            row.setdefault("statement", statement)
            for reading in READINGS:
                row.setdefault(claim["code"], {})[scale, reading] = _symbol(claim[reading])
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


def _symbol(reading: dict) -> str:
    """'✓ 14/16': of 16 trained settings 14 agree."""
    symbol, settings = SYMBOLS[reading["verdict"]], reading.get("settings")
    return f"{symbol} {settings['agree']}/{settings['trained']}" if settings else symbol


# --- the claims one by one ---------------------------------------------------------------------


def lines(papers: tuple[Paper, ...], claims_by_scale: dict[str, list[dict]]) -> list[str]:
    """For each claim its sentence, what decides it, its verdicts and the strongest objection."""
    found, shown = [], []
    for paper in papers:
        found += ["", f"## {paper.title}"]
        for claim in paper.claims:
            rows = _rows(claim, claims_by_scale)
            shown += [row for by_scale in rows.values() for row in by_scale.values()]
            found += ["", *_claim(claim, rows)]
    earlier = sorted({
        f"{row['claim']} at {scale} scale"
        for scale, claims in claims_by_scale.items() for row in claims
        if not any(row is one for one in shown)
    })  # fmt: skip
    if earlier:
        found += ["", f"Judged under an earlier sentence, and not shown: {', '.join(earlier)}."]
    return found[1:]


def _rows(claim: Claim, claims_by_scale: dict) -> dict[str, dict]:
    """{code: {scale: judged row}} of a claim: those with its statement, fields filled in."""
    own = re.compile(re.sub(r"\\{.+?\\}", ".*", re.escape(claim.statement)))
    found = {}
    for scale, claims in claims_by_scale.items():
        for row in claims:
            if row["claim"] == claim.name and own.fullmatch(row["statement"]):
                found.setdefault(row["code"], {})[scale] = row
    return found


def _claim(claim: Claim, rows: dict[str, dict]) -> list[str]:
    some = next((row for by_scale in rows.values() for row in by_scale.values()), None)
    statement = WITH_CODE.sub("", claim.statement if some is None else some["statement"])
    found = [f"### {claim.name}" + f" ({claim.figure})" * bool(claim.figure), "",
             f"*{statement[0].upper()}{statement[1:]}.*"]  # fmt: skip
    if some is None:
        found += ["", "Not run."]
    else:
        scales = list(dict.fromkeys(scale for by_scale in rows.values() for scale in by_scale))
        name, number = next(iter(some[AS_STATED]["conditions"].items()))
        found += ["", f"It is decided by: {name}, {number['must be']}.", "",
                  f"| code | {' | '.join(scales)} |", "|---" * (1 + len(scales)) + "|"]  # fmt: skip
        for code, by_scale in rows.items():
            cells = [_cell(by_scale[one]) if one in by_scale else "" for one in scales]
            found.append(f"| {' | '.join([code, *cells])} |")
    return found + (["", f"Objection: {claim.objection}"] if claim.objection else [])


def _cell(row: dict) -> str:
    """The first number of the reading as stated, both verdicts, the reason and the settings."""
    reading = row[AS_STATED]
    verdicts = " / ".join(f"**{SYMBOLS[row[name]['verdict']]}**" for name in READINGS)
    number = {"value": reading["measured"], "ci95": reading["ci95"]}
    parts = [f"{text.with_interval(number)} {verdicts}", reading["reason"]]
    if settings := reading.get("settings"):
        share = f"{settings['agree']} of {settings['trained']} trained settings"
        parts.append(share + f", {settings['untrained']} not trained" * bool(settings["untrained"]))
        parts.append(", ".join(settings["differ"]) and f"not {', '.join(settings['differ'])}")
    return "; ".join(part for part in parts if part)
