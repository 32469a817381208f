"""Checkpoints: the state of all trials and the rows of metrics so far. They appear atomically.

DIR/STEP/state/       the arrays, through orbax
DIR/STEP/record.json  the rows; types and shapes of the arrays
DIR/STEP/files.json   SHA-256 of the others
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

KEPT = 2  # the newest one, and one to fall back to by hand
PASSING = ".passing-"  # prefix of a directory that is being written or removed


class RunError(RuntimeError):
    """A run that cannot start or go on: the message is one line, for the user."""


class Checkpoint(NamedTuple):
    step: int
    state: Any  # a pytree of NumPy arrays
    rows: list  # metrics so far: one dict per row


def save(directory: Path, checkpoint: Checkpoint, keep=()):
    """Writes a checkpoint; the newest `KEPT` stay, and those of the steps `keep`. Raises RunError
    where the disk is full."""
    import orbax.checkpoint as ocp  # only where it is used: scoring needs none

    for leftover in directory.glob(f"{PASSING}*"):
        shutil.rmtree(leftover)
    state = jax.device_get(checkpoint.state)
    path = directory / f"{PASSING}{checkpoint.step}"
    directory.mkdir(parents=True, exist_ok=True)
    # a failed orbax save leaves background writes running, so free space is checked first
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise RunError(
            f"checkpoint {directory / str(checkpoint.step)} cannot be written: it takes "
            f"{needed / 1e6:.3g} MB, and {free / 1e6:.3g} MB are free; the same command resumes "
            "from what is saved"
        )
    path.mkdir()
    with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        checkpointer.save((path / "state").absolute(), args=ocp.args.StandardSave(state))
    _write(path / "record.json", {"rows": checkpoint.rows, "arrays": _shapes(state)})
    files = sorted(file for file in path.rglob("*") if file.is_file())
    _write(path / "files.json", {str(file.relative_to(path)): _digest(file) for file in files})
    path.rename(directory / str(checkpoint.step))
    for step in set(steps(directory)[:-KEPT]) - set(keep):
        shutil.rmtree((directory / str(step)).rename(directory / f"{PASSING}{step}"))


def restore(directory: Path, step: int, template) -> Checkpoint:
    """The checkpoint of one step, whose state is like `template` (arrays or shapes). Raises
    RunError if it is missing, damaged or of another shape."""
    import orbax.checkpoint as ocp

    path = directory / str(step)
    if not path.exists():
        raise RunError(f"checkpoint {path} is missing; train again in another --workdir")
    # A failed orbax read leaves background reads running, whose tracebacks follow the error. So
    # the files are checked before orbax reads them.
    if damage := _damage(path):
        raise RunError(
            f"checkpoint {path} is damaged ({damage}); remove it, all later ones and summary.json, "
            "and the same command trains again, or choose another --workdir"
        )
    record = json.loads((path / "record.json").read_text())
    if {name: array[:2] for name, array in record["arrays"].items()} != _shapes(template):
        raise RunError(
            f"checkpoint {path} has arrays of other shapes than this config's; choose another "
            "--workdir"
        )
    empty = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), template)
    with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        args = ocp.args.StandardRestore(empty)
        state = checkpointer.restore((path / "state").absolute(), args=args)
    return Checkpoint(step, state, record["rows"])


def steps(directory: Path) -> list[int]:
    """The steps of all finished checkpoints, ascending: a finished directory has a bare number."""
    return sorted(int(path.name) for path in directory.glob("*") if path.name.isdecimal())


def _shapes(state) -> dict[str, list]:
    """By the path of the leaf: data type and shape."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): [str(x.dtype), list(x.shape)] for path, x in leaves}


def _write(path: Path, value):
    with open(path, "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damage(path: Path) -> str | None:
    """What is wrong with the files of a checkpoint, in words, or None."""
    try:
        files = {"record.json": None} | json.loads((path / "files.json").read_text())
    except (OSError, ValueError, TypeError) as error:
        return f"files.json: {error}"
    inside = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    for name, digest in files.items():
        if name not in inside or _digest(path / name) != digest:
            return f"{name} is not what was written"
    return None
