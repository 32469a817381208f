"""Criteria of the second paper on what is known: only what decides rightly may judge a network.

For each claim `CASES` says which known students, constructions or readings are its mechanism, to
come out as reproduced in both readings, and which are no instance of it, not to be reproduced by
the stricter one nor, but for the exceptions named, by the one as stated. What is in neither is
shown, and nothing is asked of it.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from compgen_jax import calibration
from compgen_jax.calibration import excluding
from compgen_jax.papers.scale import (
    composing,
    decoding,
    known_constructions,
    known_readings,
    known_students,
    neurons,
)
from compgen_jax.papers.scale.composing import COVERED, UNCOVERED

SEEDS = 4
MODULES, WIDTHS, SEEN = 8, (16, 64, 256), (9, 22, 44, 69)  # of 92 sets, as in quick runs
OF_SUPPORTS = 44  # sets seen
GROWN, SHARES = (6, 8, 12), (0.1, 0.25, 0.5, 0.75)  # modules, and shares of their sets seen


class Case(NamedTuple):
    """mechanism: what must be reproduced.  excluded: what must not be.  passes: of these, what the
    reading as stated cannot tell from the mechanism.  judge: name, `Shown` -> a claim
    (`entry`)."""

    claim: str
    mechanism: tuple
    excluded: tuple
    passes: tuple
    judge: object


class Shown(NamedTuple):
    """run: name, width, sets seen, support and modules -> the student's numbers.  sets: how many
    there are of so many modules."""

    run: object
    sets: object


def shown(split) -> Shown:
    """Known students at any place. `split`: support, modules and seen sets -> all sets (T, M) and
    which are seen (T,), both bool; of 0 seen sets any."""

    @cache
    def school(support, modules, seen):
        return known_students.school(*split(support, modules, seen))

    @cache
    def run(name, width=WIDTHS[-1], seen=SEEN[-1], support="random", modules=MODULES, case=""):
        where = school(support, modules, seen)
        return known_students.numbers(name, where, width, SEEDS, f"{support} {case}")

    return Shown(run, cache(lambda modules: len(split("random", modules, 0)[0])))


def decided(split) -> dict:
    """{claim: {name: (as stated, stricter)}}; `split` as in `shown`."""
    found = shown(split)
    return {
        case.claim: {name: calibration.decided(case.judge(name, found)) for name in names}
        for names, cases, _ in KNOWN.values()
        for case in cases
    }


def wrongly_decided(table: dict) -> list[str]:
    """`claims.calibration.wrongly_decided` by `CASES`."""
    return calibration.wrongly_decided(table, CASES)


# --- students --------------------------------------------------------------------------------

seeds = tuple(range(SEEDS))


def _needed(name, found: Shown, modules=MODULES, case=""):
    """(T,) sets for the gain .5."""
    total = found.sets(modules)
    sets = SEEN if modules == MODULES else [round(share * total) for share in SHARES]
    runs = [found.run(name, seen=seen, modules=modules, case=case) for seen in sets]
    return composing.needed_for(sets, [run["ood.gain"] for run in runs])


def _sets_needed(name, found: Shown):
    needed = np.stack([_needed(name, found, modules) for modules in GROWN], axis=1)
    totals = [found.sets(modules) for modules in GROWN]
    return composing.sets_needed(seeds, GROWN, totals, needed, found.run(name))


def _of_transformer(name, found: Shown):
    """The student as the transformer, beside a learner."""
    needed = _needed("learner", found, case="mlp"), _needed(name, found)
    runs = [found.run("learner", case="mlp"), found.run(name)]
    return composing.transformer_needs_fewer(seeds, *needed, runs)


def _of_support(support, name, found: Shown):
    runs = [found.run(name, seen=OF_SUPPORTS, support=one) for one in ("random", support)]
    return composing.support_matters(seeds, support, *runs)


STUDENTS = tuple(known_students.STUDENTS)
LEARNERS = ("learner", "quick learner", "by share")
FALSE = ("bilinear", "sum of singles", "nearest", "memorizer", "approacher", "noise")
OF_STUDENTS = (
    Case(
        "S1a",
        LEARNERS,
        excluding(STUDENTS, *LEARNERS),
        ("nearest", "approacher"),  # better at the held-out sets, by what is no composing
        lambda name, found: composing.more_sets_help(
            seeds,
            *(found.run(name, seen=seen) for seen in (SEEN[0], SEEN[-1])),
            (SEEN[0], SEEN[-1]),
        ),
    ),
    Case(
        "S1b",
        LEARNERS,
        excluding(STUDENTS, *LEARNERS),
        (),
        lambda name, found: composing.wider_students_help(
            seeds, WIDTHS, [found.run(name, width) for width in WIDTHS]
        ),
    ),
    Case(
        "S1c",
        ("learner",),
        excluding(STUDENTS, "learner", "quick learner"),
        (),
        _sets_needed,
    ),
    Case("S1d", ("quick learner",), excluding(STUDENTS, "quick learner"), (), _of_transformer),
    Case(
        "S2a",
        ("composer", *LEARNERS),
        FALSE,
        (),
        lambda name, found: composing.code_is_composed(seeds, "identity", found.run(name), 1.0),
    ),
    *(
        Case(
            f"S2b, {support}",
            ("learner", "quick learner"),
            ("composer", "by share", *FALSE),
            ("by share",) * (support == "non_compositional"),  # as its bilinear part errs more
            partial(_of_support, support),
        )
        for support in UNCOVERED
    ),
    *(
        Case(
            f"S2b, {support}",
            ("composer", *LEARNERS),
            FALSE,
            (),
            partial(_of_support, support),
        )
        for support in COVERED
    ),
)

# --- constructions, widths and readings ------------------------------------------------------

OF_EXACT = (
    Case(
        "S3a",
        ("k-hot gates",),
        excluding(known_constructions.EXACT, "k-hot gates"),
        (),
        lambda name, found: neurons.k_hot_is_exact(known_constructions.rows_of(name)),
    ),
)
OF_GRADED = (
    Case(
        "S3b",
        ("graded",),
        excluding(known_constructions.GRADED, "graded"),
        (),
        lambda name, found: neurons.graded_needs_no_more(*known_constructions.graded_rows(name)),
    ),
)
OF_GROWTH = (
    Case(
        "S3c",
        ("root", "linear"),
        excluding(known_constructions.GROWTH, "root", "linear"),
        (),
        lambda name, found: neurons.width_grows_slowly(
            seeds, *known_constructions.widths_needed(name)
        ),
    ),
)


def _flat(name):
    return [run for group in known_readings.runs_of(name) for run in group]


TOLD = ("tells", "at the bound", "below")
OF_READINGS = (
    Case(
        "S4a",
        TOLD,
        excluding(known_readings.READINGS, *TOLD),
        ("by sets",),
        lambda name, found: decoding.decodability_goes_with_success(
            seeds, known_readings.runs_of(name)
        ),
    ),
    Case(
        "S4b",
        TOLD,
        excluding(known_readings.READINGS, *TOLD),
        ("by sets", "lost by all", "none composes"),
        lambda name, found: decoding.failing_networks_lose_the_latent(seeds, _flat(name)),
    ),
    Case(
        "S4c",
        ("tells", "at the bound", "all compose"),
        excluding(known_readings.READINGS, "tells", "at the bound", "all compose"),
        (),
        lambda name, found: decoding.theorem_holds(seeds, _flat(name)),
    ),
)
# what is known, of which kind: names, the claims tried on it, and what each does
KNOWN = {
    "Students": (
        STUDENTS,
        OF_STUDENTS,
        {name: one.does for name, one in known_students.STUDENTS.items()},
    ),
    "Constructions for k-hot tasks": (
        tuple(known_constructions.EXACT),
        OF_EXACT,
        known_constructions.EXACT_DO,
    ),
    "Constructions for graded tasks": (
        tuple(known_constructions.GRADED),
        OF_GRADED,
        known_constructions.GRADED_DO,
    ),
    "Widths needed": (
        tuple(known_constructions.GROWTH),
        OF_GROWTH,
        {name: one[-1] for name, one in known_constructions.GROWTH.items()},
    ),
    "Layers": (
        tuple(known_readings.READINGS),
        OF_READINGS,
        {name: one.does for name, one in known_readings.READINGS.items()},
    ),
}
CASES = tuple(case for _, cases, _ in KNOWN.values() for case in cases)
