"""Outputs that are not a network's, scored as a task scores."""

import numpy as np

from compgen_jax.runs import results
from compgen_jax.tasks import task as tasks


def scorer(task, truths=None):
    """predictions (S, B, ...) -> CellResults; `truths` (B, ...) take the place of the task's."""
    points = tasks.points(task)
    truths = np.asarray(results.truths_at(task, points) if truths is None else truths)

    def results_of(predictions):
        predictions = np.asarray(predictions)
        scores = results.scored(task.scores, predictions, truths, points)
        return results.at_cells(task, range(len(predictions)), predictions, truths, scores)

    return results_of
