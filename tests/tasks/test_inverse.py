"""The bump task reversed, against loops over its points; and mean answers."""

from dataclasses import replace

import chex
import jax
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError
from compgen_jax.tasks import baselines
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig, StripesConfig
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.tasks.inverse import Inverse, mean_answer
from tests.tasks.examples import DONUT, KEY, SIZE, examples_at

N = 8
CODES = Inverse(grid=N, support=DONUT, size=SIZE)
STRIPES = replace(CODES, size=replace(SIZE, values=0), stripes=StripesConfig(1))
RAMP = CodeConfig(name="ramp")


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
        np.testing.assert_allclose(given, expected, atol=1e-6)
        parts = [np.exp(-((i - c) ** 2) / 2) for c in (x, y)]
        parts.append(np.exp(-((np.arange(3) - (size - 0.8) / 0.5) ** 2) / 2))
        expected = np.concatenate(parts) if answer == "code" else (x, y, size)
        np.testing.assert_allclose(asked, expected, atol=1e-6)
        # neither polarity nor softmax is between the model's answer and what is scored
        np.testing.assert_array_equal(task.prediction(asked), asked)
    forward = Bump(grid=N, support=DONUT, size=SIZE).make()
    chex.assert_trees_all_equal(task.dataset(KEY), forward.dataset(KEY))
    assert (task.units, task.factors[2].name) == (forward.units, "size") and task.parts == ()


def test_a_stripe_is_answered_by_the_code_that_has_no_missing_part():
    found = jax.jit(STRIPES.make().example)(KEY, np.float32([3, np.nan]))
    profile = np.exp(-((np.arange(N) - 3) ** 2) / 2)
    np.testing.assert_allclose(found.input, 1 - np.tile(profile, (N, 1)), atol=1e-6)
    np.testing.assert_allclose(found.target, [*profile, *np.zeros(N)], atol=1e-6)


def off_by(signal, truth, parts):
    """Distances of the largest units, part by part, in a loop."""
    distances, start = [], 0
    for length in parts:
        answer, true = (list(each[start : start + length]) for each in (signal, truth))
        distances.append(abs(answer.index(max(answer)) - true.index(max(true))))
        start += length
    return distances


def test_scores_of_codes_against_a_loop():
    """Answers near the true code of a neighbouring cell, of all sorts of distance."""
    task, rng = CODES.make(), np.random.default_rng(0)
    cells = tasks.points(task)
    codes = examples_at(task, cells).target
    chosen = rng.integers(len(cells), size=40)
    steps = rng.integers(-1, 2, (40, 3)) * [1, 1, 0.5]
    moved = np.clip(cells[chosen] + steps, [0, 0, 0.8], [N - 1, N - 1, 1.8])
    moved[:5] = cells[rng.integers(len(cells), size=5)]
    noise = np.float32(rng.normal(size=(40, 2 * N + 3)) * 0.02)
    signals = examples_at(task, moved).target + noise
    found = jax.jit(jax.vmap(task.scores))(signals, codes[chosen], cells[chosen])
    off = np.array([off_by(s, t, (N, N, 3)) for s, t in zip(signals, codes[chosen], strict=True)])
    np.testing.assert_array_equal(found["exact_accuracy"], (off == 0).all(axis=1))
    np.testing.assert_array_equal(found["position_accuracy"], (off <= 1).all(axis=1))
    assert {(off == 0).all(axis=1).any(), (off > 1).any(), (off == 1).any()} == {True}
    errors = np.mean((np.float64(signals) - codes[chosen]) ** 2, axis=1)
    np.testing.assert_allclose(found["mse"], errors, rtol=1e-5)


@pytest.mark.parametrize(
    ("error", "exact", "near"),
    [
        ((0.5, -0.5, 0.24), True, True),  # a cell of the size is half a pixel
        ((0.51, 0, 0), False, True),
        ((0, 0, 0.26), False, True),
        ((0, 1, 0), False, True),
        ((0, -1.01, 0), False, False),
        ((0, 0, -0.51), False, False),
    ],
)
def test_scores_of_coordinates_are_within_half_a_cell_or_one(error, exact, near):
    task, truth = replace(CODES, answer="coordinates").make(), np.float32([4, 2, 1.0])
    found = jax.jit(task.scores)(truth + np.float32(error), truth, truth)
    assert (bool(found["exact_accuracy"]), bool(found["position_accuracy"])) == (exact, near)


@pytest.mark.parametrize("code", ["bump", "onehot"])
def test_the_image_has_a_derivative_in_every_factor_whatever_the_code(code):
    """Closed forms: (i - c) / sigma^2, and r^2 / sigma^3 for the size."""
    task = replace(CODES, code=CodeConfig(name=code)).make()
    assert task.differentiable
    x, y, size = point = np.float32([2.25, 5.5, 1.1])
    jacobian = jax.jit(jax.jacfwd(lambda point: task.example(KEY, point).input))(point)
    row, column = np.mgrid[:N, :N]
    square = (row - y) ** 2 + (column - x) ** 2
    slopes = [(column - x) / size**2, (row - y) / size**2, square / size**3]
    expected = -np.stack([np.exp(-square / (2 * size**2)) * slope for slope in slopes], axis=-1)
    np.testing.assert_allclose(jacobian, expected, atol=1e-5)


def test_mean_answers_against_loops_over_the_regions():
    truths = np.float32(np.random.default_rng(0).normal(size=(9, 4)))
    held_out = np.random.default_rng(1).permutation(9) < 3
    answer = jax.jit(lambda held: mean_answer(baselines.Asked(None, None, truths, None, held)))
    for found, here in zip(answer(held_out), held_out, strict=True):
        region = [truth for truth, there in zip(truths, held_out, strict=True) if there == here]
        np.testing.assert_allclose(found, np.mean(region, axis=0), atol=1e-6)
    np.testing.assert_allclose(answer(np.zeros(9, bool))[4], truths.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (replace(STRIPES, answer="coordinates"), "answer='coordinates': a stripe has no value of"),
        (replace(CODES, code=RAMP), "code.name='ramp': has no unit for each value to decode"),
        (replace(STRIPES, code=CodeConfig(missing="off_canvas")), "code.name='bump': has no unit"),
        (replace(CODES, answer="image"), "answer='image': must be one of code"),
        (Inverse(bumps=2), "bumps=2: an image does not tell which of its bumps is the first"),
    ],
)
def test_answers_that_cannot_be_given_are_refused(of, message):
    with pytest.raises(ConfigError, match=f"config.task.{message}") as error:
        Config(task=of).task.make()
    assert "\n" not in str(error.value)
    near = replace(CODES, answer="coordinates", code=RAMP)
    assert tasks.shapes(Config(task=near).task.make())[1].shape == (3,)
