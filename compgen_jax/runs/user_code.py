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
from compgen_jax.training.task_group import shapes_of

CELLS = 16  # whose examples are kept
ANSWERS = "answers"
TOLERANCE = 1e-4  # relative to the largest number: other versions of jax round differently


def is_own(config: Config) -> bool:
    """Whether the task or the model comes from a user's file."""
    return any(settings.is_own(getattr(config, group)) for group in settings.FAMILIES)


def remember(workdir: Path, config: Config, task: Task):
    """Writes `task.npz` for a user's own task or model, unless it is there."""
    path = workdir / "task.npz"
    if is_own(config) and not path.exists():
        directory.write_npz(path, _made(config, task))


def check(workdir: Path, config: Config, task: Task):
    """Raises RunError if a user's file no longer makes the task, or the model, of the directory."""
    path = workdir / "task.npz"
    if not (is_own(config) and path.exists()):
        return
    before, now = directory.read_arrays(path), _made(config, task)
    for name in {**before, **now}:
        if name not in before or name not in now or not _alike(before[name], now[name]):
            group = "model" if name == ANSWERS else "task"
            raise RunError(
                f"{workdir}: {getattr(config, group).name} no longer makes the {group} that was "
                f"trained here (its {name} differ); restore the file, or choose another --workdir"
            )


def _made(config: Config, task: Task) -> dict:
    """Arrays that distinguish a task, and a user's own model, from others."""
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
    if settings.is_own(config.model):
        made[ANSWERS] = np.asarray(_answers(config, task, examples.input))
    return made


def _answers(config: Config, task: Task, inputs):
    """The untrained model's outputs for a batch of inputs."""
    module = config.model.make(shapes_of(task))

    @jax.jit
    def answers(key, inputs):
        params = module.init(key, jax.tree.map(lambda leaf: leaf[0], inputs))
        return jax.vmap(lambda one: task.prediction(module.apply(params, one)[0]))(inputs)

    return answers(jax.random.key(0), inputs)


def _alike(a, b) -> bool:
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    scale = np.nanmax(np.abs(a), initial=0.0)
    return np.allclose(a, b, rtol=0, atol=TOLERANCE * scale, equal_nan=True)
