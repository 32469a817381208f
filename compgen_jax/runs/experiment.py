"""Training from config to summary: the host's loop around the jitted training chunks."""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, ConfigError
from compgen_jax.metrics import evaluation
from compgen_jax.runs import (
    directory,
    environment,
    out_of_memory,
    results,
    tensorboard,
    train_log,
    user_code,
)
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.progress import Bar
from compgen_jax.runs.results import seed_keys
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import contracts, loop
from compgen_jax.training.loop import Trial
from compgen_jax.training.program import Program
from compgen_jax.training.trials import join, split


class _Job(NamedTuple):
    """A config on its way, as its directory has it: state and rows up to a step."""

    config: Config
    task: Task
    workdir: Path
    step: int = 0
    state: Any = None  # leading axis over its seeds; None before the first step
    rows: list | None = None  # of metrics so far
    part: slice = slice(None)  # its seeds' place in the batch of trials
    made: dict = {}  # of a user's own file, see `user_code.check`

    @property
    def seeds(self) -> tuple:
        return self.config.training.seeds

    def of(self, tree):
        """What belongs to this job of a tree with leading axis T over the batch."""
        return jax.tree.map(lambda leaf: leaf[self.part], tree)


def train(config: Config, workdir, progress: bool = True) -> dict:
    """Trains all seeds of `config` in `workdir`, or what is left to train; returns the summary.

    A killed run, started again, continues from its last checkpoint to the same bits. Raises
    ConfigError or RunError, before the first step, for an impossible task, a directory of another
    config or damaged files, and RunError if a loss stops being finite.
    """
    return train_together([(config, workdir)], progress)[0]


def train_together(wanted, progress: bool = True) -> list[dict]:
    """Trains pairs (config, workdir) as the trials of one program; their summaries, in order.

    Each run is what `train` makes of it alone: to the bit on a CPU, elsewhere to rounding, as the
    number of trials decides how they are laid out. Each can be resumed alone, and runs that have
    not come equally far are trained apart. The execution settings are those of the first config.

    Raises as `train` does, for the whole group if one seed stops being finite, and ValueError for
    configs that share no `schedule` or directories named twice.
    """
    for config, _ in wanted:
        check_single(config)
        tensorboard.check(config)
    wanted = [(config, contracts.check(config), Path(workdir)) for config, workdir in wanted]
    if len({schedule(config, task) for config, task, _ in wanted}) > 1:
        raise ValueError("configs that train together must share their program")
    if len({workdir.absolute() for *_, workdir in wanted}) < len(wanted):
        raise ValueError("configs that train together need a directory each")
    with contextlib.ExitStack() as claims:
        for config, _, workdir in wanted:
            claims.enter_context(directory.claim(workdir, config))
        jobs = []
        for config, task, workdir in wanted:
            made = user_code.check(workdir, config, task)
            if not directory.is_finished(workdir):
                jobs.append(_restore(config, task, workdir)._replace(made=made))
                if jobs[-1].rows:  # a kill may have come before they were written
                    directory.write_metrics(workdir, jobs[-1].rows)
        for step in sorted({job.step for job in jobs}, reverse=True):
            _train([job for job in jobs if job.step == step], progress)
        return [directory.read_summary(workdir) for *_, workdir in wanted]


def rehearse(config: Config) -> tuple[Task, Program, Trial]:
    """What `train` compiles for a config, and its trials; nothing is written.

    Raises ConfigError for an impossible task, and for a sweep.
    """
    check_single(config)
    task = contracts.check(config)
    seeds = len(config.training.seeds)
    return task, *_compile([_Job(config, task, Path(), part=slice(0, seeds))])


def check_single(config: Config):
    """Raises ConfigError for a sweep."""
    if config.is_sweep:
        raise ConfigError(f"{config.name} is a sweep, not one run: train it by compgen-jax sweep")


def schedule(config: Config, task: Task) -> tuple:
    """What runs must share to train together: their program, and when they stop and evaluate."""
    steps = loop.evaluations(config, task)
    return (*loop.program(config, task), steps, tasks.sizes(task))


def _restore(config: Config, task: Task, workdir: Path, step: int | None = None) -> _Job:
    """The job at a step; by default at its newest checkpoint, or before the first step."""
    if step is None and directory.last_checkpoint(workdir) is None:
        return _Job(config, task, workdir, rows=[])
    return _Job(config, task, workdir, *directory.restore(workdir, loop.template(config), step))


def _train(jobs: list[_Job], progress: bool):
    """Trains jobs that have come equally far to their end, and writes their summaries."""
    start = time.perf_counter()
    config, task, step = jobs[0].config, jobs[0].task, jobs[0].step
    ends = np.cumsum([len(job.seeds) for job in jobs]).tolist()
    jobs = [job._replace(part=slice(end - len(job.seeds), end))
            for job, end in zip(jobs, ends, strict=True)]  # fmt: skip
    evaluations = loop.evaluations(config, task)
    kept = [loop.kept_steps(job.config, job.task) for job in jobs]
    late = sorted(set(loop.last_evaluations(config, task)))
    losses, scores = [], {}  # since the last evaluation; (T, B) by name, by evaluation
    shown = ""  # beside the bar
    with (
        tensorboard.curves(
            [job.workdir for job in jobs if job.config.execution.tensorboard]
        ) as write_curves,
        _progress_bar(jobs, evaluations[-1], progress) as bar,
        out_of_memory.explained(
            "lower config.training.batch_size or config.model.width, or set "
            "config.execution.trials_per_device=1"
        ),
    ):
        program, slots = _compile(jobs)
        for job in jobs:
            directory.begin(job.workdir, job.config)
            user_code.remember(job.workdir, job.made)
            train_log.begin(job.workdir, job.config)
            for line in results.describe(job.task):
                train_log.write(job.workdir, line)
                bar.write(f"{job.config.name}: {line}")
        state = split(_join([job.state for job in jobs])) if step else program.init(slots)

        def after_chunk(losses_TxN):
            nonlocal step
            _check_finite(losses_TxN, jobs, step)
            step += losses_TxN.shape[1]
            bar.update(losses_TxN.shape[1])

        for stop in sorted(stop for stop in {*evaluations}.union(*kept) if stop > step):
            state, taken = program.advance(slots, state, stop - step, ends[-1], after_chunk)
            losses.append(taken)
            joined = join(state, ends[-1])
            for job, steps in zip(jobs, kept, strict=True):
                if stop in steps:
                    directory.keep_parameters(job.workdir, stop, job.of(joined.params))
            if stop in evaluations:
                means, scores[stop] = program.score(slots, state, ends[-1])
                _check_finite(means[f"id.{task.error}"][:, None], jobs, step)
                losses_TxS, losses = np.concatenate(losses, axis=1), []
                for job in jobs:
                    _record(job, step, *job.of((joined, losses_TxS, means)))
                    write_curves(job.workdir, job.rows[-len(job.seeds) :])
                shown = _postfix(losses_TxS, means, task)
                bar.set_postfix_str(shown, refresh=False)
        for stop in late:
            if stop not in scores:  # evaluated before this process resumed the runs
                states = [_restore(*job[:3], stop).state for job in jobs]
                _, scores[stop] = program.score(slots, split(_join(states)), ends[-1])
        seconds = {
            "seconds_since_last_start": round(time.perf_counter() - start, 1),
            "trained_together": [job.config.name for job in jobs],
        }
        for job in jobs:
            directory.write_cells(job.workdir, [job.of(scores[stop]) for stop in late])
            of_steps = [job.of(scores[stop]) for stop in loop.last_evaluations(config, task)]
            stack = lambda *leaves: np.stack(leaves, axis=1)
            directory.keep_scores(job.workdir, "late", jax.tree.map(stack, *of_steps))
            directory.write_json(job.workdir / "environment.json", environment.describe() | seconds)
            directory.write_json(job.workdir / "summary.json", _summary(job, bar.say))
        bar.say(shown)


def _compile(jobs: list[_Job]) -> tuple[Program, Trial]:
    """The program of all trials of the jobs, while it is compiled, and the trials, leading axis T.

    Raises ConfigError for a seed whose data set its task refuses.
    """
    config, task = jobs[0].config, jobs[0].task
    keys = seed_keys([seed for job in jobs for seed in job.seeds])

    def measure(scores, masks):
        return evaluation.region_means(scores, masks, task.derived), scores

    program = Program(config, (task,), len(keys), measure)
    each_seed = lambda of_jobs: np.repeat(np.stack(of_jobs), [len(job.seeds) for job in jobs], 0)
    points = each_seed([np.asarray(tasks.points(job.task), np.float32) for job in jobs])
    held_out = each_seed([job.task.held_out(tasks.points(job.task)) for job in jobs])
    masks, nearest = {"id": ~held_out, "ood": held_out}, None
    if task.nearest is not None:
        nearest = each_seed([job.task.nearest(tasks.points(job.task)) for job in jobs])
    of_keys = jax.jit(partial(_trials, jobs))
    scored = {"points": points, "masks": masks, "nearest": nearest}
    program.compile(jax.eval_shape(of_keys, keys)._replace(**scored), with_init=not jobs[0].step)
    trials = of_keys(keys)
    datasets = jax.device_get(trials.dataset)
    for job in jobs:
        for index, seed in enumerate(job.seeds, start=job.part.start):
            of_seed = jax.tree.map(lambda leaf, k=index: leaf[k], datasets)
            contracts.check_dataset(job.task, of_seed, seed)
    return program, split(trials._replace(**scored))


def _trials(jobs: list[_Job], keys) -> Trial:
    """Every seed of every job, leading axis T."""
    datasets = [jax.vmap(partial(loop.dataset_of, job.task))(seed_keys(job.seeds)) for job in jobs]
    capacity = max(sampling.capacity(jax.tree.map(lambda leaf: leaf[0], each)) for each in datasets)
    datasets = [jax.vmap(lambda one: sampling.padded(one, capacity))(each) for each in datasets]
    hypers = [
        {name: jnp.tile(value, len(job.seeds)) for name, value in loop.hyper_of(job.config).items()}
        for job in jobs
    ]
    return Trial(keys, _join(hypers), _join(datasets), jnp.zeros(len(keys), jnp.int32))


def _join(trees):
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *trees)


def _record(job: _Job, step: int, state, losses_TxS, means: dict):
    """Adds the rows of metrics at this step, and saves all."""
    per_epoch = loop.steps_per_epoch(job.config, job.task)
    last = per_epoch or loop.evaluation_interval(job.config, job.task)
    means = {"train_loss": losses_TxS[:, -last:].mean(axis=1)} | means
    job.rows.extend(
        {"step": step, "epoch": step // per_epoch if per_epoch else 0, "seed": seed}
        | {name: float(values[index]) for name, values in means.items()}
        for index, seed in enumerate(job.seeds)
    )
    keep = loop.last_evaluations(job.config, job.task)
    directory.save(job.workdir, step, state, job.rows, keep)
    train_log.write(job.workdir, f"step {step}: {_postfix(losses_TxS, means, job.task)}")


def _check_finite(values_TxS, jobs, step: int):
    bad = np.argwhere(~np.isfinite(values_TxS))
    if bad.size:
        trial, offset = bad[np.argmin(bad[:, 1])]
        job, seed = [(job, seed) for job in jobs for seed in job.seeds][trial]
        saved = directory.last_checkpoint(job.workdir)
        last = f"the last good checkpoint is {saved}" if saved else "there is no checkpoint yet"
        raise RunError(
            f"{job.config.name}: the loss of seed {seed} is {values_TxS[trial, offset]} at step "
            f"{step + offset}; {last}"
        )


def _summary(job: _Job, say: Callable) -> dict:
    """Medians over the last evaluations and the trivial predictors' numbers, per seed, and their
    means over seeds with intervals. `say` is told what is being computed."""
    last, trivial = loop.last_evaluations(job.config, job.task), _baselines(job, say)
    names = [name for name in job.rows[0] if name not in ("step", "epoch", "seed")]
    seeds = {}
    for index, seed in enumerate(job.seeds):
        rows = [row for row in job.rows if row["seed"] == seed and row["step"] in last]
        # as floats: a value that is not known, None, is NaN
        values = np.array([[row[name] for name in names] for row in rows], np.float64)
        seeds[str(seed)] = dict(zip(names, np.median(values, axis=0).tolist(), strict=True))
        seeds[str(seed)] |= {name: float(values[index]) for name, values in trivial.items()}
        seeds[str(seed)] = _with_derived(job.task, seeds[str(seed)])
    mean = {
        name: mean_with_interval([one[name] for one in seeds.values()], name)
        for name in next(iter(seeds.values()))
    }
    facts = {name: float(value) for name, value in job.task.facts().items()}
    if not (sample := results.predicted(job.task)).all():
        facts["interpolated_points"] = float(sample.sum())
    return {"seeds": seeds, "mean": mean} | ({"task": facts} if facts else {})


def _with_derived(task: Task, numbers: dict) -> dict:
    """With the numbers that a task derives from means and trivial predictors together."""
    derived = {}
    for region in ("id", "ood"):
        means = {name.removeprefix(f"{region}."): value for name, value in numbers.items()
                 if name.startswith(f"{region}.")}  # fmt: skip
        derived |= {f"{region}.{name}": float(value) for name, value in task.derived(means).items()}
    return derived | numbers


def _baselines(job: _Job, say: Callable) -> dict:
    """{'REGION.PREDICTOR_ERROR': (T,)}: the error of every trivial predictor by region, on the
    examples that each seed is scored on. Predictors from codes have all scores."""
    from_codes = {}
    if job.task.interpolated:
        made = results.interpolations(job.config, job.task, job.seeds, say=say)
        from_codes = {name: scores for name, (_, _, scores) in made.items()}
        for name, scores in from_codes.items():
            directory.keep_scores(job.workdir, name, scores)
    trivial = results.trivial_means(job.task, job.seeds, from_codes, (job.task.error,))
    return {
        f"{region}.{predictor}_{score}": values
        for predictor, means in trivial.items()
        for (region, score), values in means.items()
    }


def _progress_bar(jobs, total: int, shown: bool):
    names = jobs[0].config.name + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "")
    trials = sum(len(job.seeds) for job in jobs)
    return Bar(
        total=total,
        initial=jobs[0].step,
        desc=f"{names} ({trials} seeds, {jax.default_backend()})",
        unit="step",
        disable=not shown,
    )


def _postfix(losses_TxS, means, task: Task) -> str:
    """The loss, and the accuracy or, without one, the error."""
    shown = task.accuracy or task.error
    in_id, in_ood = (means[f"{region}.{shown}"].mean() for region in ("id", "ood"))
    name = shown.removesuffix("_accuracy")
    return f"loss {losses_TxS[:, -1].mean():.1e}, {name} ID {in_id:.2g} OOD {in_ood:.2g}"
