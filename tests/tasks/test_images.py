"""Scores of one image against NumPy, and what counts as rendered."""

import chex
import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax.tasks import images
from compgen_jax.tasks.bump import ImageConfig, bump


def test_scores_are_their_definitions():
    rng = np.random.default_rng(0)
    truths, noise = rng.normal(size=(2, 60, 5, 6))
    signals = truths + noise * rng.uniform(0, 0.8, (60, 1, 1))
    row, column = np.divmod(signals.reshape(60, -1).argmax(axis=1), 6)
    off = rng.uniform(-1.3, 1.3, (60, 2))  # from the brightest pixel
    arrays = signals, truths, np.stack([column, row], axis=1) + off
    found = jax.jit(jax.vmap(images.scores))(*arrays)
    away = np.abs(off).max(axis=1)
    error, blank = (np.mean(x**2, axis=(1, 2)) for x in (signals - truths, truths))
    expected = {
        "mse": error,
        "blank_mse": blank,
        "exact_accuracy": away < 0.5,
        "position_accuracy": away <= 1,
        "image_accuracy": error <= 0.25 * blank,
    }
    chex.assert_trees_all_close(jax.device_get(found), expected, rtol=1e-4)
    assert 0 < found["exact_accuracy"].sum() < found["position_accuracy"].sum() < 60


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
