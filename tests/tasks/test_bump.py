"""Bumps and stripes: images, codes, training sets and scores."""

from dataclasses import replace
from functools import partial

import chex
import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.config import ConfigError
from compgen_jax.tasks import bump
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig, StripesConfig
from compgen_jax.tasks.supports import SupportConfig
from tests.tasks.examples import KEY, examples_at, made, scores_at
from tests.trees import TWO_PROGRAMS

N = 8


def by_hand(x, y, sigma, grid=N):
    """The definition in float64: row is y, column is x, and NaN a missing one."""
    row, column = np.mgrid[:grid, :grid]
    square = np.nansum([(column - x) ** 2, (row - y) ** 2], axis=0)
    return np.exp(-square / (2 * sigma**2))


@pytest.mark.parametrize(("x", "y"), [(3.25, 6.75), (-1.0, 8.5), (5.0, np.nan), (np.nan, 2.5)])
def test_bump_and_stripes_equal_their_definition(x, y):
    config = ImageConfig(sigma=1.5, amplitude=0.7)
    signal, expected = bump.bump(x, y, N, config), 0.7 * by_hand(x, y, 1.5)
    assert_allclose(signal, expected, rtol=1e-5, atol=1e-7)
    dark = bump.flip(signal, replace(config, polarity="inverted"))
    assert_allclose(dark, 1 - expected, rtol=1e-5, atol=1e-7)
    assert (bump.flip(signal, replace(config, polarity="upright")) == signal).all()


@pytest.mark.parametrize("hole_is", ["blank", "left_out"])
def test_stripes_and_no_bumps_have_a_hole(hole_is):
    """It is white, or the loss says nothing of it."""
    whole, holed = (
        Bump(grid=N, stripes=StripesConfig(copies=1, hole=hole, hole_is=hole_is)).make()
        for hole in ((), (2, 4))
    )
    answer = jax.random.normal(KEY, (N, N))
    for point in np.float32([(3, np.nan), (np.nan, 2), (3, 3)]):
        target, expected = (task.example(KEY, point).target for task in (holed, whole))
        if np.isnan(point).any():
            inside = 1.0 if hole_is == "blank" else answer[2:5, 2:5]
            expected = expected.at[2:5, 2:5].set(inside)
        value, gradient = jax.value_and_grad(holed.loss)(answer, target)
        assert_allclose(value, np.mean((answer - expected) ** 2), rtol=1e-6)
        assert_allclose(gradient, 2 * (answer - expected) / N**2, rtol=1e-6)


# --- the training set ------------------------------------------------------------------------


def settings(copies=1, samples=5, sampling="without_replacement", order="by_axis", **others):
    corner = SupportConfig("corner", 4, sampling=sampling, samples=samples)
    return Bump(grid=N, support=corner, stripes=StripesConfig(copies, order), **others)


shuffled = partial(settings, order="shuffled")
PAIRS = Bump(grid=16, bumps=2, support=SupportConfig(low=4, high=11, samples=400))


def drawn(of, key=KEY):
    """The points that training shows, NumPy."""
    return jax.device_get(jax.jit(of.make().dataset)(key).points)


def test_stripes_come_first_and_fewer_bumps_are_the_first_of_more():
    """So a traced number of examples chooses the number of bumps in a data set of any size."""
    large = drawn(settings(copies=2, samples=40, sampling="real"))
    assert np.isfinite(large[4 * N :]).sum() == 2 * 40
    for samples in (7, 0):
        found = drawn(settings(copies=2, samples=samples, sampling="real"))
        assert_allclose(found, large[: 4 * N + samples], **TWO_PROGRAMS)
    stripes = [(c, np.nan) for c in range(N)] + [(np.nan, c) for c in range(N)]
    assert_array_equal(large[: 4 * N], 2 * stripes)


def test_shuffled_codes_are_those_of_other_stripes():
    """Images and bumps are as without the option."""
    plain = settings(copies=2)
    shuffled_codes = replace(plain, stripes=StripesConfig(2, shuffled_codes=True))
    points, rows = drawn(plain), drawn(shuffled_codes)
    stripes, others = points[: 2 * N], rows[: 2 * N, 2:]
    assert_array_equal(rows[:, :2], points)
    assert_array_equal(rows[:, 2:], [*others, *others, *points[4 * N :]])
    assert sorted(map(str, others)) == sorted(map(str, stripes))
    assert np.mean((others == stripes).any(axis=1)) < 0.5
    again = drawn(shuffled_codes, jax.random.key(4))[: 2 * N, 2:]
    assert not np.array_equal(others, again, equal_nan=True)
    found, task = examples_at(shuffled_codes.make(), rows), plain.make()
    assert_array_equal(found.target, examples_at(task, rows[:, :2]).target)
    assert_array_equal(found.input, examples_at(task, rows[:, 2:]).input)


def test_images_are_stripes_first_and_then_points():
    """The seed orders the stripes; fewer images are the first of more."""
    whole, by_axis = drawn(shuffled(images=2 * N + 5)), drawn(settings(samples=0))
    assert not np.array_equal(whole[: 2 * N], by_axis, equal_nan=True)
    other = drawn(shuffled(images=2 * N), jax.random.key(4))
    assert not np.array_equal(whole[: 2 * N], other, equal_nan=True)
    assert_array_equal(np.sort(other, axis=0), np.sort(whole[: 2 * N], axis=0))
    for images in (3, 2 * N + 2):
        assert_array_equal(drawn(shuffled(images=images)), whole[:images])
    # the points are those of a support with as many samples, whose own number has no effect
    assert_array_equal(whole[2 * N :], drawn(settings(copies=0, samples=5)))


def test_sizes_and_units_of_a_data_set():
    """Stripes show every value, so that no points are needed; `images` replaces `samples`."""
    assert settings(copies=0).make().units == {"value": None, "cell": N * N}
    assert settings(copies=1).make().units == {"value": N, "cell": None}
    assert shuffled(images=2 * N + 48, samples=900).make().examples == 2 * N + 48  # of 48 cells
    settings(samples=1).make().check(settings(samples=1).make().dataset(KEY))
    for of in (settings(copies=0, samples=1), shuffled(images=1)):
        with pytest.raises(ConfigError, match="no training point has x in"):
            of.make().check(of.make().dataset(KEY))


# --- the score rendered ----------------------------------------------------------------------


@pytest.mark.parametrize("bumps", [1, 2])
def test_a_wide_bump_that_is_nearer_to_a_seen_image_is_not_rendered(bumps):
    """Only a held-out point has a rival; of two bumps the second is the true one."""
    image, hole = ImageConfig(sigma=4.5, polarity="upright"), SupportConfig("donut", low=4, high=11)
    task = Bump(grid=16, bumps=bumps, image=image, support=hole).make()
    points = tasks.points(task)
    nearest = task.nearest(points)
    is_seen = np.isnan(nearest).any(axis=1)
    truths = jax.vmap(task.prediction)(examples_at(task, points).target)
    draw = jax.vmap(lambda point: bump.bump(*point, 16, image))
    moved_by = draw(np.where(is_seen[:, None], points + 1, nearest)) - draw(points)
    for share, expected in ((0.7, is_seen), (0.2, True)):
        moved = truths + share * moved_by
        assert_array_equal(scores_at(task, moved, truths, points)["rendered"], expected)
        # of a support that holds out none of them
        without = scores_at(task, moved, truths, points, np.full(nearest.shape, np.nan))
        assert without["rendered"].mean() > 0.9


# --- a third factor --------------------------------------------------------------------------


def test_a_combination_of_three_is_right_if_its_size_is():
    """Against loops over the sizes; a bump of another size has only the right pixel."""
    task, rng = made("sized"), np.random.default_rng(0)
    values, score = np.asarray(task.factors[2].values), jax.jit(task.scores)
    for requested in (0, 2):
        point = np.float32([3.0, 4.0, values[requested]])
        truth = np.float32(by_hand(3, 4, values[requested]))
        found = task.prediction(jax.jit(task.example)(KEY, point).target)
        assert_allclose(found, truth, atol=1e-6)
        for size in (*values, *rng.uniform(0.5, 2.3, 4)):
            signal = by_hand(3, 4, size) + 0.01 * rng.normal(size=(N, N))
            errors = [np.mean((signal - by_hand(3, 4, value)) ** 2) for value in values]
            found = score(np.float32(signal), truth, point)
            assert bool(found["size_accuracy"]) == (np.argmin(errors) == requested)
            right = np.argmin(errors) == requested and np.argmax(signal) == 4 * N + 3
            assert bool(found["combination_accuracy"]) == right
        assert not score(np.roll(truth, 1, axis=1), truth, point)["combination_accuracy"]


# --- two objects -----------------------------------------------------------------------------


gaussian = partial(by_hand, sigma=1.0, grid=16)


def test_the_second_object_of_a_cell_is_the_same_for_all_seeds():
    task = PAIRS.make()
    points = tasks.points(task)
    second_positions = jax.jit(jax.vmap(partial(bump.second_position, grid=16)))
    seconds = np.asarray(second_positions(points))
    expected = examples_at(task, np.concatenate([points, seconds], axis=1))
    found = examples_at(task, points, jax.random.key(4))
    chex.assert_trees_all_close(found, expected, **TWO_PROGRAMS)
    assert_array_equal(second_positions(np.float32(points + 0.3))[37], seconds[37])


def test_training_holds_out_the_first_of_two_objects_alone():
    """The first is drawn as if it were alone, and the second anywhere."""
    points = drawn(PAIRS)
    first, second = points[:, :2], points[:, 2:]
    assert_array_equal(drawn(replace(PAIRS, bumps=1)), first)
    assert ((second >= 4) & (second <= 11)).all(axis=1).mean() == pytest.approx(0.25, abs=0.1)
    assert np.unique(second, axis=0).shape[0] > 150 and (second == second.round()).all()


def test_each_of_two_objects_is_scored_with_the_other_taken_off():
    """What is drawn of the first, and of the second, in turn; the exact pixel is the first's."""
    task = PAIRS.make()
    for first, second in (((4, 7), (13, 3)), ((2, 2), (9, 9)), ((5, 5), (5, 5))):
        one, other, (x, y) = gaussian(*first), gaussian(*second), first
        truth = one + other
        answers = [truth, other, one, other + gaussian(x + 4, y), other + gaussian(x + 1, y)]
        arrays = answers, 5 * [truth], 5 * [first]
        scores = scores_at(task, *map(np.float32, arrays))
        rendered = np.stack([scores["rendered"], scores["rendered_second"]])
        assert rendered[:, 0].all()
        if first != second:
            assert_array_equal(rendered[:, 1:4], [[False, False, False], [True, False, True]])
        assert_allclose(scores["mse"], np.square(answers - truth).mean((1, 2)), atol=1e-7)
        assert_allclose(scores["blank_mse"], np.square(one).mean(), rtol=1e-5)
        assert scores["exact_accuracy"][0] and not scores["exact_accuracy"][4]
