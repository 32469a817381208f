"""Committed numbers that pages quote, by name.

`quick C1/bump; NUMBER` is a condition or a note of a claim's row in claims.json, whose name may go
on in brackets; `quick run/NAME; METRIC` is a mean over seeds of a committed summary. With `fresh`
for `quick` it is the row at fresh seeds. panels.toml has those of the papers' panels, quoted.toml
those of pages that a person wrote, which tests/test_pages.py compares.
"""

import functools
import tomllib
from pathlib import Path

from compgen_jax.claims import BASE, FRESH, HOLDS, NOT_TRAINED, TRAINED

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
    """Whether a number of a row is where it must be, None for a network that has not learnt."""
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
        value, low, high, half = (f"{100 * end:.0f}" for end in ends)
        value += "%"
    else:
        value, low, high, half = (f"{end:.{digits}f}" for end in ends)
    interval = {"": f" [{low}, {high}]", ".": "", "±": f" ± {half}"}
    return value + interval[how.removeprefix(digits)]


def read(name: str) -> dict:
    """The contents of NAME.toml."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


def panels(rows: dict[str, list[dict]]) -> dict[str, list[dict]]:
    """{paper: its sections of panels.toml, with the scale of their picture and `lines`}; `rows` are
    those of claims.json by scale."""
    papers, base, drawn = read("panels"), by_key(rows), committed.drawn("paper")
    for sections in papers.values():
        for section in sections:
            lines = section["lines"] = []
            section["scale"] = "paper" if section["picture"] in drawn else "quick"
            for panel in section["panel"]:
                says = panel["says"]
                if "quotes" in panel:
                    says = says.format(formatted(number(f"paper {panel['quotes']}", base), "%."))
                results = [panel_result(panel, scale, base) for scale in ("paper", "quick")]
                line = panel["panel"], says, *results, at_settings(panel, rows["quick"])
                lines.append((*line, panel["network"]))
    return papers


def at_settings(panel: dict, rows: list[dict]) -> str:
    """'12/15; fresh ✓': at how many other settings the condition of a panel has the same sign, and
    its sign at fresh seeds."""
    key, _, condition = panel.get("quick", panel["paper"]).partition("; ")
    signs = {
        row["setting"]: holds(row, row["conditions"][condition])
        for row in rows
        if f"{row['claim']}/{row['case']}" == key and condition in row["conditions"]
    }
    base, fresh = signs.pop(BASE, None), signs.pop(FRESH, "")
    parts = [f"{[*signs.values()].count(base)}/{len(signs)}"] if signs else []
    return "; ".join(parts if fresh == "" else [*parts, f"fresh {SIGNS[fresh]}"])


def panel_result(panel: dict, scale: str, rows: dict) -> str:
    """'4% [2, 6] **✓**'."""
    name = panel.get(scale, panel["paper"])
    if not name:
        return "not run"
    quantity = number(f"{scale} {name}", rows, panel.get("must", ""))
    known = quantity["value"] is not None
    value = formatted(quantity, panel["how"]) if known else "not identified"
    return f"{value} **{formatted(quantity, 'sign')}**"
