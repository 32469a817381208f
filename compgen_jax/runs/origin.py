"""A task of the user's own, remembered: does its file still make what a directory was trained on?

DIR/task.npz    factors, held-out cells and a few examples, as its task made them at the start
"""

import io
import zipfile
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
from compgen_jax.training import loop

CELLS = 16  # whose examples are kept
TOLERANCE = 1e-4  # relative to the largest number: other versions of jax round differently


def is_own(config: Config) -> bool:
    """Whether the task is of a user's file."""
    return config.task.name not in settings.FAMILIES["task"]


def remember(workdir: Path, config: Config, task: Task):
    """Writes `task.npz` for a task of the user's own, unless it is there."""
    path = workdir / "task.npz"
    if is_own(config) and not path.exists():
        content = io.BytesIO()
        np.savez(content, **_made(task))
        directory.write_bytes(path, content.getvalue())


def check(workdir: Path, config: Config, task: Task):
    """Raises RunError where a user's file no longer makes the task of the directory."""
    path = workdir / "task.npz"
    if not (is_own(config) and path.exists()):
        return
    try:
        with open(path, "rb") as content, np.load(content, allow_pickle=False) as saved:
            before = dict(saved)
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise RunError(f"{path} is damaged: {error}") from error
    now = _made(task)
    for name in {**before, **now}:
        if name not in before or name not in now or not _alike(before[name], now[name]):
            raise RunError(
                f"{workdir}: {config.task.name} no longer makes the task that was trained "
                "here (its "
                f"{name} differ); restore the file, or choose another --workdir"
            )


def _made(task: Task) -> dict:
    """Arrays that tell a task from another."""
    points = tasks.points(task)
    chosen = np.linspace(0, len(points) - 1, min(CELLS, len(points))).round().astype(int)
    key = jax.random.key(0)
    examples = jax.jit(lambda key, points: loop.examples_at(task, key, points))(
        key, jnp.asarray(points[chosen])
    )
    made = {f"factors.{factor.name}": np.asarray(factor.values) for factor in task.factors}
    made["held_out"] = np.asarray(task.held_out(points))
    for kind in ("input", "target"):
        for index, leaf in enumerate(jax.tree.leaves(getattr(examples, kind))):
            made[f"{kind}s.{index}"] = np.asarray(leaf)
    return made


def _alike(a, b) -> bool:
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    scale = np.nanmax(np.abs(a), initial=0.0)
    return np.allclose(a, b, rtol=0, atol=TOLERANCE * scale, equal_nan=True)
