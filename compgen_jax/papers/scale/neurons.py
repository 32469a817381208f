"""S3: MLPs express every task of a family with neurons linear in the number of modules, or fewer.

S3a and S3b judge networks that are written down (`constructions`), S3c the width that trained ones
need.
"""

import numpy as np
import pandas as pd

from compgen_jax.claims import below, claim, learnt, note
from compgen_jax.papers.scale import constructions, picks
from compgen_jax.papers.scale.quantities import exponent, needed_for, scores

EXACT = 1e-5  # error of a network in float32 that is exact
SLOPE, NEURONS, EXPONENT = -1.5, 1.1, 1.25
HALFWAY = 2.0  # neurons for 4 times the modules, halfway from as many to 4 times as many
LOW, HIGH = 8, 32  # modules whose neurons at equal error are compared
ERROR = 0.02  # relative: every curve of the quick table reaches it
REACHED = 0.95  # R² OOD that the needed width gives
BUILT = {"built": "constructions", "students": "modules_*"}


@claim("S3a", figure="scale3", cases=[{"case": "k-hot"}], runs=BUILT, after=True)
def k_hot_is_exact(built, students):
    """Two ReLUs for each hidden unit of each module, and one for each hidden unit, compute every
    k-hot task exactly."""
    table = pd.DataFrame(built.rows("exact")).pivot(index="modules", columns="seed")
    per_module = table.neurons.div(table.index, axis=0)
    growth = (per_module.iloc[-1] / per_module.iloc[0]).tolist()
    yield below(EXACT, table.max_error.max().tolist(), "largest error, float32")
    name = f"neurons per module, M = {table.index[-1]} / {table.index[0]}"
    yield below(NEURONS, growth, name, ratio=True)


@claim("S3b", figure="scale3", cases=[{"case": "graded"}], runs=BUILT)
def graded_needs_as_many(built, students, own_interval=False):
    """Graded tasks need as many ReLUs whatever the number of modules."""
    tables = [("graded", NEURONS, "")]
    if own_interval:
        tables.append(("graded_own", HALFWAY, ", on the teacher's own interval"))
    for rows, most, where in tables:
        slopes, needed = constructions.scaling(built.rows(rows), ERROR)
        seeds = sorted({seed for _, seed in needed})
        steepest = [max(slopes[case] for case in slopes if case[1] == seed) for seed in seeds]
        yield below(SLOPE, steepest, f"slope of log error on log knots{where}")
        ratio = [needed[HIGH, seed] / needed[LOW, seed] for seed in seeds]
        name = f"neurons at equal error, M = {HIGH} / {LOW}{where}"
        yield below(most, ratio, name, ratio=True)


graded_needs_few_on_its_own_interval = graded_needs_as_many.variant(
    "S3b.own_interval",
    "Graded tasks need far fewer ReLUs than in proportion to the modules, also where few modules "
    "have smaller mixed weights to approximate.",
    after=True,
    own_interval=True,
)


@claim(
    "S3c", figure="scale3", cases=[{"case": "trained"}], runs={"students": "modules_*"}, after=True
)
def width_grows_no_faster_than_modules(students):
    """The width that a trained MLP needs for R² 0.95 on held-out sets grows no faster than the
    modules, or little."""
    by_modules = picks.width_by_modules(students)
    if len(by_modules) < 2 or min(map(len, by_modules.values())) < 2:
        return
    needed = [
        needed_for(list(of_width), scores(of_width.values(), "ood.r2"), REACHED)
        for of_width in by_modules.values()
    ]
    widest = [of_width[max(of_width)] for of_width in by_modules.values()]
    yield learnt(scores(widest, "id.r2").min(axis=0), "R² ID at the widest")
    of_modules = exponent(list(by_modules), needed, "the narrowest")
    yield below(EXPONENT, of_modules, "exponent of the width on the modules")
    for number, width_S in zip(by_modules, needed, strict=True):
        width_S = np.where(width_S > 0, width_S, np.nan)
        yield note(f"width needed at {number} modules", width_S)
