"""C8 on decoders whose errors are known."""

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import low_rank
from tests.papers.decoders import cell_results, decoder, draw, judged, run

R, C = claims.REPRODUCED, claims.CONTRADICTED


def with_error(seen, unseen):
    """A run of three seeds, true but for constant errors, a little different by seed."""
    cells = decoder(draw)
    size = np.where(cells.held_out, unseen, seen)[None] * np.array([0.9, 1.0, 1.1])[:, None]
    return run(cell_results(cells.predictions + size[..., None, None]))


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
        name: with_error(seen * 1e-3, unseen * 1e-3)
        for name, (seen, unseen) in zip(low_rank.ABLATIONS, errors, strict=True)
    }
    shares = {"top_share": np.full(3, 0.9), "constant_share": np.full(3, 0.75)}
    monkeypatch.setattr(low_rank, "embedding_numbers", lambda run: shares)
    rows = [judged(claim, **runs) for claim in low_rank.CLAIMS]
    assert tuple(row["stricter"]["verdict"] for row in rows) == expected
    # the seeds of these networks lie alike, so that medians say the same
    assert tuple(row["as_stated"]["verdict"] for row in rows) == expected
    constant = rows[2]["details"]["energy constant along the other axis, both"]
    assert constant == {"value": 0.75, "ci95": [0.75, 0.75]}
    # a factor common to a seed cancels
    assert rows[0]["stricter"]["measured"] == pytest.approx(
        2 * np.log10(errors[0][1] / max(e[1] for e in errors[1:])), abs=1e-4
    )
