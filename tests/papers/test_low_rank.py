"""C8 on errors that are known, and the smoothness of C15 against loops."""

import numpy as np
import pytest

from compgen_jax.papers.forced_rendering import known_low_rank, low_rank
from tests.papers.decoders import CELLS, N, cell_results, decoder, draw, judged


def test_ablations_are_compared_in_pairs():
    """A factor common to a seed cancels."""
    row = judged(low_rank.CLAIMS[1], **known_low_rank.ablations(16)["as stated"])
    first = next(iter(row["conditions"].values()))
    assert row["claim"] == "C8.paired"
    assert first["value"] == pytest.approx(2 * np.log10(50 / 40), abs=1e-4)


def loop_log_volume(images_NxNxP):
    """By unit differences: central ones, one-sided at the border."""
    count = len(images_NxNxP)
    found = np.zeros((count, count))
    for y in range(count):
        for x in range(count):
            before, after = max(x - 1, 0), min(x + 1, count - 1)
            a = (images_NxNxP[y, after] - images_NxNxP[y, before]) / (after - before)
            before, after = max(y - 1, 0), min(y + 1, count - 1)
            b = (images_NxNxP[after, x] - images_NxNxP[before, x]) / (after - before)
            found[y, x] = np.log10(np.sqrt((a @ a) * (b @ b) - (a @ b) ** 2))
    return found


def test_smoothness_against_loops():
    true = decoder(draw)
    noise = np.random.default_rng(0).normal(size=true.predictions.shape)
    cells = cell_results(true.predictions + 0.1 * noise)
    found = low_rank.smoothness(cells)
    images = cells.predictions.astype(np.float64).reshape(3, N, N, -1)
    of_true = loop_log_volume(cells.truths.astype(np.float64).reshape(N, N, -1))
    every = [(y, x) for x, y in CELLS]
    hole = [(y, x) for y, x in every if 4 <= x <= 7 and 4 <= y <= 7]
    for seed in range(3):
        volume = loop_log_volume(images[seed])
        for field, among in (("roughness", every), ("in_corner", hole)):
            steps = [
                abs(volume[y, x] - volume[other])
                for y, x in among
                for other in ((y + 1, x), (y, x + 1))
                if other in among
            ]
            assert getattr(found, field)[seed] == pytest.approx(np.mean(steps), rel=1e-6)
        apart = [abs(volume[cell] - of_true[cell]) for cell in hole]
        assert found.from_true[seed] == pytest.approx(np.mean(apart), rel=1e-6)
