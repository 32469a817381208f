"""Turned digits: against SciPy's rotation and loops, and the runs that they make."""

import subprocess
import sys
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from compgen_jax.config import Config, ConfigError, TrainingConfig
from compgen_jax.models.mlp import MLP
from compgen_jax.runs import experiment, judge_run, measure, results
from compgen_jax.tasks import digits, rotation, sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.baselines import Asked
from compgen_jax.tasks.rotation import AngleCodeConfig, GapConfig, Rotation
from tests.tasks import test_idx

KEY = jax.random.key(3)
ONE = Rotation(side=16, angles=24, samples=24)
TWO = replace(ONE, objects=(4, 7), gap=GapConfig(of=(4,)))
NOISE = np.random.default_rng(1).random((13, 13)).astype(np.float32)
ANGLES = (0.0, 90.0, 37.5, 160.0, 283.1, -20.0, 725.0)

turned = jax.jit(rotation.turned)


def images_at(task, points):
    return np.asarray(jax.vmap(task.example, (None, 0))(KEY, jnp.asarray(points)).target)


# --- turning ---------------------------------------------------------------------------------


def by_hand(image, degrees):
    """Pixel by pixel in float64: the four pixels around the point that lands at (x, y)."""
    side, turn = len(image), np.deg2rad(degrees)
    found, centre = np.zeros((side, side)), (side - 1) / 2
    for y in range(side):
        for x in range(side):
            dx, dy = x - centre, y - centre
            from_x = centre + np.cos(turn) * dx + np.sin(turn) * dy
            from_y = centre - np.sin(turn) * dx + np.cos(turn) * dy
            for row in (int(np.floor(from_y)), int(np.floor(from_y)) + 1):
                for column in (int(np.floor(from_x)), int(np.floor(from_x)) + 1):
                    if 0 <= row < side and 0 <= column < side:
                        weight = (1 - abs(from_y - row)) * (1 - abs(from_x - column))
                        found[y, x] += weight * image[row, column]
    return found


@pytest.mark.parametrize("degrees", ANGLES)
def test_turning_is_bilinear_and_equals_scipy(degrees):
    np.testing.assert_allclose(turned(NOISE, degrees), by_hand(NOISE, degrees), atol=2e-5)
    how = {"reshape": False, "order": 1}
    expected = ndimage.rotate(NOISE, -degrees, mode="grid-constant", **how)
    np.testing.assert_allclose(turned(NOISE, degrees), expected, atol=2e-5)
    for image in (np.pad(NOISE, 1), digits.drawn(4, 28)):
        expected = ndimage.rotate(image, -degrees, mode="constant", **how)
        found = turned(image, degrees)
        np.testing.assert_allclose(found, expected, atol=2e-5)
        assert float(found.min()) >= 0 and float(found.max()) <= 1 + 1e-6


def test_turning_is_counter_clockwise_with_the_origin_at_the_lower_left():
    right = np.zeros((9, 9), np.float32)
    right[4, 7] = 1  # image[y, x]
    for degrees, (y, x) in ((90, (7, 4)), (180, (4, 1)), (270, (1, 4)), (360, (4, 7))):
        found = np.asarray(turned(right, float(degrees)))
        np.testing.assert_allclose(found[y, x], 1, atol=1e-5)
        np.testing.assert_allclose(found.sum(), 1, atol=1e-5)


@pytest.mark.parametrize("digit", [0, 4, 8])
def test_a_turned_digit_is_not_cut(digit):
    upright = digits.drawn(digit, 16)
    for degrees in np.arange(0, 360, 15.0):
        image = np.asarray(turned(upright, degrees))
        assert image.sum() == pytest.approx(upright.sum(), rel=0.03)


@pytest.mark.parametrize("degrees", [12.3, 161.0, 299.5])
def test_the_derivative_in_the_angle_is_that_of_small_steps(degrees):
    derivative = jax.jacfwd(lambda angle: rotation.turned(NOISE, angle))(degrees)
    apart = 1e-5  # in float64, short of the kinks at pixels
    expected = (by_hand(NOISE, degrees + apart) - by_hand(NOISE, degrees - apart)) / (2 * apart)
    np.testing.assert_allclose(derivative, expected, atol=1e-4)
    assert np.abs(expected).max() > 0.01
    backwards = jax.jacrev(lambda angle: rotation.turned(NOISE, angle))(degrees)
    np.testing.assert_allclose(backwards, derivative, atol=1e-6)


# --- codes and examples ----------------------------------------------------------------------


def test_codes_are_their_definitions():
    for degrees in (0.0, 100.0, 359.0):
        turn = np.deg2rad(degrees)
        found = rotation.encode_angle(jnp.float32(degrees), AngleCodeConfig())
        np.testing.assert_allclose(found, [np.cos(turn), np.sin(turn)], atol=1e-6)
        found = rotation.encode_angle(jnp.float32(degrees), AngleCodeConfig("angle"))
        np.testing.assert_allclose(found, [degrees / 180 - 1], atol=1e-6)
        config = AngleCodeConfig("bump", units=8, width=30.0)
        found = rotation.encode_angle(jnp.float32(degrees), config)
        gaps = [abs(45.0 * unit - degrees) for unit in range(8)]
        expected = [np.exp(-(min(gap, 360 - gap) ** 2) / (2 * 30**2)) for gap in gaps]
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["cos_sin", "angle", "bump"])
def test_codes_repeat_after_a_turn_and_have_a_derivative(name):
    code = lambda degrees: rotation.encode_angle(degrees, AngleCodeConfig(name))
    at = jnp.float32(200.5)
    np.testing.assert_allclose(code(at + 360), code(at), atol=1e-4)
    found = jax.jacfwd(code)(at)
    expected = (np.asarray(code(at + 0.5)) - np.asarray(code(at - 0.5))).astype(np.float64)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert np.abs(found).max() > 1e-3


@pytest.mark.parametrize(("name", "length"), [("cos_sin", 2), ("angle", 1), ("bump", 36)])
def test_examples_of_one_object_and_of_several(name, length):
    code = AngleCodeConfig(name)
    one, two = replace(ONE, code=code).make(), replace(TWO, code=code).make()
    assert one.parts == (length,) and two.parts == (length, 2)
    assert tasks.sizes(one) == (24,) and tasks.sizes(two) == (24, 2)
    assert [factor.name for factor in two.factors] == ["angle", "object"]
    assert two.factors[0].period == 360 and not two.factors[1].real
    points = tasks.points(two)
    np.testing.assert_allclose(points[[0, 1, 24]], [(0, 4), (15, 4), (0, 7)])
    found = jax.vmap(two.example, (None, 0))(KEY, jnp.asarray(points))
    chex.assert_shape(found.input, (48, length + 2))
    for (angle, digit), given, image in zip(points, *map(np.asarray, found), strict=True):
        own = rotation.encode_angle(jnp.float32(angle), code)
        np.testing.assert_allclose(given, [*own, digit == 4, digit == 7], atol=1e-6)
        np.testing.assert_allclose(image, turned(digits.drawn(int(digit), 16), angle), atol=1e-5)
    alone = one.example(KEY, jnp.array([30.0]))
    np.testing.assert_allclose(alone.input, found.input[2, :length], atol=1e-6)
    np.testing.assert_allclose(alone.target, found.target[2], atol=1e-6)


def test_objects_are_in_ascending_order():
    task = replace(TWO, objects=(7, 4)).make()
    np.testing.assert_array_equal(task.factors[1].values, [4, 7])
    np.testing.assert_array_equal(task.example(KEY, jnp.array([0.0, 7.0])).input[2:], [0, 1])


def test_an_example_is_differentiable_in_the_angle_alone():
    task = TWO.make()
    assert task.differentiable and [factor.real for factor in task.factors] == [True, False]
    image = lambda angle: task.example(KEY, jnp.stack([angle, jnp.float32(7)])).target
    derivative = jax.jacfwd(image)(jnp.float32(33.3))
    steps = (image(jnp.float32(33.35)) - image(jnp.float32(33.25))) / 0.1
    np.testing.assert_allclose(derivative, steps, atol=5e-3)
    assert np.abs(derivative).max() > 0.02


def test_images_of_mnist_stand_upright(tmp_path):
    test_idx.write(tmp_path)
    path = str(tmp_path)
    of = Rotation(objects=(5, 4), angles=12, samples=12, mnist_path=path, gap=GapConfig(of=(4,)))
    found = images_at(of.make(), [(0.0, 4.0), (0.0, 5.0)])
    for image, index in zip(found, (2, 0), strict=True):  # the first of each in the file
        np.testing.assert_allclose(image, test_idx.IMAGES[index][::-1] / 255.0, atol=1e-5)
    with pytest.raises(ConfigError, match="config.task.mnist_path=.*has no example of"):
        replace(of, objects=(4, 6)).make()
    with pytest.raises(ConfigError, match="config.task.side=16: images of .* must be 28"):
        Config(task=replace(of, side=16))


def test_the_loss_is_squared_plus_absolute_error():
    task = replace(ONE, l1=0.3).make()
    output, target = np.random.default_rng(0).normal(size=(2, 16, 16)).astype(np.float32)
    expected = np.mean((output - target) ** 2) + 0.3 * np.mean(np.abs(output - target))
    assert float(task.loss(output, target)) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(AssertionError):
        task.loss(output[0], target)


# --- what is held out ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "rule"),
    [
        (GapConfig(), lambda angle, digit: 160 <= angle < 200),
        (GapConfig(low=165, high=210), lambda angle, digit: 165 <= angle < 210),
        (GapConfig(of=(7,)), lambda angle, digit: 160 <= angle < 200 and digit == 7),
        (
            GapConfig(low=330, high=390, of=(4, 7)),
            lambda angle, digit: digit != 9 and (angle >= 330 or angle < 30),
        ),
        (GapConfig(region="none"), lambda angle, digit: False),
    ],
)
def test_gaps_against_a_loop(gap, rule):
    objects = (4, 7, 9) if gap.of else (4,)
    task = replace(ONE, objects=objects, gap=gap).make()
    points = tasks.points(task)
    expected = [rule(point[0], point[-1]) for point in points]
    held_out = task.held_out
    np.testing.assert_array_equal(held_out(points), expected)
    np.testing.assert_array_equal(jax.jit(held_out)(jnp.asarray(points)), expected)
    turn = np.zeros(len(task.factors), np.float32)
    turn[0] = 360
    np.testing.assert_array_equal(held_out(points + turn), expected)
    np.testing.assert_array_equal(held_out(points.reshape(2, -1, len(turn))).ravel(), expected)
    expected = [rule(point[0] + 7.4, point[-1]) for point in points]  # between the cells
    np.testing.assert_array_equal(held_out(points + turn * np.float32(7.4 / 360)), expected)
    assert not np.asarray(held_out(points * np.nan)).any()


def test_random_angles_have_their_share_and_belong_to_the_nearest_cell():
    gap = GapConfig(region="random", share=0.3, seed=5, of=(7,))
    task = replace(TWO, gap=gap).make()
    points = tasks.points(task)
    held_out = task.held_out(points)
    assert held_out.sum() == round(0.3 * 24) and not held_out[:24].any()
    chosen = np.random.default_rng(5).permutation(np.arange(24, 48))[: held_out.sum()]
    np.testing.assert_array_equal(np.flatnonzero(held_out), np.sort(chosen))
    np.testing.assert_array_equal(jax.jit(task.held_out)(jnp.asarray(points)), held_out)
    for apart in (-7.4, 7.4, 360.0, -360.0):
        moved = points + np.float32([apart, 0])
        np.testing.assert_array_equal(task.held_out(moved), held_out)
        np.testing.assert_array_equal(task.held_out(jnp.asarray(moved)), held_out)
    other = replace(TWO, gap=replace(gap, seed=6)).make().held_out(points)
    assert not np.array_equal(other, held_out)


def test_training_shows_889_of_1000_angles():
    task = Rotation().make()
    table = task.dataset(KEY)
    assert task.examples == int(table.count) == len(table.points) == 889
    every = np.arange(1000) * 0.36
    expected = every[(every < 160) | (every >= 200)]
    np.testing.assert_allclose(np.asarray(table.points)[:, 0], expected, rtol=1e-6)
    np.testing.assert_array_equal(table.points, task.dataset(jax.random.key(9)).points)
    assert task.units == {"cell": 360}


def test_training_shows_all_objects():
    task = replace(TWO, samples=48).make()
    points = np.asarray(task.dataset(KEY).points)
    np.testing.assert_array_equal(np.unique(points[:, 1], return_counts=True)[1], [43, 48])
    assert not task.held_out(points).any()
    batch, counts = task.next_batch(KEY, 0, task.dataset(KEY), 8)
    assert counts.all() and isinstance(task.dataset(KEY), sampling.Table)
    assert all((np.abs(points - point).max(axis=1) == 0).any() for point in np.asarray(batch))


def test_gaps_differ_within_one_program():
    """So nothing but the points may depend on them."""
    first, second = TWO.make(), replace(TWO, gap=GapConfig(low=20, high=60, of=(7,))).make()
    point = jnp.array([170.0, 4.0])
    chex.assert_trees_all_equal(first.example(KEY, point), second.example(KEY, point))
    signal = jnp.asarray(NOISE[:8, :8].repeat(2, 0).repeat(2, 1))
    chex.assert_trees_all_equal(*(t.scores(signal, signal, point) for t in (first, second)))


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ({"objects": ()}, r"config.task.objects=\(\): must be one or more different digits"),
        ({"objects": (4, 4)}, "must be one or more different digits from 0 to 9"),
        ({"objects": (10,)}, "must be one or more different digits from 0 to 9"),
        ({"objects": ("4",)}, "must be one or more different digits from 0 to 9"),
        ({"gap": GapConfig(of=(7,))}, r"config.task.gap.of=\(7,\): must name some of"),
        ({"gap": GapConfig(low=200, high=160)}, "config.task.gap.high=160: must be greater than"),
        ({"gap": GapConfig(low=10, high=370)}, "less than once round from it, 370"),
        ({"gap": GapConfig(low=161, high=164)}, "config.task.gap: .*holds out none of .*angles=24"),
        ({"gap": GapConfig("random", share=0.0)}, "region='random', share=0.0, .*holds out none"),
        ({"gap": GapConfig("random", share=1.0)}, "holds out all of config.task.angles=24 angles"),
        ({"gap": GapConfig(low=352, high=711)}, "holds out all of config.task.angles=24 angles"),
        (
            {"gap": GapConfig(low=350, high=550), "samples": 1},
            "all of config.task.samples=1 angles",
        ),
        ({"objects": (4, 7)}, "no digit is shown at 3 of .*the first of which is 165; "),
        (
            {"objects": (4, 7), "gap": GapConfig("random", share=0.8)},
            "config.task.gap: region='random', share=0.8, .*no digit is shown at",
        ),
    ],
)
def test_tasks_that_cannot_be(of, message):
    with pytest.raises(ConfigError, match=message) as caught:
        replace(ONE, **of).make()
    assert "\n" not in str(caught.value) and str(caught.value).startswith("config.task.")


def test_settings_that_contradict_each_other_fail_with_the_config():
    with pytest.raises(ConfigError, match="config.task.gap.of"):
        Config(task=replace(ONE, gap=GapConfig(of=(7,))))


def scores(task, signal, point):
    point = jnp.asarray(point, jnp.float32)
    found = jax.jit(task.scores)(signal, task.example(KEY, point).target, point)
    return {name: np.asarray(value).item() for name, value in found.items()}


@pytest.mark.parametrize("of", [ONE, TWO, Rotation(side=16, angles=600, samples=60, gap=GapConfig(
    of=(4,)), objects=(4, 5, 7))])  # fmt: skip
def test_the_truth_is_right_at_every_cell_and_between(of):
    task = of.make()
    points = tasks.points(task)[:: max(1, of.angles // 24)]
    points = np.concatenate([points, points + np.float32([3.3, 0][: len(points[0])])])
    truths = jnp.asarray(images_at(task, points))
    found = jax.jit(jax.vmap(task.scores))(truths, truths, jnp.asarray(points))
    assert all(np.all(found[name]) for name in found if name.endswith("accuracy"))
    np.testing.assert_array_equal(found["mse"], 0)
    blank = np.mean(np.square(truths, dtype=np.float64), axis=(1, 2))
    np.testing.assert_allclose(found["blank_mse"], blank, rtol=1e-5)


def test_another_angle_or_object_is_wrong():
    task = replace(TWO, angle_tolerance=15.0).make()
    turn = lambda digit, angle: turned(digits.drawn(digit, 16), float(angle))
    for digit, angle in ((7, 90), (7, 105), (7, 75), (7, 120), (4, 90), (7, 270)):
        right = digit == 7 and abs(angle - 90) <= 15
        found = scores(task, turn(digit, angle), (90, 7))
        assert found["angle_accuracy"] is right, (digit, angle)
        error = np.mean(np.square(np.asarray(turn(digit, angle)) - turn(7, 90), dtype=np.float64))
        assert found["mse"] == pytest.approx(error, rel=1e-4, abs=1e-9)
        assert found["image_accuracy"] is bool(error <= 0.25 * found["blank_mse"])
        assert found["exact_accuracy"] is (right and found["image_accuracy"])
    assert scores(task, turn(7, 345), (0, 7))["angle_accuracy"]  # circular


def test_angle_accuracy_is_the_nearest_of_all_true_images():
    """By a loop in float64, of random mixtures of images."""
    of = replace(TWO, angle_tolerance=20.0)
    task, rng = of.make(), np.random.default_rng(2)
    points = tasks.points(task)
    truths = images_at(task, points).astype(np.float64)
    hits = []
    for _ in range(40):
        asked, other = rng.integers(0, 48, 2)
        share = rng.uniform(0.2, 0.8)
        signal = share * truths[asked] + (1 - share) * truths[other]
        signal = (signal + rng.normal(0, 0.1, (16, 16))).astype(np.float32)
        nearest = points[np.argmin([np.sum((signal - truth) ** 2) for truth in truths])]
        apart = abs(nearest[0] - points[asked][0])
        right = min(apart, 360 - apart) <= 20 and nearest[1] == points[asked][1]
        assert scores(task, signal, points[asked])["angle_accuracy"] is bool(right)
        hits.append(right)
    assert 5 < sum(hits) < 35


def test_the_bank_has_the_images_of_the_cells_and_is_never_large():
    of = replace(TWO, gap=GapConfig(region="none"))
    found = rotation.bank(of, rotation.pictures(of))
    expected = images_at(of.make(), tasks.points(of.make()))
    np.testing.assert_allclose(found.images.reshape(48, 16, 16), expected, atol=1e-5)
    np.testing.assert_allclose(np.stack([found.angles, found.objects], 1), tasks.points(of.make()))
    of = replace(of, angles=1000)
    found = rotation.bank(of, rotation.pictures(of))
    assert found.images.shape == (2 * 334, 256)
    np.testing.assert_allclose(found.angles[:3], [0, 1.08, 2.16], rtol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_signals_that_are_not_finite_are_wrong(value):
    task = ONE.make()
    signal = task.example(KEY, jnp.array([90.0])).target.at[3, 3].set(value)
    found = scores(task, signal, [90.0])
    assert not any(found[name] for name in found if name.endswith("accuracy"))


def test_a_blank_image_is_wrong():
    task = ONE.make()
    for angle in (15.0, 90.0):
        found = scores(task, jnp.zeros((16, 16)), [angle])
        assert not found["image_accuracy"] and not found["exact_accuracy"]
        # two sums over the same pixels, which a compiler may order differently
        np.testing.assert_allclose(found["mse"], found["blank_mse"], rtol=1e-6)


# --- trivial predictors ----------------------------------------------------------------------


def asked_of(task, points):
    truths = jnp.asarray(images_at(task, points))
    held_out = np.asarray(task.held_out(points))
    return Asked(points, None, truths, truths, held_out)


def test_the_edges_of_a_gap_are_mixed_by_distance():
    """With cells 15 degrees apart the gap holds out 165, 180 and 195; its edges are 150 and 210."""
    task = replace(TWO, gap=GapConfig(low=155, high=210, of=(4,))).make()
    points = np.float32([(165, 4), (180, 4), (195, 4), (180, 7), (172, 4), (150, 4), (209, 4)])
    asked = asked_of(task, points)
    found = np.asarray(jax.jit(task.baselines["edge_mixture"])(asked))
    before, after = (np.asarray(turned(digits.drawn(4, 16), d)) for d in (150.0, 210.0))
    for index, angle in ((0, 165), (1, 180), (2, 195), (4, 172), (6, 209)):
        share = (angle - 150) / 60
        expected = (1 - share) * before + share * after
        np.testing.assert_allclose(found[index], expected, atol=1e-5)
    for index in (3, 5):  # seen
        np.testing.assert_array_equal(found[index], asked.truths[index])
    assert np.abs(found[1] - asked.truths[1]).max() > 0.3


def test_mixtures_of_random_cells_against_a_loop():
    of = replace(TWO, gap=GapConfig("random", share=0.5, seed=1, of=(4,)))
    task = of.make()
    points = tasks.points(task)
    truths, held_out = images_at(task, points), np.asarray(task.held_out(points))
    found = task.baselines["edge_mixture"](asked_of(task, points))
    assert held_out[:24].sum() == 12 and np.isfinite(found).all()
    for index, out in enumerate(held_out):
        down = up = 0
        while held_out[(index - down) % 24] and out:
            down += 1
        while held_out[(index + up) % 24] and out:
            up += 1
        share = down / (down + up) if out else 0
        expected = (1 - share) * truths[(index - down) % 24] + share * truths[(index + up) % 24]
        np.testing.assert_allclose(found[index], expected if out else truths[index], atol=1e-5)


def test_a_gap_across_0_is_mixed_round_the_circle():
    task = replace(ONE, gap=GapConfig(low=340, high=375)).make()
    points = np.float32([[345], [0], [15]])
    found = task.baselines["edge_mixture"](asked_of(task, points))
    before, after = (np.asarray(turned(digits.drawn(4, 16), d)) for d in (330.0, 15.0))
    np.testing.assert_allclose(found[0], before * 2 / 3 + after / 3, atol=1e-5)
    np.testing.assert_allclose(found[1], before / 3 + after * 2 / 3, atol=1e-5)
    np.testing.assert_allclose(found[2], after, atol=1e-5)


def test_an_object_without_a_seen_cell_is_blank():
    below, above = rotation._seen_on_both_sides(
        np.array([[False] * 4, [False, True, False, False]])
    )
    np.testing.assert_array_equal(below, [[-1] * 4, [1] * 4])
    np.testing.assert_array_equal(above, below)
    nothing = replace(ONE, angles=4, gap=GapConfig(low=0.0, high=359.0))
    assert rotation.seen(nothing, 4).sum() == 0
    asked = Asked(np.float32([[90]]), None, jnp.ones((1, 16, 16)), None, np.array([True]))
    found = rotation.edge_mixture(asked, nothing, rotation.pictures(nothing))
    np.testing.assert_array_equal(found, 0)


# --- runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [ONE, TWO], ids=["one object", "two objects"])
def test_a_run_from_training_to_its_verdict(of, tmp_path):
    config = Config(
        task=replace(of, gap=replace(of.gap, low=150)),
        model=MLP(depth=1, width=16),
        training=TrainingConfig(steps=20, evaluate_every=10, seeds=(0,)),
    )
    mean = experiment.train(config, tmp_path / "run", progress=False)["mean"]
    assert mean["id.edge_mixture_mse"]["value"] == 0
    assert 0 < mean["ood.edge_mixture_mse"]["value"] < mean["ood.blank_mse"]["value"]
    assert mean["ood.nearest_seen_mse"]["value"] > 0
    found = measure.measure_directory(tmp_path / "run", progress=False)
    assert found.factors == ("angle", "object")[: len(found.sizes)]
    for name in ("volume.log10_ratio", "probe.id_accuracy", "spectrum.energy_rank"):
        assert np.isfinite(found.numbers[name]).all(), name
    assert np.isnan(found.numbers["probe.id_r2"]).all()  # no line fits an angle
    assert found.maps["volume"].shape == (1, 3, *found.sizes[::-1])
    (row,) = judge_run.judge_directory(tmp_path / "run")
    assert row["statement"].endswith("composes what was held out")
    cells = results.load(tmp_path / "run").cells
    assert cells.held_out.sum() == 4 and set(cells.scores) >= {"mse", "angle_accuracy"}


def test_other_tasks_wait_for_no_font():
    code = "import sys, compgen_jax.tasks.rotation; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
