"""Known answers that the criteria of the second paper are tried on."""

from functools import partial

from compgen_jax.calibration import Calibration, Case, excluding
from compgen_jax.papers.scale import (
    codes,
    composing,
    known_constructions,
    known_plans,
    known_readings,
    known_students,
)
from compgen_jax.papers.scale.known_students import student
from compgen_jax.tasks.module_supports import n_sets

WIDTHS, SEEN = (16, 64, 256), (9, 22, 44, 69)  # of 92 sets of 8 modules, as in quick runs
OF_SUPPORTS = 44  # sets seen
GROWN, SHARES = (6, 12), (0.1, 0.25, 0.5, 0.75)  # further numbers of modules; of their sets seen


def _by_sets(name, modules=8, seen=SEEN) -> list:
    return [student(name, seen=each, modules=modules) for each in seen]


def _by_modules(name) -> list:
    found = _by_sets(name)
    for modules in GROWN:
        total = n_sets(modules, known_students.MOST)
        found += _by_sets(name, modules, [round(share * total) for share in SHARES])
    return found


def _of_students(claim, mechanism, excluded, students) -> Case:
    runs = lambda name, known: {"students": students(name)}
    return Case(claim, mechanism, excluded, runs=runs)


def _of_support(support: str, row, mechanism, excluded, passes=()) -> Case:
    of = partial(student, seen=OF_SUPPORTS)
    runs = lambda name, known: {"random": of(name), "student": of(name, support=support)}
    title, fields = f"S2b, {support}", {"support": support}
    return Case(title, mechanism, excluded, passes, runs, fields, row)


NAMES = tuple(known_students.STUDENTS)
LEARNERS = ("learner", "quick learner", "by share")
FALSE = ("bilinear", "sum of singles", "nearest", "memorizer", "approacher", "noise")
OF_STUDENTS = (
    *(
        Case(
            title,
            LEARNERS,
            excluding(NAMES, *LEARNERS),
            # These are better at held-out sets by what is no composing.
            ("nearest", "approacher"),
            lambda name, known: dict(
                zip(("few", "many"), _by_sets(name, seen=(SEEN[0], SEEN[-1])), strict=True)
            ),
            {"student": "transformer"},
            row,
        )
        for title, row in (
            ("S1a", composing.MORE_SETS_HELP),
            ("S1d, other students", composing.MORE_SETS_HELP_OTHERS),
        )
    ),
    _of_students(
        "S1b",
        LEARNERS,
        excluding(NAMES, *LEARNERS),
        lambda name: [student(name, width) for width in WIDTHS],
    ),
    _of_students("S1c", ("learner",), excluding(NAMES, "learner", "quick learner"), _by_modules),
    Case(
        "S2a",
        ("composer", *LEARNERS),
        FALSE,
        runs=lambda name, known: {"student": student(name)},
        fields={"encoding": "identity"},
    ),
    *(
        Case(
            f"S2a, couplings{title}",
            ("composer", *LEARNERS),
            FALSE,
            passes,
            lambda name, known, authors=authors: {
                "student": student(name),
                "authors": student(authors or name),
            },
            row=codes.COUPLINGS_ARE_COMPOSED,
        )
        # The second has a composer of the nearly affine code, whatever is composed of the other.
        for title, authors, passes in (("", "", ()), (", composed if affine", "composer", FALSE))
    ),
    *(
        _of_support(
            support,
            codes.SUPPORT_MATTERS,
            ("learner", "quick learner"),
            ("composer", "by share", *FALSE),
            # The bilinear part of this learner errs more on sets with an unseen module.
            passes=("by share",) * (support == "non_compositional"),
        )
        for support in codes.UNCOVERED
    ),
    *(
        _of_support(support, codes.COVERING_IS_ENOUGH, ("composer", *LEARNERS), FALSE)
        for support in codes.COVERED
    ),
)


def _calibration(title, does, cases, known=lambda name: None) -> Calibration:
    return Calibration(title, does, cases, lambda: {name: known(name) for name in does})


def _case(claim, mechanism, names, argument, passes=()) -> Case:
    """A claim that is asked of a single answer, and not of what is no mechanism of it."""
    runs = lambda name, known: {argument: known[name]}
    return Case(claim, mechanism, excluding(names, *mechanism), passes, runs)


TOLD = ("tells", "at the bound", "below", "modules alone")
READINGS = known_readings.READINGS
CALIBRATIONS = (
    _calibration(
        "Students", {name: one.does for name, one in known_students.STUDENTS.items()}, OF_STUDENTS
    ),
    _calibration(
        "Plans in the gridworld",
        {name: one.does for name, one in known_plans.PLANS.items()},
        (
            Case(
                "S1d, preference gridworld",
                ("learner",),
                excluding(known_plans.PLANS, "learner"),
                ("approacher",),
                lambda name, known: known[name],
                row=composing.MORE_PREFERENCES_HELP,
            ),
        ),
        known_plans.runs_of,
    ),
    _calibration(
        "Constructions for k-hot tasks",
        known_constructions.EXACT_DO,
        (_case("S3a", ("k-hot gates",), known_constructions.EXACT, "built"),),
        known_constructions.exact,
    ),
    _calibration(
        "Constructions for graded tasks",
        known_constructions.GRADED_DO,
        (_case("S3b", ("graded",), known_constructions.GRADED, "built"),),
        known_constructions.graded,
    ),
    _calibration(
        "Widths needed",
        {name: one[-1] for name, one in known_constructions.GROWTH.items()},
        (_case("S3c", ("root", "linear"), known_constructions.GROWTH, "students"),),
        known_constructions.trained,
    ),
    _calibration(
        "Layers",
        {name: one.does for name, one in READINGS.items()},
        (
            _case("S4a", TOLD, READINGS, "students", passes=("by sets",)),
            _case(
                "S4b",
                TOLD,
                READINGS,
                "students",
                passes=("by sets", "lost by all", "none composes"),
            ),
            _case(
                "S4c",
                ("tells", "at the bound", "all compose"),
                READINGS,
                "students",
                passes=("modules alone",),
            ),
        ),
        known_readings.runs_of,
    ),
)
