"""Known answers: only a criterion that decides rightly on these may judge a network.

A known answer takes the place of a finished run: it answers the same questions (`Run.known`). A
case says, for one claim, which known answers are its mechanism and which are not:

    Case("C6", ("fading", "swirling"), ("composer", "noise"), passes=("composer",),
         runs=lambda name, known: {"net": known[name], "composer": known["another composer"]})

A `Calibration` tries the claims of its cases on all its known answers; `wrongly_decided` says what
comes out wrong.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from compgen_jax.claims import READINGS, REPRODUCED, Claim, Evidence, judge


class Case(NamedTuple):
    """One claim, tried on known answers.

    claim: the claim's name, or a title that begins with it ('C7, MLP').
    mechanism: known answers that both readings must call reproduced.
    excluded: those that no reading may call so.
    passes: of the excluded, those that the reading as stated cannot tell from the mechanism.
    runs: name, all known answers -> the claim's runs by argument.
    fields: of the claim's `each`.
    row: the claim itself, where its name alone does not tell which row is meant.
    """

    claim: str
    mechanism: tuple
    excluded: tuple
    passes: tuple = ()
    runs: Callable = lambda name, known: {"net": known[name]}
    fields: dict = {}
    row: Claim | None = None


class Calibration(NamedTuple):
    """Cases tried on the same known answers.

    title: such as 'N = 16, donut'.  does: what each known answer does, in words, by name.
    make: () -> the known answers by name, and whatever else the cases' `runs` ask for.
    """

    title: str
    does: dict[str, str]
    cases: tuple[Case, ...]
    make: Callable[[], dict[str, Any]]


def decided(calibration: Calibration, claims) -> dict:
    """{claim: {known answer: (verdict as stated, stricter)}}"""
    known, by_name = calibration.make(), {}
    for claim in claims:
        by_name.setdefault(claim.name, claim)
    table = {}
    for case in calibration.cases:
        claim = case.row or by_name[case.claim]
        table[case.claim] = {
            name: verdicts(judge(claim, Evidence(case.runs(name, known), case.fields)))
            for name in calibration.does
        }
    return table


def verdicts(judged: dict) -> tuple[str, ...]:
    """The verdicts of both readings of a judged claim."""
    return tuple(judged[reading]["verdict"] for reading in READINGS)


def wrongly_decided(table: dict, cases: tuple[Case, ...]) -> list[str]:
    """What of {claim: {known answer: verdicts}} differs from what the cases ask, in words."""
    wrong = []
    for case in cases:
        for name, found in table.get(case.claim, {}).items():
            for reading, verdict in zip(READINGS, found, strict=True):
                free = reading == "as_stated" and name in case.passes
                missed = name in case.mechanism and verdict != REPRODUCED
                passed = name in case.excluded and not free and verdict == REPRODUCED
                if missed or passed:
                    wrong.append(f"{case.claim} {reading}: {name} is {verdict}")
    return wrong


def excluding(names, *others) -> tuple:
    return tuple(name for name in names if name not in others)
