"""Predictions of any framework at a task's cells, scored and judged as a run is.

A file of predictions, .npz: `predictions` (S, B, ...), or (B, ...) of one network, at every cell;
optional `seeds` (S,), on whose examples each was trained.
"""

from functools import partial
from pathlib import Path

import jax
import numpy as np

from compgen_jax.config import Config, changed
from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory, results
from compgen_jax.runs.run import Run
from compgen_jax.settings import demand
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task

NAMES = "predictions", "seeds"


def numbers(run: Run) -> dict:
    """{seed: {'REGION.SCORE': mean}}, with what the task derives from them."""
    masks = tasks.regions(run.task)
    by_seed = {}
    for index, seed in enumerate(run.seeds):
        scores = {name: values[index] for name, values in run.cells.scores.items()}
        means = evaluation.region_means(scores, masks, run.task.derived)
        by_seed[seed] = {name: float(value) for name, value in means.items()}
    return by_seed


def shape_of(task: Task) -> tuple[int, ...]:
    """(B, ...): of what one network predicts at all cells."""
    truth = jax.eval_shape(partial(tasks.truth, task), tasks.example_shapes(task)[1].target)
    return len(tasks.points(task)), *truth.shape


def load(path, config: Config, task: Task) -> Run:
    """The predictions of a file. Raises ConfigError for one that does not fit the task."""
    arrays, shape = directory.read_npz(Path(path)), shape_of(task)
    names = ", ".join(arrays) or "nothing"
    known = "predictions" in arrays and arrays.keys() <= {*NAMES}
    demand(known, f"{path}: lacks predictions, or holds others than {', '.join(NAMES)}: {names}")
    predictions, sizes = arrays["predictions"], ", ".join(map(str, shape))
    expected = f"{path}: predictions {predictions.dtype} {predictions.shape}"
    expected += f": must be (S, {sizes}) or ({sizes}) of real numbers"
    predictions = predictions.reshape(-1, *shape) if predictions.shape == shape else predictions
    fits = predictions.shape[1:] == shape and len(predictions) and predictions.dtype.kind in "biuf"
    demand(fits, expected)
    for network, cell, *_ in np.argwhere(~np.isfinite(predictions))[:1]:
        point = tasks.in_words(task.factors, tasks.points(task)[cell])
        demand(False, f"{path}: predictions: NaN or infinite in network {network} at {point}")
    seeds = arrays.get("seeds", np.arange(len(predictions)))
    fits = seeds.shape == predictions.shape[:1] and seeds.dtype.kind in "iu"
    fits = fits and len(np.unique(seeds)) == len(seeds)
    expected = f"must be {len(predictions)} integers, one for each network"
    demand(fits, f"{path}: seeds {seeds.shape} {seeds.dtype}: {expected}")
    seeds = tuple(seeds.tolist())
    config, predictions = changed(config, {"training.seeds": seeds}), predictions.astype(np.float32)
    truths = np.stack([t for _, (_, t) in results.training_examples(config, task, seeds)])
    score = jax.jit(jax.vmap(jax.vmap(task.scores), (0, 0, None)))
    scores = jax.device_get(score(predictions, truths, tasks.points(task)))
    run = Run(config, task, seeds, summary={})
    run.cells = results.at_cells(task, seeds, predictions, truths[0], scores)
    run.name = Path(path).stem
    return run
