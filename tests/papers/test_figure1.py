"""Each claim on decoders whose answer is known."""

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.papers.forced_rendering import figure1
from compgen_jax.statistics import mean_with_interval
from tests.papers.decoders import CELLS, cell_results, decoder, draw


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


R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE


def rows_of(results, control=superposed):
    near_edge = figure1.succeeds_near_edge("bump", results, decoder(control))
    return figure1.fails_ood("bump", results), near_edge, figure1.superposes_seen("bump", results)


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
        (faintly_superposed, (R, C, R)),  # peaks are relative to an image's own maximum
    ],
)
def test_verdicts_on_known_decoders(render, verdicts):
    found = tuple(row["stricter"]["verdict"] for row in rows_of(decoder(render)))
    assert found == verdicts


def test_as_stated_two_peaks_anywhere_and_any_rise_are_enough():
    _, _, row = rows_of(decoder(scattered))
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == (R, C)
    _, row, _ = rows_of(decoder(edge_only), control=edge_only)
    assert (row["as_stated"]["verdict"], row["stricter"]["verdict"]) == (R, C)


def test_nothing_is_concluded_from_an_untrained_network():
    results = cell_results([[np.asarray(blank(0, 0))] * len(CELLS)] * 3)
    for row in rows_of(results):
        assert {row[reading]["verdict"] for reading in claims.READINGS} == {U}
        assert row["stricter"]["reason"].startswith("not trained: exact accuracy ID 0")


def test_entry_has_the_promised_fields_and_numbers():
    entry = figure1.fails_ood("ramp", decoder(superposed))
    assert list(entry) == [
        "claim", "code", "statement", "figure", "seeds", "as_stated", "stricter", "details"
    ]  # fmt: skip
    assert (entry["claim"], entry["code"], entry["seeds"]) == ("C1", "ramp", [0, 1, 2])
    assert entry["as_stated"] == entry["stricter"]  # one criterion for both readings
    reading = entry["stricter"]
    assert (
        reading["measured"] == 0
        and reading["ci95"] == [-1.5 / 16, 1.5 / 16]
        and reading["reason"] == ""
    )
    assert reading["criterion"].startswith("exact accuracy OOD below 0.5; MSE OOD")
    c2 = figure1.succeeds_near_edge("ramp", decoder(edge_only), decoder(blank))
    assert c2["stricter"]["measured"] == pytest.approx(1.0)  # accuracy 1 at one pixel, 0 at two
    c3 = figure1.superposes_seen("ramp", decoder(superposed))
    assert c3["stricter"]["measured"] == 1.0 and c3["details"]["peaks per OOD image"]["value"] == 2
    # all are aligned; of 128 seen cells 3 columns and 3 rows are in line, 8 seen cells in each
    # but at the hole's edge, where a neighbouring line is seen throughout
    assert c3["stricter"]["conditions"]["aligned share of misplaced peaks"]["value"] == 1
    assert 0.2 < c3["details"]["aligned share of misplaced peaks by chance"]["value"] < 0.4


def test_a_verdict_says_why_it_is_none():
    rows = {
        "no interval": claims.Condition(np.array([0.9]), "above", 0.5),
        "interval crosses the bound": claims.Condition(np.array([0.1, 0.9]), "above", 0.5),
        "not known": claims.Condition(np.full(3, np.nan), "above", 0.5),
    }
    for reason, condition in rows.items():
        assert claims.judge({"what": condition}) == (U, f"{reason}: what")
    steady = {"value": 0.75, "ci95": [0.7, 0.8]}  # of a statistic that is no mean
    assert claims.judge({"what": claims.Condition(steady, "above", 0.5)}) == (R, "")


def test_claims_are_two_rows_each_and_read_back():
    found = [
        figure1.fails_ood("ramp", decoder(draw)), figure1.fails_ood("bump", decoder(blank))
    ]  # fmt: skip
    rows = claims.rows(found, "quick")
    assert [(row["code"], row["reading"]) for row in rows] == [
        ("ramp", "as stated"), ("ramp", "stricter"), ("bump", "as stated"), ("bump", "stricter")
    ]  # fmt: skip
    asked = {"claim", "reading", "statement", "figure", "criterion", "measured", "ci95", "seeds",
             "scale", "verdict", "reason"}  # fmt: skip
    assert all(asked <= row.keys() and row["scale"] == "quick" for row in rows)
    assert rows[3]["measured"] == found[1]["stricter"]["measured"]
    assert claims.entries(rows) == found


def test_of_a_seed_with_several_networks_the_median_counts():
    """In every number of a row; intervals are over seeds."""
    seeds = (4,) * 3 + (9,) * 3
    values = np.array([0.1, 0.9, 0.8, 0.6, 0.0, 0.7])
    np.testing.assert_array_equal(claims.median_over_checkpoints(values, seeds), [0.8, 0.6])
    np.testing.assert_array_equal(claims.median_over_checkpoints([0.2, 0.3], seeds), [0.2, 0.3])
    conditions = {"what": claims.Condition(values, "above", 0.5)}
    row = claims.entry("C0", "code", seeds, [1, 0, 1, 1, 0.9, 1], figure="", statement="",
                         as_stated=conditions, details={"else": -values})  # fmt: skip
    assert row["seeds"] == [4, 9]
    expected = mean_with_interval([0.8, 0.6])
    assert row["as_stated"]["measured"] == expected["value"] == pytest.approx(0.7)
    assert row["as_stated"]["ci95"] == row["stricter"]["ci95"] == expected["ci95"]
    assert row["details"]["else"]["value"] == pytest.approx(-0.7)
    assert row["details"]["exact accuracy ID"]["value"] == 1.0


def test_a_share_is_known_to_no_less_than_its_cells():
    """Seeds that agree to the cell have an interval; a wider one stays what it is."""
    share = lambda values: claims.Condition(np.array(values), "above", 0.9, 30)
    assert claims.judge({"what": share([1.0, 1.0, 1.0])}).verdict == R
    assert claims.judge({"what": share([0.93, 0.93, 0.93])}).verdict == U
    wide = np.array([0.5, 0.9, 1.0])
    row = claims.entry("C0", "code", (0, 1, 2), 1.0 + 0 * wide, figure="", statement="",
                         as_stated={"what": share(wide)})  # fmt: skip
    assert row["as_stated"]["ci95"] == mean_with_interval(wide)["ci95"]


def test_a_ratio_is_judged_by_its_logarithm():
    """A geometric mean: 1/10 and 10 are 1 on the mean, and a ratio and its inverse agree."""
    ratio = lambda values, side: claims.Condition(np.array(values), side, 1.0, ratio=True)
    values = np.array([0.2, 0.7, 0.4])
    conditions = {"what": ratio(values, "below"), "inverse": ratio(1 / values, "above")}
    row = claims.entry("C0", "code", (0, 1, 2), 1.0 + 0 * values, figure="", statement="",
                         as_stated=conditions)  # fmt: skip
    found = row["as_stated"]["conditions"]
    assert found["what"]["value"] == pytest.approx(np.prod(values) ** (1 / 3))
    assert found["inverse"]["value"] == pytest.approx(1 / found["what"]["value"])
    assert found["inverse"]["ci95"][0] == pytest.approx(1 / found["what"]["ci95"][1])
    assert claims.judge({"what": ratio([0.1, 10.0], "below")}).verdict == U
    assert claims.judge({"what": ratio([0.0, 0.0, 0.0], "below")}).verdict == R


def test_judge_needs_the_whole_interval():
    condition = lambda values, side: claims.Condition(np.array(values), side, 0.5)
    judge = lambda *conditions: claims.judge(dict(enumerate(conditions))).verdict
    assert judge(condition([0.65, 0.7, 0.75], "above")) == R
    assert judge(condition([0.65, 0.7, 0.75], "below")) == C
    assert judge(condition([0.1, 0.7, 0.8], "above")) == U
    assert judge(condition([0.6, 0.61], "above"), condition([0.1, 0.9], "above")) == U
    assert judge(condition([0.1, 0.9], "above"), condition([0.1, 0.11], "above")) == C
    assert judge(condition([0.9], "above")) == U  # one seed shows no spread
