"""Committed numbers that pages quote, by name.

`quick C1/bump; NUMBER` is a condition or a note of a claim's row in claims.json, whose name may go
on in brackets; `quick run/NAME; METRIC` is a mean over seeds of a committed summary. With `fresh`
for `quick` it is the row at fresh seeds. Pages that a person wrote have theirs in quoted.toml, and
the panels of the papers in panels.toml.
"""

import functools
import tomllib
from pathlib import Path

import numpy as np

from compgen_jax.claims import (
    BASE,
    CONTRADICTED,
    FRESH,
    INCONCLUSIVE,
    NOT_TRAINED,
    REPRODUCED,
    TRAINED,
)

from . import claim_rows, committed

SYMBOLS = {REPRODUCED: "✓", CONTRADICTED: "✗", INCONCLUSIVE: "–"}
of_runs = functools.cache(committed.runs)


def by_key(rows: dict[str, list[dict]]) -> dict[tuple, dict]:
    """{(quick, paper or fresh, claim, case): its row}."""
    return {
        ({BASE: scale, FRESH: "fresh"}[row["setting"]], row["claim"], row["case"]): row
        for scale, of_scale in rows.items()
        for row in of_scale
        if row["setting"] in (BASE, FRESH)
    }


def number(name: str, rows: dict[tuple, dict]) -> dict:
    """{'value', 'ci95', 'per_seed'} of a number. ValueError for an unknown one."""
    (scale, claim, case), condition = parts(name)
    if claim == "run":
        return of_runs(scale)[case].summary["mean"][condition]
    row = rows.get((scale, claim, case))
    numbers = row["notes"] | row["conditions"] if row else {}
    matching = [key for key in numbers if f"{key} (".startswith(f"{condition} (")]
    if not matching:
        raise ValueError(f"{name}: {claim}/{case} has no number {condition!r}")
    return numbers[min(matching, key=len)]


def parts(name: str) -> tuple[tuple[str, str, str], str]:
    """((scale, claim, case), number) of its name."""
    row, _, condition = name.partition("; ")
    scale, _, row = row.partition(" ")
    claim, _, case = row.partition("/")
    return (scale, claim, case), condition


def formatted(number: dict, how: str) -> str:
    """'%' is in percent with its interval, '%.' without it, '2', '2.' and '2±' in so many decimals
    with it, without it, and with half of its width, 'of' as a count of seeds."""
    if how == "of":
        return f"{sum(number['per_seed']):.0f} of {len(number['per_seed'])}"
    digits = how.rstrip(".±")

    def write(value):
        return f"{np.clip(100 * value, 0, 100):.0f}" if digits == "%" else f"{value:.{digits}f}"

    low, high = number["ci95"]
    value, half = map(write, (number["value"], (high - low) / 2))
    interval = {"": f" [{write(low)}, {write(high)}]", ".": "", "±": f" ± {half}"}
    unit = "%" if digits == "%" else ""
    return f"{value}{unit}{interval[how.removeprefix(digits)]}"


def printed(name: str, rows: dict[tuple, dict]) -> str:
    """A number as a page prints it, by 'NAME; HOW'; 'confirmed' is how many verdicts came out again
    at fresh seeds."""
    if name == "confirmed":
        answers = claim_rows.replications(list(rows.values()))
        return f"{answers.count(True)} of {len(answers)}"
    name, how = name.rsplit("; ", 1)
    return formatted(number(name, rows), how)


def phrases(page: str, rows: dict[tuple, dict]) -> list[str]:
    """The phrases of a page that quote numbers (quoted.toml), with the committed ones. Raises
    ValueError where a verdict is not the one that its phrase was written for."""
    phrases = []
    for phrase, names in read("quoted")[page].items():
        numbers = []
        for name in [names] if isinstance(names, str) else names:
            row, _, verdict = name.partition(" = ")
            if not verdict:
                numbers.append(printed(name, rows))
            elif (verdict_now := rows[parts(row)[0]]["verdict"]) != verdict:
                raise ValueError(f"{page}: {row} is now {verdict_now}: rewrite {phrase!r}")
        phrases.append(phrase.format(*numbers))
    return phrases


def read(name: str) -> dict:
    """The contents of NAME.toml."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


def symbol(row: dict) -> str:
    """The verdict of a row as a sign."""
    return SYMBOLS[row["verdict"]]


def sign_of(row: dict, condition: dict) -> str:
    """The sign of one of the row's conditions."""
    if row["reason"].startswith(NOT_TRAINED) or condition["holds"] is None:
        return SYMBOLS[INCONCLUSIVE]
    return SYMBOLS[REPRODUCED if condition["holds"] else CONTRADICTED]


def sign(name: str, rows: dict[tuple, dict], must: str = "") -> str:
    """'✓' if the whole interval of a number lies in the range of its sentence, '✗' if outside, '–'
    on both sides, or not trained.

    Args: must: the range of a run's number, 'below 0.5' or 'above 0.5'; a condition has its own.
    """
    (scale, claim, case), condition = parts(name)
    if claim != "run":
        row = rows[scale, claim, case]
        return sign_of(row, row["conditions"][condition])
    mean = of_runs(scale)[case].summary["mean"]
    side, bound = must.split()
    low, high = (end - float(bound) for end in mean[condition]["ci95"])
    if mean["id.exact_accuracy"]["value"] < TRAINED or low <= 0 <= high:
        return SYMBOLS[INCONCLUSIVE]
    return SYMBOLS[REPRODUCED if (low > 0) == (side == "above") else CONTRADICTED]
