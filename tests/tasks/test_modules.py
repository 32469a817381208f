"""Tasks of modules: teacher, latents, supports, scores and trivial predictors."""

from collections import Counter
from dataclasses import replace
from functools import cache, partial

import chex
import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.tasks import module_supports, modules
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.module_codes import LatentCodeConfig
from compgen_jax.tasks.module_supports import ModuleSupportConfig
from compgen_jax.tasks.modules import LEVELS, Modules
from tests.tasks.examples import KEY, TASKS, as_sets, batches, examples_at, predicted, scores_at
from tests.trees import TWO_PROGRAMS

SMALL = replace(TASKS["modules"], support=ModuleSupportConfig(held_out_share=0.4))


def sets_of(settings):
    """All sets of modules, and those that are seen."""
    every = module_supports.all_sets(settings.modules, settings.most)
    seen = module_supports.split(settings.support, settings.modules, settings.most)
    return set(as_sets(every)), set(as_sets(every[seen]))


@cache
def measured(settings):
    """The task, and the query of all its measured points."""
    task = settings.make()
    return task, jax.jit(partial(tasks.query, task))(KEY)


# --- the teacher -----------------------------------------------------------------------------


def by_hand(teacher, latent, inputs):
    """What the definition says in float64, module by module."""
    weights, biases, readout, most = map(np.float64, teacher)
    modules = zip(np.float64(latent), weights, biases, strict=True)
    hidden = sum(z * (np.float64(inputs) @ w.T + b) for z, w, b in modules)
    return np.maximum(hidden / most**0.5, 0) @ readout.T


@pytest.mark.parametrize("settings", [SMALL, replace(SMALL, most=4, inputs=2, seed=3)])
def test_answers_of_the_teacher_against_loops(settings):
    points = settings.make().points[::17]
    (codes, inputs), answers = examples_at(settings.make(), points)
    assert_array_equal(codes, points)
    assert inputs.shape == (len(points), 4, settings.inputs) and np.abs(inputs).max() <= 1
    expected = map(partial(by_hand, modules.draw_teacher(settings)), points, inputs)
    assert_allclose(answers, list(expected), atol=1e-6)


def test_laws_of_the_teacher():
    """Variances scale / fan in, of weights truncated at 2 standard deviations; biases uniform from
    0 to .5. No array is a function of another; all are of the task's seed."""
    large = Modules(modules=20, most=2, inputs=30, hidden=40, outputs=50)
    weights, biases, readout, _ = modules.draw_teacher(large)
    for values, fan_in in ((weights, 30), (readout, 40)):
        assert np.var(values) == pytest.approx(3**0.5 / fan_in, rel=0.08)
        widest = 2 * (3**0.5 / fan_in) ** 0.5 / 0.8796  # std of a truncated standard normal
        assert 0.95 * widest < np.abs(values).max() < 1.001 * widest
    assert_allclose(np.histogram(biases, 5, (0, 0.5))[0], 160, atol=55)
    square = Modules(modules=16, most=2, inputs=1, hidden=16, outputs=16)
    same_shape = modules.draw_teacher(square)[:3]
    assert np.abs(np.corrcoef([leaf.ravel() for leaf in same_shape]) - np.eye(3)).max() < 0.25
    other = modules.draw_teacher(replace(square, seed=1))
    assert not any((a == b).any() for a, b in zip(other[:3], same_shape, strict=True))


# --- latents ---------------------------------------------------------------------------------


def weights_of(law):
    weigh = partial(modules.weigh, active_M=np.float32([1, 0, 1, 1, 0]), law=law)
    weights = np.asarray(jax.jit(jax.vmap(weigh))(jax.random.split(KEY, 4000)))
    assert (weights[:, [1, 4]] == 0).all() and (weights[:, [0, 2, 3]] >= 0.5).all()
    return weights[:, [0, 2, 3]]


def test_discrete_weights_are_their_levels_each_as_often():
    found = weights_of("discrete")
    values, counts = np.unique(found, return_counts=True)
    assert_array_equal(values, np.float32([0.5, 0.6, 0.7, 0.8, 0.9, 1.0]))
    assert_allclose(counts / 12_000, 1 / 6, atol=0.02)
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.06  # drawn for each module
    assert (weights_of("khot") == 1).all()


def test_continuous_weights_are_exponential_shares():
    """z = .5 + .5 e / (sum e + 1), so e can be had back: u / (1 - sum u) with u = 2 z - 1."""
    share = 2 * weights_of("continuous").astype(np.float64) - 1
    exponential = share / (1 - share.sum(axis=1, keepdims=True))
    assert exponential.mean() == pytest.approx(1, abs=0.05)
    assert exponential.var() == pytest.approx(1, abs=0.15)
    assert np.mean(exponential > 1) == pytest.approx(np.exp(-1), abs=0.02)
    assert np.abs(np.corrcoef(exponential.T) - np.eye(3)).max() < 0.06


# --- what is seen ----------------------------------------------------------------------------


def test_training_draws_latents_of_seen_sets_alone_each_as_often():
    """And no measured latent, of continuous ones."""
    settings = replace(SMALL, weights="continuous")
    task, (_, seen) = settings.make(), sets_of(settings)
    points = np.concatenate(batches(task, range(40), 64)[0])
    found = Counter(as_sets(points))
    expected = len(points) / len(seen)
    assert max(abs(count - expected) for count in found.values()) < 5 * expected**0.5
    together = np.concatenate([points, np.unique(task.points, axis=0)])
    assert len(np.unique(together, axis=0)) == len(together)
    facts = {"sets": 21, "seen_sets": len(seen)}
    assert set(found) == seen and task.facts() | facts == task.facts()
    assert task.examples == 0 and task.units == {"set": 21.0}


@pytest.mark.parametrize("count", [8, 9, 64])
def test_sets_of_many_modules_are_told_apart(count):
    rng = np.random.default_rng(count)
    sets = np.unique(rng.random((60, count)) < 0.4, axis=0)
    expected = np.arange(len(sets)) % 2 == 0
    assert_array_equal(modules.is_among(sets * 0.7, sets[::2]), expected)


@pytest.mark.parametrize(("tests", "law"), [(7, "discrete"), (40, "khot"), (100, "continuous")])
def test_measured_points_have_every_set_of_a_region_equally_often(tests, law):
    settings = replace(SMALL, tests=tests, weights=law)
    points, (every, seen) = settings.make().points, sets_of(settings)
    for sets, of_region in ((seen, points[:tests]), (every - seen, points[tests:])):
        found = Counter(as_sets(of_region))
        counts = [found[each] for each in sets]
        assert sum(counts) == tests and max(counts) - min(counts) <= 1


def test_examples_of_fewshot_are_right_and_differ_from_the_inputs():
    settings = replace(SMALL, code=LatentCodeConfig("fewshot", pairs=9))
    points = SMALL.make().points[-1:]
    (codes, inputs), targets = examples_at(settings.make(), points)
    given, answers = np.split(codes.reshape(9, 8), [5], axis=1)
    expected = by_hand(modules.draw_teacher(settings), points[0], given)
    assert_allclose(answers, expected, atol=1e-6)
    assert not np.isin(given, inputs).any()
    assert_allclose(examples_at(SMALL.make(), points).target, targets, **TWO_PROGRAMS)


# --- scores ----------------------------------------------------------------------------------


def test_scores_against_loops():
    (task, query), rng = measured(SMALL), np.random.default_rng(0)
    mean_O = modules._means_and_code_r2(SMALL)[0].astype(np.float64)
    truths, points = np.asarray(query.truths)[:6], task.points[:6]
    outputs = truths + rng.normal(0, 0.1, truths.shape).astype("f4")
    found = scores_at(task, outputs, truths, points)
    y, t = np.float64(outputs), np.float64(truths)
    errors, variances = np.mean((y - t) ** 2, axis=1), np.var(t, axis=1)
    expected = {
        "mse": errors.mean(axis=1),
        "variance": np.mean((t - mean_O) ** 2, axis=(1, 2)),
        "task_r2": 1 - errors.sum(axis=1) / variances.sum(axis=1),
        "ratios_r2": np.mean(1 - errors / variances, axis=1),
    }
    expected["task_accuracy"] = expected["task_r2"] >= 0.95
    chex.assert_trees_all_close(found, expected, rtol=1e-3)


def test_the_mean_output_is_that_over_all_sets():
    """Against another sample, with held-out sets in it."""
    rng, sets = np.random.default_rng(0), module_supports.all_sets(6, 2)
    latents = sets[rng.integers(len(sets), size=20_000)] * rng.choice(LEVELS, (20_000, 6))
    weights, biases, readout, _ = modules.draw_teacher(SMALL)
    hidden = np.einsum("bm,mhi,bi->bh", latents, weights, rng.uniform(-1, 1, (20_000, 5)))
    answers = np.maximum(hidden + latents @ biases, 0) @ readout.T / 2**0.5
    far = np.abs(modules._means_and_code_r2(SMALL)[0] - answers.mean(axis=0)) / answers.std(axis=0)
    assert far.max() < 0.06


def test_numbers_derived_from_means():
    means = {"mse": 0.2, "variance": 0.8, "bilinear_mse": 0.4, "interpolator_mse": 0.3}
    found = modules.derived(means)
    assert found == pytest.approx({"r2": 0.75, "gain": 0.5, "interpolator_gain": 0.25})


# --- trivial predictors ----------------------------------------------------------------------


def test_the_sum_of_singles_against_a_loop():
    """Each module with its weight, scaled as in a task of `most` modules."""
    (task, query), teacher = measured(SMALL), modules.draw_teacher(SMALL)
    found = predicted(task, "sum_of_singles", query)
    for index in range(0, 80, 13):
        single, inputs = np.diag(task.points[index]), query.inputs[1][index]
        total = sum(by_hand(teacher, latent, inputs) for latent in single)
        assert_allclose(found[index], total, atol=1e-5)


def test_the_bilinear_map_is_that_of_least_squares():
    """In float64, on tasks of seen sets."""
    task, query = measured(SMALL)
    arrays = modules.draw_teacher(SMALL)[:3]
    fitted_tasks = modules._fitted_tasks(SMALL, task.dataset(None), arrays)
    latents, inputs, answers = map(np.float64, fitted_tasks)
    assert not task.held_out(latents).any()
    with_ones = lambda values: np.insert(np.float64(values), 0, 1, axis=-1)
    features = lambda z, x: np.einsum("bm,bsi->bsmi", with_ones(z), with_ones(x)).reshape(-1, 42)
    fitted, *_ = np.linalg.lstsq(features(latents, inputs), answers.reshape(-1, 3), rcond=None)
    found = predicted(task, "bilinear", query).reshape(-1, 3)
    assert_allclose(found, features(task.points, query.inputs[1]) @ fitted, atol=1e-3)


def test_kernel_regression_is_fitted_to_the_tasks_that_are_shown_again():
    """In float64; a shown task has the same inputs whatever the key is."""
    task, query = measured(replace(SMALL, tasks=20))
    points = task.dataset(KEY).points
    (latents, inputs), answers = examples_at(task, points)
    assert_array_equal(inputs, examples_at(task, points, jax.random.key(0)).input[1])
    assert_array_equal(latents, points[:, :6])
    rows_of = lambda latents, inputs: np.column_stack(
        [np.repeat(2 * np.float64(latents), 4, axis=0), np.reshape(inputs, (-1, 5))]
    )
    rows, answers = rows_of(latents, inputs), np.float64(answers).reshape(80, 3)
    assert len(np.unique(inputs.reshape(80, 5), axis=0)) == 80
    kernel = lambda a, b: np.exp(-np.square(a[:, None] - b).sum(axis=-1) / 32)
    weights = np.linalg.solve(kernel(rows, rows) + 1e-4 * np.eye(80), answers - answers.mean(0))
    measured_rows = rows_of(task.points, query.inputs[1])
    expected = kernel(measured_rows, rows) @ weights + answers.mean(0)
    found = predicted(task, "interpolator", query).reshape(-1, 3)
    assert_allclose(found, expected, atol=5e-4)


# --- how well an affine map reads a latent from its code -------------------------------------


def test_the_share_that_is_read_is_that_of_new_latents():
    rng = np.random.default_rng(0)
    latents, noise = rng.normal(size=(2, 4000, 3))
    assert modules.affine_r2(latents @ rng.normal(size=(3, 5)) + 2, latents) == pytest.approx(1)
    assert modules.affine_r2(latents + noise, latents) == pytest.approx(0.5, abs=0.05)
    assert modules.affine_r2(noise, latents) == pytest.approx(0, abs=0.01)
    # 11 weights fit the noise of 30 rows, which says nothing of the other 30
    latents, noise = rng.normal(size=(2, 60, 10))
    assert modules.affine_r2(noise, latents) < -0.1
