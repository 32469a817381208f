"""Does a user's own file still make the task, or the model, that a directory was trained with?

DIR/task.npz    what distinguishes the task and, of a user's own model, outputs before training
"""

from functools import partial
from operator import itemgetter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config
from compgen_jax.runs import directory
from compgen_jax.runs.directory import RunError
from compgen_jax.settings import demand, is_own
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training.loop import shapes_of

CELLS = 16  # whose examples are kept
LEAST_ERROR = 1e-3  # of another cell's truth: less is rounding
ANSWERS = "answers"
TOLERANCE = 1e-4  # relative to the largest number: other versions of jax round differently


def check(workdir: Path, config: Config, task: Task) -> dict:
    """Arrays that distinguish a user's own task and model; {} without either. Raises RunError if
    the file no longer makes what was trained here, ConfigError for examples that are no function of
    their key."""
    if not (is_own(config.task) or is_own(config.model)):
        return {}
    path, (arrays, inputs) = workdir / "task.npz", _of_task(task)
    is_new = not path.exists()
    before = _of_task(config.task.make())[0] if is_new else directory.read_arrays(path)
    if is_new and is_own(config.task):
        check_error(config.task.name, task)
    if is_own(config.model):
        module = config.model.make(shapes_of(task))

        @jax.jit
        def untrained(key, inputs):
            params = module.init(key, jax.tree.map(itemgetter(0), inputs))
            predict = lambda example: task.prediction(module.apply(params, example)[0])
            return jax.vmap(predict)(inputs)

        arrays[ANSWERS] = jax.device_get(untrained(jax.random.key(0), inputs))
        before = {ANSWERS: arrays[ANSWERS]} | before if is_new else before
    for name in before | arrays:
        if not {name} <= before.keys() & arrays.keys() or not _alike(before[name], arrays[name]):
            hint = "draw all that is random from the key that example is given"
            demand(not is_new, f"{config.task.name}: its {name} differ each time; {hint}")
            group = "model" if name == ANSWERS else "task"
            raise RunError(
                f"{workdir}: {getattr(config, group).name} no longer makes the {group} that was "
                f"trained here (its {name} differ); restore the file, or choose another --workdir"
            )
    return arrays


def check_error(name: str, task: Task):
    """Raises ConfigError unless the truth, as a prediction, has `task.error` 0 at a few ID cells:
    baselines that look it up would have errors there."""

    @jax.jit
    def errors_of(key, points):
        targets = tasks.examples_at(task, key, points).target
        truths = jax.vmap(partial(tasks.truth, task))(targets)
        errors = jax.vmap(lambda *example: task.scores(*example)[task.error])
        return errors(truths, truths, points).mean(), errors(truths[::-1], truths, points).mean()

    points = _a_few(tasks.points(task)[tasks.regions(task)["id"]])
    error, of_others = errors_of(jax.random.key(0), points)
    hint = "Task.prediction(output) and Task.truth(target) must have one form, as probabilities do"
    hint = f"{name}: the truth itself has {task.error} {error:.3g}, not 0: {hint}"
    demand(not error > LEAST_ERROR * of_others, hint)


def _a_few(points):
    chosen = np.linspace(0, len(points) - 1, min(CELLS, len(points))).round().astype(int)
    return jnp.asarray(points[chosen])


def _of_task(task: Task):
    """Arrays that distinguish a task, and the inputs of a few examples; all are traced anew."""
    examples_at = jax.jit(lambda key, points: tasks.examples_at(task, key, points))
    inputs, targets = examples_at(jax.random.key(0), _a_few(tasks.points(task)))
    arrays = {f"factors.{factor.name}": np.asarray(factor.values) for factor in task.factors}
    arrays["held_out"] = np.asarray(task.held_out(tasks.points(task)))
    for kind, tree in (("inputs", inputs), ("targets", targets)):
        leaves = enumerate(jax.tree.leaves(tree))
        arrays |= {f"{kind}.{index}": np.asarray(leaf) for index, leaf in leaves}
    return arrays, inputs


def _alike(a, b) -> bool:
    near = TOLERANCE * np.nanmax(np.abs(a), initial=0.0)
    return a.shape == b.shape and np.allclose(a, b, rtol=0, atol=near, equal_nan=True)
