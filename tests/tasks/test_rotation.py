"""Turned digits against SciPy and loops; digits of the font, and of files of MNIST."""

import gzip
from dataclasses import replace

import chex
import jax
import matplotlib
import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

from compgen_jax.settings import ConfigError
from compgen_jax.tasks import digits, rotation
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.baselines import Query
from compgen_jax.tasks.rotation import AngleCodeConfig, GapConfig, Rotation
from compgen_jax.tasks.task import Example
from tests.tasks.examples import KEY, examples_at, predicted, scores_at

ONE = Rotation(side=16, angles=24, samples=24)
TWO = replace(ONE, objects=(4, 7), gap=GapConfig(of=(4,)))

turned = jax.jit(rotation.turned)
encode_angle = jax.jit(rotation.encode_angle, static_argnums=1)


# --- turning ---------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [90.0, 37.5, 160.0, 283.1, -20.0, 725.0])
def test_turning_is_bilinear_and_equals_scipy(degrees):
    """Its row 0 is at the top."""
    image = np.random.default_rng(1).random((14, 14))
    expected = ndimage.rotate(image, -degrees, mode="grid-constant", reshape=False, order=1)
    assert_allclose(turned(image, degrees), expected, atol=2e-5)


# --- codes and examples ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (AngleCodeConfig(), lambda a: [np.cos(np.deg2rad(a)), np.sin(np.deg2rad(a))]),
        (
            AngleCodeConfig("bump", units=8, width=30.0),
            lambda a: np.exp(-(((45 * np.arange(8) - a + 180) % 360 - 180) ** 2) / 1800),
        ),
    ],
)
def test_codes_are_their_definitions_repeat_and_have_a_derivative(config, expected):
    code = lambda degrees: encode_angle(degrees, config)
    for degrees in (0.0, 100.0, 359.0, 460.0):
        assert_allclose(code(degrees), expected(degrees), atol=1e-6)
    slope = (np.float64(expected(200.6)) - expected(200.4)) / 0.2
    assert_allclose(jax.jacfwd(code)(200.5), slope, atol=1e-4)


def test_examples_of_one_object_and_of_several():
    one, two = ONE.make(), replace(TWO, objects=(7, 4)).make()  # objects come in ascending order
    assert two.factors[0].period == 360 and not two.factors[1].real
    codes, images = examples_at(two, tasks.points(two))
    for (angle, digit), code, image in zip(tasks.points(two), codes, images, strict=True):
        of_angle = encode_angle(angle, AngleCodeConfig())
        assert_allclose(code, [*of_angle, digit == 4, digit == 7], atol=1e-6)
        assert_allclose(image, turned(digits.drawn(int(digit), 16), angle), atol=1e-5)
    alone = jax.jit(one.example)(KEY, np.float32([30.0]))
    chex.assert_trees_all_close(alone, Example(codes[2, :2], images[2]), atol=1e-6)


@pytest.mark.parametrize("end", ["", ".gz"])
def test_images_of_mnist_stand_upright(tmp_path, end):
    of_files = replace(TWO, side=28, objects=(5, 4), mnist_path=write(tmp_path, end=end))
    found = examples_at(of_files.make(), [(0.0, 4.0), (0.0, 5.0)]).target
    for image, index in zip(found, (2, 0), strict=True):  # the first of each in the file
        assert_allclose(image, IMAGES[index][::-1] / 255.0, atol=1e-5)


def test_the_loss_is_squared_plus_absolute_error():
    task = replace(ONE, l1=0.3).make()
    off = np.random.default_rng(0).normal(size=(16, 16))
    expected = np.mean(off**2) + 0.3 * np.mean(abs(off))
    assert_allclose(task.loss(1 + off, np.ones((16, 16))), expected, rtol=1e-5)


# --- what is held out ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "rule"),
    [
        (GapConfig(low=165, high=210), lambda angle, digit: 165 <= angle < 210),
        (GapConfig(of=(7,)), lambda angle, digit: 160 <= angle < 200 and digit == 7),
        (GapConfig(low=330, high=390, of=(4, 7)), lambda a, o: o != 9 and (a >= 330 or a < 30)),
    ],
)
def test_gaps_against_a_loop(gap, rule):
    task = replace(ONE, objects=(4, 7, 9) if gap.of else (4,), gap=gap).make()
    points = tasks.points(task)
    for by in (0, 7.4, 360):  # also between the cells, and once round
        moved = points.copy()
        moved[:, 0] += by
        expected = [rule(point[0] % 360, point[-1]) for point in moved]
        assert_array_equal(task.held_out(moved), expected)


def test_random_angles_have_their_share_of_the_named_objects():
    task = replace(TWO, gap=GapConfig("random", share=0.3, seed=5, of=(7,))).make()
    chosen = np.random.default_rng(5).permutation(np.arange(24, 48))[: round(0.3 * 24)]
    held_out = task.held_out(tasks.points(task))
    assert_array_equal(np.flatnonzero(held_out), np.sort(chosen))


# --- scores ----------------------------------------------------------------------------------


def test_angle_accuracy_is_the_nearest_of_all_true_images():
    """By a loop in float64, of random mixtures of images."""
    task, rng = replace(TWO, angles=96).make(), np.random.default_rng(2)
    points = tasks.points(task)
    truths = examples_at(task, points).target.astype(np.float64)
    asked, other = rng.integers(0, 192, (2, 40))
    share = rng.uniform(0.2, 0.8, (40, 1, 1))
    signals = share * truths[asked] + (1 - share) * truths[other]
    signals = np.float32(signals + rng.normal(0, 0.1, signals.shape))
    found = scores_at(task, signals, np.float32(truths[asked]), points[asked])
    apart = np.square(signals[:, None] - truths).sum((2, 3))
    off = abs(points[apart.argmin(axis=1)] - points[asked])
    hits = (np.minimum(off[:, 0], 360 - off[:, 0]) <= 5) & (off[:, 1] == 0)
    assert_array_equal(found["angle_accuracy"], hits)
    assert 5 < hits.sum() < 35
    errors = np.mean((signals - truths[asked]) ** 2, axis=(1, 2))
    assert_allclose(found["mse"], errors, rtol=1e-4)
    assert_array_equal(found["image_accuracy"], errors <= 0.05 * found["blank_mse"])


# --- trivial predictors ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "edges", "angles"),
    [
        (155, 210, (150, 210), (165, 180, 195, 172, 209)),  # with cells 15 degrees apart
        (340, 375, (330, 375), (345, 360, 375)),
    ],
)
def test_the_edges_of_a_gap_are_mixed_by_distance(low, high, edges, angles):
    task = replace(TWO, gap=GapConfig("gap", low, high, (4,))).make()
    points = np.float32([(angle % 360, 4) for angle in angles] + [(180, 7), (135, 4)])
    truths, held_out = examples_at(task, points).target, np.asarray(task.held_out(points))
    asked = Query(points, None, truths, truths, held_out)
    found = predicted(task, "edge_mixture", asked)
    before, after = (np.asarray(turned(digits.drawn(4, 16), edge)) for edge in edges)
    for angle, image in zip(angles, found, strict=False):
        share = (angle - edges[0]) / (edges[1] - edges[0])
        assert_allclose(image, (1 - share) * before + share * after, atol=1e-5)
    assert_array_equal(found[-2:], truths[-2:])  # seen


@pytest.mark.parametrize("digit", range(10))
def test_a_digit_has_the_area_of_its_outline(digit):
    """Area by the shoelace formula: an outline and its holes go round in opposite directions."""
    font = FontProperties(fname=f"{matplotlib.get_data_path()}/{digits.FONT}")
    polygons = TextPath((0, 0), str(digit), size=1000, prop=font).to_polygons()
    corners = np.concatenate(polygons)
    middle = (corners.min(0) + corners.max(0)) / 2
    scale = 12.5 / np.hypot(*(corners - middle).T).max()
    area = sum(np.sum(p[:-1, 0] * p[1:, 1] - p[1:, 0] * p[:-1, 1]) / 2 for p in polygons)
    image = digits.drawn(digit, 28)
    assert image.sum(dtype=np.float64) == pytest.approx(abs(area) * scale**2, rel=0.01)
    assert image.max() == 1 and len(np.unique(image)) > 2  # antialiased
    for inked in np.nonzero(image):  # centred; its antialiased edges count
        assert abs(inked.min() + inked.max() - 27) <= 1


def test_row_0_is_the_bottom():
    """A 7 has its bar at the top, and its stem ends at the left."""
    low, high = np.split(digits.drawn(7, 28), 2)
    assert high.sum() > 1.3 * low.sum() and low[:, :14].sum() > 1.3 * low[:, 14:].sum()


# --- MNIST -----------------------------------------------------------------------------------

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 28, 28), np.uint8)


def write(directory, images=IMAGES, labels=(5, 0, 4, 5, 4), end="", cut=None):
    """Files of IDX, up to the byte `cut`; compressed if their names end in .gz. The magic number
    tells the bytes' type and how many axes there are."""
    for name, values in zip(digits.FILES, (images, np.uint8(labels)), strict=True):
        header = np.array([0x800 + values.ndim, *values.shape], ">u4")
        content = header.tobytes() + values.tobytes()
        whole = gzip.compress(content) if end else content
        (directory / f"{name}{end}").write_bytes(whole[:cut])
    return str(directory)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"images": IMAGES.ravel()}, "has magic number 0x00000801, not 0x00000803"),
        ({"cut": -1}, "cannot reshape array of size 3919"),
        ({"images": IMAGES[:, :5, :5]}, "images are .5, 5, 5.; must be .5, 28, 28."),
        ({"labels": (1, 2, 3, 5, 5)}, r"there is no example of \[4\]"),
        ({"end": ".gz", "cut": -900}, "ended before"),
        (None, "No such file or directory: .*train-images-idx3-ubyte"),
    ],
)
def test_wrong_files_are_refused(tmp_path, files, message):
    if files:
        write(tmp_path, **files)
    with pytest.raises(ConfigError, match=f"config.task.mnist_path={str(tmp_path)!r}: .*{message}"):
        digits.first_of_each(str(tmp_path), (4, 5))
