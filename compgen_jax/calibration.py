"""How the criteria of any paper are tried on what is known, before they judge a network.

A case has a `claim`, the names of what is known that must come out as reproduced (`mechanism`) and
that must not (`excluded`), and of the latter those that the reading as stated cannot tell from the
mechanism (`passes`). What is in neither is shown, and nothing is asked of it.
"""

from compgen_jax.claims import READINGS, REPRODUCED


def decided(row: dict) -> tuple:
    """A claim's verdicts: as stated, stricter."""
    return tuple(row[reading]["verdict"] for reading in READINGS)


def wrongly_decided(table: dict, cases: tuple) -> list[str]:
    """What of {claim: {name: its verdicts}} is not as `cases` ask, in words; [] of criteria that
    may judge."""
    wrong = []
    for case in cases:
        for name, verdicts in table.get(case.claim, {}).items():
            for reading, verdict in zip(READINGS, verdicts, strict=True):
                free = reading == "as_stated" and name in case.passes
                missed = name in case.mechanism and verdict != REPRODUCED
                passed = name in case.excluded and not free and verdict == REPRODUCED
                if missed or passed:
                    wrong.append(f"{case.claim} {reading}: {name} is {verdict}")
    return wrong


def excluding(names, *others) -> tuple:
    return tuple(name for name in names if name not in others)
