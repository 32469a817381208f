"""What a finished run says: its signals at any points, and at every cell beside the true ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.analysis import evaluation
from compgen_jax.config import Config
from compgen_jax.runs import directory, origin
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials


class Run(NamedTuple):
    """A finished run; the leaves of `params` have a leading axis T over the config's seeds."""

    config: Config
    task: Task
    params: Any
    summary: dict


def load(workdir) -> Run:
    """A finished run. Raises RunError, naming what is missing or damaged."""
    workdir = Path(workdir)
    config = directory.read_config(workdir)
    if not directory.is_finished(workdir):
        raise RunError(f"{workdir}: its run is not finished; python -m launch.train resumes it")
    task = loop.check(config)
    origin.check(workdir, config, task)
    checkpoint = directory.restore(workdir, loop.template(config))
    if checkpoint is None or checkpoint.step != loop.total_steps(config, task):
        raise RunError(
            f"{workdir}: its final checkpoint is missing; remove its summary.json, and "
            "python -m launch.train trains what is missing"
        )
    return Run(config, task, checkpoint.state.params, directory.read_summary(workdir))


def seed_keys(config: Config):
    """The keys of all seeds, (T,)."""
    return jax.vmap(jax.random.key)(jnp.array(config.training.seeds))


def decode(run: Run, points):
    """(signals (T, B, ...), truths (B, ...)) of all seeds at points (B, F), any real values, NaN
    for a missing factor; NumPy."""
    answer = loop.make_trainer(run.config).answer
    signals, truths = _over_seeds(
        run, lambda key, params, points: answer(key, params, points), points
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
    seeds = seed_keys(run.config), run.params
    return jax.tree.map(np.asarray, program(jnp.asarray(points), seeds))


def evaluate_cells(run: Run) -> evaluation.CellResults:
    """What every seed says at every cell, beside what it should."""
    task = run.task
    points = tasks.cells(task.factors)
    trainer = loop.make_trainer(run.config)

    def answer_and_score(key, params, points):
        return trainer.answer(key, params, points), trainer.score(key, params, points)

    (signals, truths), scores = _over_seeds(run, answer_and_score, points)
    return _at_cells(task, run.config.training.seeds, signals, truths[0], scores)


def scorer(task: Task, truths=None) -> Callable:
    """signals (T, B, ...) -> CellResults: what is given for every cell, as if seeds 0 to T - 1 had
    said it, scored as the task scores. `truths` (B, ...) take the place of the task's own."""
    points, key = tasks.cells(task.factors), jax.random.key(0)
    if truths is None:
        truth = lambda point: tasks.truth(task, task.example(key, point).target)
        truths = np.asarray(jax.jit(jax.vmap(truth))(jnp.asarray(points)))
    score = jax.jit(jax.vmap(jax.vmap(task.scores), (0, None, None)))

    def scored(signals_TxBx) -> evaluation.CellResults:
        signals = np.asarray(signals_TxBx)
        scores = jax.tree.map(np.asarray, score(signals, np.asarray(truths), points))
        return _at_cells(task, tuple(range(len(signals))), signals, truths, scores)

    return scored


def _at_cells(task: Task, seeds, signals, truths, scores) -> evaluation.CellResults:
    points = tasks.cells(task.factors)
    held_out = np.asarray(task.held_out(points))
    return evaluation.CellResults(
        seeds=seeds,
        signals=signals,
        targets=truths,
        factors=points,
        held_out=held_out,
        distance=grids.distance_to_seen(held_out, **tasks.geometry(task)),
        sizes=tasks.sizes(task),
        scores=scores,
        error=task.error,
    )
