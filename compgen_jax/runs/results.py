"""What a finished run draws: its signals at any points, and at every cell beside the true ones."""

from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from compgen_jax.analysis import evaluation
from compgen_jax.config import Config
from compgen_jax.runs import directory
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import bump, dataset, supports
from compgen_jax.training import loop
from compgen_jax.training.trials import over_trials


class Run(NamedTuple):
    """A finished run; the leaves of `params` have a leading axis T over the config's seeds."""

    config: Config
    params: Any
    summary: dict


def load(workdir) -> Run:
    """A finished run. Raises RunError, naming what is missing or damaged."""
    workdir = Path(workdir)
    config = directory.read_config(workdir)
    if not directory.is_finished(workdir):
        raise RunError(f"{workdir}: its run is not finished; python -m launch.train resumes it")
    checkpoint = directory.restore(workdir, loop.template(config))
    if checkpoint is None or checkpoint.step != loop.total_steps(config):
        raise RunError(
            f"{workdir}: its final checkpoint is missing; remove its summary.json, and "
            "python -m launch.train trains what is missing"
        )
    return Run(config, checkpoint.state.params, directory.read_summary(workdir))


def decode(run: Run, factors):
    """Signals (T, B, N, N), NumPy, of all seeds at the points (B, 2), any real pixels."""
    return np.asarray(_over_seeds(run, lambda signals, _: signals, factors))


def error_map(run: Run, factors):
    """(T, B) mean squared error of all seeds at the points (B, 2), any real pixels."""
    return np.asarray(_over_seeds(run, evaluation.mse_per_point, factors))


def _over_seeds(run: Run, measure, factors):
    """measure(signals, target signals) of each seed at the points (B, 2), stripes where NaN."""
    trainer, image = loop.make_trainer(run.config), run.config.task.image

    def of_seed(factors, params):
        return measure(*(bump.to_signal(drawn, image) for drawn in trainer.draw(params, factors)))

    trials_per_device = run.config.execution.trials_per_device
    return over_trials(of_seed, trials_per_device)(jnp.asarray(factors), run.params)


def evaluate_cells(run: Run) -> evaluation.CellResults:
    """What every seed draws at every cell, beside what it should draw."""
    task = run.config.task
    data, mask = dataset.every_cell(task), supports.held_out_mask(task)
    return evaluation.CellResults(
        seeds=run.config.training.seeds,
        signals=decode(run, data.factors),
        targets=np.asarray(bump.to_signal(data.targets, task.image)),
        factors=np.asarray(data.factors),
        held_out=mask.ravel(),
        distance=evaluation.distance_to_seen(mask).ravel(),
        amplitude=task.image.amplitude,
    )


def fine_error_map(run: Run):
    """(T, M, M), indexed [y, x]: errors of all seeds at `evaluation.fine_points`."""
    points = evaluation.fine_points(run.config.task.grid)
    side = isqrt(len(points))
    return error_map(run, points).reshape(-1, side, side)


def stripes(run: Run):
    """Signals (T, 2N, N, N) of all seeds for one factor alone, and the true ones (2N, N, N): the
    vertical stripes at x = 0..N-1, then the horizontal ones at y = 0..N-1."""
    data, image = dataset.stripes(run.config.task), run.config.task.image
    signals = _over_seeds(run, lambda signals, _: signals, data.factors)
    return np.asarray(signals), np.asarray(bump.to_signal(data.targets, image))
