"""The run directory: the only module that writes to the disk (checkpoints through
`training.checkpoints`).

    DIR/config.json       what the run is                          written first
    DIR/task.npz          see `user_code`
    DIR/parameters/       all seeds' variables at `training.keep` steps
    DIR/metrics.csv       a row per seed and evaluation            rewritten
    DIR/checkpoints/      state of all seeds, and rows             the newest, and the late ones
    DIR/late.npz          scores at every cell, per seed and late checkpoint
    DIR/interpolator.npz  the same per seed of `baselines.FROM_CODES`; and wide_network.npz
    DIR/environment.json  versions, device, seconds
    DIR/train.log         see `logs`                               appended to
    DIR/summary.json      final numbers per seed, their means      written last

Every file appears atomically.
"""

import contextlib
import io
import json
import math
import os
import sys
from pathlib import Path

import filelock
import numpy as np
import pandas as pd

from compgen_jax import config as configs
from compgen_jax.config import Config, ConfigError
from compgen_jax.runs import logs
from compgen_jax.settings import FAMILIES, LOADED, demand
from compgen_jax.training import checkpoints
from compgen_jax.training.checkpoints import RunError

SCORES_VERSION = 1  # of what tasks and predictors score: others are made anew
trusts_others = False  # whether another user's directory may import files of code (`--trust`)


@contextlib.contextmanager
def claim(workdir: Path, config: Config):
    """Makes `workdir` the directory of `config`, for this process alone."""
    _check_belongs(workdir, config)
    workdir.mkdir(parents=True, exist_ok=True)
    try:
        lock = filelock.FileLock(workdir / ".lock", timeout=0).acquire()
    except filelock.Timeout as error:
        raise RunError(f"--workdir={workdir}: another process is at work in it") from error
    with lock:
        _check_belongs(workdir, config)  # again: another process may have come first
        with logs.outcome(workdir):
            yield


def begin(workdir: Path, config: Config, code: dict):
    """Writes what the run is, and what the user's `code` makes: now the directory is its."""
    if not (workdir / "config.json").exists():
        write_json(workdir / "config.json", configs.to_dict(config))
    if code and not (workdir / "task.npz").exists():
        write_npz(workdir / "task.npz", code)
    if not is_finished(workdir):
        logs.begin(workdir, config)


def _check_belongs(workdir: Path, config: Config):
    """Raises RunError unless the directory is new, empty or of this config."""
    if workdir.exists() and not workdir.is_dir():
        raise RunError(f"--workdir={workdir}: is a file, not a directory")
    if (workdir / "config.json").exists():
        theirs = read_config(workdir)
        if configs.identity(theirs) != configs.identity(config):
            changed = configs.differences(theirs, config) | {"name": (theirs.name, config.name)}
            fields = [
                f"config.{name} is {before!r} there, {now!r} here"
                for name, (before, now) in changed.items()
                if before != now and configs.ABSENT not in (before, now)
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
    """The config of a directory. Raises RunError where config.json is damaged, or is another user's
    and names files of code."""
    path = Path(workdir) / "config.json"
    if not path.exists():
        parent, name = path.parent, path.name
        paths = [*parent.glob(f"*/{name}"), *parent.glob(f"*/*/{name}")]
        reason = "holds no run (no config.json)"
        if parent.is_file():
            reason = "is a file, not a directory"
        elif not parent.is_dir():
            reason = "there is no such directory"
        elif paths:
            first = min(paths).parent
            reason = f"holds {len(paths)} runs, each in a directory of its own, such as {first}"
        raise RunError(f"{workdir}: {reason}")
    values = read_json(path)
    _heed_code(path, values)
    try:
        return configs.from_dict(values)
    except ConfigError as error:
        raise RunError(f"{path} cannot be used: {error}") from error


def _heed_code(path: Path, values):
    """Says on stderr which files a config imports. Raises RunError for those of another user's."""
    groups = [values.get(group) for group in FAMILIES] if isinstance(values, dict) else []
    names = [str(group.get("name")) for group in groups if isinstance(group, dict)]
    files = {name.rpartition(":")[0] for name in names} - {""}
    files = sorted(file for file in files if str(Path(file).resolve()) not in LOADED)
    if not files:
        return
    imports = f"{path} imports {', '.join(map(repr, files))}"
    is_foreign = hasattr(os, "getuid") and path.stat().st_uid != os.getuid()
    if is_foreign and not trusts_others:
        raise RunError(f"{imports} and is another user's; read that, then copy it or give --trust")
    print(f"note: {imports}", file=sys.stderr)


def save(workdir: Path, step: int, state, rows: list, keep=()):
    """Saves all rows, and the state of all seeds. Raises RunError where the disk is full."""
    rows = clean(rows)
    text = pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")
    write_text(workdir / "metrics.csv", text)
    checkpoints.save(workdir / "checkpoints", checkpoints.Checkpoint(step, state, rows), keep)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz of a run by name. Raises RunError for a damaged one."""
    try:
        with open(path, "rb") as content, np.load(content, allow_pickle=False) as arrays:
            return dict(arrays)
    except Exception as error:
        raise RunError(f"{path} is damaged: {error}") from error


def keep_scores(workdir: Path, name: str, scores: dict):
    """Keeps scores at every cell to the bit, as training made them."""
    write_npz(workdir / f"{name}.npz", scores | {"version": np.int32(SCORES_VERSION)})


def kept_scores(workdir: Path, name: str) -> dict[str, np.ndarray] | None:
    """What `keep_scores` wrote; None if it is missing, damaged, or of another version."""
    with contextlib.suppress(RunError):
        scores = read_arrays(workdir / f"{name}.npz")
        if scores.pop("version", None) == SCORES_VERSION:
            return scores


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
        return read_arrays(path)
    except RunError as error:
        why = "is no .npz of numbers or text, or is damaged; save it with numpy.savez"
        raise ConfigError(f"{flag}{path}: {why}") from error


def read_json(path: Path):
    """Raises RunError where the file is damaged."""
    try:
        return json.loads(path.read_text())
    except Exception as error:
        raise RunError(f"{path} is damaged: {error}") from error
