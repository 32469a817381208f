"""S1 and S2: do more sets of modules, wider students, any code and any support lead to composition?

Which runs answer is picked by their configs (`runs`).
"""

import numpy as np

from compgen_jax.claims import TRAINED, Claim, Condition, once
from compgen_jax.papers.scale import runs
from compgen_jax.papers.scale.quantities import (
    COMPOSED,
    bracketed,
    needed_for,
    not_bracketed,
    score,
    scores,
    slope,
)

TRAINED_CODES = 0.9  # R² ID from which a student of another code counts as trained
AFFINE = 0.9  # R² of an affine map from code to latent, from which a code is called affine
RISE, APART = 0.1, 0.05
# Supports that leave out, or barely show, part of the space of tasks, and those that cover it.
UNCOVERED, COVERED = ("disconnected", "non_compositional", "unpopular"), ("popular", "equal")
CODES = ("fewshot", "interval_shuffle", "invertible", "orthogonal", "tokens")
STUDENTS = {"students": "modules_*"}
GATE = {"trained_name": "R² ID", "trained_at": TRAINED}


# --- S1: sets, widths, modules -----------------------------------------------------------------


@once
def grid(e) -> dict[int, list]:
    return runs.seen_by_width(e.students)


def has_grid(e) -> bool:
    """Whether there are several widths and numbers of sets seen."""
    return len(grid(e)) > 1 and min(map(len, grid(e).values())) > 1


@once
def fewest_and_most(e):
    """The widest students that saw the fewest and the most sets, and how many these are."""
    of_width = grid(e)[max(grid(e))]
    few, many = of_width[0], of_width[-1]
    return few, many, runs.sets_seen(few.config), runs.sets_seen(many.config)


def more_sets_stated(e):
    few, many, fewest, most = fewest_and_most(e)
    rise = score(many, "ood.r2") - score(few, "ood.r2")
    return (Condition(f"R² OOD at {most} - at {fewest} sets seen", rise, above=RISE),)


def more_sets_stricter(e):
    few, many, fewest, most = fewest_and_most(e)
    gain = score(many, "ood.gain")
    rise = gain - score(few, "ood.gain")
    return (
        Condition(f"gain OOD at {most} - at {fewest} sets seen", rise, above=RISE),
        Condition(f"gain OOD at {most} sets", gain, above=COMPOSED),
    )


def more_sets_details(e):
    few, many, fewest, _ = fewest_and_most(e)
    return {
        f"R² OOD at {fewest} sets": score(few, "ood.r2"),
        "R² OOD at the most": score(many, "ood.r2"),
    }


@once
def by_width(e) -> dict:
    """{width: student that saw the most sets}"""
    return {width: of_width[-1] for width, of_width in grid(e).items()}


def per_doubling(e, name: str):
    """(T,): the slope of a score on the logarithm of the width, to base 2."""
    return slope(np.log2(list(by_width(e))), scores(by_width(e).values(), name))


def wider_stated(e):
    *_, widest = by_width(e)
    rise = per_doubling(e, "ood.r2")
    gain = score(by_width(e)[widest], "ood.gain")
    return (
        Condition("slope of R² OOD per doubling of width", rise, above=0.0),
        Condition(f"gain OOD at width {widest}", gain, above=COMPOSED),
    )


def wider_stricter(e):
    *_, second, widest = by_width(e)
    rise = per_doubling(e, "ood.gain")
    gain = score(by_width(e)[widest], "ood.gain")
    last = gain - score(by_width(e)[second], "ood.gain")
    return (
        Condition("slope of gain OOD per doubling of width", rise, above=0.0),
        Condition(f"gain OOD at width {widest} - at {second}", last, above=0.0),
        Condition(f"gain OOD at width {widest}", gain, above=COMPOSED),
    )


@once
def by_modules(e) -> dict[int, list]:
    return runs.seen_by_modules(e.students)


def sets_needed(of_modules: list):
    """(T,): sets seen that give the gain .5; see `needed_for`."""
    seen = [runs.sets_seen(run.config) for run in of_modules]
    return needed_for(seen, scores(of_modules, "ood.gain"))


@once
def needed_by_modules(e):
    """(M, T)"""
    return np.stack([sets_needed(of_modules) for of_modules in by_modules(e).values()])


def growth_of_sets_needed(e):
    all_sets = [of_modules[-1].summary["task"]["sets"] for of_modules in by_modules(e).values()]
    exponent = slope(np.log(all_sets), np.log(bracketed(needed_by_modules(e))))
    over = ", ".join(map(str, by_modules(e)))
    return (Condition(f"exponent over {over} modules", exponent, below=1.0),)


@once
def architectures(e) -> list[list]:
    """Of an MLP and of a transformer, the runs with the most modules that both have, by sets seen;
    [] if there are none."""
    mlps, transformers = by_modules(e), runs.seen_by_modules(e.students, "task_transformer")
    both = sorted(mlps.keys() & transformers.keys())
    return [of_model[both[-1]] for of_model in (mlps, transformers)] if both else []


@once
def needed_by_architectures(e):
    """(2, T)"""
    return np.stack([sets_needed(of_model) for of_model in architectures(e)])


def ratio_of_sets_needed(e):
    mlp, transformer = bracketed(needed_by_architectures(e))
    name = "sets needed, transformer / MLP"
    return (Condition(name, transformer / mlp, below=1.0, ratio=True),)


S1 = (
    Claim(
        "S1a",
        "more sets of modules seen raise R² on held-out ones",
        figure="scale1",
        code="data",
        runs=STUDENTS,
        when=has_grid,
        trained=lambda e: score(fewest_and_most(e)[1], "id.r2"),
        **GATE,
        as_stated=more_sets_stated,
        stricter=more_sets_stricter,
        details=more_sets_details,
    ),
    Claim(
        "S1b",
        "wider students compose better",
        figure="scale1",
        code="width",
        runs=STUDENTS,
        when=has_grid,
        trained=lambda e: score(by_width(e)[max(by_width(e))], "id.r2"),
        **GATE,
        as_stated=wider_stated,
        stricter=wider_stricter,
        details=lambda e: {
            f"R² OOD at width {width}": score(run, "ood.r2") for width, run in by_width(e).items()
        },
    ),
    Claim(
        "S1c",
        "the seen sets that are needed grow more slowly than all sets",
        figure="scale1",
        code="tasks needed",
        runs=STUDENTS,
        when=lambda e: len(by_modules(e)) > 1,
        trained=lambda e: scores([own[-1] for own in by_modules(e).values()], "id.r2").min(axis=0),
        **GATE,
        as_stated=growth_of_sets_needed,
        undecided_because=lambda e: not_bracketed(needed_by_modules(e), "the fewest sets"),
    ),
    Claim(
        "S1d",
        "a transformer needs fewer sets than an MLP of as many parameters",
        figure="scale1",
        code="architecture",
        runs=STUDENTS,
        when=architectures,
        trained=lambda e: scores([own[-1] for own in architectures(e)], "id.r2").min(axis=0),
        **GATE,
        as_stated=ratio_of_sets_needed,
        undecided_because=lambda e: not_bracketed(needed_by_architectures(e), "the fewest sets"),
    ),
)


# --- S2: codes and supports --------------------------------------------------------------------


def title_of_code(e) -> str:
    kind = "affine" if e.student.summary["task"]["code_r2"] >= AFFINE else "not affine"
    return f"{e.encoding.replace('_', ' ')} ({kind})"


def gain_ood(e):
    return score(e.student, "ood.gain")


def random_beyond_student(name: str):
    return lambda e: score(e.random, name) - score(e.student, name)


GAIN = Condition("gain OOD", gain_ood, above=COMPOSED)
OF_SUPPORT = {
    "figure": "scale2",
    "code": lambda e: e.support.replace("_", " "),
    "runs": {"random": "{size}", "student": "{size}_{support}"},
    "trained": lambda e: scores([e.random, e.student], "id.r2").min(axis=0),
    "details": {"R² OOD": lambda e: score(e.student, "ood.r2"), "gain OOD": gain_ood},
    **GATE,
}
SIZES_OF_SUPPORTS = ("modules_8_seen_44_width_256", "modules_16_seen_522_width_1024")
RANDOM_COMPOSES = Condition(
    "gain OOD random", lambda e: score(e.random, "ood.gain"), above=COMPOSED
)
STUDENT_COMPOSES = Condition("gain OOD {support}", gain_ood, above=COMPOSED)
SUPPORT_MATTERS = Claim(
    "S2b",
    "a support that leaves out, or barely shows, part of the space of tasks is composed less than "
    "sets at random",
    each={"support": UNCOVERED, "size": SIZES_OF_SUPPORTS},
    as_stated=(
        Condition("R² OOD random - {support}", random_beyond_student("ood.r2"), above=APART),
        RANDOM_COMPOSES,
    ),
    stricter=(
        Condition("gain OOD random - {support}", random_beyond_student("ood.gain"), above=APART),
        RANDOM_COMPOSES,
    ),
    **OF_SUPPORT,
)
COVERING_IS_ENOUGH = Claim(
    "S2b",
    "a support that covers the space of tasks is composed as well as sets at random",
    each={"support": COVERED, "size": SIZES_OF_SUPPORTS},
    as_stated=(
        Condition("R² OOD random - {support}", random_beyond_student("ood.r2"), below=APART),
        STUDENT_COMPOSES,
    ),
    stricter=(
        Condition("gain OOD random - {support}", random_beyond_student("ood.gain"), below=APART),
        STUDENT_COMPOSES,
    ),
    **OF_SUPPORT,
)
S2 = (
    Claim(
        "S2a",
        "held-out sets are composed from another code than the latent itself",
        figure="scale2",
        code=title_of_code,
        each={
            "encoding": CODES,
            "size": (
                "modules_8_seen_69_width_256",
                "modules_16_seen_522_width_256",
                "modules_16_seen_522_width_1024",
            ),
        },
        runs={"student": "{size}_{encoding}"},
        trained=lambda e: score(e.student, "id.r2"),
        trained_name="R² ID",
        trained_at=TRAINED_CODES,
        as_stated=(GAIN,),
        stricter=(
            GAIN,
            Condition(
                "error OOD / ID",
                lambda e: score(e.student, "ood.mse") / score(e.student, "id.mse"),
                below=2.0,
                ratio=True,
            ),
        ),
        details={
            "R² OOD": lambda e: score(e.student, "ood.r2"),
            "gain ID": lambda e: score(e.student, "id.gain"),
            "R² of the latent from the code": lambda e: np.full(
                len(e.student.seeds), e.student.summary["task"]["code_r2"]
            ),
        },
    ),
    SUPPORT_MATTERS,
    COVERING_IS_ENOUGH,
)
CLAIMS = S1 + S2
