"""The run directory: the only module that writes to the disk (checkpoints through
`training.checkpoints`).

    DIR/config.json       what the run is                          written first
    DIR/task.npz          what a user's own task made              (`user_code`)
    DIR/parameters/       all seeds' variables at `training.keep` steps along training
    DIR/checkpoints/      the state of all seeds, and the rows     after every evaluation; the
                          newest, and those over the last tenth, are kept
    DIR/metrics.csv       one row per seed and evaluation          rewritten after each checkpoint
    DIR/cells.npz         every score at every cell, per seed      see `write_cells`
    DIR/late.npz          the same at each late checkpoint, to the bit
    DIR/interpolator.npz  the interpolator's scores at every cell, per seed
    DIR/wide_network.npz  the same of the wide network (see `baselines.FROM_CODES`)
    DIR/environment.json  versions, device and seconds
    DIR/train.log         command, evaluations, outcome            appended to (`train_log`)
    DIR/summary.json      final numbers per seed, their means      written last: the run is finished

Every file appears atomically, and nothing is ever removed but older checkpoints.
"""

import contextlib
import fcntl
import io
import json
import math
import os
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd

from compgen_jax import config as configs
from compgen_jax.config import Config, ConfigError
from compgen_jax.runs import train_log
from compgen_jax.settings import FileMissing, demand
from compgen_jax.training import checkpoints
from compgen_jax.training.checkpoints import RunError

SCORES_VERSION = 1  # of what tasks and predictors score: others are made anew
# what reading a damaged .npz raises
DAMAGED = (
    ValueError, OSError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error,
    tokenize.TokenError,
)  # fmt: skip


@contextlib.contextmanager
def claim(workdir: Path, config: Config):
    """Makes `workdir` the directory of `config`, for this process alone. A new directory that is
    still empty at the end is removed."""
    _check_belongs(workdir, config)
    is_new = not workdir.exists()
    workdir.mkdir(parents=True, exist_ok=True)
    with open(workdir / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(f"--workdir={workdir}: another process is at work in it") from error
        if not os.fstat(lock.fileno()).st_nlink:  # a process has removed its empty directory
            raise RunError(f"--workdir={workdir}: another process was at work in it; start again")
        _check_belongs(workdir, config)  # again: another process may have come first
        try:
            with train_log.outcome(workdir):
                yield
        finally:
            if is_new and [path.name for path in workdir.iterdir()] == [".lock"]:
                (workdir / ".lock").unlink()
                with contextlib.suppress(OSError):  # another process may have begun meanwhile
                    workdir.rmdir()


def begin(workdir: Path, config: Config):
    """Writes what the run is, after all checks: from now on the directory belongs to it."""
    if not (workdir / "config.json").exists():
        write_json(workdir / "config.json", configs.to_dict(config))


def _check_belongs(workdir: Path, config: Config):
    """Raises RunError unless `workdir` is new, empty or the directory of `config`."""
    if workdir.exists() and not workdir.is_dir():
        raise RunError(f"--workdir={workdir}: is a file, not a directory")
    if (workdir / "config.json").exists():
        theirs, ours = configs.identity(read_config(workdir)), configs.identity(config)
        if theirs != ours:
            raise RunError(
                f"--workdir={workdir}: belongs to another config ({_differences(theirs, ours)}); "
                "choose another directory"
            )
    elif workdir.exists() and any(path.name[0] != "." for path in workdir.iterdir()):
        raise RunError(f"--workdir={workdir}: is not empty and holds no config.json")


def _differences(theirs: dict, ours: dict) -> str:
    changed = [n for n in {**theirs, **ours} if theirs.get(n) != ours.get(n)]
    show = lambda values, name: repr(values[name]) if name in values else "the default"
    shown = [f"{n} is {show(theirs, n)} there, {show(ours, n)} here" for n in changed[:3]]
    return ", ".join(shown) + (f", and {len(changed) - 3} more" if len(changed) > 3 else "")


def is_finished(workdir: Path) -> bool:
    return (workdir / "summary.json").exists()


def read_config(workdir) -> Config:
    """The config of a directory. Raises RunError where config.json is damaged."""
    path = Path(workdir) / "config.json"
    if not path.exists():
        raise RunError(f"{workdir}: {_why_no_run(Path(workdir))}")
    values = read_json(path)
    try:
        return configs.from_dict(values)
    except FileMissing as error:
        renamed = "" if path.with_name("trials.csv").exists() else (
            ", or write its new name into this config.json"
        )  # fmt: skip
        raise RunError(f"{path} cannot be used: {error}; put it back{renamed}") from error
    except ConfigError as error:
        raise RunError(f"{path} cannot be used: {error}") from error


def _why_no_run(workdir: Path) -> str:
    if not workdir.is_dir():
        return "there is no such directory"
    inside = (
        path.parent for depth in ("*", "*/*") for path in workdir.glob(f"{depth}/config.json")
    )
    if runs := sorted(inside):
        return f"holds {len(runs)} runs, each in a directory of its own, such as {runs[0]}"
    return "holds no run (no config.json)"


def read_summary(workdir: Path) -> dict:
    """The numbers of a finished run. Raises RunError where they are damaged."""
    path = workdir / "summary.json"
    summary = read_json(path)
    if not isinstance(summary, dict) or not all(summary.get(key) for key in ("seeds", "mean")):
        raise RunError(f"{path} is damaged: it lacks its seeds or their mean")
    return summary


def restore(workdir: Path, template, step: int | None = None) -> checkpoints.Checkpoint | None:
    """The checkpoint of a step; by default the newest, or None. Raises RunError for a damaged one,
    or if that of the step is missing."""
    path = workdir / "checkpoints"
    if step is None:
        return checkpoints.restore_latest(path, template)
    return checkpoints.restore(path, step, template)


def save(workdir: Path, step: int, state, rows: list, keep=()):
    """Saves the state of all seeds with all rows of metrics so far, then `metrics.csv`. Older
    checkpoints of the steps `keep` stay. Raises RunError where the disk has no room."""
    rows = clean(rows)
    checkpoints.save(workdir / "checkpoints", checkpoints.Checkpoint(step, state, rows), keep)
    write_metrics(workdir, rows)


def keep_parameters(workdir: Path, step: int, params):
    """Keeps all seeds' variables at a step, for questions about the course of training. Raises
    RunError where the disk has no room."""
    path, steps = workdir / "parameters", kept_steps(workdir)
    if step not in steps:  # a resumed run comes by again
        checkpoints.save(path, checkpoints.Checkpoint(step, params, []), (*steps, step))


def kept_steps(workdir: Path) -> list[int]:
    """The steps whose parameters are kept, ascending."""
    return checkpoints.steps(workdir / "parameters")


def kept_parameters(workdir: Path, step: int, template):
    """All seeds' variables at a kept step, leading axis T; NumPy.

    `template` has their shapes: `loop.template(config).params`. Raises RunError for missing or
    damaged ones.
    """
    remedy = "train again in another --workdir"
    return checkpoints.restore(workdir / "parameters", step, template, remedy).state


def write_cells(workdir: Path, scores_at_late: list[dict]):
    """Writes `cells.npz`: every score by name, (T, B), of every seed at every cell, from its values
    at each of the late checkpoints.

    A score that is 0 or 1 becomes the share of these checkpoints in which it is 1, others their
    median. So a criterion can change without training again, and the file has at most 200 kB for
    every preset: shares are float16, medians keep 8 significant bits, which compress well.
    """
    cells = {}
    for name in sorted(scores_at_late[0]):
        values = np.stack([scores[name] for scores in scores_at_late])
        if np.isin(values, (0, 1)).all():
            cells[name] = values.mean(axis=0).astype(np.float16)
        else:  # not as float16, which rounds errors below 1e-4
            cells[name] = np.median(values, axis=0).astype(jnp.bfloat16).astype(np.float32)
    write_npz(workdir / "cells.npz", cells)


def read_cells(workdir: Path) -> dict[str, np.ndarray]:
    """What `write_cells` wrote, (T, B) float32 by name, with the cells in the order of
    `tasks.points`. Raises RunError where the file is missing or damaged."""
    return {name: values.astype(np.float32) for name, values in _stored_cells(workdir).items()}


def share_names(workdir: Path) -> set[str]:
    """The scores in `cells.npz` that were right or wrong at every late checkpoint, so that their
    means are shares. Errors as `read_cells`."""
    return {name for name, values in _stored_cells(workdir).items() if values.dtype == np.float16}


def _stored_cells(workdir: Path) -> dict[str, np.ndarray]:
    path = Path(workdir) / "cells.npz"
    if not path.exists():
        raise RunError(f"{path} is missing: its run is not finished, or of an earlier version")
    return read_arrays(path)


@contextlib.contextmanager
def _reading(path: Path):
    """Raises RunError where the file of a run is damaged."""
    try:
        yield
    except DAMAGED as error:
        raise RunError(f"{path} is damaged: {error}") from error


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz of a run by name. Raises RunError for a damaged one."""
    with _reading(path), open(path, "rb") as content:
        with np.load(content, allow_pickle=False) as arrays:
            return dict(arrays)


def keep_scores(workdir: Path, name: str, scores: dict):
    """Keeps scores at every cell to the bit, as training made them: judging need not again."""
    write_npz(workdir / f"{name}.npz", scores | {"version": np.int32(SCORES_VERSION)})


def kept_scores(workdir: Path, name: str, shape: tuple) -> dict[str, np.ndarray] | None:
    """What `keep_scores` wrote; None if there are none of this version and shape, or if they are
    damaged: they are then made anew."""
    try:
        scores = read_npz(workdir / f"{name}.npz")
    except ConfigError:
        return None
    fits = scores.pop("version", None) == SCORES_VERSION
    return scores if fits and all(each.shape == shape for each in scores.values()) else None


@contextlib.contextmanager
def kept_where_possible(workdir: Path):
    """In a directory that may not be written, lets what is written inside be lost, with a warning:
    the numbers that were asked for are given all the same."""
    try:
        yield
    except OSError as error:
        if os.access(workdir, os.W_OK):
            raise
        warning = f"warning: {workdir}: {error.strerror}; numbers are given, but not kept"
        print(warning, file=sys.stderr)


def write_metrics(workdir: Path, rows: list):
    text = pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")
    write_text(workdir / "metrics.csv", text)


def last_checkpoint(workdir: Path) -> Path | None:
    step = checkpoints.latest_step(workdir / "checkpoints")
    return None if step is None else workdir / "checkpoints" / str(step)


def clean(node):
    """The same JSON-like value with None for NaN and infinity, which are no JSON."""
    if isinstance(node, dict):
        return {key: clean(child) for key, child in node.items()}
    if isinstance(node, list | tuple):
        return [clean(child) for child in node]
    return None if isinstance(node, float) and not math.isfinite(node) else node


def write_json(path: Path, value):
    write_text(path, json.dumps(clean(value), indent=1, allow_nan=False) + "\n")


def write_text(path: Path, text: str):
    write_bytes(path, text.encode())


def write_npz(path: Path, arrays: dict):
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_bytes(path, content.getvalue())


def write_bytes(path: Path, content: bytes):
    """Replaces `path` atomically: a reader sees the whole old file or the whole new one. Makes the
    directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_npz(path: Path, flag: str = "") -> dict[str, np.ndarray]:
    """The arrays of a user's .npz by name. Raises ConfigError, beginning with `flag` and the path,
    for a file that is missing, damaged or no .npz, or that holds Python objects."""
    demand(path.is_file(), f"{flag}{path}: there is no such file")
    try:
        with open(path, "rb") as stored, np.load(stored, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except DAMAGED as error:
        why = "is no .npz or is damaged; save it with numpy.savez"
        if "Object arrays" in str(error):
            why = "holds an array of Python objects; save numbers or text"
        raise ConfigError(f"{flag}{path}: {why}") from error
    except TypeError as error:  # what an array of a .npy says to `with`
        why = "is a single array; save it with numpy.savez"
        raise ConfigError(f"{flag}{path}: {why}") from error
    for name, array in arrays.items():
        why = "is no array; save it with numpy.savez"
        demand(isinstance(array, np.ndarray), f"{flag}{path}: {name}: {why}")
    return arrays


def read_text(path: Path) -> str | None:
    """The text of a file, None where there is none. Raises RunError for a file that is no text."""
    with _reading(path):
        return path.read_text() if path.exists() else None


def read_json(path: Path):
    with _reading(path):
        return json.loads(path.read_text())


def read_cache(path: Path, version, parse: Callable):
    """What `parse` makes of the JSON object in a file; None without a file, or for another version.
    Raises RunError for a damaged one."""
    saved = read_json(path) if path.exists() else None
    if not isinstance(saved, dict) or saved.get("version") != version:
        return None
    try:
        return parse(saved)
    except (AttributeError, TypeError, *DAMAGED) as error:
        raise RunError(
            f"{path.parent}: its analysis is damaged ({error}); remove {path}"
        ) from error
