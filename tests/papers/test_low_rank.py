"""C8 on errors that are known, and the smoothness of C15."""

import numpy as np
import pytest

from compgen_jax.metrics import geometry
from compgen_jax.papers.forced_rendering import lowrank_claims
from compgen_jax.statistics import t_interval
from tests.papers.criteria import known_low_rank
from tests.papers.decoders import N, cell_results, decoder, draw


def test_a_median_has_an_interval_wider_than_a_means():
    # variances of the median of n normal values: Sarhan and Greenberg (1962), table 10C.1
    for count, variance in ((3, 0.448671), (4, 0.298247), (5, 0.286834), (6, 0.214740)):
        values = [0.7, 0.1, 0.8, 0.9, 0.2, 0.3][:count]
        number, _ = lowrank_claims.over_seeds(values, "error", paired=False)
        assert number["value"] == pytest.approx(np.mean(number["ci95"])) == np.median(values)
        spread = np.ptp(number["ci95"]) / np.ptp(t_interval(values))
        assert spread == pytest.approx(np.sqrt(variance * count), rel=0.01)


def test_ablations_are_compared_in_pairs():
    """A factor common to a seed cancels."""
    ablations = known_low_rank.ablations()["as-stated"]
    errors = lowrank_claims.log_errors(ablations, "OOD")
    difference = errors["none"] - errors["entropy"]
    np.testing.assert_allclose(difference, 2 * np.log10(50 / 40), atol=1e-4)


def test_roughness_is_that_of_all_cells_or_of_some():
    """Volumes and their roughness beside loops: tests/metrics/test_geometry.py."""
    true = decoder(draw)
    noise = np.random.default_rng(0).normal(size=true.predictions.shape)
    cells = cell_results(true.predictions + 0.1 * noise)
    log_volume = lambda images: geometry.grid_log_volume(images.reshape(N * N, -1), (N, N))
    for over in (None, true.held_out.reshape(N, N)):
        expected = [geometry.roughness(log_volume(drawn), over) for drawn in cells.predictions]
        assert lowrank_claims.roughness(cells, over) == pytest.approx(expected, rel=1e-6)
