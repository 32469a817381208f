"""Verdicts that survive their settings: claims judged at every setting of their base networks.

Rows of settings.json, one for each claim and setting, as stated: claim, code, statement, setting,
in_paper, verdict, reason, measured, ci95, trained, criterion (at the base). The setting 'base' is
the claim as it stands.
"""

import fnmatch
import re
from collections.abc import Iterable

from compgen_jax.claims import (
    CONTRADICTED,
    INCONCLUSIVE,
    NOT_RUN,
    NOT_TRAINED,
    READINGS,
    REPRODUCED,
    Evidence,
    evidence_of,
    evidences,
    heading,
    judge_reading,
)

BASE = "base"
AT_BASE = "the base settings"  # in a reason
AS_STATED, STRICTER = READINGS
QUICK = "quick: "  # before the name of a setting whose networks are smaller than the claim's
MOST_NAMED = 2  # settings in a reason
KEY = ("claim", "code", "statement")


# --- judging at a setting ----------------------------------------------------------------------


def at_base(judged: list[dict]) -> list[dict]:
    """The rows of the base for judged claims."""
    return [_row(without_settings(claim), BASE, True) for claim in judged]


def bases_of(rows: list[dict], judged: list[dict]) -> list[dict]:
    """The rows of the base for those judged claims that have rows of settings."""
    asked = set(map(key_of, rows))
    return at_base([claim for claim in judged if key_of(claim) in asked])


def at_setting(
    claims,
    judged: list[dict],
    runs: dict,
    replaced: dict,
    names: Iterable[str],
    setting: str,
    in_paper: bool = True,
) -> list[dict]:
    """The rows of one setting, for the claims that compare only runs that have it. With one of them
    left at the base, a comparison would measure what the setting changes.

    Args: judged: the claims at the base; others are not asked. runs: by name, at the base.
    replaced: those of the setting, by the names of their bases. names: of all runs, finished or
    not; a claim on all runs of a pattern is asked if the setting has all of them.
    """
    base, rows = {key_of(claim): without_settings(claim) for claim in judged}, []
    for claim in claims:
        for evidence in evidences(claim, runs):
            key = key_of(heading(claim, evidence))
            there = evidence_of(claim, evidence.fields, {**runs, **replaced})
            if key in base and there is not None:
                try:
                    there = _AtSetting(there, replaced, names)
                    reading, _ = judge_reading(claim, there, AS_STATED)
                except _NotChanged:
                    continue
                if not _is_missing(reading):
                    reading["criterion"] = base[key][AS_STATED]["criterion"]
                    rows.append(_row(base[key] | {AS_STATED: reading}, setting, in_paper))
    return rows


class _NotChanged(Exception):
    """A reading asked for a run that is not at the setting."""


class _AtSetting(Evidence):
    """Evidence whose runs are all at a setting; numbers that are written down are as they are.
    Raises _NotChanged for other runs, and where a run of a pattern is not at the setting."""

    def __init__(self, evidence: Evidence, replaced: dict, every: Iterable[str]):
        super().__init__(evidence.runs, evidence.fields, evidence.names)
        self._changed, self._left = list(replaced.values()), set(every) - replaced.keys()

    def __getattr__(self, name):
        value, pattern = super().__getattr__(name), self.names.get(name)
        for run in value if isinstance(value, list) else [value]:
            if hasattr(run, "seeds") and not any(run is one for one in self._changed):
                raise _NotChanged
        if isinstance(pattern, str) and "*" in pattern and fnmatch.filter(self._left, pattern):
            raise _NotChanged
        return value

    @property
    def first(self):
        getattr(self, next(iter(self.runs)))
        return super().first


def _row(claim: dict, setting: str, in_paper: bool, reading: str = AS_STATED) -> dict:
    reading = claim[reading]
    return {name: claim[name] for name in KEY} | {
        "setting": setting,
        "in_paper": in_paper,
        **{name: reading[name] for name in ("verdict", "reason", "measured", "ci95")},
        "trained": not reading["reason"].startswith(NOT_TRAINED),
        "criterion": reading["criterion"],
    }


def _is_missing(reading: dict) -> bool:
    return reading["reason"].startswith(NOT_RUN)


def key_of(row: dict) -> tuple:
    return tuple(row[name] for name in KEY)


def current(rows: list[dict], judged: list[dict]) -> list[dict]:
    """Those rows whose claim is still judged by the criterion that it had."""
    criteria = {key_of(claim): claim[AS_STATED]["criterion"] for claim in judged}
    return [row for row in rows if criteria.get(key_of(row)) == row["criterion"]]


def merged(before: list[dict], added: list[dict]) -> list[dict]:
    """Rows of settings.json with added ones in the place of those of the same claim and setting."""
    by_key = {(key_of(row), row["setting"]): row for row in (*before, *added)}
    return list(by_key.values())


# --- what the settings say of a verdict --------------------------------------------------------


def with_settings(judged: list[dict], rows: list[dict], quick: list[dict] = ()) -> list[dict]:
    """Judged claims, as stated, with the verdicts of other settings beside their own.

    A reading that was asked at other settings gets 'settings': its verdict and reason at the base,
    how many trained settings agree, of how many, how many of these are quick, how many were not
    trained, and the names of those that differ. It becomes inconclusive if its verdict depends on a
    setting. A claim that has all this already gets it anew.

    Args: rows: of settings.json at this scale. quick: those of the quick scale, for the paper's.
    """
    judged = [without_settings(claim) for claim in judged]
    return [
        _with_others(
            claim,
            _others(claim, rows, quick),
            {reading: _siblings(claim, judged, reading) for reading in READINGS},
        )
        for claim in judged
    ]


def without_settings(claim: dict) -> dict:
    """A judged claim with its verdicts at the base alone."""
    readings = {name: dict(claim[name]) for name in READINGS}
    for reading in readings.values():
        settings = reading.pop("settings", {})
        reading |= {name: settings[name] for name in ("verdict", "reason") if settings}
    return claim | readings


def _others(claim: dict, rows: list[dict], quick: list[dict]) -> list[dict]:
    """Rows of other settings, as stated: those of this scale, and those of the quick scale."""
    sentence, any_number = _sentence(claim), _sentence(claim, any_number=True)
    found = [row for row in rows if _sentence(row) == sentence and row["setting"] != BASE]
    found += [
        row | {"setting": QUICK + (AT_BASE if row["setting"] == BASE else row["setting"])}
        for row in quick
        if _sentence(row, any_number=True) == any_number
    ]
    return [row for row in found if not _is_missing(row)]


def _siblings(claim: dict, judged: list[dict], reading: str) -> list[dict]:
    """Rows, of a reading, of the judged claims whose code names another setting of this one."""
    found = [
        _row(one, _setting(one) or AT_BASE, True, reading)
        for one in judged
        if key_of(one) != key_of(claim) and _sentence(one) == _sentence(claim)
    ]
    return [row for row in found if not _is_missing(row)]


def _setting(claim: dict) -> str:
    """What its code says of the setting: 'upright' of 'bump, upright'."""
    return claim["code"].partition(", ")[2]


def _sentence(row: dict, any_number: bool = False) -> tuple:
    """What a row shares with those of other settings; with those of another scale but for the
    numbers in its statement."""
    statement = of_any_scale(row["statement"]) if any_number else row["statement"]
    return row["claim"], row["code"].partition(", ")[0], statement


def of_any_scale(statement: str) -> str:
    """The statement without the numbers that differ between scales: all but depths."""
    return re.sub(r"(?<!depth )\b\d+", "#", statement)


def _with_others(claim: dict, others: list[dict], siblings: dict[str, list[dict]]) -> dict:
    """The claim with what other settings say. The siblings have both readings, the others that as
    stated alone: one that is contradicted there speaks of a stricter one that asks all that it
    asks, too, but is not counted with it. 'Contradicted' is withdrawn where another setting could
    give something else."""
    if not others and not siblings[AS_STATED]:
        return claim
    stated, stricter = (claim[reading] for reading in READINGS)
    readings = {AS_STATED: _beside(stated, others + siblings[AS_STATED])}
    if all(stricter[key] == stated[key] for key in ("criterion", "verdict", "reason")):
        readings[STRICTER] = _beside(stricter, others + siblings[AS_STATED])
    else:
        speaks = stricter["verdict"] == CONTRADICTED or _asks_all_of(stated, stricter)
        fails = [row for row in others if speaks and row["verdict"] == CONTRADICTED]
        found = _beside(stricter, siblings[STRICTER], fails)
        if found["verdict"] == CONTRADICTED and (unknown := _opposed(CONTRADICTED, others)):
            found |= {"verdict": INCONCLUSIVE, "reason": f"not asked at {named(unknown)}"}
        changes = found["verdict"] != stricter["verdict"]
        readings[STRICTER] = found if changes or siblings[STRICTER] else stricter
    return claim | readings


def _asks_all_of(stated: dict, stricter: dict) -> bool:
    asked, more = (set(reading["criterion"].split("; ")) for reading in (stated, stricter))
    return asked <= more


def _beside(reading: dict, others: list[dict], uncounted: list[dict] = ()) -> dict:
    """A reading with its 'settings', and without its verdict if that depends on one, or on one of
    those that are not counted."""
    trained = [row for row in others if row["trained"]]
    differ = [row["setting"] for row in trained if row["verdict"] != reading["verdict"]]
    settings = {
        "verdict": reading["verdict"],
        "reason": reading["reason"],
        "agree": len(trained) - len(differ),
        "trained": len(trained),
        "quick": sum(row["setting"].startswith(QUICK) for row in trained),
        "untrained": len(others) - len(trained),
        "differ": differ,
    }
    opposed = _opposed(reading["verdict"], [*others, *uncounted])
    depends = {"verdict": INCONCLUSIVE, "reason": f"depends on {named(opposed)}"}
    return reading | {"settings": settings} | (depends if opposed else {})


def _opposed(verdict: str, rows: list[dict]) -> list[str]:
    """The settings because of which a verdict is withdrawn.

    The base is one guess among all settings that a paper's text allows, so no verdict may depend on
    which of them is called the base. If one setting gives 'reproduced' and another 'contradicted',
    neither stands. Beside inconclusive settings 'reproduced' stands, and its share tells how far.
    'Contradicted' does not: it says that the paper is wrong, so every setting must give it.
    """
    against = {REPRODUCED: (CONTRADICTED,), CONTRADICTED: (REPRODUCED, INCONCLUSIVE)}
    names = against.get(verdict, ())
    return [
        row["setting"]
        for row in rows
        if row["trained"] and row["in_paper"] and row["verdict"] in names
    ]


def named(settings: list[str]) -> str:
    """The first settings' names, and the number of the others."""
    more = [f"{len(settings) - MOST_NAMED} more"] if len(settings) > MOST_NAMED else []
    return "; ".join([*settings[:MOST_NAMED], *more])


def share(reading: dict) -> str:
    """'12 of 15' trained settings that give the verdict of the base; '' if there is none."""
    settings = reading.get("settings", {"trained": 0})
    return f"{settings['agree']} of {settings['trained']}" if settings["trained"] else ""
