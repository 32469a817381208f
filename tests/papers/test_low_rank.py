"""C8 on decoders whose errors are known, and the smoothness of C15 against loops."""

import numpy as np
import pytest

from compgen_jax.papers.forced_rendering import low_rank
from tests.papers.decoders import CELLS, N, cell_results, decoder, draw, judged, run

R, C = "reproduced", "contradicted"


def with_error(seen, unseen):
    """A run of three seeds, true but for constant errors, a little different by seed."""
    cells = decoder(draw)
    size = np.where(cells.held_out, unseen, seen)[None] * np.array([0.9, 1.0, 1.1])[:, None]
    return run(cell_results(cells.predictions + 1e-3 * size[..., None, None]))


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        # (ID, OOD) without penalties, with entropy, with variance, with both
        (((1, 50), (2, 40), (3, 9), (2, 3)), (R, R, R)),
        (((1, 50), (2, 20), (3, 9), (2, 3)), (R, C, R)),  # entropy alone helps much
        (((2, 50), (1, 60), (3, 9), (2, 10)), (C, R, C)),  # not lowest ID; variance alone is better
        (((1, 500), (2, 450), (3, 400), (2, 300)), (R, C, C)),  # the best is worse than blank
    ],
)
def test_ablations_are_compared_in_pairs(errors, expected, monkeypatch):
    runs = {
        name: with_error(*error) for name, error in zip(low_rank.ABLATIONS, errors, strict=True)
    }
    shares = {"top_share": np.full(3, 0.9), "constant_share": np.full(3, 0.75)}
    monkeypatch.setattr(low_rank, "embedding_numbers", lambda run: shares)
    rows = {claim.name: judged(claim, **runs) for claim in low_rank.CLAIMS[:6]}
    # the seeds of these networks lie alike, so that medians say the same
    for name, verdict in zip(("", ".variance", ".both"), expected, strict=True):
        paired = f"C8{name}_paired" if name else "C8.paired"
        assert rows[f"C8{name}"]["verdict"] == rows[paired]["verdict"] == verdict
    # a factor common to a seed cancels
    first = next(iter(rows["C8.paired"]["conditions"].values()))
    expected = 2 * np.log10(errors[0][1] / max(e[1] for e in errors[1:]))
    assert first["value"] == pytest.approx(expected, abs=1e-4)


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
