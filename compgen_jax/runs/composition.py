"""Does a trained model compose what was held out? The verdict that any task has."""

import numpy as np

from compgen_jax.metrics.evaluation import CellResults, mean_score
from compgen_jax.old_claims import Condition, entry

RIGHT = 0.9  # of the held-out combinations
HALF = 0.5  # of the best trivial predictor's error


def composes(name: str, results: CellResults, accuracy: str, trivial: dict) -> dict:
    """Held-out combinations are answered rightly and better than by any trivial predictor.

    Args:
      name: of the run, for the statement.  accuracy: the task's score of right and wrong, or '';
        without one, having learnt means half of the best trivial predictor's error on what was
        shown, or less.
      trivial: errors of trivial predictors by 'id' and 'ood' and by their names.
    """
    seen, ood = ~results.held_out, results.held_out
    # NaN, by which nothing is known, of a task that has none
    best = {region: min(errors.values(), default=np.nan) for region, errors in trivial.items()}
    error = {
        region: mean_score(results, results.error, cells)
        for region, cells in (("id", seen), ("ood", ood))
    }
    conditions = {
        "error OOD / the best trivial predictor's": Condition(
            error["ood"] / best["ood"], "below", HALF, ratio=True
        )
    }
    if accuracy:
        hits = Condition(mean_score(results, accuracy, ood), "above", RIGHT, ood.sum())
        conditions = {f"{accuracy} OOD": hits} | conditions
        trained, trained_name = mean_score(results, accuracy, seen), f"{accuracy} ID"
    else:
        trained = (error["id"] / best["id"] <= HALF).astype(np.float64)
        trained_name = "seeds with half of the best trivial predictor's error ID, or less"
    return entry(
        "composition",
        name,
        results.seeds,
        trained,
        figure="",
        statement=f"{name} composes what was held out",
        as_stated=conditions,
        details={f"error {region.upper()}": values for region, values in error.items()},
        trained_name=trained_name,
    )
