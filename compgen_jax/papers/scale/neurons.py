"""S3: MLPs express every task of a family with neurons linear in the number of modules, or fewer.

Judged on networks that are written down (`constructions`) and on the widths that trained ones need.
"""

import numpy as np

from compgen_jax.old_claims import Condition, entry
from compgen_jax.papers.scale import constructions
from compgen_jax.papers.scale.composing import (
    GATE,
    bracketed,
    least_squares_slope,
    needed_for,
    unless_bracketed,
)

EXACT = 1e-5
SLOPE, NEURONS, EXPONENT = -1.5, 1.1, 1.25
HALFWAY = 2.0  # neurons for 4 times the modules, halfway from as many to 4 times as many
SEEDS = (0, 1, 2, 3)
MODULES = (4, 8, 16, 32)
LOW, HIGH = 8, 32  # modules whose neurons at equal error are compared
ERROR = 0.02  # relative: where every curve of the quick table has it
REACHED = 0.95  # R^2 of the smallest width


def k_hot_is_exact(rows: list[dict]) -> dict:
    """S3a. rows: of `constructions.table_k_hot`."""
    worst = _by_seed(rows, "max_error", max)
    least, most = (of(row["modules"] for row in rows) for of in (min, max))
    ends = [{row["seed"]: row["neurons"] / one for row in rows if row["modules"] == one}
            for one in (most, least)]  # fmt: skip
    growth = np.array([ends[0][seed] / ends[1][seed] for seed in sorted(ends[0])])
    exact = {
        "largest error, float32": Condition(worst, "below", EXACT),
        f"neurons per module, M = {most} / {least}": Condition(
            growth, "below", NEURONS, ratio=True
        ),
    }
    return _entry(
        "S3a",
        "k-hot",
        rows,
        statement="two ReLUs for each hidden unit of each module, and one for each hidden unit, "
        "compute every k-hot task exactly",
        as_stated=exact,
    )


def graded_needs_no_more(rows: list[dict], own: list[dict]) -> dict:
    """S3b. rows: of `constructions.table_graded` on the interval that no teacher's entries leave,
    and `own` on those that each teacher's entries keep."""

    def conditions(table, bound):
        ratio = constructions.neuron_ratios(table, ERROR, LOW, HIGH)
        slopes = constructions.error_slopes(table)
        by_seed = {}
        for (_, seed), slope in slopes.items():
            by_seed.setdefault(seed, []).append(slope)
        return {
            "slope of log error on log knots": Condition(
                np.array([np.max(each) for each in by_seed.values()]), "below", SLOPE
            ),
            f"neurons at equal error, M = {HIGH} / {LOW}": Condition(
                np.array(list(ratio.values())), "below", bound, ratio=True
            ),
        }

    stated = conditions(rows, NEURONS)
    of_own = {f"{name}, on the teacher's own interval": one
              for name, one in conditions(own, HALFWAY).items()}  # fmt: skip
    return _entry(
        "S3b",
        "graded",
        rows,
        statement="graded tasks need as many ReLUs whatever the number of modules (stricter: far "
        "fewer than in proportion, where few modules have smaller mixed weights to approximate)",
        as_stated=stated,
        stricter=stated | of_own,
    )


def width_grows_slowly(seeds, modules, widths, r2_MxWxT, id_r2_T) -> dict:
    """S3c. r2: of held-out sets, of every number of modules and width."""
    needed_MxT = np.stack([needed_for(widths, r2, REACHED) for r2 in r2_MxWxT])
    numbers_MxT = bracketed(needed_MxT)
    exponent = least_squares_slope(np.log(modules), np.log(numbers_MxT))
    condition = Condition(exponent, "below", EXPONENT)
    details = {f"width needed at {m} modules": width
               for m, width in zip(modules, numbers_MxT, strict=True)}  # fmt: skip
    return entry(
        "S3c",
        "trained",
        seeds,
        id_r2_T,
        figure="scale3",
        statement=f"the width that a trained MLP needs for R² {REACHED:g} on held-out sets grows "
        "no faster than the modules, or little",
        as_stated={"exponent of the width on the modules": condition},
        details=details,
        trained_name="R² ID at the widest",
        trained_at=GATE,
        unless=unless_bracketed(needed_MxT, "the narrowest"),
    )


def _by_seed(rows, name, of):
    seeds = sorted({row["seed"] for row in rows})
    return np.array([of(row[name] for row in rows if row["seed"] == seed) for seed in seeds])


def _entry(claim, code, rows, **fields):
    """Of what is not trained: the seeds are the teachers'."""
    seeds = sorted({row["seed"] for row in rows})
    return entry(claim, code, seeds, None, figure="scale3", **fields)
