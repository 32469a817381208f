"""The run directory: the only module that touches the disk (checkpoints through
`training.checkpoints`), and the host's loop around the jitted training chunks.

    DIR/config.json      what the run is                       written first
    DIR/checkpoints/     the state of all seeds, and the rows  after every evaluation
    DIR/metrics.csv      one row per seed and evaluation       rewritten after every checkpoint
    DIR/summary.json     final numbers per seed and their mean written last: the run is finished
    DIR/environment.json versions, device and seconds

Every file appears atomically. A killed run, started again with the same config, continues from
its last checkpoint to the same bits.
"""

import contextlib
import csv
import fcntl
import io
import json
import math
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from compgen_jax import config as configs
from compgen_jax.analysis import evaluation
from compgen_jax.analysis.statistics import mean_with_interval
from compgen_jax.config import Config, ConfigError
from compgen_jax.tasks import bump, dataset, supports
from compgen_jax.training import checkpoints, loop
from compgen_jax.training.trials import over_trials


class RunError(RuntimeError):
    """A run that cannot start or go on: the message is one line, for the user."""


class Run(NamedTuple):
    """A finished run; the leaves of `params` have a leading axis T over `seeds`."""

    path: Path
    config: Config
    params: Any
    summary: dict


def train(config: Config, workdir, progress: bool = True) -> dict:
    """Trains all seeds of `config` in `workdir`, or what is left to train; returns the summary.

    Raises ConfigError or RunError, before any compilation, for a task that cannot be, a
    directory of another config or damaged files, and RunError if a loss stops being finite.
    """
    supports.check(config.task)
    workdir = Path(workdir)
    with _claim(workdir, config):
        if (workdir / "summary.json").exists():
            return _read_json(workdir / "summary.json")
        keys = _seed_keys(config)
        _check_training_sets(config, keys)
        start = time.perf_counter()
        rows = _train(config, workdir, keys, progress)
        summary = _summary(rows, config)
        environment = _environment() | {"seconds": round(time.perf_counter() - start, 1)}
        write_json(workdir / "environment.json", environment)
        write_json(workdir / "summary.json", summary)
        return summary


def load(workdir) -> Run:
    """A finished run. Raises RunError, naming what is missing or damaged."""
    workdir = Path(workdir)
    if not (workdir / "config.json").exists():
        raise RunError(f"{workdir}: holds no run (no config.json)")
    config = read_config(workdir)
    if not (workdir / "summary.json").exists():
        raise RunError(f"{workdir}: its run is not finished; python -m launch.train resumes it")
    checkpoint = _restore(workdir, _template(config))
    if checkpoint is None:
        raise RunError(f"{workdir}: its checkpoints are missing")
    summary = _read_json(workdir / "summary.json")
    return Run(workdir, config, checkpoint.state.params, summary)


def read_config(workdir) -> Config:
    """The config of a directory. Raises RunError where config.json is damaged."""
    path = Path(workdir) / "config.json"
    try:
        return configs.from_dict(_read_json(path))
    except ConfigError as error:
        raise RunError(f"{path} is damaged or of another version: {error}") from error


def decode(run: Run, factors):
    """Signals (T, B, N, N), NumPy, of all seeds at the points (B, 2), any real pixels."""
    task = run.config.task
    trainer = loop.make_trainer(run.config)
    codes = dataset.from_factors(factors, task).codes
    images = over_trials(lambda codes, params: trainer.decode(params, codes))(codes, run.params)
    return np.asarray(bump.to_signal(images, task.image))


def write_json(path: Path, value):
    """Writes JSON atomically; NaN, which JSON lacks, becomes null."""

    def clean(node):
        if isinstance(node, dict):
            return {key: clean(child) for key, child in node.items()}
        if isinstance(node, list | tuple):
            return [clean(child) for child in node]
        return None if isinstance(node, float) and not math.isfinite(node) else node

    write_text(path, json.dumps(clean(value), indent=1, allow_nan=False) + "\n")


def write_text(path: Path, text: str):
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes):
    """Replaces `path` atomically: a reader sees the old file or the new one, whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


# --- the host's loop -------------------------------------------------------------------------


def _train(config: Config, workdir: Path, keys, progress: bool) -> list:
    """Trains from the last checkpoint to the end; returns all rows of metrics."""
    checkpoint = _restore(workdir, _template(config))
    trainer, per_device = loop.make_trainer(config), config.execution.trials_per_device
    advance = over_trials(
        lambda shared, trial: trainer.advance(trial[0], shared[0], trial[1], shared[1]), per_device
    )
    evaluate = over_trials(_make_evaluate(config, trainer), per_device)
    total, per_epoch = loop.total_steps(config), loop.steps_per_epoch(config)
    hyper, seeds = loop.hyper_of(config), config.training.seeds
    if checkpoint is None:
        step, rows = 0, []
        state = over_trials(lambda _, key: trainer.init(key), per_device)((), keys)
    else:
        step, state, rows = checkpoint
        write_text(workdir / "metrics.csv", _csv(rows))
    with _progress_bar(config, total, step, progress) as bar:
        while step < total:
            row_end = min(total, (step // per_epoch // config.training.evaluate_every + 1)
                          * config.training.evaluate_every * per_epoch)
            losses = []
            while step < row_end:
                n_steps = min(config.execution.chunk_steps, row_end - step)
                state, chunk = advance((hyper, n_steps), (keys, state))
                losses.append(np.asarray(chunk)[:, :n_steps])
                _check_finite(losses[-1], seeds, step, workdir)
                step += n_steps
                bar.update(n_steps)
            losses = np.concatenate(losses, axis=1)[:, -per_epoch:].mean(axis=1, dtype=np.float64)
            measured = jax.device_get(evaluate((), state.params))
            _check_finite(measured["id.mse"][:, None], seeds, step, workdir)
            for index, seed in enumerate(seeds):
                row = {"step": step, "epoch": step // per_epoch, "seed": seed}
                row["train_loss"] = float(losses[index])
                rows.append(row | {name: float(measured[name][index]) for name in measured})
            checkpoints.save(
                workdir / "checkpoints", checkpoints.Checkpoint(step, state, _jsonable(rows))
            )
            write_text(workdir / "metrics.csv", _csv(rows))
            bar.set_postfix_str(_postfix(losses, measured), refresh=False)
    return rows


def _make_evaluate(config: Config, trainer):
    """evaluate(shared, params) -> metrics of one trial on every cell."""
    task = config.task
    mask = supports.held_out_mask(task)
    lookup = jnp.asarray(evaluation.nearest_seen(mask))

    def evaluate(_, params):
        data = dataset.every_cell(task)
        signals = bump.to_signal(trainer.decode(params, data.codes), task.image)
        targets = bump.to_signal(data.targets, task.image)
        held_out = jnp.asarray(mask.ravel())
        return evaluation.summarize(signals, targets, data.factors, held_out, lookup)

    return evaluate


def _seed_keys(config: Config):
    return jax.vmap(jax.random.key)(jnp.array(config.training.seeds))


def _template(config: Config):
    """Shapes of the state of all trials; nothing is compiled."""
    trainer = loop.make_trainer(config)
    return jax.eval_shape(jax.vmap(trainer.init), _seed_keys(config))


def _restore(workdir: Path, template):
    try:
        return checkpoints.restore_latest(workdir / "checkpoints", template)
    except checkpoints.CheckpointError as error:
        raise RunError(str(error)) from error


def _check_training_sets(config: Config, keys):
    """Raises ConfigError if a seed's draw leaves a marginal unseen that the config demands."""
    for seed, key in zip(config.training.seeds, keys, strict=True):
        factors = supports.sample(loop.stream(key, "data"), config.task)
        supports.check_marginals(factors, config.task, source=f"the draw of seed {seed}")


def _check_finite(values_TxS, seeds, step: int, workdir: Path):
    bad = np.argwhere(~np.isfinite(values_TxS))
    if bad.size:
        trial, offset = bad[np.argmin(bad[:, 1])]
        saved = sorted((workdir / "checkpoints").glob("[0-9]*"), key=lambda path: int(path.name))
        last = f"the last good checkpoint is {saved[-1]}" if saved else "there is no checkpoint yet"
        raise RunError(
            f"the loss of seed {seeds[trial]} is {values_TxS[trial, offset]} at step "
            f"{step + offset}; {last}"
        )


# --- the directory ---------------------------------------------------------------------------


@contextlib.contextmanager
def _claim(workdir: Path, config: Config):
    """Makes `workdir` the directory of `config`, for this process alone."""
    if workdir.exists() and not workdir.is_dir():
        raise RunError(f"--workdir={workdir}: is a file, not a directory")
    if (workdir / "config.json").exists():
        found = read_config(workdir)
        if configs.fingerprint(found) != configs.fingerprint(config):
            raise RunError(
                f"--workdir={workdir}: belongs to another config ({_differences(found, config)}); "
                "choose another directory"
            )
    elif workdir.exists() and any(p.name != ".lock" for p in workdir.iterdir()):
        raise RunError(f"--workdir={workdir}: is not empty and holds no config.json")
    workdir.mkdir(parents=True, exist_ok=True)
    with open(workdir / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(f"--workdir={workdir}: another process is at work in it") from error
        if not (workdir / "config.json").exists():
            write_json(workdir / "config.json", configs.to_dict(config))
        yield


def _differences(found: Config, wanted: Config) -> str:
    def flat(node, path):
        if not isinstance(node, dict):
            return {path: node}
        return {k: v for name in node for k, v in flat(node[name], f"{path}.{name}").items()}

    old, new = (flat(configs.to_dict(config), configs.ROOT) for config in (found, wanted))
    changed = [n for n in new if old[n] != new[n] and not n.startswith("config.execution")]
    shown = [f"{name} is {old[name]!r} there, {new[name]!r} here" for name in changed[:3]]
    return ", ".join(shown) + (f", and {len(changed) - 3} more" if len(changed) > 3 else "")


def _read_json(path: Path):
    try:
        return json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise RunError(f"{path} is damaged: {error}") from error


def _jsonable(rows):
    return [{name: _finite_or_none(value) for name, value in row.items()} for row in rows]


def _finite_or_none(value):
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _csv(rows) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_jsonable(rows))
    return text.getvalue()


def _summary(rows, config: Config) -> dict:
    """Numbers of the last evaluation: per seed, and their mean with its interval."""
    last = rows[-len(config.training.seeds):]
    names = [name for name in last[0] if name not in ("step", "epoch", "seed")]
    seeds = {str(row["seed"]): {name: row[name] for name in names} for row in last}
    mean = {
        name: mean_with_interval([np.nan if row[name] is None else row[name] for row in last])
        for name in names
    }
    return {"seeds": seeds, "mean": mean}


def _environment() -> dict:
    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "device": jax.devices()[0].device_kind,
        "device_count": jax.local_device_count(),
        "cpu_count": os.cpu_count(),
    }


def _progress_bar(config: Config, total: int, step: int, shown: bool):
    return tqdm(
        total=total,
        initial=step,
        desc=f"{config.name} ({len(config.training.seeds)} seeds)",
        unit="step",
        disable=not shown,
        mininterval=0.5 if sys.stderr.isatty() else 20,
        dynamic_ncols=True,
    )


def _postfix(losses, measured) -> str:
    return (
        f"loss {losses.mean():.1e}, exact ID {measured['id.exact_accuracy'].mean():.2f} "
        f"OOD {measured['ood.exact_accuracy'].mean():.2f}"
    )
