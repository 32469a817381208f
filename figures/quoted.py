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

from compgen_jax.claims import BASE, FRESH, HOLDS, INCONCLUSIVE, NOT_TRAINED, TRAINED

from . import committed

SIGNS = {True: "✓", False: "✗", None: "–"}  # of what holds
SYMBOLS = {verdict: SIGNS[holds] for verdict, holds in HOLDS.items()}
of_runs = functools.cache(committed.runs)


def by_key(rows: dict[str, list[dict]]) -> dict[str, dict]:
    """Rows of claims.json by scale -> {'quick C1/bump': its row}; 'fresh' at fresh seeds."""
    return {
        f"{'fresh' if row['setting'] == FRESH else scale} {row['claim']}/{row['case']}": row
        for scale, of_scale in rows.items()
        for row in of_scale
        if row["setting"] in (BASE, FRESH)
    }


def number(name: str, rows: dict[str, dict], must: str = "") -> dict:
    """{'value', 'ci95', 'per_seed', 'holds'} of a number. A run's holds, if it learnt, where the
    whole interval is where it `must` be, 'below 0.5' or 'above 0.5'; None: on both sides.
    ValueError for an unknown name."""
    key, _, condition = name.partition("; ")
    scale, _, run = key.partition(" run/")
    if run:
        mean, number = of_runs(scale)[run].summary["mean"], {"holds": None}
        if must:
            side, bound = must.split()
            low, high = (end - float(bound) for end in mean[condition]["ci95"])
            if mean["id.exact_accuracy"]["value"] >= TRAINED and not low <= 0 <= high:
                number = {"holds": (low > 0) == (side == "above")}
        return mean[condition] | number
    row = rows.get(key)
    numbers = row["notes"] | row["conditions"] if row else {}
    matching = [name for name in numbers if f"{name} (".startswith(f"{condition} (")]
    if not matching:
        raise ValueError(f"{name}: no such number")
    number = numbers[min(matching, key=len)]
    return number | {"holds": holds(row, number)}


def holds(row: dict, number: dict) -> bool | None:
    """Whether one of the row's conditions holds, None for a network that has not learnt."""
    return None if row["reason"].startswith(NOT_TRAINED) else number.get("holds")


def formatted(number: dict, how: str) -> str:
    """'%' is in percent with its interval, '%.' without it, '2', '2.' and '2±' in so many decimals
    with it, without it, and with half of its width, 'of' as a count of seeds, 'sign' as whether it
    holds."""
    if how == "sign":
        return SIGNS[number["holds"]]
    if how == "of":
        return f"{sum(number['per_seed']):.0f} of {len(number['per_seed'])}"
    low, high = number["ci95"]
    digits, ends = how.rstrip(".±"), (number["value"], low, high, (high - low) / 2)
    if digits == "%":
        value, low, high, half = (f"{np.clip(100 * end, 0, 100):.0f}" for end in ends)
        value += "%"
    else:
        value, low, high, half = (f"{end:.{digits}f}" for end in ends)
    interval = {"": f" [{low}, {high}]", ".": "", "±": f" ± {half}"}
    return value + interval[how.removeprefix(digits)]


def printed(name: str, rows: dict[str, dict]) -> str:
    """A number as a page prints it, by 'NAME; HOW', of a run also 'NAME; below 0.5' for its sign;
    'confirmed' is how many decided verdicts came out again at fresh seeds."""
    if name == "confirmed":
        decided = {key for key, row in rows.items() if row["verdict"] != INCONCLUSIVE}
        pairs = [(key.replace("fresh", "quick"), key) for key in rows if key.startswith("fresh ")]
        pairs = [(rows[base], rows[fresh]) for base, fresh in pairs if base in decided]
        again = [base["verdict"] == fresh["verdict"] for base, fresh in pairs]
        return f"{sum(again)} of {len(again)}"
    name, how = name.rsplit("; ", 1)
    if how.startswith(("above", "below")):
        return formatted(number(name, rows, how), "sign")
    return formatted(number(name, rows), how)


def phrases(page: str, rows: dict[str, dict]) -> list[str]:
    """The phrases of a page that quote numbers (quoted.toml), with the committed ones. Raises
    ValueError where a verdict is not the one that its phrase was written for."""
    phrases = []
    for phrase, names in read("quoted")[page].items():
        numbers = []
        for name in [names] if isinstance(names, str) else names:
            row, _, verdict = name.partition(" = ")
            if not verdict:
                numbers.append(printed(name, rows))
            elif (verdict_now := rows[row]["verdict"]) != verdict:
                raise ValueError(f"{page}: {row} is now {verdict_now}: rewrite {phrase!r}")
        phrases.append(phrase.format(*numbers))
    return phrases


def read(name: str) -> dict:
    """The contents of NAME.toml."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))
