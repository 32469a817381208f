import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax.metrics.kernels import gram
from compgen_jax.metrics.spectra import singular_values_of_pairs, spectrum


@pytest.mark.parametrize("features", [6, 90])
def test_dimensions_are_counted_in_the_spectrum_of_the_covariance(features, rng):
    """More or fewer features than points, whatever their mean."""
    scales = np.full(features, 0.01)
    scales[:6] = 10, 7, 7, 1, 0.5, 0.1
    points = rng.normal(size=(30, features)) * scales + 7
    expected = np.linalg.eigvalsh(np.cov(points.T, bias=True))[::-1]
    found = spectrum(gram(points, center=True))
    count = min(features, 29)
    assert_allclose(found.eigenvalues[:count], expected[:count], rtol=1e-9)
    assert_allclose(found.eigenvalues[count:], 0, atol=1e-9)
    assert found.numerical_rank == np.sum(expected > 1e-3 * expected[0]) < features
    assert found.energy_rank == 1 + np.sum(np.cumsum(expected) < 0.99 * expected.sum()) < 5
    ratio = expected.sum() ** 2 / np.sum(expected**2)
    assert found.participation_ratio == pytest.approx(ratio)


def test_singular_values_of_pairs_against_the_whole_matrix(rng):
    pairs = rng.normal(size=(3, 3, 4, 4))
    pairs += pairs.transpose(1, 0, 3, 2)
    whole = np.linalg.svd(pairs.reshape(9, 16), compute_uv=False)
    assert_allclose(singular_values_of_pairs(pairs), whole)
