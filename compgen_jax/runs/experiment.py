"""Training from config to summary: the host's loop around the jitted training chunks."""

import contextlib
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from compgen_jax.analysis import evaluation
from compgen_jax.analysis.statistics import mean_with_interval
from compgen_jax.config import Config, ConfigError
from compgen_jax.runs import directory, environment
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import bump, dataset, supports
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials


class _Job(NamedTuple):
    """One config on its way: the leaves of `state` have a leading axis over its seeds."""

    config: Config
    workdir: Path
    step: int
    state: Any  # None before the first step
    rows: list  # of metrics so far


def train(config: Config, workdir, progress: bool = True) -> dict:
    """Trains all seeds of `config` in `workdir`, or what is left to train; returns the summary.

    A killed run, started again, continues from its last checkpoint to the same bits. Raises
    ConfigError or RunError, before any compilation, for a task that cannot be, a directory of
    another config or damaged files, and RunError if a loss stops being finite.
    """
    return train_together([(config, workdir)], progress)[0]


def train_together(wanted, progress: bool = True) -> list[dict]:
    """Trains pairs (config, workdir) as the trials of one program; their summaries, in order.

    Each run is what `train` makes of it alone (to the bit on a CPU; elsewhere to rounding, as the
    number of trials decides how they are laid out), and can be resumed alone: runs that have not
    come equally far are trained apart. The execution settings are those of the config with the
    most samples. Raises as `train` does, for the whole group if one seed stops being finite, and
    ValueError for configs that share no `loop.program` or directories named twice.
    """
    wanted = [(config, Path(workdir)) for config, workdir in wanted]
    if len({loop.program(config) for config, _ in wanted}) > 1:
        raise ValueError("configs that train together must share their program")
    if len({workdir.absolute() for _, workdir in wanted}) < len(wanted):
        raise ValueError("configs that train together need a directory each")
    for config, _ in wanted:
        if config.sweep.grids:
            raise ConfigError(f"{config.name} is a sweep, not one run: train it with launch.sweep")
        supports.check(config.task)
        _check_training_sets(config)
    with contextlib.ExitStack() as claims:
        for config, workdir in wanted:
            claims.enter_context(directory.claim(workdir, config))
        jobs = [_restore(*run) for run in wanted if not directory.is_finished(run[1])]
        for step in sorted({job.step for job in jobs}, reverse=True):
            _train([job for job in jobs if job.step == step], progress)
        return [directory.read_summary(workdir) for _, workdir in wanted]


def _restore(config: Config, workdir: Path) -> _Job:
    checkpoint = directory.restore(workdir, loop.template(config))
    if checkpoint is None:
        return _Job(config, workdir, 0, None, [])
    directory.write_metrics(workdir, checkpoint.rows)
    return _Job(config, workdir, *checkpoint)


def _train(jobs: list[_Job], progress: bool):
    """Trains jobs that have come equally far to their end, and writes their summaries."""
    start = time.perf_counter()
    config = max((job.config for job in jobs), key=lambda c: dataset.size(c.task))
    hypers, keys = _trials(jobs)
    init, advance, evaluate = _programs(config, len(keys))
    step, total = jobs[0].step, loop.total_steps(config)
    state = _join([job.state for job in jobs]) if step else init((), keys)
    interval = loop.evaluation_interval(config)
    with _progress_bar(jobs, total, step, progress) as bar:
        while step < total:
            stop = min(total, (step // interval + 1) * interval)
            losses = []
            while step < stop:
                n_steps = min(config.execution.chunk_steps, stop - step)
                state, chunk = advance(n_steps, (hypers, keys, state))
                losses.append(np.asarray(chunk, np.float64)[:, :n_steps])
                _check_finite(losses[-1], jobs, step)
                step += n_steps
                bar.update(n_steps)
            measured = jax.device_get(evaluate((), state.params))
            _check_finite(measured["id.mse"][:, None], jobs, step)
            losses = np.concatenate(losses, axis=1)
            jobs = [
                _record(job._replace(step=step, state=own[0]), *own[1:])
                for job, own in zip(jobs, _split((state, losses, measured), jobs), strict=True)
            ]
            bar.set_postfix_str(_postfix(losses, measured), refresh=False)
    seconds = {
        "seconds_since_last_start": round(time.perf_counter() - start, 1),
        "trained_together": [job.config.name for job in jobs],
    }
    for job in jobs:
        directory.write_json(job.workdir / "environment.json", environment.describe() | seconds)
        directory.write_json(job.workdir / "summary.json", _summary(job))


def _record(job: _Job, losses_TxS, measured: dict) -> _Job:
    """The job with its rows of metrics at this step, saved."""
    per_epoch = loop.steps_per_epoch(job.config)
    measured = {"train_loss": losses_TxS[:, -per_epoch:].mean(axis=1)} | measured
    rows = job.rows + [
        {"step": job.step, "epoch": job.step // per_epoch, "seed": seed}
        | {name: float(values[index]) for name, values in measured.items()}
        for index, seed in enumerate(job.config.training.seeds)
    ]
    directory.save(job.workdir, job.step, job.state, rows)
    return job._replace(rows=rows)


def _trials(jobs):
    """Traced hyper-parameters and keys of every seed of every job, leading axis T."""
    hypers = [
        jax.tree.map(lambda value, job=job: jnp.tile(value, _count(job)), loop.hyper_of(job.config))
        for job in jobs
    ]
    return _join(hypers), jnp.concatenate([_seed_keys(job.config) for job in jobs])


def _join(trees):
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *trees)


def _split(tree, jobs) -> list:
    """The parts (of a tree with leading axis T) that belong to each job."""
    ends = np.cumsum([_count(job) for job in jobs])
    return [
        jax.tree.map(lambda leaf, end=end, job=job: leaf[end - _count(job) : end], tree)
        for end, job in zip(ends, jobs, strict=True)
    ]


def _count(job: _Job) -> int:
    return len(job.config.training.seeds)


def _programs(config: Config, trials: int):
    """The jitted init, advance and evaluate of all trials at once."""
    trainer = loop.make_trainer(config, trials=trials)

    def advance(n_steps, trial):
        hyper, key, state = trial
        return trainer.advance(loop.make_trial(config, key, hyper), state, n_steps)

    functions = (lambda _, key: trainer.init(key)), advance, _make_evaluate(config, trainer)
    return [over_trials(function, config.execution.trials_per_device) for function in functions]


def _make_evaluate(config: Config, trainer):
    """evaluate(shared, params) -> metrics of one trial on every cell."""
    task = config.task
    mask = supports.held_out_mask(task)
    lookup = jnp.asarray(evaluation.nearest_seen(mask))

    def evaluate(_, params):
        factors, held_out = jnp.asarray(supports.cells(task.grid)), jnp.asarray(mask.ravel())
        drawn = trainer.draw(params, factors)
        signals, targets = (bump.to_signal(images, task.image) for images in drawn)
        return evaluation.summarize(signals, targets, factors, held_out, lookup)

    return evaluate


def _seed_keys(config: Config):
    return jax.vmap(jax.random.key)(jnp.array(config.training.seeds))


def _check_training_sets(config: Config):
    """Raises ConfigError if a seed's draw leaves a marginal unseen that the config demands."""
    for seed, key in zip(config.training.seeds, _seed_keys(config), strict=True):
        factors = dataset.training_factors(loop.stream(key, "data"), config.task)
        supports.check_marginals(factors, config.task, source=f"the draw of seed {seed}")


def _check_finite(values_TxS, jobs, step: int):
    bad = np.argwhere(~np.isfinite(values_TxS))
    if bad.size:
        trial, offset = bad[np.argmin(bad[:, 1])]
        job, seed = [(job, seed) for job in jobs for seed in job.config.training.seeds][trial]
        saved = directory.last_checkpoint(job.workdir)
        last = f"the last good checkpoint is {saved}" if saved else "there is no checkpoint yet"
        raise RunError(
            f"{job.config.name}: the loss of seed {seed} is {values_TxS[trial, offset]} at step "
            f"{step + offset}; {last}"
        )


def _summary(job: _Job) -> dict:
    """Numbers of the last evaluation: per seed, and their mean with its interval."""
    last = job.rows[-_count(job) :]
    names = [name for name in last[0] if name not in ("step", "epoch", "seed")]
    seeds = {str(row["seed"]): {name: row[name] for name in names} for row in last}
    mean = {
        name: mean_with_interval([np.nan if row[name] is None else row[name] for row in last])
        for name in names
    }
    return {"seeds": seeds, "mean": mean}


def _progress_bar(jobs, total: int, step: int, shown: bool):
    names = jobs[0].config.name + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "")
    trials = sum(_count(job) for job in jobs)
    return tqdm(
        total=total,
        initial=step,
        desc=f"{names} ({trials} seeds, {jax.default_backend()})",
        unit="step",
        disable=not shown,
        mininterval=0.5 if sys.stderr.isatty() else 20,
        dynamic_ncols=True,
    )


def _postfix(losses_TxS, measured) -> str:
    exact_id, exact_ood = (measured[f"{region}.exact_accuracy"].mean() for region in ("id", "ood"))
    return f"loss {losses_TxS[:, -1].mean():.1e}, exact ID {exact_id:.2f} OOD {exact_ood:.2f}"
