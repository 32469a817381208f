"""Checkpoints: the state of all trials and the rows of metrics so far, through orbax.

A checkpoint is the whole truth of an unfinished run. It appears atomically (orbax renames a
finished directory) and carries a digest of all that is read back, so that damage is found
whichever byte it hit.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import orbax.checkpoint as ocp

KEPT = 2  # the newest, and one to fall back to by hand


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read: the message is one line, for the user."""


class Checkpoint(NamedTuple):
    step: int
    state: Any  # a pytree of NumPy arrays
    rows: list  # metrics so far: one dict per row


def _manager(directory: Path):
    options = ocp.CheckpointManagerOptions(max_to_keep=KEPT, enable_async_checkpointing=False)
    return ocp.CheckpointManager(directory.absolute(), options=options)


def save(directory: Path, checkpoint: Checkpoint):
    """Writes the checkpoint of one step; a half-written one is never taken for finished."""
    state = jax.device_get(checkpoint.state)
    record = {"rows": checkpoint.rows, "digest": _digest(checkpoint._replace(state=state))}
    with _manager(directory) as manager:
        manager.save(
            checkpoint.step,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(state), record=ocp.args.JsonSave(record)
            ),
        )


def restore_latest(directory: Path, template) -> Checkpoint | None:
    """The newest checkpoint, or None where there is none yet.

    `template` is a pytree of arrays or `jax.ShapeDtypeStruct`s like the saved state. Raises
    CheckpointError, naming the directory, if the checkpoint is damaged or of another shape.
    """
    step = latest_step(directory)
    if step is None:
        return None
    host = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), template)
    try:
        with _manager(directory) as manager:
            restored = manager.restore(
                step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardRestore(host), record=ocp.args.JsonRestore()
                ),
            )
        record = restored["record"]
        checkpoint = Checkpoint(step, restored["state"], record["rows"])
        if record["digest"] != _digest(checkpoint):
            raise ValueError("its digest does not match its numbers")
        if _shapes(checkpoint.state) != _shapes(template):
            raise ValueError("its arrays have other shapes than this config's")
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise CheckpointError(
            f"checkpoint {directory / str(step)} is damaged ({reason}); remove it to resume from "
            "the one before, or choose another --workdir"
        ) from error
    return checkpoint


def latest_step(directory: Path) -> int | None:
    """The newest finished checkpoint's step: orbax gives a finished directory a bare number."""
    steps = [int(path.name) for path in directory.glob("*") if path.name.isdigit()]
    return max(steps, default=None)


def _shapes(state) -> list:
    return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state)]


def _digest(checkpoint: Checkpoint) -> str:
    digest = hashlib.sha256(json.dumps([checkpoint.step, checkpoint.rows]).encode())
    for path, leaf in jax.tree_util.tree_leaves_with_path(checkpoint.state):
        array = np.asarray(leaf)
        digest.update(f"{jax.tree_util.keystr(path)}{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
