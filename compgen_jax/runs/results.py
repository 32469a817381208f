"""What a task shows, asks and scores at its cells, without networks: results at cells, points that
a seed is shown, and trivial predictors, with those from codes."""

from collections.abc import Callable
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.config import Config
from compgen_jax.metrics import evaluation
from compgen_jax.tasks import baselines, sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task
from compgen_jax.training import loop

DRAWN = 2000  # the points of a stream that a predictor from codes knows
# A task of more points has its predictors from codes scored at so many, drawn at random, of each
# region: a fit for each of 90,000 cells takes minutes. No preset has more than 9,408.
MOST_POINTS, OF_EACH_REGION = 10_000, 1000


def seed_keys(seeds):
    """The keys of seeds, (T,)."""
    return jax.vmap(jax.random.key)(jnp.array(seeds))


def predicted(task: Task):
    """(B,) bool: the points at which predictors from codes are scored."""
    chosen, rng = np.ones(len(tasks.points(task)), bool), np.random.default_rng(0)
    if task.interpolated and len(chosen) > MOST_POINTS:
        chosen[:] = False
        for mask in tasks.regions(task).values():
            chosen[rng.permutation(np.flatnonzero(mask))[:OF_EACH_REGION]] = True
    return chosen


def describe(task: Task) -> list[str]:
    """What a user should read before training."""
    chosen = predicted(task)
    of_all = f"{chosen.sum():,} of {len(chosen):,} points, drawn at random"
    sample = [f"interpolator and wide network are scored at {of_all}"] * (not chosen.all())
    return [*task.describe(), *sample]


def interpolations(config: Config, task: Task, seeds, names=tuple(baselines.FROM_CODES),
                   say: Callable = lambda text: None) -> dict:  # fmt: skip
    """What predictors of `baselines.FROM_CODES` say at the task's points, from the complete points
    that each seed was shown: by name, (predictions (T, B, ...), truths (T, B, ...), the task's
    scores (T, B) by name). NaN at points that are not `predicted`.

    A code is the model's input, flattened. Where each step draws new points, the first `DRAWN`
    count. A seed without complete points (stripes alone) has 0 everywhere.
    """
    points, held, at = tasks.points(task), {name: [] for name in names}, predicted(task)
    score = jax.jit(jax.vmap(task.scores))

    def stack(*of_seeds):
        values = np.stack(of_seeds)
        if values.shape[1] == len(at):
            return values
        filled = np.full((len(values), len(at), *values.shape[2:]), np.nan, np.float32)
        filled[:, at] = values
        return filled

    shown = shown_examples(config, task, seeds)
    for seed, (given, (codes, truths)) in zip(seeds, shown, strict=True):
        shown_points, counts, shown_codes, shown_truths = given
        complete = counts & ~np.isnan(shown_points).any(axis=1)
        first = np.unique(shown_points[complete], axis=0, return_index=True)[1]
        known = shown_codes[complete][first], shown_truths[complete][first]
        for name, of_seeds in held.items():
            say(f"{name.replace('_', ' ')} of seed {seed}")
            predictions = baselines.FROM_CODES[name](*known, codes[at]).astype(np.float32)
            scores = jax.device_get(score(predictions, truths[at], points[at]))
            of_seeds.append((predictions, truths, scores))
    return {name: jax.tree.map(stack, *of_seeds) for name, of_seeds in held.items()}


def trivial_means(run, task: Task, scores=None) -> dict[str, dict]:
    """{predictor: {(region, score): (S,)}}: what trivial predictors of a task score on the examples
    that each seed of a run is scored on. `scores` names those of the task's `baselines`, by default
    all; those from codes, where there are any, have all."""
    masks = tasks.regions(task)

    def of_seed(key):
        by_predictor = tasks.trivial_scores(task, loop.stream(key, "test"))
        return {
            name: means({score: each[score] for score in scores or each})
            for name, each in by_predictor.items()
        }

    def means(each, masks=masks):
        found = evaluation.region_means(each, masks)
        return {(region, score): found[f"{region}.{score}"] for region in masks for score in each}

    found = jax.device_get(jax.jit(lambda keys: jax.lax.map(of_seed, keys))(seed_keys(run.seeds)))
    if task.interpolated:
        at = predicted(task)
        known = {region: mask & at for region, mask in masks.items()}
        means_of_seeds = jax.jit(jax.vmap(partial(means, masks=known)))
        for name in baselines.FROM_CODES:
            found[name] = jax.device_get(means_of_seeds(getattr(run, name).scores))
    return found


def points_shown(config: Config, task: Task, key, drawn: int | None = None):
    """The points that a seed is shown, and whether each counts; of a stream, the first `drawn`, by
    default `DRAWN`."""
    dataset = loop.dataset_of(task, key)
    if task.examples and isinstance(dataset, sampling.Table):
        return dataset.points, jnp.arange(len(dataset.points)) < dataset.count
    drawn, batch = drawn or DRAWN, config.training.batch_size
    draw = lambda step: task.next_batch(loop.stream(key, "order"), step, dataset, batch)
    points, counts = jax.vmap(draw)(jnp.arange(-(-drawn // batch)))
    return points.reshape(-1, points.shape[-1])[:drawn], counts.ravel()[:drawn]


def shown_examples(config: Config, task: Task, seeds, drawn: int | None = None):
    """What each seed is shown: points, whether each counts, codes and truths; and the codes and
    truths of the task's points, where it is scored. Codes are flattened; `drawn` as in
    `points_shown`. An iterator; NumPy."""

    def codes_and_truths(key, name, at):
        given, target = tasks.examples_at(task, loop.stream(key, name), at)
        flat = [leaf.reshape(len(at), -1).astype(jnp.float32) for leaf in jax.tree.leaves(given)]
        return jnp.concatenate(flat, axis=1), jax.vmap(partial(tasks.truth, task))(target)

    @jax.jit
    def of_seed(key, points):
        given, counts = points_shown(config, task, key, drawn)
        shown = (given, counts, *codes_and_truths(key, "example", given))
        return shown, codes_and_truths(key, "test", points)

    points = jnp.asarray(tasks.points(task))
    return (jax.device_get(of_seed(jax.random.key(seed), points)) for seed in seeds)


def inputs_and_truths(task: Task, points, seed: int = 0):
    """The task's inputs at points (B, F), where a seed is scored, and what it asks for there, (B,
    ...); the latter in NumPy."""
    key = loop.stream(jax.random.key(seed), "test")
    examples = jax.jit(partial(tasks.examples_at, task))(key, jnp.asarray(points))
    truths = jax.jit(jax.vmap(partial(tasks.truth, task)))(examples.target)
    return examples.input, np.asarray(truths)


def truths_at(task: Task, points, seed: int = 0):
    """(B, ...) what the task asks for at points (B, F), where a seed is scored; NumPy."""
    return inputs_and_truths(task, points, seed)[1]


def scorer(task: Task, truths=None) -> Callable:
    """predictions (S, B, ...) -> CellResults: what is given for every cell, as if seeds 0 to S - 1
    had said it, scored as the task scores. `truths` (B, ...) take the place of the task's own."""
    points = tasks.points(task)
    truths = truths_at(task, points) if truths is None else truths

    def of_predictions(predictions) -> evaluation.CellResults:
        predictions = np.asarray(predictions)
        scores = scored(task.scores, predictions, np.asarray(truths), points)
        seeds = tuple(range(len(predictions)))
        return at_cells(task, seeds, lambda: predictions, truths, scores)

    return of_predictions


def scored(scores: Callable, predictions, truths, points) -> dict:
    """A task's scores by name, (..., B), of predictions (..., B, ...), whose truths are (B, ...),
    at points (B, F)."""
    of_all = _scores_of_all(scores, np.ndim(truths))
    return jax.tree.map(np.asarray, of_all(np.asarray(predictions), truths, points))


@lru_cache(maxsize=8)
def _scores_of_all(scores: Callable, axes: int) -> Callable:
    return evaluation.over_networks(jax.vmap(scores), axes)


def at_cells(task: Task, seeds, predict: Callable, truths, scores) -> evaluation.CellResults:
    points = tasks.points(task)
    held_out = np.asarray(task.held_out(points))
    return evaluation.CellResults(
        seeds=seeds,
        predict=predict,
        truths=truths,
        factors=points,
        held_out=held_out,
        distance=tasks.distance_to_seen(task, held_out),
        sizes=tasks.sizes(task),
        scores=scores,
        error=task.error,
    )
