"""C1 to C3 on decoders whose answer is known."""

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import figure1
from tests.papers.decoders import CELLS, blank, cell_results, decoder, draw, judged, run, verdicts

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
RAMP = {"code": "ramp", "where": ", the authors' network"}


def superposed(x, y):
    """Seen bumps of the same column and of the same row."""
    return draw(x, 1) + draw(1, y)


def scattered(x, y):
    """Two bumps away from both the column and the row."""
    return draw(0, 0) + draw(11, 11)


def edge_only(x, y):
    return draw(x, y) if min(x - 4, y - 4, 7 - x, 7 - y) == 0 else 0 * draw(x, y)


@pytest.mark.parametrize(
    ("render", "expected"),
    [
        (superposed, (R, R)),
        (scattered, (R, C)),
        (lambda x, y: draw(x, y) + 0.8 * draw(0, y), (R, C)),  # one of two peaks is in its place
        (lambda x, y: 0.15 * superposed(x, y), (R, R)),  # relative to an image's own maximum
        (draw, (C, C)),
    ],
)
def test_images_must_show_two_aligned_peaks(render, expected):
    assert verdicts(figure1.SUPERPOSES_SEEN, RAMP, net=run(decoder(render))) == expected


def test_rows_have_their_numbers():
    net = run(decoder(superposed))
    row = judged(figure1.FAILS_OOD, RAMP, net=net)
    assert (row["claim"], row["code"], row["seeds"]) == (
        "C1", "ramp, the authors' network", [0, 1, 2],
    )  # fmt: skip
    assert row["statement"] == "with the ramp code, held-out combinations are not rendered"
    assert row["as_stated"] == row["stricter"] and row["as_stated"]["verdict"] == R
    reading = row["stricter"]
    assert reading["measured"] == 0 and reading["ci95"] == [-1.5 / 16, 1.5 / 16]
    assert reading["criterion"].startswith("exact accuracy OOD below 0.5; MSE OOD")
    row = judged(figure1.SUPERPOSES_SEEN, RAMP, net=net)
    assert (
        row["stricter"]["measured"] == 1.0 and row["details"]["peaks per OOD image"]["value"] == 2
    )
    # all are aligned; of 128 seen cells 3 columns and 3 rows are in line, 8 seen cells in each
    # but at the hole's edge, where a neighbouring line is seen throughout
    assert row["stricter"]["conditions"]["aligned share of misplaced peaks"]["value"] == 1
    assert 0.2 < row["details"]["aligned share of misplaced peaks by chance"]["value"] < 0.4


def test_success_near_the_edge_is_a_slope_beyond_the_controls():
    claim, edge = figure1.SUCCEEDS_NEAR_EDGE, run(decoder(edge_only))
    row = judged(claim, {"code": "bump"}, net=edge, control=run(decoder(blank)))
    assert row["stricter"]["measured"] == pytest.approx(1.0)  # accuracy 1 at one pixel, 0 at two
    assert verdicts(claim, {"code": "bump"}, net=edge, control=edge) == (R, C)


def test_nothing_is_concluded_from_an_untrained_network():
    net = run(cell_results([[np.zeros((12, 12))] * len(CELLS)] * 3))
    for claim in figure1.CLAIMS:
        row = judged(claim, RAMP, net=net, control=net)
        assert {row[reading]["verdict"] for reading in claims.READINGS} == {U}
        assert row["stricter"]["reason"].startswith("not trained: exact accuracy ID 0")
