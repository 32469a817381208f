"""Scores of one image against NumPy, and what counts as rendered."""

import chex
import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax.tasks import images
from compgen_jax.tasks.bump import ImageConfig, bump


def test_scores_are_their_definitions():
    rng, count = np.random.default_rng(0), 60
    positions = rng.integers((6, 5), size=(count, 2))
    truths = np.zeros((count, 5, 6), np.float32)
    truths[np.arange(count), positions[:, 1], positions[:, 0]] = 1
    noise = rng.normal(size=truths.shape) * rng.uniform(0, 0.8, (count, 1, 1))
    signals = (truths + noise).astype(np.float32)
    score = jax.jit(jax.vmap(images.scores))
    positions = positions + rng.uniform(-0.7, 0.7, (count, 2))
    found = score(signals, truths, positions.astype(np.float32))
    row_column = np.divmod(signals.reshape(count, -1).argmax(axis=1), 6)
    away = np.abs(np.transpose(row_column[::-1]) - positions).max(axis=1)
    error, blank = np.mean((signals - truths) ** 2, axis=(1, 2)), np.mean(truths**2, axis=(1, 2))
    expected = {
        "mse": error,
        "blank_mse": blank,
        "exact_accuracy": away < 0.5,
        "position_accuracy": away <= 1,
        "image_accuracy": error <= 0.25 * blank,
    }
    chex.assert_trees_all_close(jax.device_get(found), expected, rtol=1e-4)
    assert 0 < found["exact_accuracy"].sum() < count


# --- rendered --------------------------------------------------------------------------------

N, SIGMA = 28, 2.0
IMAGE = ImageConfig(sigma=SIGMA)
TRUTH = np.asarray(bump(12.0, 15.0, N, IMAGE))
PLUS = bump(12.0, None, N, IMAGE) + bump(None, 15.0, N, IMAGE)
SEEN = np.asarray(bump(14.0, 15.0, N, IMAGE))  # a sigma away


def shifted(sigmas):
    return np.asarray(bump(12.0 + sigmas * SIGMA, 15.0, N, IMAGE))


PREDICTIONS = {
    True: [TRUTH, 0.6 * TRUTH - 7, shifted(0.45), shifted(-0.55)],  # of any level
    "as if seen": [shifted(0.55)],  # nearer to the seen image
    False: [0.45 * TRUTH, 2.1 * TRUTH, -TRUTH, PLUS, SEEN, 0 * TRUTH,
            np.where(TRUTH == TRUTH.max(), np.nan, TRUTH)],
}  # fmt: skip


@pytest.mark.parametrize("rendered", PREDICTIONS)
def test_rendered_is_its_definition(rendered):
    for prediction in map(np.asarray, PREDICTIONS[rendered]):
        assert images.rendered(prediction, TRUTH) == bool(rendered)
        assert images.rendered(prediction, TRUTH, SEEN) == (rendered is True)


def test_squared_correlation_is_numpys_where_it_is_positive():
    for prediction in map(np.asarray, (TRUTH, 0.6 * TRUTH - 7, shifted(1.5), -TRUTH, 0 * TRUTH)):
        r = np.corrcoef(prediction.ravel(), TRUTH.ravel())[0, 1] if np.ptp(prediction) else 0.0
        found = images.squared_correlation(prediction, TRUTH)
        assert_allclose(found, max(r, 0) ** 2, atol=1e-4)
