"""Scores of one image against NumPy."""

import jax
import numpy as np
import pytest

from compgen_jax.tasks import images

NAMES = {"mse", "exact_accuracy", "position_accuracy", "image_accuracy", "blank_mse"}


def by_hand(signal, truth, position, position_tolerance, image_tolerance):
    row, column = divmod(int(np.argmax(signal)), signal.shape[1])
    away = max(abs(column - position[0]), abs(row - position[1]))
    error = sum((signal - truth).ravel() ** 2) / signal.size
    blank = sum(truth.ravel() ** 2) / truth.size
    return {
        "mse": error,
        "blank_mse": blank,
        "exact_accuracy": away < 0.5,
        "position_accuracy": away <= position_tolerance,
        "image_accuracy": error <= image_tolerance * blank,
    }


@pytest.mark.parametrize("tolerances", [(1.0, 0.25), (0.0, 0.01), (2.5, 1.5)])
def test_scores_are_their_definitions(tolerances):
    rng = np.random.default_rng(0)
    score = jax.jit(images.scores, static_argnums=(3, 4))
    hits = dict.fromkeys(NAMES, 0)
    for _ in range(60):
        height, width = rng.integers(3, 7, 2)
        position = np.array([rng.integers(width), rng.integers(height)], np.float32)
        truth = np.zeros((height, width), np.float32)
        truth[int(position[1]), int(position[0])] = 1.0
        signal = truth + rng.normal(scale=rng.uniform(0, 0.8), size=truth.shape)
        signal = signal.astype(np.float32)
        found = score(signal, truth, position, *tolerances)
        expected = by_hand(signal, truth, position, *tolerances)
        assert set(found) == NAMES
        for name, value in expected.items():
            assert float(found[name]) == pytest.approx(float(value), rel=1e-4, abs=1e-7)
            hits[name] += bool(value)
    assert 0 < hits["exact_accuracy"] < 60


def test_a_real_position_is_met_by_its_nearest_pixel():
    signal = np.zeros((5, 6), np.float32)
    signal[3, 2] = 1.0  # (x, y) = (2, 3)
    assert images.brightest_pixel(signal).tolist() == [2, 3]
    score = lambda x, y: images.scores(signal, signal, np.array([x, y], np.float32), 1.0, 0.25)
    assert bool(score(2.4, 2.6)["exact_accuracy"]) and not bool(score(2.6, 3)["exact_accuracy"])
    assert bool(score(3, 2)["position_accuracy"]) and not bool(score(3.1, 3)["position_accuracy"])


def test_an_image_that_is_no_number_has_no_position():
    signal = np.full((4, 4), np.nan, np.float32)
    found = images.scores(signal, np.ones((4, 4), np.float32), np.zeros(2, np.float32), 9.0, 9.0)
    assert not any(bool(found[name]) for name in found if name.endswith("accuracy"))
