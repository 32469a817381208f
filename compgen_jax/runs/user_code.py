"""Does a user's own file still make the task, or the model, that a directory was trained with?

DIR/task.npz    the task's factors, held-out cells and a few examples, as they were at the start;
                for a user's own model, its outputs for these before training
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import settings
from compgen_jax.config import Config
from compgen_jax.runs import directory
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training.loop import shapes_of

CELLS = 16  # whose examples are kept
ANSWERS = "answers"
TOLERANCE = 1e-4  # relative to the largest number: other versions of jax round differently


def remember(workdir: Path, made: dict):
    """Writes `task.npz` with what `check` found of a user's own task or model, unless it is there
    or there is nothing."""
    if made and not (workdir / "task.npz").exists():
        directory.write_npz(workdir / "task.npz", made)


def check(workdir: Path, config: Config, task: Task) -> dict:
    """Arrays that distinguish a user's own task and model from others; {} without either.

    Raises RunError if the file no longer makes what the directory was trained with. For a new
    directory, raises ConfigError for examples that are no function of their key, and for a layer
    that no input gives finite activations.
    """
    if not (settings.is_own(config.task) or settings.is_own(config.model)):
        return {}
    path = workdir / "task.npz"
    if not path.exists():
        return _made(config, task, is_new=True)
    before, now = directory.read_arrays(path), _made(config, task)
    for name in {**before, **now}:
        if name not in before or name not in now or not _alike(before[name], now[name]):
            group = "model" if name == ANSWERS else "task"
            raise RunError(
                f"{workdir}: {getattr(config, group).name} no longer makes the {group} that was "
                f"trained here (its {name} differ); restore the file, or choose another --workdir"
            )
    return now


def _made(config: Config, task: Task, is_new: bool = False) -> dict:
    made, inputs = _made_of_task(task)
    again = _made_of_task(config.task.make())[0] if is_new else made
    for name in made:
        hint = "draw all that is random from the key that example is given"
        same = _alike(made[name], again[name])
        settings.demand(same, f"{config.task.name}: its {name} differ each time; {hint}")
    if settings.is_own(config.model):
        answers, finite = _answers(config, task, inputs)
        made[ANSWERS] = np.asarray(answers)
        for layer, finite_B in finite.items():
            usable = not is_new or finite_B.any()
            what = f"its layer {layer} is NaN or infinite at all of {len(finite_B)} points"
            settings.demand(usable, f"{config.model.name}: {what}, and cannot be measured")
    return made


def _made_of_task(task: Task):
    """Arrays that distinguish a task, and the inputs of a few examples; all are traced anew."""
    points = tasks.points(task)
    chosen = np.linspace(0, len(points) - 1, min(CELLS, len(points))).round().astype(int)
    key = jax.random.key(0)
    examples = jax.jit(lambda key, points: tasks.examples_at(task, key, points))(
        key, jnp.asarray(points[chosen])
    )
    made = {f"factors.{factor.name}": np.asarray(factor.values) for factor in task.factors}
    made["held_out"] = np.asarray(task.held_out(points))
    for kind in ("input", "target"):
        for index, leaf in enumerate(jax.tree.leaves(getattr(examples, kind))):
            made[f"{kind}s.{index}"] = np.asarray(leaf)
    return made, examples.input


def _answers(config: Config, task: Task, inputs):
    """The untrained model's outputs for a batch of inputs, and for each layer whether it is finite
    there, (B,) bool."""
    module = config.model.make(shapes_of(task))

    @jax.jit
    def answers(key, inputs):
        params = module.init(key, jax.tree.map(lambda leaf: leaf[0], inputs))

        def of_one(given):
            output, layers = module.apply(params, given)
            return task.prediction(output), {k: jnp.isfinite(v).all() for k, v in layers.items()}

        return jax.vmap(of_one)(inputs)

    return answers(jax.random.key(0), inputs)


def _alike(a, b) -> bool:
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    scale = np.nanmax(np.abs(a), initial=0.0)
    return np.allclose(a, b, rtol=0, atol=TOLERANCE * scale, equal_nan=True)
