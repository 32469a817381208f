from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax.metrics.kernels import gram
from compgen_jax.metrics.spectra import (
    largest_of_tridiagonals,
    largest_squares,
    singular_values_of_pairs,
    spectrum,
)


@pytest.mark.parametrize("features", [6, 90])
def test_dimensions_are_counted_in_the_spectrum_of_the_covariance(features, rng):
    """More or fewer features than points, whatever their mean."""
    scales = np.full(features, 0.01)
    scales[:6] = 10, 7, 7, 1, 0.5, 0.1
    points = rng.normal(size=(30, features)) * scales + 7
    expected = np.linalg.eigvalsh(np.cov(points.T, bias=True))[::-1]
    found = spectrum(gram(points, center=True))
    assert found["numerical_rank"] == np.sum(expected > 1e-3 * expected[0]) < features
    assert found["energy_rank"] == 1 + np.sum(np.cumsum(expected) < 0.99 * expected.sum()) < 5
    ratio = expected.sum() ** 2 / np.sum(expected**2)
    assert found["participation_ratio"] == pytest.approx(ratio)


def test_singular_values_of_pairs_against_the_whole_matrix(rng):
    pairs = rng.normal(size=(3, 3, 4, 4))
    pairs += pairs.transpose(1, 0, 3, 2)
    whole = np.linalg.svd(pairs.reshape(9, 16), compute_uv=False)
    assert_allclose(singular_values_of_pairs(pairs), whole)


def test_largest_squares_against_svd(monkeypatch):
    """Of one product, of none, of few, of noise, and of two values that are nearly equal; only what
    is uncertain after 12 steps is decomposed."""
    decompose = Mock(wraps=np.linalg.eigvalsh)
    monkeypatch.setattr(np.linalg, "eigvalsh", decompose)
    rng = np.random.default_rng(0)
    product = rng.normal(size=(20, 9, 1)) @ rng.normal(size=(20, 1, 14))
    few = rng.normal(size=(20, 9, 2)) @ rng.normal(size=(20, 2, 14))
    close = np.eye(9, 14)[None] * [[1.0], [1 - 1e-7], [0.5], *[[0.0]] * 6]
    noise = rng.normal(size=(20, 9, 14))
    large = np.concatenate([product, 0 * product, few, close, 1e-3 * noise, 1e9 * noise])
    expected = np.linalg.svd(large, compute_uv=False)[:, 0] ** 2
    assert_allclose(largest_squares(large), expected, rtol=1e-9)
    noise = rng.normal(size=(50, 28, 28))
    expected = np.linalg.svd(noise, compute_uv=False)[:, 0] ** 2
    assert_allclose(largest_squares(noise), expected, rtol=1e-9)
    assert len(decompose.call_args_list[0].args[0]) < 60  # of 101 products


def test_largest_of_tridiagonals_against_eigenvalues():
    rng = np.random.default_rng(1)
    factors = np.stack([np.diag(rng.uniform(1, 2, 6)) + np.diag(rng.normal(size=5), 1)] * 3)
    factors[1:] *= [[[1e-6]], [[0.0]]]
    matrices = factors @ factors.swapaxes(1, 2)
    diagonal = np.diagonal(matrices, axis1=1, axis2=2).T
    off = np.diagonal(matrices, 1, axis1=1, axis2=2).T
    couplings = np.concatenate([0 * off[:1], off, 0 * off[:1]])
    values, errors = largest_of_tridiagonals(diagonal, couplings)
    assert_allclose(values, np.linalg.eigvalsh(matrices)[:, -1], rtol=1e-12)
    assert (errors <= 1e-12 * values).all()
