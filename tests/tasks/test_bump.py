"""Bumps and stripes: what they show, how they are coded, and where they stand in a training set."""

import math
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError
from compgen_jax.tasks import bump
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig, SizeConfig, StripesConfig
from compgen_jax.tasks.encodings import CodeConfig, encode
from compgen_jax.tasks.supports import SupportConfig

N = 8
KEY = jax.random.key(3)
POINTS = [(0.0, 0.0), (5.0, 2.0), (3.25, 6.75), (-1.0, 8.5)]


def by_hand(x, y, sigma, amplitude):
    """The definition in float64, pixel by pixel: row is y, column is x."""
    image = np.zeros((N, N))
    for row in range(N):
        for column in range(N):
            exponent = 0.0
            if x is not None:
                exponent += (column - x) ** 2
            if y is not None:
                exponent += (row - y) ** 2
            image[row, column] = amplitude * math.exp(-exponent / (2 * sigma**2))
    return image


@pytest.mark.parametrize(("x", "y"), [*POINTS, (5.0, None), (None, 2.5), (None, None)])
@pytest.mark.parametrize(("sigma", "amplitude"), [(1.0, 1.0), (1.5, 0.7)])
def test_bump_and_stripes_equal_their_definition(x, y, sigma, amplitude):
    config = ImageConfig(sigma=sigma, amplitude=amplitude)
    signal = bump.bump(x, y, N, config)
    chex.assert_shape(signal, (N, N))
    np.testing.assert_allclose(signal, by_hand(x, y, sigma, amplitude), rtol=1e-5, atol=1e-7)


def test_plus_is_the_sum_of_its_stripes():
    config = ImageConfig(sigma=1.2, amplitude=0.5)
    expected = by_hand(5.0, None, 1.2, 0.5) + by_hand(None, 2.0, 1.2, 0.5)
    np.testing.assert_allclose(bump.plus(5.0, 2.0, N, config), expected, rtol=1e-5, atol=1e-7)


def test_polarity_and_its_inverse():
    upright, inverted = (ImageConfig(polarity=name) for name in ("upright", "inverted"))
    signal = bump.bump(5.0, 2.0, N, upright)
    assert float(bump.flip(signal, upright)[2, 5]) == 1.0  # image[y, x]
    assert float(bump.flip(signal, inverted)[2, 5]) == 0.0
    for config in (upright, inverted):
        np.testing.assert_allclose(bump.flip(bump.flip(signal, config), config), signal, atol=1e-7)


def test_blank_error_is_the_known_baseline():
    """A blank image's MSE at N = 28, sigma = 1: pi sigma^2 / N^2 in the interior (0.00401)."""
    signal = bump.bump(14.0, 14.0, 28, ImageConfig())
    assert float(jnp.mean(jnp.square(signal))) == pytest.approx(math.pi / 28**2, rel=1e-3)


# --- the training set ------------------------------------------------------------------------


def settings(copies=1, samples=5, sampling="without_replacement", amplitude=1.0, **image):
    return Bump(
        grid=N,
        image=ImageConfig(**image),
        support=SupportConfig(region="corner", low=4, sampling=sampling, samples=samples),
        stripes=StripesConfig(copies=copies, amplitude=amplitude),
    )


def drawn(of, key=KEY):
    """The points that training shows, NumPy."""
    table = of.make().dataset(key)
    assert int(table.count) == len(table.points)
    return np.asarray(table.points)


def examples(of, points):
    return jax.vmap(of.make().example, (None, 0))(KEY, jnp.asarray(points))


@pytest.mark.parametrize("polarity", ["inverted", "upright"])
def test_stripes_are_the_profile_of_one_coordinate_drawn_across(polarity):
    """Their amplitude is a bump's, 0.8, times their own."""
    of = settings(polarity=polarity, sigma=1.3, samples=0, amplitude=0.5)
    of = replace(of, image=replace(of.image, amplitude=0.8))
    found = examples(of, drawn(of))
    chex.assert_shape(found.target, (2 * N, N, N))
    for c in range(N):
        profile = 0.4 * np.exp(-((np.arange(N) - c) ** 2) / (2 * 1.3**2))
        image = 1 - profile if polarity == "inverted" else profile
        expected = np.broadcast_to(image, (N, N))
        np.testing.assert_allclose(found.target[c], expected, atol=1e-6)  # constant along y
        np.testing.assert_allclose(found.target[N + c], expected.T, atol=1e-6)


@pytest.mark.parametrize("missing", ["zero", "off_grid"])
def test_the_missing_factor_has_its_own_code(missing):
    code = CodeConfig(missing=missing, missing_coordinate=-3.0)
    of = replace(settings(samples=0), code=code)
    points = drawn(of)
    assert np.isnan(points[:N, 1]).all() and np.isnan(points[N:, 0]).all()
    np.testing.assert_array_equal(points[:N, 0], np.arange(N))
    np.testing.assert_array_equal(points[N:, 1], np.arange(N))
    absent = np.zeros(N)
    if missing == "off_grid":
        absent = np.exp(-((np.arange(N) + 3.0) ** 2) / 2)
    whole = encode([(5.0, N), (2.0, N)], code)
    codes = examples(of, points).input
    np.testing.assert_allclose(codes[5], [*whole[:N], *absent], atol=1e-6)
    np.testing.assert_allclose(codes[N + 2], [*absent, *whole[N:]], atol=1e-6)


@pytest.mark.parametrize("sampling", ["with_replacement", "without_replacement", "real"])
def test_stripes_come_first_and_fewer_bumps_are_the_first_of_more(sampling):
    """So a traced number of examples picks a number of bumps, whatever the data set's size."""
    large, small, none = (drawn(settings(copies=2, samples=n, sampling=sampling))
                          for n in (40, 7, 0))  # fmt: skip
    chex.assert_shape(large, (4 * N + 40, 2))
    for points, count in ((small, 7), (none, 0)):
        chex.assert_shape(points, (4 * N + count, 2))
        np.testing.assert_array_equal(points, large[: 4 * N + count])
    np.testing.assert_array_equal(large[: 2 * N], large[2 * N : 4 * N])
    points = large[4 * N :]
    held_out = settings().make().held_out(points)
    assert not np.isnan(points).any() and not held_out.any()


def test_examples_count_stripes_and_points():
    assert settings(copies=3, samples=5).make().examples == 3 * 2 * N + 5
    assert settings(copies=0, sampling="every_cell").make().examples == N * N - 16
    assert len(drawn(settings(copies=3, samples=5))) == 3 * 2 * N + 5


def test_stripes_show_every_value_so_marginals_need_no_points():
    task = settings(copies=1, samples=1).make()
    task.check(task.dataset(KEY))
    task = settings(copies=0, samples=1).make()
    with pytest.raises(ConfigError, match="no training point has x in"):
        task.check(task.dataset(KEY))


def shuffled(images, copies=1, **of):
    return replace(
        settings(**of), stripes=StripesConfig(copies=copies, order="shuffled"), images=images
    )


def in_order(points):
    return sorted(np.nan_to_num(points, nan=-1).tolist())


def test_images_are_stripes_first_and_then_points():
    """All stripes in an order of the seed's; fewer images are the first of more."""
    whole = drawn(shuffled(2 * N + 5))
    by_axis = drawn(settings(samples=0))
    assert in_order(whole[: 2 * N]) == in_order(by_axis)
    assert not np.array_equal(whole[: 2 * N], by_axis, equal_nan=True)
    other = drawn(shuffled(2 * N), jax.random.key(4))
    assert not np.array_equal(whole[: 2 * N], other, equal_nan=True)
    assert np.isfinite(whole[2 * N :]).all()
    for images in (3, 2 * N - 5, 2 * N, 2 * N + 2):
        of = shuffled(images)
        assert of.make().examples == images
        np.testing.assert_array_equal(drawn(of), whole[:images])
    # the points are those of a support with as many samples, whose own number counts for nothing
    np.testing.assert_array_equal(whole[2 * N :], drawn(settings(copies=0, samples=5)))
    np.testing.assert_array_equal(drawn(shuffled(2 * N + 5, samples=33)), whole)
    assert len(drawn(replace(settings(copies=0, samples=30), images=9))) == 9


def test_images_beyond_the_cells_cannot_be_drawn_without_replacement():
    """As many as are asked for count, not `support.samples`: of 64 cells 48 are seen."""
    assert shuffled(2 * N + 48, samples=900).make().examples == 2 * N + 48
    for of, asked in (
        (shuffled(2 * N + 49), "config.task.images=65"),
        (replace(settings(copies=0), images=49), "config.task.images=49"),
        (settings(samples=49), "config.task.support.samples=49"),
    ):
        with pytest.raises(ConfigError, match=f"{asked}: only 48 cells are seen, so at most"):
            of.make()


def test_a_value_that_no_stripe_and_no_point_shows_is_found():
    task = shuffled(1).make()
    with pytest.raises(ConfigError, match="no training point has x in"):
        task.check(task.dataset(KEY))


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (replace(settings(), images=3), "config.task.images=3: leaves out some stripes"),
        (replace(settings(sampling="every_cell"), images=3), "config.task.images=3: .*takes each"),
        (replace(settings(copies=0, samples=0), images=0), "samples=0: leaves nothing to train on"),
        (
            replace(settings(), support=SupportConfig(fresh="cells")),
            "config.task.support.fresh='cells': draws points at each step",
        ),
        (
            replace(settings(copies=0), images=9, support=SupportConfig(fresh="real")),
            "config.task.support.fresh='real': draws points at each step",
        ),
    ],
)
def test_training_sets_that_cannot_be(of, message):
    with pytest.raises(ConfigError, match=message):
        Config(task=of)


def test_nothing_to_train_on_is_an_error_but_not_stripes_alone():
    Config(task=settings(copies=0, samples=0, sampling="every_cell"))
    Config(task=settings(copies=1, samples=0))
    Config(task=replace(settings(copies=0, samples=0), images=4))


def test_a_ramp_cannot_say_that_a_factor_is_missing_by_zero():
    ramp = {"grid": N, "stripes": StripesConfig(copies=1), "support": settings().support}
    with pytest.raises(ConfigError, match="is the ramp's code of coordinate 0"):
        Config(task=Bump(code=CodeConfig(name="ramp"), **ramp))
    Config(task=Bump(code=CodeConfig(name="ramp", missing="off_grid"), **ramp))


def test_examples_join_code_and_image():
    of = Bump(grid=8, support=SupportConfig(region="donut", low=3, high=4, samples=20))
    points = drawn(of)
    found = examples(of, points)
    assert found.input.shape == (20, 16) and found.target.shape == (20, 8, 8)
    x, y = points[0].astype(int)
    assert float(found.target[0, y, x]) == 0.0  # inverted: darkest at image[y, x]
    assert float(found.input[0, x]) == 1.0 and float(found.input[0, 8 + y]) == 1.0


def test_the_natural_size_of_a_data_set_has_a_unit():
    assert settings(copies=0).make().units == {"cell": N * N}
    assert settings(copies=1).make().units == {"value": N}


# --- a third factor --------------------------------------------------------------------------

SIZED = Bump(
    grid=N,
    size=SizeConfig(values=5, smallest=0.8, largest=2.0, low=1, high=3),
    support=SupportConfig(region="donut", low=2, high=4, samples=300),
)
SIZES = (0.8, 1.1, 1.4, 1.7, 2.0)


def cells_by_loop():
    return [(x, y, s) for s in range(5) for y in range(N) for x in range(N)]


@pytest.mark.parametrize(
    ("support", "rule"),
    [
        ({"region": "donut"}, lambda x, y, s: 2 <= x <= 4 and 2 <= y <= 4 and 1 <= s <= 3),
        ({"region": "cross"}, lambda x, y, s: 2 <= x <= 4 or 2 <= y <= 4 or 1 <= s <= 3),
        ({"region": "corner"}, lambda x, y, s: x >= 2 and y >= 2 and s >= 1),
        (
            {"region": "corner", "corner": "bottom_left"},
            lambda x, y, s: x <= N - 1 - 2 and y <= N - 1 - 2 and s >= 1,
        ),
        (
            {"region": "corner", "corner": "top_left"},
            lambda x, y, s: x <= N - 1 - 2 and y >= 2 and s >= 1,
        ),
        ({"region": "none"}, lambda x, y, s: False),
    ],
)
def test_regions_of_three_factors_against_loops(support, rule):
    of = replace(SIZED, support=replace(SIZED.support, require_marginals=False, **support))
    task = of.make()
    points = tasks.cells(task.factors)
    assert [factor.name for factor in task.factors] == ["x", "y", "size"]
    assert tasks.sizes(task) == (N, N, 5)
    for point, (x, y, s) in zip(points, cells_by_loop(), strict=True):
        np.testing.assert_allclose(point, (x, y, SIZES[s]), rtol=1e-6)
    expected = [rule(*cell) for cell in cells_by_loop()]
    np.testing.assert_array_equal(task.held_out(points), expected)
    np.testing.assert_array_equal(jax.jit(task.held_out)(jnp.asarray(points)), expected)
    # a real point belongs to its nearest cell; a step of the sizes is 0.3
    moved = points + np.float32([0.45, -0.45, 0.14])
    inside = (points[:, 0] < N - 1) & (points[:, 1] > 0) & (points[:, 2] < 1.9)
    np.testing.assert_array_equal(task.held_out(moved)[inside], np.array(expected)[inside])


def test_a_random_region_of_three_factors_has_its_share_for_all_seeds():
    support = SupportConfig(region="random", share=0.3, seed=3, require_marginals=False)
    task = replace(SIZED, support=support).make()
    points = tasks.cells(task.factors)
    held_out = np.asarray(task.held_out(points))
    assert held_out.sum() == round(0.3 * N * N * 5)
    np.testing.assert_array_equal(jax.jit(task.held_out)(jnp.asarray(points)), held_out)
    chosen = np.random.default_rng(3).permutation(N * N * 5)[: held_out.sum()]
    np.testing.assert_array_equal(np.flatnonzero(held_out), np.sort(chosen))


@pytest.mark.parametrize("sampling", ["with_replacement", "without_replacement", "every_cell",
                                      "real"])  # fmt: skip
def test_samples_of_three_factors_are_seen_points_only(sampling):
    of = replace(SIZED, support=replace(SIZED.support, sampling=sampling, samples=200))
    task, points = of.make(), drawn(of)
    assert points.shape == (task.examples, 3)
    assert task.examples == (N * N * 5 - 27 if sampling == "every_cell" else 200)
    assert not np.asarray(task.held_out(points)).any()
    low, high = np.float32([0, 0, 0.8]), np.float32([7, 7, 2.0])
    assert (points >= low).all() and (points <= high + 1e-6).all()


def test_the_code_of_three_factors_has_a_part_for_each():
    task = SIZED.make()
    assert task.parts == (N, N, 5)
    point = jnp.array([2.0, 5.5, 1.25])
    code = task.example(KEY, point).input
    parts = [np.exp(-((np.arange(n) - c) ** 2) / 2) for n, c in ((N, 2), (N, 5.5), (5, 1.5))]
    np.testing.assert_allclose(code, np.concatenate(parts), atol=1e-6)
    jacobian = jax.jacfwd(lambda p: task.example(KEY, p).input)(point)
    blocks = np.split(np.asarray(jacobian), (N, 2 * N))
    for row, block in enumerate(blocks):
        for column in range(3):
            assert block[:, column].any() == (row == column)
    ramp = replace(SIZED, code=CodeConfig(name="ramp")).make()
    assert ramp.parts == (1, 1, 1)
    np.testing.assert_allclose(ramp.example(KEY, point).input, [2, 5.5, 1.5], rtol=1e-5)


def test_the_bump_of_a_size_is_its_closed_form():
    task = SIZED.make()
    for x, y, sigma in ((2.0, 5.0, 0.8), (3.25, 1.5, 1.35), (6.0, 0.0, 2.0)):
        target = task.example(KEY, jnp.array([x, y, sigma])).target
        np.testing.assert_allclose(task.prediction(target), by_hand(x, y, sigma, 1.0), atol=1e-6)
        scores = task.scores(
            task.prediction(target), task.prediction(target), jnp.array([x, y, sigma])
        )
        assert float(scores["mse"]) == 0 and bool(scores["position_accuracy"])


@pytest.mark.parametrize(
    ("size", "copies", "message"),
    [
        ({"values": 1}, 0, "config.task.size.values=1: a third factor needs two sizes or more"),
        ({"values": 3, "smallest": 2.0, "largest": 1.0}, 0, "from config.task.size.smallest=2"),
        ({"values": 3}, 1, "config.task.size.values=3: stripes are images of x or of y alone"),
    ],
)
def test_sizes_that_cannot_be(size, copies, message):
    with pytest.raises(ConfigError, match=message):
        Config(task=replace(settings(copies), size=SizeConfig(**size)))


def test_a_combination_of_three_is_right_if_its_size_is():
    """Against loops over the sizes; a bump of another size has the right pixel alone."""
    task = SIZED.make()
    assert task.accuracy == "combination_accuracy"
    values = np.asarray(task.factors[2].values)
    draw = lambda size: np.exp(
        -((np.arange(N)[:, None] - 4) ** 2 + (np.arange(N)[None] - 3) ** 2) / (2 * size**2)
    )
    rng = np.random.default_rng(0)
    score = jax.jit(task.scores)
    for asked in (0, 3):
        point = jnp.array([3.0, 4.0, values[asked]], jnp.float32)
        truth = jnp.asarray(draw(values[asked]), jnp.float32)
        for size in (*values, *rng.uniform(0.5, 2.3, 4)):
            signal = draw(size) + 0.01 * rng.normal(size=(N, N))
            errors = [np.mean((signal - draw(value)) ** 2) for value in values]
            found = score(jnp.asarray(signal, jnp.float32), truth, point)
            assert bool(found["size_accuracy"]) == (np.argmin(errors) == asked)
            right = np.argmin(errors) == asked and np.argmax(signal) == 4 * N + 3
            assert bool(found["combination_accuracy"]) == right
        elsewhere = jnp.asarray(np.roll(draw(values[asked]), 1, axis=1), jnp.float32)
        assert not score(elsewhere, truth, point)["combination_accuracy"]
        assert not score(jnp.full((N, N), jnp.nan), truth, point)["combination_accuracy"]
