import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.metrics import kernels

N, LOW, HIGH = 16, 5, 10
CELLS = np.array([(x, y) for y in range(N) for x in range(N)])
HOLE = ((CELLS >= LOW) & (CELLS <= HIGH)).all(axis=1)
PROFILES = np.exp(-((np.arange(N)[:, None] - np.arange(N)[None, :]) ** 2) / 2)


BUMPS = np.float32([np.outer(PROFILES[y], PROFILES[x]) for x, y in CELLS])


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("block", [3, 11, 4096])
def test_gram_against_a_loop(monkeypatch, center, block, rng):
    monkeypatch.setattr(kernels, "BLOCK", block)
    features = np.float32(rng.normal(size=(7, 11)) + 3.0)  # summed in float64
    offset = np.float64(features).mean(axis=0) if center else np.zeros(11)
    expected = [[np.sum((a - offset) * (b - offset)) for b in features] for a in features]
    assert_allclose(kernels.gram(features, center), expected, rtol=1e-12, atol=1e-12)


def test_cosine_and_l2_against_loops(rng):
    features = np.concatenate([rng.normal(size=(7, 11)), np.zeros((1, 11))])
    gram = kernels.gram(features)
    norms = np.maximum(np.linalg.norm(features, axis=1), 1e-9)
    distances = np.linalg.norm(features[:, None] - features, axis=2)
    assert_allclose(kernels.l2(gram), -distances, atol=1e-7)
    assert_allclose(kernels.cosine(gram), gram / np.outer(norms, norms), atol=1e-12)


def test_overlap_counts_shared_dark_pixels():
    assert_array_equal(kernels.overlap(2 * BUMPS, amplitude=2.0), np.eye(N * N) / N**2)
    wide = kernels.overlap(BUMPS, threshold=0.5)  # the peak and its 4 neighbours, at 0.61
    here, beside, diagonal, far = (7 * N + 7, 7 * N + 8, 8 * N + 8, 7 * N + 10)
    shares = wide[here, [here, beside, diagonal, far]] * N**2
    assert_allclose(shares, [5, 2, 2, 0], rtol=1e-6)


def test_correlations_with_what_is_constant_or_explained_are_unknown(rng):
    """Their values: test_layers."""
    a, control = rng.normal(size=(2, 28))
    assert np.isnan(kernels.correlation(a, np.full(28, 0.1)))
    assert np.isnan(kernels.partial_correlation(2 * control + 1, a, control))
