"""The bump task reversed, against loops over its points."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import SizeConfig, StripesConfig
from compgen_jax.tasks.encodings import CodeConfig
from tests.tasks.examples import KEY, TASKS, examples_at, scores_at
from tests.tasks.test_bump import N, by_hand

CODES = replace(TASKS["coordinates"], answer="code")
profile = lambda count, place: np.exp(-((np.arange(count) - place) ** 2) / 2)


@pytest.mark.parametrize("answer", ["code", "coordinates"])
def test_the_image_is_given_and_the_point_asked_for(answer):
    """In float64. All else is the bump task's."""
    points = np.float32([[2, 5, 0.8], [6.25, 1.5, 1.3], [0, 7, 1.8]])
    found = examples_at(replace(CODES, answer=answer).make(), points)
    for image, asked, (x, y, size) in zip(*found, np.float64(points), strict=True):
        assert_allclose(image, 1 - by_hand(x, y, size), atol=1e-6)
        code = [*profile(N, x), *profile(N, y), *profile(3, (size - 0.8) / 0.5)]
        assert_allclose(asked, code if answer == "code" else (x, y, size), atol=1e-6)


def test_a_stripe_is_answered_by_the_code_that_has_no_missing_part():
    task = replace(CODES, size=SizeConfig(), stripes=StripesConfig(1)).make()
    code = jax.jit(task.example)(KEY, np.float32([3, np.nan])).target
    assert_allclose(code, [*profile(N, 3), *np.zeros(N)], atol=1e-6)


def test_scores_of_codes_against_a_loop():
    """Answers near the true code of another cell, of all sorts of distance."""
    task, rng = CODES.make(), np.random.default_rng(0)
    cells = tasks.points(task)
    chosen, others = cells[rng.integers(len(cells), size=(2, 1000))]
    truths = examples_at(task, chosen).target
    signals = examples_at(task, others).target + np.float32(rng.normal(size=truths.shape) * 0.02)
    found = scores_at(task, signals, truths, chosen)
    places = lambda codes: [part.argmax(axis=1) for part in np.split(codes, [N, 2 * N], axis=1)]
    off = np.abs(np.subtract(places(signals), places(truths))).max(axis=0)
    assert_array_equal(found["exact_accuracy"], off == 0)
    assert_array_equal(found["position_accuracy"], off <= 1)
    assert_allclose(found["mse"], np.square(signals - truths).mean(axis=1), rtol=1e-5)
    assert 0 < found["exact_accuracy"].sum() < found["position_accuracy"].sum() < 200


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
    expected = -by_hand(x, y, size)[..., None] * np.stack(slopes, axis=-1)
    assert_allclose(jacobian, expected, atol=1e-5)
