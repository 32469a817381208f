"""Each claim on decoders whose answer is known."""

import numpy as np
import pytest

from compgen_jax.claims import verdicts
from compgen_jax.claims.forced_rendering import figure1
from tests.claims.decoders import CELLS, cell_results, decoder, draw


def perfect(x, y):
    return draw(x, y)


def blank(x, y):
    return 0 * draw(x, y)


def superposed(x, y):
    """Seen bumps of the same column and of the same row."""
    return draw(x, 1) + draw(1, y)


def scattered(x, y):
    """Two bumps away from both the column and the row."""
    return draw(0, 0) + draw(11, 11)


def edge_only(x, y):
    return draw(x, y) if min(x - 4, y - 4, 7 - x, 7 - y) == 0 else 0 * draw(x, y)


def nearest_seen(x, y):
    distances = {3: x - 3, 8: 8 - x, -3: y - 3, -8: 8 - y}
    nearest = min(distances, key=distances.get)
    return draw(nearest, y) if nearest > 0 else draw(x, -nearest)


def correct_with_a_stray(x, y):
    return draw(x, y) + 0.8 * draw(0, y)


def faintly_superposed(x, y):
    return 0.15 * superposed(x, y)


R, C, U = verdicts.REPRODUCED, verdicts.CONTRADICTED, verdicts.INCONCLUSIVE


@pytest.mark.parametrize(
    ("render", "verdicts"),
    [
        (perfect, (C, C, C)),
        (blank, (R, C, C)),
        (superposed, (R, C, R)),
        (scattered, (R, C, C)),
        (edge_only, (C, R, C)),
        (nearest_seen, (R, C, C)),
        (correct_with_a_stray, (C, C, C)),
        (faintly_superposed, (R, C, U)),
    ],
)
def test_verdicts_on_known_decoders(render, verdicts):
    results = decoder(render)
    found = tuple(claim("bump", results)["verdict"] for claim in figure1.CLAIMS)
    assert found == verdicts


def test_nothing_is_concluded_from_an_untrained_network():
    results = cell_results([[np.asarray(blank(0, 0))] * len(CELLS)] * 3)
    assert {claim("bump", results)["verdict"] for claim in figure1.CLAIMS} == {U}


def test_entry_has_the_promised_fields_and_numbers():
    entry = figure1.fails_ood("ramp", decoder(superposed))
    assert {
        "claim",
        "statement",
        "figure",
        "criterion",
        "measured",
        "ci95",
        "seeds",
        "verdict",
    } <= set(entry)
    assert (entry["claim"], entry["code"], entry["seeds"]) == ("C1", "ramp", [0, 1, 2])
    assert entry["measured"] == 0 and entry["ci95"] == [0, 0]
    c2 = figure1.succeeds_near_edge("ramp", decoder(edge_only))
    assert c2["measured"] == pytest.approx(1.0)  # accuracy 1 at one pixel, 0 at two
    c3 = figure1.superposes_seen("ramp", decoder(superposed))
    assert c3["measured"] == 1.0 and c3["details"]["peaks above 0.25 per OOD image"]["value"] == 2
    # all are aligned; of 128 seen cells 3 columns and 3 rows are in line, 8 seen cells in each
    # but at the hole's edge, where a neighbouring line is seen throughout
    over_chance = c3["conditions"]["aligned share of misplaced peaks above 0.25, over chance"]
    assert 0.6 < over_chance["value"] < 0.8


def test_judge_needs_the_whole_interval():
    condition = lambda values, side: verdicts.Condition(np.array(values), side, 0.5)
    assert verdicts.judge([condition([0.65, 0.7, 0.75], "above")]) == R
    assert verdicts.judge([condition([0.65, 0.7, 0.75], "below")]) == C
    assert verdicts.judge([condition([0.1, 0.7, 0.8], "above")]) == U
    assert verdicts.judge([condition([0.6, 0.61], "above"), condition([0.1, 0.9], "above")]) == U
    assert verdicts.judge([condition([0.1, 0.9], "above"), condition([0.1, 0.11], "above")]) == C
    assert verdicts.judge([condition([0.9], "above")]) == U  # one seed shows no spread
