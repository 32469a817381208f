"""What holds for every task, and which points a step sees."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from tests.tasks.examples import KEY, TASKS, batches, examples_at, made, scores_at
from tests.trees import TWO_PROGRAMS

every = pytest.mark.parametrize("name", TASKS)


@every
def test_what_is_held_out_is_a_function_of_the_point_alone(name):
    """NumPy, JAX and any leading axes agree; a point near a cell belongs to it. Only latents of
    modules are never traced, and have nothing between them."""
    task = made(name)
    points = tasks.points(task)
    held_out = np.asarray(task.held_out(points))
    assert held_out.shape == (len(points),) and 0 < held_out.sum() < len(points)
    pairs = points[: len(points) // 2 * 2].reshape(-1, 2, points.shape[1])
    assert_array_equal(np.ravel(task.held_out(pairs)), held_out[: 2 * len(pairs)])
    if not hasattr(TASKS[name], "most"):
        assert_array_equal(jax.jit(task.held_out)(points), held_out)
        near = [0.2 * np.diff(f.values)[0] * f.real for f in task.factors]
        assert_array_equal(task.held_out(points + np.float32(near)), held_out)
        assert not np.any(task.held_out(points * np.nan))


@every
def test_training_shows_no_held_out_point_and_some_of_many(name):
    task = made(name)
    points, counts = batches(task, range(12))
    shown = points[counts][:, : len(task.factors)]
    complete = shown[~np.isnan(shown).any(axis=1)]
    assert len(np.unique(complete, axis=0)) > 5 and not np.asarray(task.held_out(complete)).any()
    if task.examples:
        dataset = task.dataset(KEY)
        assert int(dataset.count) == len(dataset.points) == task.examples


@every
def test_a_batch_is_a_function_of_key_step_and_data(name):
    """The same alone and as one of many trials; a stream draws others at another step."""
    task = made(name)
    keys, steps = jax.random.split(KEY, 3), jnp.array([0, 1, 1])
    dataset = task.dataset(KEY)
    draw = lambda key, step, dataset: task.next_batch(key, step, dataset, 8)[0]
    alone = np.stack([jax.jit(draw)(k, s, dataset) for k, s in zip(keys, steps, strict=True)])
    datasets = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), dataset)
    together = jax.jit(jax.vmap(draw))(keys, steps, datasets)
    assert_allclose(together, alone, **TWO_PROGRAMS)
    assert not np.array_equal(alone[1], alone[2], equal_nan=True)
    other = draw(keys[0], 1, dataset)
    assert not np.array_equal(alone[0], other, equal_nan=True)
    again = jax.jit(task.dataset)(KEY)
    chex.assert_trees_all_close(again, dataset, rtol=1e-6)


@every
def test_examples_are_the_same_compiled_and_mapped(name):
    task = made(name)
    points = np.asarray(batches(task, [0], 4)[0][0])
    mapped, single = examples_at(task, points), jax.jit(task.example)
    singles = [single(KEY, point) for point in points]
    example = singles[-1]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *singles)
    chex.assert_trees_all_close(stacked, mapped, atol=1e-5)
    chex.assert_trees_all_close(task.example(KEY, points[-1]), example, atol=1e-5)
    chex.assert_tree_all_finite(mapped)
    inputs, output = tasks.shapes(task)
    chex.assert_trees_all_equal_shapes_and_dtypes(example.input, inputs)
    if task.output is None:
        chex.assert_trees_all_equal_shapes_and_dtypes(example.target, output)
    if task.parts:
        assert sum(task.parts) == len(example.input)
    loss = task.loss(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), output), example.target)
    assert loss.shape == () and np.isfinite(loss)


@every
def test_the_truth_scores_perfectly_and_what_is_not_finite_never_does(name):
    task = made(name)
    points = tasks.points(task)[:: max(1, len(tasks.points(task)) // 40)]
    truths = jax.vmap(lambda target: tasks.truth(task, target))(examples_at(task, points).target)
    perfect = scores_at(task, truths, truths, points)
    assert tuple(sorted(perfect)) == tasks.score_names(task)
    assert_allclose(perfect[task.error], 0, atol=1e-6)
    hits = [score for score in perfect if score.endswith("accuracy") or score == "rendered"]
    assert task.accuracy in hits and all(np.all(perfect[score]) for score in hits)
    broken = scores_at(task, truths * np.nan, truths, points)
    assert not np.any(broken[task.accuracy]) or name == "preference"  # probabilities are finite
    derived = task.derived({score: np.mean(values) for score, values in perfect.items()})
    assert tasks.number_names(task) == tuple(sorted({*perfect, *derived}))


@every
def test_trivial_predictors_score_at_every_point_and_copies_are_right_where_shown(name):
    task = made(name)
    found = jax.device_get(jax.jit(lambda key: tasks.trivial_scores(task, key))(KEY))
    held_out, points = tasks.regions(task)["ood"], tasks.points(task)
    assert set(found) == set(task.baselines)
    for scores in found.values():
        assert all(values.shape == (len(points),) for values in scores.values())
        assert np.isfinite(scores[task.error]).all()
    copied = found["nearest_seen"][task.error]
    assert_allclose(copied[~held_out], 0, atol=1e-6)
    assert copied[held_out].mean() > 0


@pytest.mark.parametrize("name", ["bump", "sized", "random", "stripes", "sprites"])
def test_the_nearest_seen_point_is_seen_and_none_of_a_seen_point(name):
    """Of tasks whose scores need it."""
    task = made(name)
    points, held_out = tasks.points(task), tasks.regions(task)["ood"]
    nearest = np.asarray(task.nearest(points))
    assert np.isnan(nearest[~held_out]).all() and not np.any(task.held_out(nearest[held_out]))
    assert_array_equal(jax.jit(jax.vmap(task.nearest))(points), nearest)
    whole = tasks.on_grid(task)
    index, _ = tasks.nearest_seen(whole, tasks.regions(whole)["ood"])
    cells = index[tasks.nearest_cell(task.factors, points)]
    assert_array_equal(nearest[held_out], tasks.points(whole)[cells][held_out])
    assert np.isnan(task.nearest(points * np.float32([np.nan] + [1] * (points.shape[1] - 1)))).all()


@pytest.mark.parametrize("count", [10, 12, 3])
def test_every_epoch_sees_each_example_once_in_a_new_order(count):
    """Of a table of 12 rows of which `count` count."""
    table = sampling.Table(jnp.arange(24.0).reshape(12, 2), jnp.int32(count))
    task = made("bump")._replace(dataset=lambda key: table)
    points, counts = batches(task, range(5 * -(-count // 4)), 4)
    orders = points[counts][:, 0].reshape(5, count)
    assert (np.sort(orders) == np.arange(0, 2 * count, 2)).all()
    assert len(np.unique(orders, axis=0)) > 2


def test_what_is_no_table_is_not_padded():
    mask = jnp.ones((4, 4), bool)
    assert sampling.padded(mask, 5) is mask and sampling.capacity(mask) == 0


def test_rejection_draws_are_uniform_over_what_is_left():
    keys = jax.random.split(KEY, 20_000)
    first, extent = jnp.array([1.0, -1.0]), jnp.array([2.0, 4.0])
    rejected = lambda point: (point[0] < 2.0) & (point[1] > 1.0)  # a quarter
    points = jax.vmap(lambda key: sampling.by_rejection(key, first, extent, rejected))(keys)
    x, y = np.asarray(points).T
    assert ((1 <= x) & (x <= 3) & (-1 <= y) & (y <= 3) & ((x >= 2) | (y <= 1))).all()
    for part in ((x < 2), (y > 1)):  # a third each
        assert abs(part.mean() - 1 / 3) < 5 * (2 / 9 / 20_000) ** 0.5
