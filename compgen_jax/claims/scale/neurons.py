"""S3: MLPs express every task of a family with neurons linear in the number of modules, or fewer.

Judged on networks that are written down (`constructions`) and on the widths that trained ones need.
"""

import numpy as np

from compgen_jax.claims.scale import constructions
from compgen_jax.claims.scale.composing import GATE, needed_for
from compgen_jax.claims.verdicts import Condition, entry

EXACT = 1e-5
SLOPE, NEURONS, EXPONENT = -1.5, 1.1, 1.25
SEEDS = (0, 1, 2, 3)
MODULES = (4, 8, 16, 32)
LOW, HIGH = 8, 32  # modules whose neurons at equal error are compared
ERROR = 0.02  # relative: where every curve of the quick table has it
REACHED = 0.95  # R^2 of the smallest width


def k_hot_is_exact(rows: list[dict]) -> dict:
    """S3a. rows: of `constructions.table_k_hot`."""
    worst = _by_seed(rows, "max_error", max)
    per_module = [row["neurons"] / row["modules"] for row in rows if row["modules"] == HIGH]
    exact = {"largest error, float32": Condition(worst, "below", EXACT)}
    return _entry(
        "S3a",
        "k-hot",
        rows,
        statement=f"{per_module[0]:.0f} ReLUs for each module compute every k-hot task exactly",
        as_stated=exact,
    )


def graded_needs_no_more(rows: list[dict], own: list[dict]) -> dict:
    """S3b. rows: of `constructions.table_graded` on the interval that no teacher's entries leave,
    and `own` on those that each teacher's entries keep."""

    def conditions(table):
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
                np.array(list(ratio.values())), "below", NEURONS, ratio=True
            ),
        }

    return _entry(
        "S3b",
        "graded",
        rows,
        statement="graded tasks need as many ReLUs whatever the number of modules (stricter: also "
        "where few modules have smaller mixed weights to approximate)",
        as_stated=conditions(rows),
        stricter=conditions(own),
    )


def width_grows_slowly(seeds, modules, widths, r2_MxWxT, id_r2_T) -> dict:
    """S3c. r2: of held-out sets, of every number of modules and width."""
    needed_MxT = np.stack([needed_for(widths, r2, REACHED) for r2 in r2_MxWxT])
    missing = int(np.isnan(needed_MxT).sum())
    centred = np.log(modules) - np.mean(np.log(modules))
    exponent = centred @ np.log(needed_MxT) / np.sum(centred**2)
    condition = Condition(exponent, "below", EXPONENT)
    details = {f"width needed at {m} modules": width
               for m, width in zip(modules, needed_MxT, strict=True)}  # fmt: skip
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
        unless=f"not reached in {missing} of {needed_MxT.size}" if missing else "",
    )


def _by_seed(rows, name, of):
    seeds = sorted({row["seed"] for row in rows})
    return np.array([of(row[name] for row in rows if row["seed"] == seed) for seed in seeds])


def _entry(claim, code, rows, **fields):
    """Of what is not trained: the seeds are the teachers'."""
    seeds = sorted({row["seed"] for row in rows})
    return entry(
        claim, code, seeds, np.ones(len(seeds)), figure="scale3", trained_name="teachers", **fields
    )
