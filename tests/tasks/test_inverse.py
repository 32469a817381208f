"""The bump task reversed, against loops over its points."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import ImageConfig, SizeConfig, StripesConfig
from compgen_jax.tasks.encodings import CodeConfig
from tests.tasks.examples import KEY, TASKS, examples_at, scores_at

N = 8
CODES = replace(TASKS["coordinates"], answer="code")
STRIPES = replace(CODES, size=SizeConfig(), stripes=StripesConfig(1))


@pytest.mark.parametrize(("answer", "polarity"), [("code", "inverted"), ("coordinates", "upright")])
def test_the_image_is_given_and_the_point_asked_for(answer, polarity):
    """Image, row y and column x, and answer in float64. All else is the bump task's."""
    of = replace(CODES, answer=answer, image=ImageConfig(sigma=1.2, polarity=polarity))
    task, points = of.make(), np.float32([[2, 5, 0.8], [6.25, 1.5, 1.3], [0, 7, 1.8]])
    found, i = examples_at(task, points), np.arange(N)
    for given, asked, (x, y, size) in zip(*found, np.float64(points), strict=True):
        row, column = (np.exp(-((i - c) ** 2) / (2 * size**2)) for c in (y, x))
        image = np.outer(row, column)
        expected = 1 - image if polarity == "inverted" else image
        assert_allclose(given, expected, atol=1e-6)
        parts = [np.exp(-((i - c) ** 2) / 2) for c in (x, y)]
        parts.append(np.exp(-((np.arange(3) - (size - 0.8) / 0.5) ** 2) / 2))
        expected = np.concatenate(parts) if answer == "code" else (x, y, size)
        assert_allclose(asked, expected, atol=1e-6)


def test_a_stripe_is_answered_by_the_code_that_has_no_missing_part():
    found = jax.jit(STRIPES.make().example)(KEY, np.float32([3, np.nan]))
    profile = np.exp(-((np.arange(N) - 3) ** 2) / 2)
    assert_allclose(found.input, 1 - np.tile(profile, (N, 1)), atol=1e-6)
    assert_allclose(found.target, [*profile, *np.zeros(N)], atol=1e-6)


def test_scores_of_codes_against_a_loop():
    """Answers near the true code of a neighbouring cell, of all sorts of distance."""
    task, rng = CODES.make(), np.random.default_rng(0)
    cells = tasks.points(task)
    chosen = cells[rng.integers(len(cells), size=40)]
    steps = rng.integers(-1, 2, (40, 3)) * [1, 1, 0.5]
    moved = np.clip(chosen + steps, [0, 0, 0.8], [N - 1, N - 1, 1.8])
    moved[:5] = cells[rng.integers(len(cells), size=5)]
    truths = examples_at(task, chosen).target
    signals = examples_at(task, moved).target + np.float32(rng.normal(size=truths.shape) * 0.02)
    found = scores_at(task, signals, truths, chosen)
    places = lambda codes: [part.argmax(axis=1) for part in np.split(codes, [N, 2 * N], axis=1)]
    off = np.abs(np.subtract(places(signals), places(truths))).max(axis=0)
    assert_array_equal(found["exact_accuracy"], off == 0)
    assert_array_equal(found["position_accuracy"], off <= 1)
    assert_allclose(found["mse"], np.square(signals - truths).mean(axis=1), rtol=1e-5)
    assert 0 < found["exact_accuracy"].sum() < found["position_accuracy"].sum() < 40


def test_scores_of_coordinates_are_within_half_a_cell_or_one():
    """A cell of the size is half a pixel."""
    task, truth = replace(CODES, answer="coordinates").make(), np.float32([4, 2, 1.0])
    half = np.float32([(0.5, -0.5, 0.24), (0.51, 0, 0), (0, 0, 0.26), (0, -1.01, 0), (0, 0, -0.51)])
    found = jax.vmap(lambda error: task.scores(truth + error, truth, truth))(half)
    assert found["exact_accuracy"].tolist() == [True, False, False, False, False]
    assert found["position_accuracy"].tolist() == [True, True, True, False, False]


def test_the_image_has_a_derivative_in_every_factor_whatever_the_code():
    """Closed forms: (i - c) / sigma^2, and r^2 / sigma^3 for the size."""
    task = replace(CODES, code=CodeConfig("onehot")).make()
    assert task.differentiable
    x, y, size = point = np.float32([2.25, 5.5, 1.1])
    jacobian = jax.jit(jax.jacfwd(lambda point: task.example(KEY, point).input))(point)
    row, column = np.mgrid[:N, :N]
    square = (row - y) ** 2 + (column - x) ** 2
    slopes = [(column - x) / size**2, (row - y) / size**2, square / size**3]
    expected = -np.stack([np.exp(-square / (2 * size**2)) * slope for slope in slopes], axis=-1)
    assert_allclose(jacobian, expected, atol=1e-5)
