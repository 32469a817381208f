"""Rows of claims are judged as they say, on quantities whose intervals are known."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.calibration import Calibration, Case, KnownRun, decided, wrongly_decided
from compgen_jax.claims import (
    Claim,
    Condition,
    Evidence,
    decide,
    from_rows,
    judge,
    judge_all,
    once,
    rows,
    run_names,
)
from compgen_jax.runs import directory

RUN = KnownRun((0, 1, 2), output_numbers={"low": np.array([0.1, 0.2, 0.3]), "same": np.ones(3)})


def claim(*conditions, **fields):
    return Claim("X1", "it holds", conditions, **{"runs": {"net": "net"}, "trained": None} | fields)


def verdict(condition, run=RUN, **fields):
    reading = judge(claim(condition, **fields), Evidence({"net": run}))["as_stated"]
    return reading["verdict"], reading["reason"]


@pytest.mark.parametrize(
    ("low", "high", "bounds", "expected"),
    [
        (0.6, 0.8, {"above": 0.5}, "reproduced"),
        (0.2, 0.5, {"above": 0.5}, "contradicted"),
        (0.4, 0.6, {"above": 0.5}, "inconclusive"),
        (0.2, 0.4, {"below": 0.5}, "reproduced"),
        (0.5, 0.6, {"below": 0.5}, "contradicted"),
        (2.6, 3.4, {"above": 2.5, "below": 3.5}, "reproduced"),
        (3.5, 3.6, {"above": 2.5, "below": 3.5}, "contradicted"),
        (1.0, 2.5, {"above": 2.5, "below": 3.5}, "contradicted"),
        (2.4, 3.0, {"above": 2.5, "below": 3.5}, "inconclusive"),
        (np.nan, np.nan, {"above": 0.5}, "inconclusive"),
    ],
)
def test_a_verdict_needs_the_whole_interval(low, high, bounds, expected):
    number = {"value": (low + high) / 2, "ci95": [low, high]}
    assert decide(Condition("it", None, **bounds), number)[0] == expected


def test_intervals_are_students_t_of_one_value_per_seed():
    """t(.975, 2) = 4.302653; sd = .1."""
    low = lambda e: e.net.outputs("low")
    number = judge(claim(Condition("low", low, above=0)), Evidence({"net": RUN}))["as_stated"]
    half = 4.302653 * 0.1 / np.sqrt(3)
    np.testing.assert_allclose(number["ci95"], [0.2 - half, 0.2 + half], rtol=1e-6)
    assert number["criterion"] == "low above 0" and number["verdict"] == "inconclusive"
    # the logarithm's, for a ratio
    ratio = judge(claim(Condition("low", low, below=1, ratio=True)), Evidence({"net": RUN}))
    logs = np.log([0.1, 0.2, 0.3])
    half = 4.302653 * logs.std(ddof=1) / np.sqrt(3)
    expected = np.exp([logs.mean() - half, logs.mean() + half])
    np.testing.assert_allclose(ratio["as_stated"]["ci95"], expected, rtol=1e-6)


def test_a_share_reaches_one_and_a_half_cells_to_either_side():
    same = Condition("share", lambda e: e.net.outputs("same"), above=0.9, cells=lambda e: 10)
    number = judge(claim(same), Evidence({"net": RUN}))["as_stated"]["conditions"]["share"]
    assert number["ci95"] == [0.85, 1.15] and number["holds"] is None
    assert verdict(same._replace(cells=lambda e: 100)) == ("reproduced", "")


def test_several_late_checkpoints_of_a_seed_count_as_their_median():
    late = Condition("late", lambda e: np.array([0, 1, 50, 2, 3, 4, 5, 6, -70.0]), above=0)
    number = judge(claim(late), Evidence({"net": RUN}))["as_stated"]
    assert number["measured"] == np.mean([1, 3, 5])


def test_all_conditions_must_hold_and_the_first_failure_is_named():
    holds = Condition("holds", lambda e: np.array([1, 1.1, 1.2]), above=0)
    fails = holds._replace(name="fails", below=0.5, above=None)
    open_ = Condition("open", lambda e: np.array([-1, 0, 1.0]), above=0)
    both = lambda *conditions: judge(claim(*conditions), Evidence({"net": RUN}))["as_stated"]
    assert both(holds)["verdict"] == "reproduced"
    assert both(holds, open_)["reason"] == "interval crosses the bound: open"
    assert both(open_, fails)["verdict"] == "contradicted"


def test_nothing_is_concluded_of_what_did_not_learn_or_gives_a_reason():
    holds = Condition("holds", lambda e: np.ones(3), above=0)
    learnt = {"trained": lambda e: e.net.outputs("low"), "trained_name": "accuracy"}
    assert verdict(holds, **learnt) == ("inconclusive", "not trained: accuracy 0.2, 0.95 asked")
    assert verdict(holds, **learnt, trained_at=0.2)[0] == "reproduced"
    because = lambda e: "not reached"
    assert verdict(holds, undecided_because=because) == ("inconclusive", "not reached")
    own = lambda e: {"value": 1, "ci95": [0.9, 1.1], "undecided_because": "coarse"}
    assert verdict(Condition("it", own, above=0)) == ("inconclusive", "coarse: it")


def test_runs_are_found_by_name_pattern_and_field():
    row = Claim(
        "X2", "with {code}", (Condition("{code}", lambda e: len(e.all) * np.ones(2), above=0),),
        each={"code": ("bump", "ramp", "none")}, trained=None,
        runs={"net": "{code}_cnn", "all": "*_cnn", "other": "{code}_mlp?"},
        details={"is there": lambda e: np.full(2, e.has("other"))},
    )  # fmt: skip
    names = ("bump_cnn", "ramp_cnn", "ramp_mlp")
    runs = {name: SimpleNamespace(seeds=(0, 1), name=name) for name in names}
    judged = judge_all([row], runs)
    assert [one["code"] for one in judged] == ["bump", "ramp"]  # nothing is judged without its run
    assert [one["statement"] for one in judged] == ["with bump", "with ramp"]
    assert [one["as_stated"]["measured"] for one in judged] == [2, 2]
    assert [one["details"]["is there"]["value"] for one in judged] == [0, 1]
    assert run_names(row) >= {"bump_cnn", "*_cnn", "none_mlp"}


def test_a_missing_optional_run_leaves_its_condition_undecided():
    row = claim(Condition("less", lambda e: e.net.outputs("low") - e.other.outputs("low"), above=0),
                runs={"net": "net", "other": "other?"})  # fmt: skip
    (judged,) = judge_all([row], {"net": RUN})
    assert judged["as_stated"]["reason"] == "not run: other: less"
    with pytest.raises(AttributeError, match="names no run 'nett'; it has net"):
        _ = Evidence({"net": RUN}).nett


def test_what_is_shared_is_computed_once():
    calls = []
    shared = once(lambda e: calls.append(1) or np.ones(3))
    row = claim(Condition("a", shared, above=0), Condition("b", shared, above=0))
    for evidence in (Evidence({"net": RUN}), Evidence({"net": RUN})):
        judge(row, evidence)
    assert len(calls) == 2  # once for each evidence


def test_claims_json_has_a_row_for_each_reading_and_reads_back():
    judged = [judge(claim(Condition("low", lambda e: e.net.outputs("low"), above=0)),
                    Evidence({"net": RUN}))]  # fmt: skip
    written = json.loads(json.dumps(directory.clean(rows(judged, "quick")), allow_nan=False))
    assert [row["reading"] for row in written] == ["as stated", "stricter"]
    assert {"claim", "statement", "figure", "criterion", "measured", "ci95", "seeds", "scale",
            "verdict", "reason"} <= set(written[0])  # fmt: skip
    assert from_rows(written) == directory.clean(judged)


def test_a_criterion_that_decides_wrongly_on_a_known_answer_is_named():
    row = claim(Condition("low", lambda e: e.net.outputs("low"), above=0.5))
    known = {
        name: KnownRun((0, 1), output_numbers={"low": value + np.array([0, 0.01])})
        for name, value in {"mechanism": 0.7, "other": 0.6, "low": 0.1}.items()
    }
    case = Case("X1", ("mechanism",), ("other", "low"))
    tried = Calibration("numbers", dict.fromkeys(known, "is a number"), (case,), lambda: known)
    table = decided(tried, [row])
    assert table["X1"]["low"] == ("contradicted", "contradicted")
    assert wrongly_decided(table, tried.cases) == [
        "X1 as_stated: other is reproduced", "X1 stricter: other is reproduced"
    ]  # fmt: skip
    assert wrongly_decided(table, (case._replace(passes=("other",)),)) == [
        "X1 stricter: other is reproduced"
    ]
    missed = case._replace(mechanism=("low",), excluded=())
    assert len(wrongly_decided(table, (missed,))) == 2
