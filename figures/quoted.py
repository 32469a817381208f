"""Committed numbers that pages quote, by name.

`quick C1/bump; NUMBER` is a condition or a note of a claim's row in claims.json, whose name may go
on in brackets; `quick run/NAME; METRIC` is a mean over seeds of a committed summary. With `fresh`
for `quick` it is the row at fresh seeds. panels.toml has those of the papers' panels, quoted.toml
those of pages that a person wrote, which tests/test_pages.py compares.
"""

import functools
import re
import tomllib
from pathlib import Path

import numpy as np

from compgen_jax.claims import BASE, FRESH, HOLDS, NOT_TRAINED, TRAINED
from compgen_jax.statistics import holm_factors

from . import committed

SIGNS = {True: "✓", False: "✗", None: "–"}  # of what holds
SYMBOLS = {verdict: SIGNS[holds] for verdict, holds in HOLDS.items()}
of_runs = functools.cache(committed.runs)


def by_key(rows: dict[str, list[dict]]) -> dict[str, dict]:
    """Rows of claims.json by scale -> {'quick C1/bump': its row}; 'fresh' at fresh seeds, and with
    ', SETTING' at others."""
    keys = {}
    for scale, of_scale in rows.items():
        for row in of_scale:
            kind = "fresh" if row["setting"] == FRESH else scale
            setting = "" if row["setting"] in (BASE, FRESH) else f", {row['setting']}"
            keys[f"{kind} {row['claim']}/{row['case']}{setting}"] = row
    return keys


def number(name: str, rows: dict[str, dict], must: str = "") -> dict:
    """{'value', 'ci95', 'seeds', 'holds'} of a number, and 'per_seed' where there are such. A run's
    holds, if it learnt, where the whole interval is where it `must` be, 'below 0.5' or 'above 0.5';
    None: on both sides. ValueError for an unknown name."""
    key, _, condition = name.partition("; ")
    scale, _, run = key.partition(" run/")
    if run:
        run = of_runs(scale)[run]
        mean = run.summary["mean"]
        number = {"holds": None, "must be": must, "seeds": len(run.seeds)}
        if must:
            side, bound = must.split()
            low, high = (end - float(bound) for end in mean[condition]["ci95"])
            if mean["id.exact_accuracy"]["value"] >= TRAINED and not low <= 0 <= high:
                number["holds"] = (low > 0) == (side == "above")
        return mean[condition] | number
    row = rows.get(key)
    numbers = row["notes"] | row["conditions"] if row else {}
    matching = [name for name in numbers if f"{name} (".startswith(f"{condition} (")]
    if not matching:
        raise ValueError(f"{name}: no such number")
    number = numbers[min(matching, key=len)]
    return number | {"holds": holds(row, number), "seeds": len(row["seeds"])}


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
    for name, sections in papers.items():
        of_panels = panel_numbers(name, base)
        for section in sections:
            lines = section["lines"] = []
            section["scale"] = "paper" if section["picture"] in drawn else "quick"
            for panel in section["panel"]:
                says = f"{panel['panel']}. {panel['says']}" if panel["panel"] else panel["says"]
                if "quotes" in panel:
                    says = says.format(formatted(number(f"paper {panel['quotes']}", base), "%."))
                key_quick = panel.get("quick", panel["paper"])
                full = of_panels.get(f"paper {panel['paper']}")
                quick = of_panels.get(f"quick {key_quick}")
                key, _, condition = key_quick.partition("; ")
                signs = {
                    row["setting"]: SIGNS[holds(row, row["conditions"][condition])]
                    for row in rows["quick"]
                    if f"{row['claim']}/{row['case']}" == key and condition in row["conditions"]
                }
                how, holm = panel["how"], ""
                if full and "holm" in full:
                    holm = formatted(full | {"ci95": full["holm"]}, how).partition(" ")[2]
                cells = shown(full, how), holm, shown(quick, how), at_settings(signs)
                lines.append((says, *cells, panel["network"]))
    return papers


def panel_numbers(paper: str, rows: dict[str, dict]) -> dict[str, dict]:
    """The numbers of a paper's panels by name. A primary one has its interval by Holm's correction,
    'holm', over all of its scale, which decides whether it holds."""
    panels = [panel for section in read("panels")[paper] for panel in section["panel"]]
    numbers = {}
    for scale in ("paper", "quick"):
        named = {f"{scale} {panel.get(scale, panel['paper'])}": panel for panel in panels}
        named = {key: panel for key, panel in named.items() if not key.endswith(" ")}
        numbers |= {key: number(key, rows, panel.get("must", "")) for key, panel in named.items()}
        family = [key for key, panel in named.items() if panel.get("primary")]
        ratios = [halves_to_bound(numbers[key]) for key in family]
        factors = holm_factors(ratios, [numbers[key]["seeds"] for key in family])
        for key, ratio, factor in zip(family, ratios, factors, strict=True):
            if numbers[key]["value"] is not None:
                ends = widened(numbers[key], factor)
                numbers[key]["holm"] = np.clip(ends, 0, 1) if named[key]["how"] == "%" else ends
                numbers[key]["holds"] = numbers[key]["holds"] if ratio > factor else None
    return numbers


def is_ratio(number: dict) -> bool:
    """Whether mean and interval are those of the logarithm."""
    low, high = number["ci95"]
    return 0 < low < high and bool(np.isclose(low * high, number["value"] ** 2, 1e-9, 0))


def widened(number: dict, factor: float):
    """(2,) the ends of an interval that is so many times as wide, of a ratio in logarithms."""
    value, ends = number["value"], np.array(number["ci95"])
    return value * (ends / value) ** factor if is_ratio(number) else value + factor * (ends - value)


def halves_to_bound(number: dict) -> float:
    """How many half widths of its interval lie between a number and the bound that it must be above
    or below, of a ratio in logarithms; 0 for one that is not known."""
    value = number["value"]
    if value is None:
        return 0.0
    bounds = np.array(re.findall(r"-?[\d.]+", number["must be"]), float)
    ends = np.where(bounds > value, number["ci95"][1], number["ci95"][0])
    if is_ratio(number):
        value, bounds, ends = np.log(value), np.log(bounds), np.log(ends)
    return float(np.min(np.abs(bounds - value) / np.maximum(np.abs(ends - value), 1e-12)))


def at_settings(signs: dict[str, str]) -> str:
    """Signs by setting -> '12/15 ✓': at how many other settings there is the sign of the base, and
    the sign at fresh seeds."""
    others = [sign for setting, sign in signs.items() if setting not in (BASE, FRESH)]
    parts = [f"{others.count(signs.get(BASE))}/{len(others)}"] if others else []
    return " ".join([*parts, signs.get(FRESH, "")]).strip()


def shown(quantity: dict | None, how: str) -> str:
    """'4% [2, 6] **✓**'; empty for None."""
    if not quantity:
        return ""
    value = formatted(quantity, how) if quantity["value"] is not None else "not identified"
    return f"{value} **{formatted(quantity, 'sign')}**"
