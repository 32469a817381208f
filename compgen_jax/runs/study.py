"""Trains configs, each in its directory: those that share a program together, as its trials."""

import contextlib
import time
from collections.abc import Callable
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, ConfigError
from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory, logs, results, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.results import seed_keys
from compgen_jax.settings import require
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import checkpoints, contracts, loop
from compgen_jax.training.checkpoints import Checkpoint
from compgen_jax.training.loop import Trial
from compgen_jax.training.program import Program
from compgen_jax.training.trials import join, split


class Job(NamedTuple):
    """A config on its way, as its directory has it: state and rows up to a step."""

    config: Config
    task: Task
    workdir: Path
    step: int = 0
    state: Any = None  # leading axis over its seeds; None before the first step
    rows: list = []  # of metrics so far
    code: dict = {}  # what a user's own file makes, see `user_code.check`
    part: slice = slice(None)  # its seeds' place among the trials

    @property
    def seeds(self) -> tuple:
        return self.config.training.seeds

    def part_of(self, tree):
        """This job's part of a tree with leading axis T over the trials."""
        return jax.tree.map(itemgetter(self.part), tree)


def train(config: Config, workdir, progress: bool = True) -> dict:
    """Trains all seeds of `config` in `workdir`, or what is left to train, to the same bits;
    returns the summary. Raises ConfigError or RunError before the first step, and RunError if a
    loss stops being finite."""
    return train_all([(config, workdir)], progress)[0]


def train_all(pairs, progress: bool = True) -> list[dict]:
    """Trains pairs (config, workdir), those that share a `schedule` as one program; their
    summaries, in order, as `train` makes them: to the bit on a CPU, elsewhere to rounding.
    Execution settings are the first config's. Raises as `train`, and ValueError for directories
    named twice."""
    jobs, groups = [], {}
    for config, workdir in pairs:
        if config.is_sweep:
            hint = "train it by compgen-jax sweep"
            raise ConfigError(f"{config.name} is a sweep, not one run: {hint}")
        possible = not config.execution.tensorboard or find_spec("tensorboardX")
        hint = "needs tensorboardX; pip install 'compgen_jax[tensorboard]'"
        require(possible, "execution.tensorboard", True, hint)
        jobs.append(Job(config, contracts.check(config), Path(workdir)))
    if len({job.workdir.absolute() for job in jobs}) < len(jobs):
        raise ValueError("configs need a directory each")
    with contextlib.ExitStack() as claims:
        for job in jobs:
            claims.enter_context(directory.claim(job.workdir, job.config))
        for job in jobs:
            code = user_code.check(job.workdir, job.config, job.task)
            if not directory.is_finished(job.workdir):
                job = _restored(job)._replace(code=code)
                if job.rows:  # a kill may have come before they were written
                    directory.write_metrics(job.workdir, job.rows)
                groups.setdefault((-job.step, schedule(job.config, job.task)), []).append(job)
        for key in sorted(groups, key=itemgetter(0)):  # the furthest first
            _train(groups[key], progress)
        return [directory.read_summary(job.workdir) for job in jobs]


def schedule(config: Config, task: Task) -> tuple:
    """What runs must share to train together: their program, and when they stop and evaluate."""
    steps = loop.evaluations(config, task)
    return (*loop.program(config, task), steps, tasks.sizes(task))


def _restored(job: Job, step: int | None = None) -> Job:
    """The job at a step; by default at its newest checkpoint, or before the first step."""
    if step is None and directory.last_checkpoint(job.workdir) is None:
        return job._replace(rows=[])
    checkpoint = directory.restore(job.workdir, loop.template(job.config), step)
    return job._replace(step=checkpoint.step, state=checkpoint.state, rows=checkpoint.rows)


def _train(jobs: list[Job], progress: bool):
    """Trains jobs that have come equally far to their end, and writes their summaries."""
    start = time.perf_counter()
    config, task, _, step, *_ = jobs[0]
    ends = np.cumsum([len(job.seeds) for job in jobs]).tolist()
    jobs = [
        job._replace(part=slice(end - len(job.seeds), end))
        for job, end in zip(jobs, ends, strict=True)
    ]
    evaluations = loop.evaluations(config, task)
    parameter_steps = [loop.kept_steps(job.config, job.task) for job in jobs]
    late = sorted(set(loop.last_evaluations(config, task)))
    losses, scores = [], {}  # since the last evaluation; (T, B) by name, by evaluation
    status = ""  # beside the bar
    names = config.name + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "")
    bar = logs.Bar(
        total=evaluations[-1],
        initial=step,
        unit="step",
        disable=not progress,
        desc=f"{names} ({ends[-1]} seeds, {jax.default_backend()})",
    )
    advice = (
        "lower config.training.batch_size or config.model.width, or set "
        "config.execution.trials_per_device=1"
    )
    curves = [job.workdir for job in jobs if job.config.execution.tensorboard]
    with bar, logs.tensorboard(curves) as write_curves, logs.memory_explained(advice):
        program, trials = compiled(jobs)
        for job in jobs:
            directory.begin(job.workdir, job.config)
            user_code.remember(job.workdir, job.code)
            logs.begin(job.workdir, job.config)
            for line in results.describe(job.task):
                logs.write(job.workdir, line)
                bar.write(f"{job.config.name}: {line}")
        state = split(_join([job.state for job in jobs])) if step else program.init(trials)

        def after_chunk(losses_TxN):
            nonlocal step
            _check_finite(losses_TxN, jobs, step)
            step += losses_TxN.shape[1]
            bar.update(losses_TxN.shape[1])

        for stop in sorted({*evaluations}.union(*parameter_steps)):
            if stop <= step:
                continue
            state, taken = program.advance(trials, state, stop - step, ends[-1], after_chunk)
            losses.append(taken)
            joined = join(state, ends[-1])
            for job, steps in zip(jobs, parameter_steps, strict=True):
                earlier = directory.kept_steps(job.workdir)
                if stop in steps and stop not in earlier:  # a resumed run comes by again
                    checkpoint = Checkpoint(stop, job.part_of(joined.params), [])
                    folder = job.workdir / "parameters"
                    checkpoints.save(folder, checkpoint, keep=(*earlier, stop))
            if stop in evaluations:
                means, scores[stop] = program.score(trials, state, ends[-1])
                _check_finite(means[f"id.{task.error}"][:, None], jobs, step)
                losses_TxS, losses = np.concatenate(losses, axis=1), []
                for job in jobs:
                    _record(job, step, *job.part_of((joined, losses_TxS, means)))
                    write_curves(job.workdir, job.rows[-len(job.seeds) :])
                status = _status(losses_TxS, means, task)
                bar.set_postfix_str(status, refresh=False)
        for stop in late:
            if stop not in scores:  # evaluated before this process resumed the runs
                states = _join([_restored(job, stop).state for job in jobs])
                _, scores[stop] = program.score(trials, split(states), ends[-1])
        seconds = {
            "seconds_since_last_start": round(time.perf_counter() - start, 1),
            "trained_together": [job.config.name for job in jobs],
        }
        for job in jobs:
            directory.write_cells(job.workdir, [job.part_of(scores[stop]) for stop in late])
            of_steps = [job.part_of(scores[stop]) for stop in loop.last_evaluations(config, task)]
            stack = lambda *leaves: np.stack(leaves, axis=1)
            directory.keep_scores(job.workdir, "late", jax.tree.map(stack, *of_steps))
            directory.write_json(job.workdir / "environment.json", logs.environment() | seconds)
            directory.write_json(job.workdir / "summary.json", _summary(job, bar.say))
        bar.say(status)


def compiled(jobs: list[Job]) -> tuple[Program, Trial]:
    """The program of all trials of the jobs, while it is compiled, and the trials. Raises
    ConfigError for a refused data set."""
    config, task = jobs[0].config, jobs[0].task
    counts = [len(job.seeds) for job in jobs]
    capacity = max(loop.capacity(job.task) for job in jobs)

    def measure(scores, masks):
        return evaluation.region_means(scores, masks, task.derived), scores

    program = Program(config, (task,), sum(counts), measure)
    each_seed = lambda of_jobs: np.repeat(np.stack(of_jobs), counts, axis=0)
    points = each_seed([np.asarray(tasks.points(job.task), np.float32) for job in jobs])
    held_out = each_seed([job.task.held_out(tasks.points(job.task)) for job in jobs])
    nearest = None
    if task.nearest is not None:
        nearest = each_seed([job.task.nearest(tasks.points(job.task)) for job in jobs])
    scored = {"points": points, "masks": {"id": ~held_out, "ood": held_out}, "nearest": nearest}

    @jax.jit
    def trials_of(all_keys):
        return _join(
            [
                seed_trials(job.config, job.task, keys, capacity)
                for job, keys in zip(jobs, all_keys, strict=True)
            ]
        )

    keys = [seed_keys(job.seeds) for job in jobs]
    program.compile(jax.eval_shape(trials_of, keys)._replace(**scored), with_init=not jobs[0].step)
    trials = trials_of(keys)
    datasets = jax.device_get(trials.dataset)
    pairs = [(job.task, seed) for job in jobs for seed in job.seeds]
    for index, pair in enumerate(pairs):
        contracts.check_dataset(*pair, jax.tree.map(itemgetter(index), datasets))
    return program, split(trials._replace(**scored))


def seed_trials(config: Config, task: Task, keys, capacity: int, task_index: int = 0) -> Trial:
    """The trials of keys (T,), leading axis T; tables are padded to `capacity` rows."""
    dataset_of = lambda key: sampling.padded(loop.dataset_of(task, key), capacity)
    hyper = {name: jnp.tile(value, len(keys)) for name, value in loop.hyper_of(config).items()}
    indices = jnp.full(len(keys), task_index, jnp.int32)
    return Trial(keys, hyper, jax.vmap(dataset_of)(keys), indices)


def _join(trees):
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *trees)


def _record(job: Job, step: int, state, losses_TxS, means: dict):
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
    status = _status(losses_TxS, means, job.task)
    logs.write(job.workdir, f"step {step}: {status}")


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


def _status(losses_TxS, means, task: Task) -> str:
    """The loss, and the accuracy or, without one, the error."""
    score = task.accuracy or task.error
    in_id, in_ood = (means[f"{region}.{score}"].mean() for region in ("id", "ood"))
    name = score.removesuffix("_accuracy")
    return f"loss {losses_TxS[:, -1].mean():.1e}, {name} ID {in_id:.2g} OOD {in_ood:.2g}"


def _summary(job: Job, say: Callable) -> dict:
    """Medians over the last evaluations and the baselines' numbers, per seed, and their means over
    seeds."""
    last, trivial = loop.last_evaluations(job.config, job.task), _baselines(job, say)
    names = [name for name in job.rows[0] if name not in ("step", "epoch", "seed")]
    seeds = {}
    for index, seed in enumerate(job.seeds):
        rows = [row for row in job.rows if row["seed"] == seed and row["step"] in last]
        # as floats: a value that is not known, None, is NaN
        values = np.array([[row[name] for name in names] for row in rows], np.float64)
        numbers = dict(zip(names, np.median(values, axis=0).tolist(), strict=True))
        numbers |= {name: float(values[index]) for name, values in trivial.items()}
        derived = {}  # from means and trivial predictors together
        for region in ("id.", "ood."):
            means = {
                name.removeprefix(region): value
                for name, value in numbers.items()
                if name.startswith(region)
            }
            derived |= {f"{region}{name}": float(v) for name, v in job.task.derived(means).items()}
        seeds[str(seed)] = derived | numbers
    mean = {
        name: mean_with_interval([numbers[name] for numbers in seeds.values()], name)
        for name in seeds[str(seed)]
    }
    facts = {name: float(value) for name, value in job.task.facts().items()}
    if not (sample := results.predicted(job.task)).all():
        facts["interpolated_points"] = float(sample.sum())
    return {"seeds": seeds, "mean": mean} | ({"task": facts} if facts else {})


def _baselines(job: Job, say: Callable) -> dict:
    """{'REGION.PREDICTOR_ERROR': (T,)} of every baseline; those from codes have all scores."""
    from_codes = {}
    if job.task.interpolated:
        made = results.interpolations(job.config, job.task, job.seeds, say=say)
        from_codes = {name: scores for name, (_, scores) in made.items()}
        for name, scores in from_codes.items():
            directory.keep_scores(job.workdir, name, scores)
    trivial = results.trivial_means(job.task, job.seeds, from_codes, (job.task.error,))
    return {
        f"{region}.{predictor}_{score}": values
        for predictor, means in trivial.items()
        for (region, score), values in means.items()
    }
