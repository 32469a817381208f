"""What a task shows and scores at its cells, without networks, and trivial predictors."""

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
# region: a fit for each of 90,000 cells takes minutes.
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


def interpolations(
    config: Config,
    task: Task,
    seeds,
    names=tuple(baselines.FROM_CODES),
    say: Callable = lambda text: None,
) -> dict:
    """Predictors of `baselines.FROM_CODES` at the task's points, from the complete points that each
    seed was shown, by name: (predictions (T, B, ...), scores (T, B) by name). NaN at points that
    are not `predicted`; of a stream, the first `DRAWN` points count."""
    points, by_name, chosen = tasks.points(task), {name: [] for name in names}, predicted(task)
    score = jax.jit(jax.vmap(task.scores))

    def stack(*of_seeds):
        values = np.full((len(of_seeds), len(chosen), *of_seeds[0].shape[1:]), np.nan, np.float32)
        values[:, chosen] = of_seeds
        return values

    for seed, examples in zip(seeds, training_examples(config, task, seeds), strict=True):
        (training_points, counts, *training), (codes, targets) = examples
        complete = np.flatnonzero(counts & ~np.isnan(training_points).any(axis=1))
        known = [array[complete] for array in training]
        _, first, point = np.unique(
            training_points[complete], axis=0, return_index=True, return_inverse=True
        )
        # unless keys draw what a point leaves open, its examples are alike but for rounding
        if all(np.allclose(array, array[first][point.ravel()], atol=1e-5) for array in known):
            known = [array[first] for array in known]
        for name, of_seeds in by_name.items():
            say(f"{name.replace('_', ' ')} of seed {seed}")
            predictions = baselines.FROM_CODES[name](*known, codes[chosen]).astype(np.float32)
            scores = jax.device_get(score(predictions, targets[chosen], points[chosen]))
            of_seeds.append((predictions, scores))
    return {name: jax.tree.map(stack, *of_seeds) for name, of_seeds in by_name.items()}


def trivial_means(task: Task, seeds, from_codes: dict, names=None) -> dict[str, dict]:
    """{predictor: {(region, score): (S,)}} of the task's `baselines` (scores `names`; None: all),
    and of those with scores (S, B) in `from_codes`."""
    masks, chosen = tasks.regions(task), predicted(task)

    def means(scores, masks=masks):
        by_key = evaluation.region_means(scores, masks)
        return {(region, name): by_key[f"{region}.{name}"] for region in masks for name in scores}

    def of_seed(key):
        by_predictor = tasks.trivial_scores(task, loop.stream(key, "test"))
        return {
            predictor: means({name: scores[name] for name in names or scores})
            for predictor, scores in by_predictor.items()
        }

    by_predictor = jax.jit(partial(jax.lax.map, of_seed))(seed_keys(seeds))
    scored = {region: mask & chosen for region, mask in masks.items()}
    of_seeds = jax.jit(jax.vmap(partial(means, masks=scored)))
    return jax.device_get(
        by_predictor | {name: of_seeds(scores) for name, scores in from_codes.items()}
    )


def cells_shown(config: Config, task: Task, seeds):
    """(S, B) bool: the cells that each seed was shown whole; a stripe shows none."""
    cells, masks = tasks.points(task), []
    for (points, counts, *_), _ in training_examples(config, task, seeds):
        factors = points[counts][None, :, : cells.shape[1]]
        masks.append((cells[:, None] == factors).all(axis=2).any(axis=1))
    return np.stack(masks)


def training_examples(config: Config, task: Task, seeds, drawn: int | None = None):
    """Of each seed: training points (of a stream, the first `drawn`), whether each counts, flat
    codes and targets; and those of the task's points."""
    count, batch = drawn or DRAWN, config.training.batch_size

    def codes_and_targets(key, name, points):
        codes, target = tasks.examples_at(task, loop.stream(key, name), points)
        flat = [
            leaf.reshape(len(points), -1).astype(jnp.float32) for leaf in jax.tree.leaves(codes)
        ]
        return jnp.concatenate(flat, axis=1), jax.vmap(partial(tasks.truth, task))(target)

    @jax.jit
    def of_seed(key, points):
        dataset = loop.dataset_of(task, key)
        if task.examples and isinstance(dataset, sampling.Table):
            training = dataset.points
            counts = jnp.arange(len(training)) < dataset.count
        else:
            draw = lambda step: task.next_batch(loop.stream(key, "order"), step, dataset, batch)
            training, counts = jax.vmap(draw)(jnp.arange(-(-count // batch)))
            training = training.reshape(-1, training.shape[-1])[:count]
            counts = counts.ravel()[:count]
        examples = (training, counts, *codes_and_targets(key, "example", training))
        return examples, codes_and_targets(key, "test", points)

    points = jnp.asarray(tasks.points(task))
    return (jax.device_get(of_seed(jax.random.key(seed), points)) for seed in seeds)


def inputs_and_truths(task: Task, points, seed: int = 0):
    """A seed's inputs at points (B, F) where it is scored, and its targets (B, ...), NumPy."""
    key = loop.stream(jax.random.key(seed), "test")
    examples = jax.jit(partial(tasks.examples_at, task))(key, jnp.asarray(points))
    truths = jax.jit(jax.vmap(partial(tasks.truth, task)))(examples.target)
    return examples.input, np.asarray(truths)


def truths_at(task: Task, points, seed: int = 0):
    return inputs_and_truths(task, points, seed)[1]


def scored(scores: Callable, predictions, truths, points) -> dict:
    """Scores by name, (..., B), of predictions (..., B, ...) with truths (B, ...)."""
    of_all = _over_networks(scores, np.ndim(truths))
    return jax.tree.map(np.asarray, of_all(np.asarray(predictions), truths, points))


@lru_cache(maxsize=8)
def _over_networks(scores: Callable, axes: int) -> Callable:
    return evaluation.over_networks(jax.vmap(scores), axes)


def at_cells(task: Task, seeds, predict, truths, scores) -> evaluation.CellResults:
    """The results at the task's cells; `predict`: the predictions, or a function of nothing."""
    points = tasks.points(task)
    held_out = np.asarray(task.held_out(points))
    _, distance = tasks.nearest_of_all(task)
    return evaluation.CellResults(
        tuple(seeds),
        predict,
        truths,
        points,
        held_out,
        distance,
        tasks.sizes(task),
        scores,
        task.error,
    )
