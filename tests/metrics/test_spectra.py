import numpy as np
import pytest

from compgen_jax.metrics import spectra
from tests.metrics.test_kernels import CELLS, flat, known_map, rotated


@pytest.mark.parametrize("features", [5, 90])
def test_eigenvalues_are_the_covariances(features):
    """More or fewer features than points, whatever their mean and rotation."""
    points = np.random.default_rng(0).normal(size=(30, features)) * np.linspace(1, 3, features) + 7
    expected = np.linalg.eigvalsh(np.cov(points.T, bias=True))[::-1]
    found = spectra.covariance_eigenvalues(points)
    assert found.shape == (30,)
    count = min(features, 29)
    np.testing.assert_allclose(found[:count], expected[:count], rtol=1e-9)
    np.testing.assert_allclose(found[count:], 0, atol=1e-9)
    np.testing.assert_allclose(spectra.covariance_eigenvalues(rotated(points)), found, atol=1e-9)


def test_counts_of_dimensions_in_closed_form():
    eigenvalues = np.array([100.0, 50.0, 49.0, 1.0, 0.2, 0.05])
    assert spectra.numerical_rank(eigenvalues) == 5
    assert spectra.numerical_rank(eigenvalues, threshold=0.01) == 3
    assert spectra.energy_rank(eigenvalues) == 3
    assert spectra.energy_rank(eigenvalues, energy=0.5) == 2
    assert spectra.energy_rank(np.ones(4), energy=0.75) == 3
    assert spectra.energy_rank(np.ones(4), energy=1.0) == 4
    assert spectra.participation_ratio(np.ones(6)) == pytest.approx(6)
    assert spectra.participation_ratio(np.array([3.0, 1.0])) == pytest.approx(16 / 10)


def test_known_maps():
    linear = spectra.spectrum(CELLS @ np.random.default_rng(0).normal(size=(2, 300)))
    assert (linear.numerical_rank, linear.energy_rank) == (2, 2)
    assert 1 < linear.participation_ratio < 2
    plus, bump = (spectra.spectrum(flat(known_map(name))) for name in ("plus", "bump"))
    assert plus.numerical_rank <= 2 * 16 < bump.numerical_rank < 256
    noise = spectra.spectrum(flat(known_map("noise")))
    assert noise.numerical_rank > 240 and noise.participation_ratio > 2 * bump.participation_ratio


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="features: constant over the points"):
        spectra.spectrum(np.full((9, 4), 0.3, np.float32))
    with pytest.raises(ValueError, match="features: NaN"):
        spectra.spectrum(np.full((9, 4), np.nan))
