import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax.metrics.spectra import spectrum


@pytest.mark.parametrize("features", [5, 90])
def test_eigenvalues_are_the_covariances(features, rng):
    """More or fewer features than points, whatever their mean and rotation."""
    points = rng.normal(size=(30, features)) * np.linspace(1, 3, features) + 7
    expected = np.linalg.eigvalsh(np.cov(points.T, bias=True))[::-1]
    found = spectrum(points).eigenvalues
    count = min(features, 29)
    assert_allclose(found[:count], expected[:count], rtol=1e-9)
    assert_allclose(found[count:], 0, atol=1e-9)


def test_counts_of_dimensions_in_closed_form():
    """Orthogonal features without a mean, whose variances are the eigenvalues."""
    values = np.array([100.0, 50.0, 49.0, 1.0, 0.2, 0.05])
    points = np.concatenate([np.diag(np.sqrt(values)), -np.diag(np.sqrt(values))])
    found = spectrum(points)
    assert_allclose(found.eigenvalues[:6], values / 6)
    assert (found.numerical_rank, found.energy_rank) == (5, 3)
    assert spectrum(points, threshold=0.02).numerical_rank == 3
    assert spectrum(points, energy=0.5).energy_rank == 2
    expected = values.sum() ** 2 / np.sum(values**2)
    assert found.participation_ratio == pytest.approx(expected)
