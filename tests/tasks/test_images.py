"""Scores of one image against NumPy, and what counts as rendered."""

import jax
import numpy as np
import pytest

from compgen_jax.tasks import images
from compgen_jax.tasks.bump import ImageConfig, bump, plus

NAMES = {"mse", "exact_accuracy", "position_accuracy", "image_accuracy", "blank_mse"}


@pytest.mark.parametrize("tolerances", [(1.0, 0.25), (2.5, 1.5)])
def test_scores_are_their_definitions(tolerances):
    rng, count = np.random.default_rng(0), 60
    positions = np.stack([rng.integers(6, size=count), rng.integers(5, size=count)], 1)
    truths = np.zeros((count, 5, 6), np.float32)
    truths[np.arange(count), positions[:, 1], positions[:, 0]] = 1
    noise = rng.normal(size=truths.shape) * rng.uniform(0, 0.8, (count, 1, 1))
    signals = (truths + noise).astype(np.float32)
    score = jax.jit(jax.vmap(lambda *each: images.scores(*each, *tolerances)))
    positions = positions + rng.uniform(-0.7, 0.7, (count, 2))
    found = score(signals, truths, positions.astype(np.float32))
    assert set(found) == NAMES
    for b in range(count):
        row, column = divmod(int(np.argmax(signals[b])), 6)
        away = max(abs(column - positions[b, 0]), abs(row - positions[b, 1]))
        error, blank = np.mean((signals[b] - truths[b]) ** 2), np.mean(truths[b] ** 2)
        assert float(found["mse"][b]) == pytest.approx(error, rel=1e-4)
        assert float(found["blank_mse"][b]) == pytest.approx(blank, rel=1e-4)
        assert found["exact_accuracy"][b] == (away < 0.5)
        assert found["position_accuracy"][b] == (away <= tolerances[0])
        assert found["image_accuracy"][b] == (error <= tolerances[1] * blank)
    assert 0 < found["exact_accuracy"].sum() < count


# --- rendered --------------------------------------------------------------------------------

N, SIGMA = 28, 2.0
IMAGE = ImageConfig(sigma=SIGMA)
TRUTH = np.asarray(bump(12.0, 15.0, N, IMAGE))
SEEN = np.asarray(bump(14.0, 15.0, N, IMAGE))  # a sigma away


def shifted(sigmas):
    return np.asarray(bump(12.0 + sigmas * SIGMA, 15.0, N, IMAGE))


def by_hand(prediction, truth, nearest):
    """The definition by NumPy's correlation coefficient and line fit, in float64."""
    p, t, n = (np.ravel(each).astype(np.float64) for each in (prediction, truth, nearest))
    if not np.isfinite(p).all() or np.ptp(p) < 1e-6:
        return False, False
    r, gain = np.corrcoef(p, t)[0, 1], np.polyfit(t, p, 1)[0]
    shown = bool(r > 0 and r**2 >= 0.75 and 0.5 <= gain <= 2)
    return shown, shown and bool(r > np.corrcoef(p, n)[0, 1])


@pytest.mark.parametrize(
    ("prediction", "shown", "held_out"),
    [
        (TRUTH, True, True),
        (0.6 * TRUTH - 7, True, True),  # of any level
        (0.45 * TRUTH, False, False),
        (2.1 * TRUTH, False, False),
        (-TRUTH, False, False),
        (np.asarray(plus(12.0, 15.0, N, IMAGE)), False, False),
        (SEEN, False, False),
        (shifted(0.45), True, True),
        (shifted(0.55), True, False),  # nearer to the seen image
        (shifted(-0.55), True, True),
        (0 * TRUTH, False, False),
        (np.where(TRUTH == TRUTH.max(), np.nan, TRUTH), False, False),
    ],
)
def test_rendered_is_its_definition(prediction, shown, held_out):
    prediction = np.asarray(prediction, np.float32)
    assert by_hand(prediction, TRUTH, SEEN) == (shown, held_out)
    assert bool(images.rendered(prediction, TRUTH)) == shown
    assert bool(images.rendered(prediction, TRUTH, SEEN)) == held_out
