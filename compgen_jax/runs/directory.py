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
    DIR/train.log         command, evaluations, outcome            appended to (`logs`)
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
from compgen_jax.runs import logs
from compgen_jax.settings import FileMissing, demand
from compgen_jax.training import checkpoints
from compgen_jax.training.checkpoints import RunError

SCORES_VERSION = 1  # of what tasks and predictors score: others are made anew
# what reading a damaged .npz raises
DAMAGED = (
    ValueError,
    OSError,
    EOFError,
    KeyError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)


@contextlib.contextmanager
def claim(workdir: Path, config: Config):
    """Makes `workdir` the directory of `config`, for this process alone; removes a new one that
    stays empty."""
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
            with logs.outcome(workdir):
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
    """Raises RunError unless the directory is new, empty or of this config."""
    if workdir.exists() and not workdir.is_dir():
        raise RunError(f"--workdir={workdir}: is a file, not a directory")
    if (workdir / "config.json").exists():
        theirs = read_config(workdir)
        if configs.identity(theirs) != configs.identity(config):
            changed = configs.differences(theirs, config) | {"name": (theirs.name, config.name)}
            fields = [
                f"config.{name} is {pair[0]!r} there, {pair[1]!r} here"
                for name, pair in changed.items()
                if pair[0] != pair[1] and configs.ABSENT not in pair
            ]
            raise RunError(
                f"--workdir={workdir}: belongs to another config ({', '.join(fields[:3])}); choose "
                "another directory"
            )
    elif workdir.exists() and any(path.name[0] != "." for path in workdir.iterdir()):
        raise RunError(f"--workdir={workdir}: is not empty and holds no config.json")


def is_finished(workdir: Path) -> bool:
    return (workdir / "summary.json").exists()


def read_config(workdir) -> Config:
    """The config of a directory. Raises RunError where config.json is damaged."""
    path = Path(workdir) / "config.json"
    if not path.exists():
        parent, name = path.parent, path.name
        paths = [*parent.glob(f"*/{name}"), *parent.glob(f"*/*/{name}")]
        reason = "holds no run (no config.json)"
        if not parent.is_dir():
            reason = "there is no such directory"
        elif paths:
            first = min(paths).parent
            reason = f"holds {len(paths)} runs, each in a directory of its own, such as {first}"
        raise RunError(f"{workdir}: {reason}")
    values = read_json(path)
    try:
        return configs.from_dict(values)
    except ConfigError as error:
        remedy = ""
        if isinstance(error, FileMissing):
            remedy = "; put it back"
            if not path.with_name("trials.csv").exists():
                remedy += ", or write its new name into this config.json"
        raise RunError(f"{path} cannot be used: {error}{remedy}") from error


def read_summary(workdir: Path) -> dict:
    """The numbers of a finished run. Raises RunError where they are damaged."""
    path = workdir / "summary.json"
    summary = read_json(path)
    if not isinstance(summary, dict) or not all(summary.get(key) for key in ("seeds", "mean")):
        raise RunError(f"{path} is damaged: it lacks its seeds or their mean")
    return summary


def restore(workdir: Path, template, step: int | None = None) -> checkpoints.Checkpoint | None:
    """The checkpoint of a step, by default the newest, or None. Raises RunError."""
    path = workdir / "checkpoints"
    if step is None and (step := checkpoints.latest_step(path)) is None:
        return None
    return checkpoints.restore(path, step, template)


def save(workdir: Path, step: int, state, rows: list, keep=()):
    """Saves the state of all seeds, and all rows, also as `metrics.csv`. Raises RunError where the
    disk is full."""
    rows = clean(rows)
    checkpoints.save(workdir / "checkpoints", checkpoints.Checkpoint(step, state, rows), keep)
    write_metrics(workdir, rows)


def write_metrics(workdir: Path, rows: list):
    text = pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")
    write_text(workdir / "metrics.csv", text)


def last_checkpoint(workdir: Path) -> Path | None:
    step = checkpoints.latest_step(workdir / "checkpoints")
    return None if step is None else workdir / "checkpoints" / str(step)


def kept_steps(workdir: Path) -> list[int]:
    """The steps whose parameters are kept, ascending."""
    return checkpoints.steps(workdir / "parameters")


def kept_parameters(workdir: Path, step: int, template):
    """All seeds' variables at a kept step, leaves (T, ...), as `loop.template(config).params`.
    Raises RunError for missing or damaged ones."""
    remedy = "train again in another --workdir"
    return checkpoints.restore(workdir / "parameters", step, template, remedy).state


def write_cells(workdir: Path, scores_at_late: list[dict]):
    """Writes `cells.npz`: every score by name, (T, B), over the late checkpoints: of a score of 0
    or 1 the share of checkpoints, in float16; of others the median, with 8 significant bits."""
    cells = {}
    for name in sorted(scores_at_late[0]):
        values = np.stack([scores[name] for scores in scores_at_late])
        if np.isin(values, (0, 1)).all():
            cells[name] = values.mean(axis=0).astype(np.float16)
        else:  # not as float16, which rounds errors below 1e-4
            cells[name] = np.median(values, axis=0).astype(jnp.bfloat16).astype(np.float32)
    write_npz(workdir / "cells.npz", cells)


def share_names(workdir: Path) -> set[str]:
    """The scores in `cells.npz` that are shares. Raises RunError where it is missing or damaged."""
    cells = read_arrays(Path(workdir) / "cells.npz")
    return {name for name, values in cells.items() if values.dtype == np.float16}


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
    """Keeps scores at every cell to the bit, as training made them."""
    write_npz(workdir / f"{name}.npz", scores | {"version": np.int32(SCORES_VERSION)})


def kept_scores(workdir: Path, name: str, shape: tuple) -> dict[str, np.ndarray] | None:
    """What `keep_scores` wrote; None if it is missing, damaged, or of another version or shape."""
    try:
        scores = read_arrays(workdir / f"{name}.npz")
    except RunError:
        return None
    fits = scores.pop("version", None) == SCORES_VERSION
    return scores if fits and all(array.shape == shape for array in scores.values()) else None


@contextlib.contextmanager
def kept_where_possible(workdir: Path):
    """Where the directory may not be written, loses what is written inside, with a warning."""
    try:
        yield
    except OSError as error:
        if os.access(workdir, os.W_OK):
            raise
        warning = f"warning: {workdir}: {error.strerror}; numbers are given, but not kept"
        print(warning, file=sys.stderr)


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
    """Replaces `path` atomically, and makes the directories above it."""
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
    """The arrays of a user's .npz by name. Raises ConfigError, beginning with `flag` and the
    path."""
    demand(path.is_file(), f"{flag}{path}: there is no such file")
    try:
        arrays = read_arrays(path)
    except (RunError, TypeError, AttributeError) as error:  # a .npy is no context of `with`
        why = "is no .npz of numbers or text, or is damaged; save it with numpy.savez"
        raise ConfigError(f"{flag}{path}: {why}") from error
    for name, array in arrays.items():
        why = "is no array; save it with numpy.savez"
        demand(isinstance(array, np.ndarray), f"{flag}{path}: {name}: {why}")
    return arrays


def read_json(path: Path):
    with _reading(path):
        return json.loads(path.read_text())


def read_cache(path: Path, version, parse: Callable):
    """What `parse` makes of a JSON object; None without a file or for another version. Raises
    RunError."""
    saved = read_json(path) if path.exists() else None
    if not isinstance(saved, dict) or saved.get("version") != version:
        return None
    try:
        return parse(saved)
    except (AttributeError, TypeError, *DAMAGED) as error:
        raise RunError(
            f"{path.parent}: its analysis is damaged ({error}); remove {path}"
        ) from error
