"""What a finished run says: its signals at any points, and at every cell beside the true ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config
from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory, user_code
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials


class Run(NamedTuple):
    """A finished run; the leaves of `params` have a leading axis T over its networks, each of one
    of the config's seeds: at the end of training, one of each."""

    config: Config
    task: Task
    params: Any
    summary: dict
    seeds: tuple


def load(workdir) -> Run:
    """A finished run at its end. Raises RunError, naming what is missing or damaged."""
    workdir = Path(workdir)
    config = directory.read_config(workdir)
    if not directory.is_finished(workdir):
        raise RunError(f"{workdir}: its run is not finished; python -m launch.train resumes it")
    task = loop.check(config)
    user_code.check(workdir, config, task)
    checkpoint = directory.restore(workdir, loop.template(config))
    if checkpoint is None or checkpoint.step != loop.total_steps(config, task):
        raise RunError(
            f"{workdir}: its final checkpoint is missing; remove its summary.json, and "
            "python -m launch.train trains what is missing"
        )
    summary = directory.read_summary(workdir)
    return Run(config, task, checkpoint.state.params, summary, config.training.seeds)


def over_last_evaluations(run: Run, workdir) -> Run:
    """The run with as many networks of each seed, one after the other, as it had evaluations over
    the last tenth of training. Raises RunError, naming what is missing or damaged."""
    template, steps = loop.template(run.config), loop.last_evaluations(run.config, run.task)
    saved = {
        step: directory.restore(Path(workdir), template, step).state.params for step in set(steps)
    }
    join = lambda *leaves: np.stack(leaves, axis=1).reshape(-1, *leaves[0].shape[1:])
    params = jax.tree.map(join, *(saved[step] for step in steps))
    return run._replace(params=params, seeds=tuple(np.repeat(run.seeds, len(steps)).tolist()))


def seed_keys(seeds):
    """The keys of seeds, (T,)."""
    return jax.vmap(jax.random.key)(jnp.array(seeds))


def predict(run: Run, points):
    """(signals (T, B, ...), truths (B, ...)) of all seeds at points (B, F), any real values, NaN
    for a missing factor; NumPy."""
    of_seed = loop.make_trainer(run.config).predict
    signals, truths = _over_seeds(
        run, lambda key, params, points: of_seed(key, params, points), points
    )
    return signals, truths[0]


def error_map(run: Run, points):
    """(T, B) the error of all seeds at points (B, F)."""
    score = loop.make_trainer(run.config).score

    def error(key, params, points):
        return score(key, params, points)[run.task.error]

    return _over_seeds(run, error, points)


def _over_seeds(run: Run, function, points):
    """function(key, params, points) of each seed, leading axis T; NumPy."""

    def of_seed(points, seed):
        return function(*seed, points)

    program = over_trials(of_seed, run.config.execution.trials_per_device)
    seeds = seed_keys(run.seeds), run.params
    return jax.tree.map(np.asarray, program(jnp.asarray(points), seeds))


def evaluate_cells(run: Run) -> evaluation.CellResults:
    """What every seed says at every cell, beside what it should."""
    task = run.task
    points = tasks.points(task)
    trainer = loop.make_trainer(run.config)

    def answer_and_score(key, params, points):
        return trainer.predict(key, params, points), trainer.score(key, params, points)

    (signals, truths), scores = _over_seeds(run, answer_and_score, points)
    return _at_cells(task, run.seeds, signals, truths[0], scores)


def truths_at(task: Task, points):
    """(B, ...) what the task asks for at points (B, F); NumPy."""
    truth = lambda point: tasks.truth(task, task.example(jax.random.key(0), point).target)
    return np.asarray(jax.jit(jax.vmap(truth))(jnp.asarray(points)))


def scorer(task: Task, truths=None) -> Callable:
    """signals (T, B, ...) -> CellResults: what is given for every cell, as if seeds 0 to T - 1 had
    said it, scored as the task scores. `truths` (B, ...) take the place of the task's own."""
    points = tasks.points(task)
    truths = truths_at(task, points) if truths is None else truths
    score = jax.jit(jax.vmap(jax.vmap(task.scores), (0, None, None)))

    def scored(signals_TxBx) -> evaluation.CellResults:
        signals = np.asarray(signals_TxBx)
        scores = jax.tree.map(np.asarray, score(signals, np.asarray(truths), points))
        return _at_cells(task, tuple(range(len(signals))), signals, truths, scores)

    return scored


def _at_cells(task: Task, seeds, signals, truths, scores) -> evaluation.CellResults:
    points = tasks.points(task)
    held_out = np.asarray(task.held_out(points))
    return evaluation.CellResults(
        seeds=seeds,
        predictions=signals,
        truths=truths,
        factors=points,
        held_out=held_out,
        distance=tasks.nearest_seen(task, held_out)[1],
        sizes=tasks.sizes(task),
        scores=scores,
        error=task.error,
    )
