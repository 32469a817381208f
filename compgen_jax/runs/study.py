"""Trains configs, each in its directory: those that share a program together, as its trials."""

import contextlib
import time
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config, ConfigError
from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory, logs, results, user_code
from compgen_jax.runs.directory import RunError
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
    """A config on its way."""

    config: Config
    task: Task
    workdir: Path
    schedule: loop.Schedule
    seeds: tuple
    saved: Checkpoint  # state (its seeds, ...) and rows; a state of None before the first step
    code: dict = {}  # what a user's own file makes, see `user_code.check`
    part: slice = slice(None)  # its seeds' place among the trials

    def part_of(self, tree):
        """This job's part of a tree with leading axis T over the trials."""
        return jax.tree.map(itemgetter(self.part), tree)


def train(config: Config, workdir, progress: bool = True) -> dict:
    """Trains what is missing of `config` in `workdir`, to the same bits; returns the summary.
    Raises ConfigError or RunError before the first step, and RunError if a loss stops being
    finite."""
    return train_all([(config, workdir)], progress)[0]


def train_all(pairs, progress: bool = True) -> list[dict]:
    """Trains pairs (config, workdir), those that share a `group_key` as one program; their
    summaries, as `train` makes them: to the bit on a CPU, elsewhere to rounding. Execution settings
    are the first config's. Raises as `train`."""
    jobs, groups = [new_job(config, workdir) for config, workdir in pairs], {}
    with contextlib.ExitStack() as claims:
        for job in jobs:
            claims.enter_context(directory.claim(job.workdir, job.config))
        for job in jobs:
            code = user_code.check(job.workdir, job.config, job.task)
            if not directory.is_finished(job.workdir):
                if steps := checkpoints.steps(job.workdir / "checkpoints"):
                    job = job._replace(saved=_restored(job, steps[-1]))
                key = -job.saved.step, group_key(job.config, job.task)
                groups.setdefault(key, []).append(job._replace(code=code))
        for key in sorted(groups, key=itemgetter(0)):  # the furthest first
            _train(groups[key], progress)
        return [directory.read_json(job.workdir / "summary.json") for job in jobs]


def new_job(config: Config, workdir) -> Job:
    """A config before its first step. Raises ConfigError for one that cannot be trained."""
    if config.is_sweep:
        hint = "train it by compgen-jax sweep"
        raise ConfigError(f"{config.name} is a sweep, not one run: {hint}")
    task = contracts.check(config)
    times, start = loop.schedule_of(config, task), Checkpoint(0, None, [])
    return Job(config, task, Path(workdir), times, config.training.seeds, start)


def group_key(config: Config, task: Task) -> tuple:
    """What runs must share to train together: their program, and when they stop and evaluate."""
    steps = loop.schedule_of(config, task).evaluations
    return (*loop.program(config, task), steps, tasks.sizes(task))


def _restored(job: Job, step: int) -> Checkpoint:
    folder = job.workdir / "checkpoints"
    return checkpoints.restore(folder, step, loop.template(job.config))


def _train(jobs: list[Job], progress: bool):
    """Trains jobs that have come equally far to their end, and writes their summaries."""
    start, count = time.perf_counter(), 0
    for index, job in enumerate(jobs):
        count += len(job.seeds)
        jobs[index] = job._replace(part=slice(count - len(job.seeds), count))
    config, task, step = jobs[0].config, jobs[0].task, jobs[0].saved.step
    evaluations, late = jobs[0].schedule.evaluations, jobs[0].schedule.late
    losses, scores = [], {}  # since the last evaluation; (T, B) by name, by evaluation
    status = ""  # beside the bar
    bar = logs.Bar(
        total=evaluations[-1],
        initial=step,
        unit="step",
        disable=not progress,
        desc=f"{config.name} ({count} seeds, {jax.default_backend()})",
    )
    advice = (
        "lower config.training.batch_size or config.model.width, or set "
        "config.execution.trials_per_device=1"
    )
    with bar, logs.memory_explained(advice):
        program, trials = compiled(jobs)
        for job in jobs:
            directory.begin(job.workdir, job.config, job.code)
            for line in job.task.describe():
                logs.write(job.workdir, line)
                bar.write(f"{job.config.name}: {line}")
        state = split(_join([job.saved.state for job in jobs])) if step else program.init(trials)

        def after_chunk(losses_TxN):
            nonlocal step
            _check_finite(losses_TxN, jobs, step)
            step += losses_TxN.shape[1]
            bar.update(losses_TxN.shape[1])

        for stop in sorted({*evaluations}.union(*(job.schedule.kept for job in jobs))):
            if stop <= step:
                continue
            state, taken = program.advance(trials, state, stop - step, count, after_chunk)
            losses.append(taken)
            joined = join(state, count)
            for job in jobs:
                folder = job.workdir / "parameters"
                earlier = checkpoints.steps(folder)
                if stop in job.schedule.kept and stop not in earlier:  # a resumed run comes again
                    checkpoint = Checkpoint(stop, job.part_of(joined.params), [])
                    checkpoints.save(folder, checkpoint, keep=(*earlier, stop))
            if stop in evaluations:
                means, scores[stop] = program.score(trials, state, count)
                _check_finite(means[f"id.{task.error}"][:, None], jobs, step)
                losses_TxS, losses = np.concatenate(losses, axis=1), []
                for job in jobs:
                    _record(job, step, *job.part_of((joined, losses_TxS, means)))
                status = _status(losses_TxS, means, task)
                bar.set_postfix_str(status, refresh=False)
        for stop in {*late} - {*scores}:  # evaluated before this process resumed the runs
            states = _join([_restored(job, stop).state for job in jobs])
            _, scores[stop] = program.score(trials, split(states), count)
        scores = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *map(scores.get, late))
        seconds = {"seconds_since_last_start": round(time.perf_counter() - start, 1)}
        facts = logs.environment() | seconds
        for job in jobs:
            directory.keep_scores(job.workdir, "late", job.part_of(scores))
            directory.write_json(job.workdir / "environment.json", facts)
            directory.write_json(job.workdir / "summary.json", _summary(job, bar.say))
        bar.say(status)


def compiled(jobs: list[Job]) -> tuple[Program, Trial]:
    """The program of the jobs, while it is compiled, and the trials. Raises ConfigError for a
    refused data set."""
    config, task = jobs[0].config, jobs[0].task
    counts = [len(job.seeds) for job in jobs]
    capacity = max(loop.capacity(job.task) for job in jobs)

    def measure(scores, masks):
        return evaluation.region_means(scores, masks, task.derived), scores

    def each_seed(of_task):
        return np.repeat(np.stack([of_task(job.task) for job in jobs]), counts, axis=0)

    program = Program(config, (task,), sum(counts), measure)
    held_out = each_seed(lambda task: task.held_out(tasks.points(task)))
    scored = {
        "points": each_seed(lambda task: np.asarray(tasks.points(task), np.float32)),
        "masks": {"id": ~held_out, "ood": held_out},
    }
    if task.nearest is not None:
        scored["nearest"] = each_seed(lambda task: task.nearest(tasks.points(task)))

    @jax.jit
    def trials_of(all_keys):
        pairs = zip(jobs, all_keys, strict=True)
        return _join([seed_trials(job.config, job.task, keys, capacity) for job, keys in pairs])

    keys = [results.seed_keys(job.seeds) for job in jobs]
    shapes = jax.eval_shape(trials_of, keys)._replace(**scored)
    program.compile(shapes, with_init=not jobs[0].saved.step)
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
    per_epoch, rows = job.schedule.per_epoch, job.saved.rows
    loss = losses_TxS[:, -job.schedule.averaged :].mean(axis=1)
    for index, seed in enumerate(job.seeds):
        row = {"step": step, "epoch": step // per_epoch if per_epoch else 0, "seed": seed}
        numbers = {"train_loss": loss} | means
        rows.append(row | {name: float(values[index]) for name, values in numbers.items()})
    directory.save(job.workdir, step, state, rows, job.schedule.late)
    logs.write(job.workdir, f"step {step}: {_status(losses_TxS, means, job.task)}")


def _check_finite(values_TxS, jobs, step: int):
    bad = np.argwhere(~np.isfinite(values_TxS))
    if bad.size:
        trial, offset = bad[np.argmin(bad[:, 1])]
        job, seed = [(job, seed) for job in jobs for seed in job.seeds][trial]
        raise RunError(
            f"{job.config.name}: the loss of seed {seed} is {values_TxS[trial, offset]} at step "
            f"{step + offset}; the last good checkpoint, if any, is in {job.workdir}/checkpoints"
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
    task, from_codes, seeds = job.task, {}, {}
    if task.interpolated:
        made = results.interpolations(job.config, task, job.seeds, say=say)
        for predictor, (_, scores) in made.items():
            from_codes[predictor] = scores
            directory.keep_scores(job.workdir, predictor, scores)
    trivial = results.trivial_means(task, job.seeds, from_codes, (task.error,))
    names = [name for name in job.saved.rows[0] if name not in ("step", "epoch", "seed")]
    for index, seed in enumerate(job.seeds):
        late = job.schedule.late
        rows = [row for row in job.saved.rows if row["seed"] == seed and row["step"] in late]
        # as floats: a value that is not known, None, is NaN
        values = np.array([[row[name] for name in names] for row in rows], np.float64)
        numbers = dict(zip(names, np.median(values, axis=0).tolist(), strict=True))
        for predictor, means in trivial.items():
            for (region, score), of_seeds in means.items():
                numbers[f"{region}.{predictor}_{score}"] = float(of_seeds[index])
        for region in ("ood.", "id."):  # from means and trivial predictors together
            means = {
                name.removeprefix(region): value
                for name, value in numbers.items()
                if name.startswith(region)
            }
            derived = task.derived(means).items()
            numbers = {f"{region}{name}": float(value) for name, value in derived} | numbers
        seeds[str(seed)] = numbers
    mean = {
        name: mean_with_interval([numbers[name] for numbers in seeds.values()], name)
        for name in seeds[str(seed)]
    }
    facts = {name: float(value) for name, value in task.facts().items()}
    sample = results.predicted(task)
    if not sample.all():
        facts["interpolated_points"] = float(sample.sum())
    return {"seeds": seeds, "mean": mean} | ({"task": facts} if facts else {})
