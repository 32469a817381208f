"""Bumps and stripes: images, codes, training sets and scores."""

import math
from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError
from compgen_jax.tasks import bump
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig, SizeConfig, StripesConfig
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.supports import SupportConfig
from tests.tasks.examples import KEY, examples_at

N = 8


def by_hand(x, y, sigma, amplitude=1.0):
    """The definition in float64, pixel by pixel: row is y, column is x."""
    image = np.zeros((N, N))
    for row in range(N):
        for column in range(N):
            square = (0 if x is None else (column - x) ** 2) + (0 if y is None else (row - y) ** 2)
            image[row, column] = amplitude * math.exp(-square / (2 * sigma**2))
    return image


@pytest.mark.parametrize(
    ("x", "y"), [(5.0, 2.0), (3.25, 6.75), (-1.0, 8.5), (5.0, None), (None, 2.5), (None, None)]
)
def test_bump_and_stripes_equal_their_definition(x, y):
    for sigma, amplitude in ((1.0, 1.0), (1.5, 0.7)):
        config = ImageConfig(sigma=sigma, amplitude=amplitude)
        signal = jax.jit(lambda config=config: bump.bump(x, y, N, config))()
        np.testing.assert_allclose(signal, by_hand(x, y, sigma, amplitude), rtol=1e-5, atol=1e-7)


def test_plus_and_polarity():
    config = ImageConfig(sigma=1.2, amplitude=0.5)
    expected = by_hand(5.0, None, 1.2, 0.5) + by_hand(None, 2.0, 1.2, 0.5)
    np.testing.assert_allclose(bump.plus(5.0, 2.0, N, config), expected, rtol=1e-5, atol=1e-7)
    upright, inverted = (ImageConfig(polarity=name) for name in ("upright", "inverted"))
    signal = bump.bump(5.0, 2.0, N, upright)
    assert float(bump.flip(signal, upright)[2, 5]) == 1.0  # image[y, x]
    assert float(bump.flip(signal, inverted)[2, 5]) == 0.0
    np.testing.assert_allclose(bump.flip(bump.flip(signal, inverted), inverted), signal, atol=1e-7)


# --- the training set ------------------------------------------------------------------------


def settings(copies=1, samples=5, sampling="without_replacement", images=0, order="by_axis", **of):
    return Bump(
        grid=N,
        support=SupportConfig(region="corner", low=4, sampling=sampling, samples=samples),
        stripes=StripesConfig(copies, order),
        images=images,
        **of,
    )


shuffled = partial(settings, order="shuffled")
RAMP, OFF_CANVAS = CodeConfig(name="ramp"), CodeConfig(missing="off_canvas")
SIZED = Bump(
    grid=N,
    size=SizeConfig(values=5, smallest=0.8, largest=2.0, low=1, high=3),
    support=SupportConfig(region="donut", low=2, high=4, samples=300),
)
PAIRS = Bump(grid=16, bumps=2, support=SupportConfig(low=4, high=11, samples=400))


def drawn(of, key=KEY):
    """The points that training shows, NumPy."""
    table = jax.device_get(jax.jit(of.make().dataset)(key))
    assert table.count == len(table.points)
    return table.points


@pytest.mark.parametrize("sampling", ["without_replacement", "real"])
def test_stripes_come_first_and_fewer_bumps_are_the_first_of_more(sampling):
    """So a traced number of examples chooses the number of bumps in a data set of any size."""
    large, small, none = (drawn(settings(copies=2, samples=n, sampling=sampling))
                          for n in (40, 7, 0))  # fmt: skip
    chex.assert_shape(large, (4 * N + 40, 2))
    for points, count in ((small, 7), (none, 0)):
        chex.assert_shape(points, (4 * N + count, 2))
        np.testing.assert_array_equal(points, large[: 4 * N + count])
    np.testing.assert_array_equal(large[: 2 * N], large[2 * N : 4 * N])
    points = large[4 * N :]
    assert not np.isnan(points).any() and not settings().make().held_out(points).any()


def test_images_are_stripes_first_and_then_points():
    """The seed orders the stripes; fewer images are the first of more."""
    in_order = lambda points: sorted(np.nan_to_num(points, nan=-1).tolist())
    whole = drawn(shuffled(images=2 * N + 5))
    by_axis = drawn(settings(samples=0))
    assert in_order(whole[: 2 * N]) == in_order(by_axis)
    assert not np.array_equal(whole[: 2 * N], by_axis, equal_nan=True)
    other = drawn(shuffled(images=2 * N), jax.random.key(4))
    assert not np.array_equal(whole[: 2 * N], other, equal_nan=True)
    for images in (3, 2 * N, 2 * N + 2):
        of = shuffled(images=images)
        assert of.make().examples == images
        np.testing.assert_array_equal(drawn(of), whole[:images])
    # the points are those of a support with as many samples, whose own number has no effect
    np.testing.assert_array_equal(whole[2 * N :], drawn(settings(copies=0, samples=5)))
    np.testing.assert_array_equal(drawn(shuffled(images=2 * N + 5, samples=33)), whole)
    assert len(drawn(settings(copies=0, samples=30, images=9))) == 9


@pytest.mark.parametrize("polarity", ["inverted", "upright"])
def test_stripes_are_the_profile_of_one_coordinate_drawn_across(polarity):
    """The missing factor has a code of its own."""
    code = CodeConfig(missing="off_grid", missing_coordinate=-3.0)
    image = ImageConfig(sigma=1.3, amplitude=0.4, polarity=polarity)
    of = settings(samples=0, image=image, code=code)
    points = drawn(of)
    assert np.isnan(points[:N, 1]).all() and np.isnan(points[N:, 0]).all()
    found = examples_at(of.make(), points)
    absent = np.exp(-((np.arange(N) + 3.0) ** 2) / 2)
    for c in range(N):
        profile = 0.4 * np.exp(-((np.arange(N) - c) ** 2) / (2 * 1.3**2))
        stripe = 1 - profile if polarity == "inverted" else profile
        expected = np.broadcast_to(stripe, (N, N))
        np.testing.assert_allclose(found.target[c], expected, atol=1e-6)  # constant along y
        np.testing.assert_allclose(found.target[N + c], expected.T, atol=1e-6)
        of_c = np.exp(-((np.arange(N) - c) ** 2) / 2)
        np.testing.assert_allclose(found.input[c], [*of_c, *absent], atol=1e-6)
        np.testing.assert_allclose(found.input[N + c], [*absent, *of_c], atol=1e-6)


def test_sizes_and_units_of_a_data_set():
    """Stripes show every value, so that no points are needed; `images` replaces `samples`."""
    assert settings(copies=3, samples=5).make().examples == 3 * 2 * N + 5
    assert settings(copies=0, sampling="every_cell").make().examples == N * N - 16
    assert settings(copies=0).make().units == {"value": None, "cell": N * N}
    assert settings(copies=1).make().units == {"value": N, "cell": None}
    assert shuffled(images=2 * N + 48, samples=900).make().examples == 2 * N + 48  # of 48 cells
    assert settings(samples=0, code=OFF_CANVAS).make().parts == (N + 12, N + 12)
    settings(code=replace(RAMP, missing="off_grid")).check(None)
    for of in (settings(samples=1), shuffled(images=2 * N)):
        of.make().check(of.make().dataset(KEY))
    for of in (settings(copies=0, samples=1), shuffled(images=1)):
        with pytest.raises(ConfigError, match="no training point has x in"):
            of.make().check(of.make().dataset(KEY))


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (settings(images=3), "config.task.images=3: leaves out some stripes"),
        (settings(sampling="every_cell", images=3), "config.task.images=3: .*takes each"),
        (settings(copies=0, samples=0), "samples=0: leaves nothing to train on"),
        (settings(code=RAMP), "missing='zero': is the ramp's code of coordinate 0"),
        (settings(code=replace(RAMP, missing="off_canvas")), "missing='off_canvas': adds units"),
        (settings(0, size=SizeConfig(values=1)), "values=1: .*needs two sizes or more"),
        (
            settings(0, size=SizeConfig(3, 2.0, 1.0)),
            "values=3: .* from config.task.size.smallest=2",
        ),
        (settings(size=SizeConfig(3)), "values=3: stripes are images of x or of y"),
        (shuffled(images=2 * N + 49), "images=65: only 48 cells are seen, so at most"),
        (settings(samples=49), "config.task.support.samples=49: only 48 cells are seen"),
        (replace(PAIRS, stripes=StripesConfig(1)), "stripes.copies=1: is for one object"),
        (replace(PAIRS, size=SizeConfig(3)), "size.values=3: is for one object"),
        (replace(PAIRS, bumps=3), "bumps=3: must be at least 1 and at most 2"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(of, message):
    with pytest.raises(ConfigError, match=message) as error:
        Config(task=of).task.make()
    assert "\n" not in str(error.value)


# --- the score rendered ----------------------------------------------------------------------

HOLE = Bump(grid=16, support=SupportConfig(region="donut", low=4, high=11))


def rendered(of, predictions, nearest=()):
    task = of.make()
    points = tasks.points(task)

    @jax.jit
    def scores(points):
        truths = jax.vmap(lambda point: task.prediction(task.example(KEY, point).target))(points)
        return jax.vmap(task.scores)(predictions(truths, points), truths, points, *nearest)

    return np.asarray(scores(points)["rendered"])


def test_known_maps_are_rendered_or_not():
    """The true bump and one on another level are rendered everywhere. A faint bump, the plus and a
    blank image are rendered nowhere, and the nearest seen image only where it is the truth."""
    task = HOLE.make()
    points = tasks.points(task)
    held_out = np.asarray(task.held_out(points))
    nearest, _ = tasks.nearest_seen(task, held_out)
    plus = jax.vmap(lambda point: bump.plus(*point, 16, HOLE.image))
    for predictions, expected in (
        (lambda truths, points: truths, True),
        (lambda truths, points: truths - 0.4, True),
        (lambda truths, points: 0.01 * truths, False),
        (lambda truths, points: plus(points), False),
        (lambda truths, points: 0 * truths, False),
        (lambda truths, points: truths[nearest], ~held_out),
    ):
        np.testing.assert_array_equal(rendered(HOLE, predictions), expected)


@pytest.mark.parametrize("of", [HOLE, replace(HOLE, bumps=2)])
def test_a_wide_bump_that_is_nearer_to_a_seen_image_is_not_rendered(of):
    """Only a held-out point has a rival; of two bumps the second is the true one."""
    wide = replace(of, image=ImageConfig(sigma=4.5, polarity="upright"))
    task = wide.make()
    held_out, nearest = (
        np.asarray(task.held_out(tasks.points(task))),
        task.nearest(tasks.points(task)),
    )
    draw = jax.vmap(lambda point: bump.bump(*point, 16, wide.image))
    shifted = lambda share: (
        lambda truths, points: (
            truths
            + share * (draw(jnp.where(jnp.isnan(nearest), points + 1.0, nearest)) - draw(points))
        )
    )
    np.testing.assert_array_equal(rendered(wide, shifted(0.7)), ~held_out)
    assert rendered(wide, shifted(0.2)).all()


def test_the_nearest_points_of_another_support_take_the_place_of_the_tasks_own():
    """So trials with different supports share a program."""
    wide = replace(HOLE, image=ImageConfig(sigma=4.5))
    other = replace(wide, support=replace(wide.support, low=8))
    points = tasks.points(other.make())
    lookup = jnp.asarray(tasks.nearest_seen(other.make(), other.make().held_out(points))[0])
    predictions = lambda truths, points: 0.6 * truths[lookup] + 0.4 * truths
    expected = rendered(other, predictions)
    assert 0 < expected.sum() < len(points)
    assert (rendered(wide, predictions) != expected).any()
    found = rendered(wide, predictions, (other.make().nearest(points),))
    np.testing.assert_array_equal(found, expected)


# --- a third factor --------------------------------------------------------------------------


def test_a_combination_of_three_is_right_if_its_size_is():
    """Against loops over the sizes; a bump of another size has only the right pixel."""
    task = SIZED.make()
    assert task.accuracy == "combination_accuracy"
    values, rng, score = np.asarray(task.factors[2].values), np.random.default_rng(0), jax.jit(
        task.scores
    )  # fmt: skip
    for requested in (0, 3):
        point = np.float32([3.0, 4.0, values[requested]])
        truth = np.float32(by_hand(3, 4, values[requested]))
        found = jax.jit(lambda point: task.prediction(task.example(KEY, point).target))(point)
        np.testing.assert_allclose(found, truth, atol=1e-6)
        for size in (*values, *rng.uniform(0.5, 2.3, 4)):
            signal = by_hand(3, 4, size) + 0.01 * rng.normal(size=(N, N))
            errors = [np.mean((signal - by_hand(3, 4, value)) ** 2) for value in values]
            found = score(np.float32(signal), truth, point)
            assert bool(found["size_accuracy"]) == (np.argmin(errors) == requested)
            right = np.argmin(errors) == requested and np.argmax(signal) == 4 * N + 3
            assert bool(found["combination_accuracy"]) == right
        elsewhere = np.roll(truth, 1, axis=1)
        assert not score(elsewhere, truth, point)["combination_accuracy"]
        assert not score(truth * np.float32(np.nan), truth, point)["combination_accuracy"]


# --- two objects -----------------------------------------------------------------------------


def gaussian(x, y):
    """A bump of sigma 1 on 16 x 16 pixels, in float64."""
    row, column = np.mgrid[:16, :16]
    return np.exp(-((column - x) ** 2 + (row - y) ** 2) / 2)


def test_the_second_object_of_a_cell_is_the_same_for_all_seeds_and_lies_anywhere():
    task = PAIRS.make()
    points = tasks.points(task)
    second_places = jax.jit(jax.vmap(lambda point: bump.second_place(point, 16)))
    seconds = np.asarray(second_places(points))
    expected = examples_at(PAIRS.make(), np.concatenate([points, seconds], axis=1))
    found = jax.jit(partial(tasks.examples_at, task))
    for key in (KEY, jax.random.key(4)):
        chex.assert_trees_all_equal(found(key, points), expected)
    moved = np.float32(points + 0.3)
    assert np.abs(examples_at(PAIRS.make(), moved).target[37] - expected.target[37]).sum() > 0.1
    np.testing.assert_array_equal(second_places(moved)[37], seconds[37])
    # 64 of 256 pixels are those of the hole, whether the first bump is held out or not
    inside = ((seconds >= 4) & (seconds <= 11)).all(axis=1)
    for region in tasks.regions(task).values():
        assert inside[region].mean() == pytest.approx(0.25, abs=0.1)
    assert {*seconds.ravel().tolist()} == {*range(16)}


def test_training_holds_out_the_first_of_two_objects_alone():
    """The first is drawn as if it were alone, and the second anywhere."""
    points = drawn(PAIRS)
    first, second = points[:, :2], points[:, 2:]
    np.testing.assert_array_equal(drawn(replace(PAIRS, bumps=1)), first)
    assert ((second >= 4) & (second <= 11)).all(axis=1).mean() == pytest.approx(0.25, abs=0.1)
    assert np.unique(second, axis=0).shape[0] > 150 and (second == second.round()).all()
    fewer = replace(PAIRS, support=replace(PAIRS.support, samples=7))
    np.testing.assert_array_equal(drawn(fewer)[:, 2:], second[:7])
    with pytest.raises(ConfigError, match="no training point has x in"):
        fewer.make().check(fewer.make().dataset(KEY))


def test_each_of_two_objects_is_scored_with_the_other_taken_off():
    """What is drawn of the first, and of the second, in turn; the exact pixel is the first's."""
    task = PAIRS.make()
    score = jax.jit(task.scores)
    for first, second in (((4, 7), (13, 3)), ((2, 2), (9, 9)), ((6, 6), (7, 6)), ((5, 5), (5, 5))):
        point, one, other = np.float32(first), gaussian(*first), gaussian(*second)
        truth = one + other
        apart = max(abs(a - b) for a, b in zip(first, second, strict=True)) > 3
        for image, rendered, rendered_second in (
            (truth, True, True),
            (other, False, True),  # the first is missing
            (one, False, False),
            (0 * one, False, False),
            (other + gaussian(first[0] + 4, first[1]), False, apart),
        ):
            found = score(np.float32(image), np.float32(truth), point)
            if apart or rendered:
                assert bool(found["rendered"]) == rendered
                assert bool(found["rendered_second"]) == rendered_second
            assert float(found["mse"]) == pytest.approx(np.square(image - truth).mean(), abs=1e-7)
            assert float(found["blank_mse"]) == pytest.approx(np.square(one).mean(), rel=1e-5)
        assert bool(score(np.float32(truth), np.float32(truth), point)["exact_accuracy"])
        moved = np.float32(other + gaussian(first[0] + 1, first[1]))
        assert not bool(score(moved, np.float32(truth), point)["exact_accuracy"])
