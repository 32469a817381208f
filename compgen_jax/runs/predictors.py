"""What a task's trivial predictors score."""

import jax
import numpy as np

from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.baselines import Asked
from compgen_jax.tasks.task import Task
from compgen_jax.training import loop


def masks(task: Task) -> dict:
    """{'id', 'ood'}: which of the task's points (B,) bool."""
    held_out = np.asarray(task.held_out(tasks.points(task)))
    return {"id": ~held_out, "ood": held_out}


def trivial_scores(task: Task, key) -> dict[str, dict]:
    """{predictor: {score: (B,)}} at the task's points, on the examples that the seed of this key is
    scored on; traceable in the key."""
    points, own_key = tasks.points(task), loop.stream(key, "test")
    held_out = masks(task)["ood"]
    nearest, _ = tasks.nearest_seen(task, held_out)
    inputs, targets = tasks.examples_at(task, own_key, points)
    nearest_targets = tasks.examples_at(task, own_key, points[nearest]).target
    truths, of_nearest = (
        jax.vmap(lambda target: tasks.truth(task, target))(each)
        for each in (targets, nearest_targets)
    )
    asked = Asked(points, inputs, truths, of_nearest, held_out)
    return {
        name: jax.vmap(task.scores)(predict(asked), truths, points)
        for name, predict in task.baselines.items()
    }
