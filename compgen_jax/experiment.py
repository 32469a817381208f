"""A run from config to summary: the host's loop around the jitted training chunks, and what a
finished run draws."""

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

from compgen_jax import runs
from compgen_jax.analysis import evaluation
from compgen_jax.analysis.statistics import mean_with_interval
from compgen_jax.config import Config
from compgen_jax.runs import RunError
from compgen_jax.tasks import bump, dataset, supports
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials


class Run(NamedTuple):
    """A finished run; the leaves of `params` have a leading axis T over the config's seeds."""

    config: Config
    params: Any
    summary: dict


def train(config: Config, workdir, progress: bool = True) -> dict:
    """Trains all seeds of `config` in `workdir`, or what is left to train; returns the summary.

    A killed run, started again, continues from its last checkpoint to the same bits. Raises
    ConfigError or RunError, before any compilation, for a task that cannot be, a directory of
    another config or damaged files, and RunError if a loss stops being finite.
    """
    supports.check(config.task)
    keys, workdir = _seed_keys(config), Path(workdir)
    _check_training_sets(config, keys)
    with runs.claim(workdir, config):
        if not runs.is_finished(workdir):
            start = time.perf_counter()
            rows = _train(config, workdir, keys, progress)
            seconds = {"seconds_since_last_start": round(time.perf_counter() - start, 1)}
            runs.write_json(workdir / "environment.json", _environment() | seconds)
            runs.write_json(workdir / "summary.json", _summary(rows, config))
        return runs.read_summary(workdir)


def load(workdir) -> Run:
    """A finished run. Raises RunError, naming what is missing or damaged."""
    workdir = Path(workdir)
    config = runs.read_config(workdir)
    if not runs.is_finished(workdir):
        raise RunError(f"{workdir}: its run is not finished; python -m launch.train resumes it")
    checkpoint = runs.restore(workdir, _template(config))
    if checkpoint is None or checkpoint.step != loop.total_steps(config):
        raise RunError(
            f"{workdir}: its final checkpoint is missing; remove its summary.json, and "
            "python -m launch.train trains what is missing"
        )
    return Run(config, checkpoint.state.params, runs.read_summary(workdir))


def decode(run: Run, factors):
    """Signals (T, B, N, N), NumPy, of all seeds at the points (B, 2), any real pixels."""
    data = dataset.from_factors(factors, run.config.task)
    return np.asarray(_over_seeds(run, lambda signals, _: signals, data))


def error_map(run: Run, factors):
    """(T, B) mean squared error of all seeds at the points (B, 2), any real pixels."""
    data = dataset.from_factors(factors, run.config.task)
    return np.asarray(_over_seeds(run, evaluation.mse_per_point, data))


def _over_seeds(run: Run, measure, data):
    """measure(signals, target signals) of each seed at the points of `data`."""
    trainer, image = loop.make_trainer(run.config), run.config.task.image

    def of_seed(data, params):
        signals = bump.to_signal(trainer.decode(params, data.codes), image)
        return measure(signals, bump.to_signal(data.targets, image))

    return over_trials(of_seed)(data, run.params)


def evaluate_cells(run: Run) -> evaluation.CellResults:
    """What every seed draws at every cell, beside what it should draw."""
    task = run.config.task
    data, mask = dataset.every_cell(task), supports.held_out_mask(task)
    points = evaluation.fine_points(task.grid)
    side = int(len(points) ** 0.5)
    return evaluation.CellResults(
        seeds=run.config.training.seeds,
        signals=decode(run, data.factors),
        targets=np.asarray(bump.to_signal(data.targets, task.image)),
        factors=np.asarray(data.factors),
        held_out=mask.ravel(),
        distance=evaluation.distance_to_seen(mask).ravel(),
        amplitude=task.image.amplitude,
        fine_mse=error_map(run, points).reshape(-1, side, side),
    )


def _train(config: Config, workdir: Path, keys, progress: bool) -> list:
    """Trains from the last checkpoint to the end; returns all rows of metrics."""
    hyper, seeds = loop.hyper_of(config), config.training.seeds
    checkpoint = runs.restore(workdir, _template(config))
    init, advance, evaluate = _programs(config)
    if checkpoint is None:
        step, rows, state = 0, [], init((), keys)
    else:
        step, state, rows = checkpoint
        runs.write_metrics(workdir, rows)
    total, per_epoch = loop.total_steps(config), loop.steps_per_epoch(config)
    interval = config.training.evaluate_every * per_epoch
    with _progress_bar(config, total, step, progress) as bar:
        while step < total:
            stop = min(total, (step // interval + 1) * interval)
            losses = []
            while step < stop:
                n_steps = min(config.execution.chunk_steps, stop - step)
                state, chunk = advance((hyper, n_steps), (keys, state))
                losses.append(np.asarray(chunk, np.float64)[:, :n_steps])
                _check_finite(losses[-1], seeds, step, workdir)
                step += n_steps
                bar.update(n_steps)
            measured = jax.device_get(evaluate((), state.params))
            _check_finite(measured["id.mse"][:, None], seeds, step, workdir)
            epoch_loss = np.concatenate(losses, axis=1)[:, -per_epoch:].mean(axis=1)
            measured = {"train_loss": epoch_loss} | measured
            rows += [
                {"step": step, "epoch": step // per_epoch, "seed": seed}
                | {name: float(values[index]) for name, values in measured.items()}
                for index, seed in enumerate(seeds)
            ]
            runs.save(workdir, step, state, rows)
            bar.set_postfix_str(_postfix(measured), refresh=False)
    return rows


def _programs(config: Config):
    """The jitted init, advance and evaluate of all trials at once."""
    trainer = loop.make_trainer(config)

    def advance(shared, trial):
        (hyper, n_steps), (key, state) = shared, trial
        return trainer.advance(key, hyper, state, n_steps)

    functions = (lambda _, key: trainer.init(key)), advance, _make_evaluate(config, trainer)
    return [over_trials(function, config.execution.trials_per_device) for function in functions]


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


def _check_training_sets(config: Config, keys):
    """Raises ConfigError if a seed's draw leaves a marginal unseen that the config demands."""
    for seed, key in zip(config.training.seeds, keys, strict=True):
        factors = supports.sample(loop.stream(key, "data"), config.task)
        supports.check_marginals(factors, config.task, source=f"the draw of seed {seed}")


def _check_finite(values_TxS, seeds, step: int, workdir: Path):
    bad = np.argwhere(~np.isfinite(values_TxS))
    if bad.size:
        trial, offset = bad[np.argmin(bad[:, 1])]
        saved = runs.last_checkpoint(workdir)
        last = f"the last good checkpoint is {saved}" if saved else "there is no checkpoint yet"
        raise RunError(
            f"the loss of seed {seeds[trial]} is {values_TxS[trial, offset]} at step "
            f"{step + offset}; {last}"
        )


def _summary(rows, config: Config) -> dict:
    """Numbers of the last evaluation: per seed, and their mean with its interval."""
    last = rows[-len(config.training.seeds) :]
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
        desc=f"{config.name} ({len(config.training.seeds)} seeds, {jax.default_backend()})",
        unit="step",
        disable=not shown,
        mininterval=0.5 if sys.stderr.isatty() else 20,
        dynamic_ncols=True,
    )


def _postfix(measured) -> str:
    loss, exact_id, exact_ood = (
        measured[name].mean() for name in ("train_loss", "id.exact_accuracy", "ood.exact_accuracy")
    )
    return f"loss {loss:.1e}, exact ID {exact_id:.2f} OOD {exact_ood:.2f}"
