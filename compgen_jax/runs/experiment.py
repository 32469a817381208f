"""Training from config to summary: the host's loop around the jitted training chunks."""

import contextlib
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from compgen_jax.config import Config, ConfigError
from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory, environment, out_of_memory, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.results import seed_keys
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import loop
from compgen_jax.training.loop import Trial
from compgen_jax.training.trials import over_trials, side_by_side


class _Job(NamedTuple):
    """One config on its way: the leaves of `state` have a leading axis over its seeds."""

    config: Config
    task: Task
    workdir: Path
    step: int
    state: Any  # None before the first step
    rows: list  # of metrics so far


class _Programs(NamedTuple):
    """Compiled functions (shared, trials) of all trials at once, and the trials."""

    init: Any
    advance: Any
    evaluate: Any
    trials: Trial
    measured_at: tuple


def train(config: Config, workdir, progress: bool = True) -> dict:
    """Trains all seeds of `config` in `workdir`, or what is left to train; returns the summary.

    A killed run, started again, continues from its last checkpoint to the same bits. Raises
    ConfigError or RunError, before the first step, for a task that cannot be, a directory of
    another config or damaged files, and RunError if a loss stops being finite.
    """
    return train_together([(config, workdir)], progress)[0]


def train_together(wanted, progress: bool = True) -> list[dict]:
    """Trains pairs (config, workdir) as the trials of one program; their summaries, in order.

    Each run is what `train` makes of it alone (to the bit on a CPU; elsewhere to rounding, as the
    number of trials decides how they are laid out), and can be resumed alone: runs that have not
    come equally far are trained apart. The execution settings are those of the first config.
    Raises as `train` does, for the whole group if one seed stops being finite, and ValueError for
    configs that share no `schedule` or directories named twice.
    """
    for config, _ in wanted:
        if config.is_sweep:
            raise ConfigError(f"{config.name} is a sweep, not one run: train it with launch.sweep")
    wanted = [(config, loop.check(config), Path(workdir)) for config, workdir in wanted]
    if len({schedule(config, task) for config, task, _ in wanted}) > 1:
        raise ValueError("configs that train together must share their program")
    if len({workdir.absolute() for *_, workdir in wanted}) < len(wanted):
        raise ValueError("configs that train together need a directory each")
    with contextlib.ExitStack() as claims:
        for config, _, workdir in wanted:
            claims.enter_context(directory.claim(workdir, config))
        jobs = [_restore(*run) for run in wanted if not directory.is_finished(run[2])]
        for step in sorted({job.step for job in jobs}, reverse=True):
            _train([job for job in jobs if job.step == step], progress)
        return [directory.read_summary(workdir) for *_, workdir in wanted]


def schedule(config: Config, task: Task) -> tuple:
    """What runs must share to train together: their program, and when they stop and evaluate."""
    steps = loop.evaluations(config, task)
    return (*loop.program(config, task), steps, tasks.sizes(task))


def _restore(config: Config, task: Task, workdir: Path) -> _Job:
    user_code.check(workdir, config, task)
    if directory.last_checkpoint(workdir) is None:
        return _Job(config, task, workdir, 0, None, [])
    checkpoint = directory.restore(workdir, loop.template(config))
    directory.write_metrics(workdir, checkpoint.rows)
    return _Job(config, task, workdir, *checkpoint)


def _train(jobs: list[_Job], progress: bool):
    """Trains jobs that have come equally far to their end, and writes their summaries."""
    start = time.perf_counter()
    config, task = jobs[0].config, jobs[0].task
    step, total = jobs[0].step, loop.total_steps(config, task)
    chunk = config.execution.chunk_steps
    with (
        _progress_bar(jobs, total, step, progress) as bar,
        out_of_memory.explained(
            "lower config.training.batch_size or config.model.width, or set "
            "config.execution.trials_per_device=1"
        ),
    ):
        programs = _compile(jobs)
        keys, trials = programs.trials.key, programs.trials
        state = _join([job.state for job in jobs]) if step else programs.init((), keys)
        for stop in (stop for stop in loop.evaluations(config, task) if stop > step):
            losses = []
            while step < stop:
                n_steps = min(chunk, stop - step)
                state, taken = programs.advance(np.int32(n_steps), (trials, state))
                losses.append(np.asarray(taken, np.float64)[:, :n_steps])
                _check_finite(losses[-1], jobs, step)
                step += n_steps
                bar.update(n_steps)
            measured = programs.evaluate((), (keys, state.params, programs.measured_at))
            measured = jax.device_get(measured)
            _check_finite(measured[f"id.{task.error}"][:, None], jobs, step)
            losses = np.concatenate(losses, axis=1)
            jobs = [
                _record(job._replace(step=step, state=own[0]), *own[1:])
                for job, own in zip(jobs, _split((state, losses, measured), jobs), strict=True)
            ]
            bar.set_postfix_str(_postfix(losses, measured, task), refresh=False)
    seconds = {
        "seconds_since_last_start": round(time.perf_counter() - start, 1),
        "trained_together": [job.config.name for job in jobs],
    }
    for job in jobs:
        directory.write_json(job.workdir / "environment.json", environment.describe() | seconds)
        directory.write_json(job.workdir / "summary.json", _summary(job))


def _compile(jobs: list[_Job]) -> _Programs:
    """The programs of all trials of the jobs, being compiled, and the trials' own data.

    Raises ConfigError for a seed whose draw cannot serve; directories are only begun thereafter.
    """
    config, task = jobs[0].config, jobs[0].task
    keys = jnp.concatenate([seed_keys(job.config.training.seeds) for job in jobs])
    trainer = loop.make_trainer(config, trials=len(keys))

    def evaluate(_, trained):
        key, params, (points, masks) = trained
        return evaluation.region_means(trainer.score(key, params, points), masks, task.derived)

    functions = (
        lambda _, key: trainer.init(key),
        lambda n_steps, pair: trainer.advance(*pair, n_steps),
        evaluate,
    )
    init, advance, evaluate = (
        over_trials(function, config.execution.trials_per_device) for function in functions
    )
    measured_at = _measured_at(jobs)
    of_seeds = jax.jit(partial(_trials, jobs))
    shapes = jax.eval_shape(of_seeds, keys)
    state = jax.eval_shape(jax.vmap(trainer.init), keys)
    side_by_side(  # the slowest first; training begins while the evaluation is compiled
        [
            lambda: advance.lower(np.int32(0), (shapes, state)),
            lambda: evaluate.lower((), (keys, state.params, measured_at)),
        ],
        [] if jobs[0].step else [lambda: init.lower((), keys, once=True)],
    )
    trials = of_seeds(keys)
    _check_datasets(jobs, trials.dataset)
    for job in jobs:
        user_code.remember(job.workdir, job.config, job.task)
        directory.begin(job.workdir, job.config)
    return _Programs(init, advance, evaluate, trials, measured_at)


def _datasets(job: _Job):
    """What training shows of every seed, leading axis T."""
    return jax.vmap(lambda key: loop.dataset_of(job.task, key))(
        seed_keys(job.config.training.seeds)
    )


def _check_datasets(jobs: list[_Job], datasets):
    for job, own in zip(jobs, _split(jax.device_get(datasets), jobs), strict=True):
        for index, seed in enumerate(job.config.training.seeds):
            loop.check_dataset(job.task, jax.tree.map(lambda leaf, k=index: leaf[k], own), seed)


def _trials(jobs: list[_Job], keys) -> Trial:
    """Every seed of every job, leading axis T."""
    datasets = [_datasets(job) for job in jobs]
    capacity = max(sampling.capacity(jax.tree.map(lambda leaf: leaf[0], each)) for each in datasets)
    datasets = [jax.vmap(lambda one: sampling.padded(one, capacity))(each) for each in datasets]
    hypers = [
        jax.tree.map(lambda value, job=job: jnp.tile(value, _count(job)), loop.hyper_of(job.config))
        for job in jobs
    ]
    return Trial(keys, _join(hypers), _join(datasets), jnp.zeros(len(keys), jnp.int32))


def _measured_at(jobs: list[_Job]) -> tuple:
    """Where every trial is measured: points (T, B, F), and by region which of them, (T, B) bool."""
    points = [np.asarray(tasks.points(job.task), np.float32) for job in jobs]
    held_out = [np.asarray(job.task.held_out(own)) for job, own in zip(jobs, points, strict=True)]
    of_seeds = lambda each: np.repeat(np.stack(each), [_count(job) for job in jobs], axis=0)
    held_out = of_seeds(held_out)
    return of_seeds(points), {"id": ~held_out, "ood": held_out}


def _record(job: _Job, losses_TxS, measured: dict) -> _Job:
    """The job with its rows of metrics at this step, saved."""
    per_epoch = loop.steps_per_epoch(job.config, job.task)
    last = per_epoch or loop.evaluation_interval(job.config, job.task)
    measured = {"train_loss": losses_TxS[:, -last:].mean(axis=1)} | measured
    rows = job.rows + [
        {"step": job.step, "epoch": job.step // per_epoch if per_epoch else 0, "seed": seed}
        | {name: float(values[index]) for name, values in measured.items()}
        for index, seed in enumerate(job.config.training.seeds)
    ]
    keep = loop.last_evaluations(job.config, job.task)
    directory.save(job.workdir, job.step, job.state, rows, keep)
    return job._replace(rows=rows)


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
    """Medians over the last evaluations and numbers of the trivial predictors: per seed, and their
    mean with its interval."""
    last, trivial = loop.last_evaluations(job.config, job.task), _baselines(job)
    names = [name for name in job.rows[0] if name not in ("step", "epoch", "seed")]
    seeds = {}
    for index, seed in enumerate(job.config.training.seeds):
        rows = [row for row in job.rows if row["seed"] == seed and row["step"] in last]
        seeds[str(seed)] = {name: _median([row[name] for row in rows]) for name in names}
        seeds[str(seed)] |= {name: float(values[index]) for name, values in trivial.items()}
        seeds[str(seed)] = _with_derived(job.task, seeds[str(seed)])
    mean = {
        name: mean_with_interval([one[name] for one in seeds.values()])
        for name in next(iter(seeds.values()))
    }
    facts = {name: float(value) for name, value in job.task.facts().items()}
    return {"seeds": seeds, "mean": mean} | ({"task": facts} if facts else {})


def _with_derived(task: Task, numbers: dict) -> dict:
    """With what a task derives from means and trivial predictors together."""
    found = {}
    for region in ("id", "ood"):
        means = {name.removeprefix(f"{region}."): value for name, value in numbers.items()
                 if name.startswith(f"{region}.")}  # fmt: skip
        found |= {f"{region}.{name}": float(value) for name, value in task.derived(means).items()}
    return found | numbers


def _median(values) -> float:
    """NaN where one is not known."""
    return float(np.median([np.nan if value is None else value for value in values]))


def _baselines(job: _Job) -> dict:
    """'REGION.PREDICTOR_mse' (T,), say: the error of every trivial predictor by region, on the
    examples that each seed is scored on."""
    task, masks = job.task, tasks.regions(job.task)

    def errors(key):
        scores = tasks.trivial_scores(task, loop.stream(key, "test"))
        found = {f"{name}_{task.error}": own[task.error] for name, own in scores.items()}
        return evaluation.region_means(found, masks)

    return jax.device_get(
        jax.jit(lambda keys: jax.lax.map(errors, keys))(seed_keys(job.config.training.seeds))
    )


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


def _postfix(losses_TxS, measured, task: Task) -> str:
    """The loss, and the accuracy or, without one, the error."""
    shown = task.accuracy or task.error
    seen, held_out = (measured[f"{region}.{shown}"].mean() for region in ("id", "ood"))
    name = shown.removesuffix("_accuracy")
    return f"loss {losses_TxS[:, -1].mean():.1e}, {name} ID {seen:.2g} OOD {held_out:.2g}"
