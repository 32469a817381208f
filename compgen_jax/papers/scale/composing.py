"""S1 and S2: do more sets of modules, wider students, any code and any support lead to composition?

Which runs answer is picked by their configs (`runs`).
"""

from functools import partial

import numpy as np

from compgen_jax.claims import Claim, Condition, once
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
TITLES = {"ood.r2": "R² OOD", "ood.gain": "gain OOD"}
of_sets = partial(Claim, figure="scale1", runs=STUDENTS, trained_name="R² ID")
of_one_size = partial(Claim, figure="scale2", trained_name="R² ID")


# --- S1: sets, widths, modules -----------------------------------------------------------------


@once
def grid(e) -> dict[int, list]:
    return runs.seen_by_width(e.students)


def has_grid(e) -> bool:
    """Whether there are several widths and numbers of sets seen."""
    return len(grid(e)) > 1 and min(map(len, grid(e).values())) > 1


def widest(e) -> list:
    """The widest students, by sets seen."""
    return grid(e)[max(grid(e))]


def rise_with_sets(e, name: str) -> Condition:
    few, many = widest(e)[0], widest(e)[-1]
    fewest, most = runs.sets_seen(few.config), runs.sets_seen(many.config)
    title = f"{TITLES[name]} at {most} - at {fewest} sets seen"
    return Condition(title, score(many, name) - score(few, name), above=RISE)


def gain_with_most_sets(e) -> Condition:
    many = widest(e)[-1]
    title = f"gain OOD at {runs.sets_seen(many.config)} sets"
    return Condition(title, score(many, "ood.gain"), above=COMPOSED)


def by_width(e, name: str) -> dict:
    """{width: (T,) a score with the most sets seen}"""
    return {width: score(of_width[-1], name) for width, of_width in grid(e).items()}


def slope_with_width(e, name: str) -> Condition:
    scored = by_width(e, name)
    per_doubling = slope(np.log2(list(scored)), np.stack(list(scored.values())))
    return Condition(f"slope of {TITLES[name]} per doubling of width", per_doubling, above=0.0)


def gain_at_the_widest(e) -> Condition:
    width, gain = list(by_width(e, "ood.gain").items())[-1]
    return Condition(f"gain OOD at width {width}", gain, above=COMPOSED)


def last_rise_with_width(e) -> Condition:
    (second, less), (width, gain) = list(by_width(e, "ood.gain").items())[-2:]
    return Condition(f"gain OOD at width {width} - at {second}", gain - less, above=0.0)


@once
def by_modules(e) -> dict[int, list]:
    return runs.seen_by_modules(e.students)


@once
def by_architecture(e) -> list[list]:
    """The runs of an MLP and of a transformer with the most modules that both have, by sets seen;
    [] if there are none."""
    mlps, transformers = by_modules(e), runs.seen_by_modules(e.students, "task_transformer")
    both = sorted(mlps.keys() & transformers.keys())
    return [of_model[both[-1]] for of_model in (mlps, transformers)] if both else []


def sets_needed(groups):
    """(G, T): sets seen that give the gain .5, for groups of runs; see `needed_for`."""
    seen = lambda group: [runs.sets_seen(run.config) for run in group]
    return np.stack([needed_for(seen(group), scores(group, "ood.gain")) for group in groups])


def id_r2_with_most_sets(groups):
    """(T,): the least of the groups."""
    return scores([group[-1] for group in groups], "id.r2").min(axis=0)


def growth_of_sets_needed(e):
    groups = by_modules(e).values()
    all_sets = [group[-1].summary["task"]["sets"] for group in groups]
    exponent = slope(np.log(all_sets), np.log(bracketed(sets_needed(groups))))
    over = ", ".join(map(str, by_modules(e)))
    return (Condition(f"exponent over {over} modules", exponent, below=1.0),)


def ratio_of_sets_needed(e):
    mlp, transformer = bracketed(sets_needed(by_architecture(e)))
    name = "sets needed, transformer / MLP"
    return (Condition(name, transformer / mlp, below=1.0, ratio=True),)


S1 = (
    of_sets(
        "S1a",
        "more sets of modules seen raise R² on held-out ones",
        code="data",
        when=has_grid,
        trained=lambda e: score(widest(e)[-1], "id.r2"),
        as_stated=lambda e: (rise_with_sets(e, "ood.r2"),),
        stricter=lambda e: (rise_with_sets(e, "ood.gain"), gain_with_most_sets(e)),
        details=lambda e: {
            f"R² OOD at {runs.sets_seen(widest(e)[0].config)} sets": score(widest(e)[0], "ood.r2"),
            "R² OOD at the most": score(widest(e)[-1], "ood.r2"),
        },
    ),
    of_sets(
        "S1b",
        "wider students compose better",
        code="width",
        when=has_grid,
        trained=lambda e: score(widest(e)[-1], "id.r2"),
        as_stated=lambda e: (slope_with_width(e, "ood.r2"), gain_at_the_widest(e)),
        stricter=lambda e: (
            slope_with_width(e, "ood.gain"),
            last_rise_with_width(e),
            gain_at_the_widest(e),
        ),
        details=lambda e: {
            f"R² OOD at width {width}": r2 for width, r2 in by_width(e, "ood.r2").items()
        },
    ),
    of_sets(
        "S1c",
        "the seen sets that are needed grow more slowly than all sets",
        code="tasks needed",
        when=lambda e: len(by_modules(e)) > 1,
        trained=lambda e: id_r2_with_most_sets(by_modules(e).values()),
        as_stated=growth_of_sets_needed,
        undecided_because=lambda e: not_bracketed(
            sets_needed(by_modules(e).values()), "the fewest sets"
        ),
    ),
    of_sets(
        "S1d",
        "a transformer needs fewer sets than an MLP of as many parameters",
        code="architecture",
        when=by_architecture,
        trained=lambda e: id_r2_with_most_sets(by_architecture(e)),
        as_stated=ratio_of_sets_needed,
        undecided_because=lambda e: not_bracketed(
            sets_needed(by_architecture(e)), "the fewest sets"
        ),
    ),
)


# --- S2: codes and supports --------------------------------------------------------------------


def of_student(name: str):
    return lambda e: score(e.student, name)


def title_of_code(e) -> str:
    kind = "affine" if e.student.summary["task"]["code_r2"] >= AFFINE else "not affine"
    return f"{e.encoding.replace('_', ' ')} ({kind})"


def error_ratio(e):
    return score(e.student, "ood.mse") / score(e.student, "id.mse")


def apart(name: str, **bound) -> Condition:
    """Random sets against a support."""
    difference = lambda e: score(e.random, name) - score(e.student, name)
    return Condition(f"{TITLES[name]} random - {{support}}", difference, **bound)


def of_support(supports: tuple, statement: str, composed: Condition, **bound) -> Claim:
    """S2b of these supports. `bound`: of what random sets are better by."""
    sizes = "modules_8_seen_44_width_256", "modules_16_seen_522_width_1024"
    return of_one_size(
        "S2b",
        statement,
        code=lambda e: e.support.replace("_", " "),
        each={"support": supports, "size": sizes},
        runs={"random": "{size}", "student": "{size}_{support}"},
        trained=lambda e: scores([e.random, e.student], "id.r2").min(axis=0),
        as_stated=(apart("ood.r2", **bound), composed),
        stricter=(apart("ood.gain", **bound), composed),
        details={title: of_student(name) for name, title in TITLES.items()},
    )


GAIN = Condition("gain OOD", of_student("ood.gain"), above=COMPOSED)
SIZES_OF_CODES = (
    "modules_8_seen_69_width_256", "modules_16_seen_522_width_256", "modules_16_seen_522_width_1024"
)  # fmt: skip
CODE_IS_COMPOSED = of_one_size(
    "S2a",
    "held-out sets are composed from another code than the latent itself",
    code=title_of_code,
    each={"encoding": CODES, "size": SIZES_OF_CODES},
    runs={"student": "{size}_{encoding}"},
    trained=of_student("id.r2"),
    trained_at=TRAINED_CODES,
    as_stated=(GAIN,),
    stricter=(GAIN, Condition("error OOD / ID", error_ratio, below=2.0, ratio=True)),
    details={
        "R² OOD": of_student("ood.r2"),
        "gain ID": of_student("id.gain"),
        "R² of the latent from the code": lambda e: np.full(
            len(e.student.seeds), e.student.summary["task"]["code_r2"]
        ),
    },
)
SUPPORT_MATTERS = of_support(
    UNCOVERED,
    "a support that leaves out, or barely shows, part of the space of tasks is composed less than "
    "sets at random",
    Condition("gain OOD random", lambda e: score(e.random, "ood.gain"), above=COMPOSED),
    above=APART,
)
COVERING_IS_ENOUGH = of_support(
    COVERED,
    "a support that covers the space of tasks is composed as well as sets at random",
    Condition("gain OOD {support}", of_student("ood.gain"), above=COMPOSED),
    below=APART,
)
CLAIMS = (*S1, CODE_IS_COMPOSED, SUPPORT_MATTERS, COVERING_IS_ENOUGH)
