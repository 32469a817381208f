"""The engine of claims: numbers over seeds, conditions, verdicts, rows of settings."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.claims import Condition, above, below, between, claim, judge, learnt, note
from compgen_jax.papers.verdicts import judge_all
from compgen_jax.statistics import mean_with_interval, share_with_interval
from figures import committed

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
NAN = float("nan")


def claim_of(*yielded, **how):
    """A claim that yields this."""

    @claim("C0", runs={"net": "net"}, **how)
    def said(net):
        """What is said."""
        yield from yielded

    return said


RUN = {"net": SimpleNamespace(seeds=(0, 1, 2))}
HIGH = above(0.5, np.array([0.65, 0.7, 0.75]), "x")


def judged(*yielded, seeds=(0, 1, 2)):
    """The row of a claim that yields this, on a run of these seeds."""
    return judge(claim_of(*yielded), {"net": SimpleNamespace(seeds=seeds)})


def verdict(*yielded, seeds=(0, 1, 2)):
    return judged(*yielded, seeds=seeds)["verdict"]


def test_a_condition_needs_the_whole_interval():
    """Of values by seed, or of a statistic that brings its own."""
    statistic = lambda *ends: {"value": 1.5, "ci95": list(ends)}
    for condition, expected in (
        (HIGH, R),
        (below(0.5, HIGH.values, "x"), C),
        (between(1, 2, statistic(1.1, 1.9), "x"), R),
        (between(1, 2, statistic(0.5, 1.0), "x"), C),
        (between(1, 2, statistic(1.5, 2.1), "x"), U),
        (above(0.8, [0.2, 0.25, 0.3], "x", against=0), U),  # a small effect of the right sign
        (above(0.8, [-0.2, -0.25, -0.3], "x", against=0), C),
        (below(-0.8, [-0.2, -0.25, -0.3], "x", against=0), U),
    ):
        assert verdict(condition) == expected, condition
    pair = above(0.5, [0.1, 0.9], "x"), above(0.5, [0.1, 0.11], "y")
    assert verdict(*pair, seeds=(0, 1)) == C
    assert judged(note("alone", 1.0)) is None


def test_a_claim_says_why_nothing_is_concluded():
    values = np.array([1.0, 1.1, 1.2])
    for reason, values_of in {
        "no interval": {"value": 0.9, "ci95": [NAN, NAN]},
        "interval crosses the bound": np.array([0.1, 0.9, 0.5]),
        "not known": np.full(3, NAN),
        "does not compose": claims.unknown("does not compose"),
        "too few": mean_with_interval(values) | {"undecided_because": "too few"},
    }.items():
        row = judged(above(0.5, values_of, "what"))
        assert (row["verdict"], row["reason"]) == (U, f"{reason}: what")
    assert row["conditions"]["what"]["value"] == pytest.approx(1.1)
    row = judged(learnt(np.full(3, 0.5)), HIGH)
    assert row["verdict"] == U
    assert row["reason"] == "not trained: exact accuracy ID 0.5, 0.95 needed"
    assert verdict(learnt(np.full(3, 0.5), "share", at=0.4), HIGH) == R


def test_a_contradicted_claim_says_what_of_it_holds():
    low = above(0.8, HIGH.values, "y")
    assert judged(HIGH, low)["reason"] == "interval crosses the bound: y"
    row = judged(HIGH, below(0.5, HIGH.values, "z"), below(1, HIGH.values, "w"))
    assert (row["verdict"], row["reason"]) == (C, "holds: x, w")
    assert judged(below(0.5, HIGH.values, "z"))["reason"] == ""


def test_a_verdict_is_near_its_bound_where_the_interval_ends_within_a_tenth_of_its_width():
    """On either side; of the conditions that decide it alone."""
    at = lambda *ends: {"value": float(np.mean(ends)), "ci95": list(ends)}
    near = lambda *yielded: claims.near_bounds(judged(*yielded))
    for low, high, is_near in (
        (0.1, 1.1, True), (0.11, 1.11, False), (-0.1, 0.9, True), (-0.11, 0.89, False),
        (-1.1, -0.1, True), (-1.11, -0.11, False), (-0.5, 0.5, False), (0.05, np.inf, False),
        (NAN, NAN, False),
    ):  # fmt: skip
        assert near(above(0, at(low, high), "x")) == ["x"] * is_near, (low, high)
    assert near(between(1e-05, 2, at(1.1, 1.95), "x")) == ["x"]
    assert near(between(-1.5, 2, at(-1.55, -0.5), "x")) == ["x"]
    fails, close = above(0, at(-2, -1), "fails"), above(0, at(0.1, 1.1), "close")
    assert near(close, above(0, at(1, 2), "far")) == ["close"] and near(close, fails) == []
    assert near(learnt(np.full(3, 0.5)), close) == []


def test_for_a_seed_with_several_checkpoints_the_median_counts():
    """In every number of a row; intervals are over seeds."""
    values = np.array([[0.1, 0.9, 0.8], [0.6, 0.0, 0.7]])
    medians = mean_with_interval([0.8, 0.6])
    row = judged(
        above(0.5, values, "what"),
        learnt(np.array([[1, 0, 1], [1, 0.9, 1]])),
        note("else", -values),
        note("constant", 7),
        note("counted", values > 0.75),
        seeds=(4, 9),
    )
    number = row["conditions"]["what"]
    assert row["seeds"] == [4, 9] and number["per_seed"] == pytest.approx([0.8, 0.6])
    assert (number["value"], number["ci95"]) == (medians["value"], medians["ci95"])
    assert row["notes"]["else"]["value"] == pytest.approx(-0.7)
    assert row["notes"]["exact accuracy ID"]["value"] == 1.0
    assert row["notes"]["constant"] == {"value": 7, "ci95": [7, 7]}
    assert row["notes"]["counted"] == share_with_interval([True, False])


def test_a_share_is_known_to_no_less_than_its_cells():
    """Seeds that agree to the cell have an interval; no share is beyond 0 or 1, and no difference
    of two beyond -1."""
    row = judged(Condition("x", np.full(3, 0.93), above=0.9, cells=30))
    assert row["verdict"] == U
    assert row["conditions"]["x"]["ci95"] == pytest.approx([0.88, 0.98])
    for values, least in (([0.5, 0.9, 1.0], 0), ([-1.0, 0.0, 0.2], -1), ([-1.0, 0.0, 0.2], 0)):
        low, high = mean_with_interval(values)["ci95"]
        row = judged(Condition("x", np.array(values), above=0.9, cells=30, least=least))
        assert row["conditions"]["x"]["ci95"] == [max(low, least), min(high, 1)]


def test_a_ratio_is_judged_by_its_logarithm():
    """A geometric mean: 1/10 and 10 are 1 on the mean."""
    values = np.array([0.2, 0.7, 0.4])
    number = judged(below(1, values, "what", ratio=True))["conditions"]["what"]
    logs = mean_with_interval(np.log(values))
    assert np.log(number["value"]) == pytest.approx(logs["value"])
    assert np.log(number["ci95"]) == pytest.approx(logs["ci95"])
    assert verdict(below(1, [0.1, 10.0], "x", ratio=True), seeds=(0, 1)) == U


def network(*values):
    return SimpleNamespace(seeds=(0, 1, 2), values=np.array(values))


@claim(
    "C0",
    figure="Fig 1",
    cases=[{"code": code, "depth": 2} for code in ("bump", "ramp", "onehot")],
    runs={"net": "{code}_cnn", "deeper": "{code}_cnn_depth*"},
)
def is_high(net, deeper, code):
    """With the {code} code it is high."""
    yield above(0.5, net.values, f"value of {code} and {len(deeper)} more")


def test_a_claim_is_judged_for_every_case_whose_runs_are_there():
    names = "bump_cnn", "bump_cnn_depth2", "bump_cnn_depth6", "ramp_cnn", "other"
    runs = {name: network(0.9, 0.8, 0.9) for name in names}
    (row,) = judge_all([is_high], runs, "quick")  # ramps have no other depth
    assert committed.key_of(row) == ("C0", "bump, 2", "quick", "base")
    assert row["statement"] == "With the bump code it is high" and row["figure"] == "Fig 1"
    assert row["runs"] == ["bump_cnn", "bump_cnn_depth*"]
    assert row["criterion"] == "value of bump and 2 more above 0.5"
    assert json.loads(json.dumps(row)) == row  # as claims.json keeps it
    # at a setting, all runs of a pattern must have it
    for count, verdicts in ((2, []), (3, [C])):
        there = {name: network(0.1, 0.2, 0.1) for name in names[:count]}
        at = judge_all([is_high], there, "quick", "upright", every=names)
        assert [row["verdict"] for row in at] == verdicts


def test_a_variant_is_the_same_function_with_more_fields_of_its_cases():
    @claim("C0", cases=[{"case": "bump"}], runs={"net": "net"})
    def exceeds(net, least=0.5):
        """It is high."""
        yield above(least, net.values, "value")

    higher = exceeds.variant("C0.higher", "The {case} is higher.", least=0.95, after=True)
    assert (exceeds.after, higher.after, higher.variant("C0.same", "").after) == (False, True, True)
    rows = judge_all([exceeds, higher], {"net": network(0.9, 0.89, 0.9)})
    said = [(row["statement"], row["case"], row["verdict"]) for row in rows]
    assert said == [("It is high", "bump", R), ("The bump is higher", "bump", C)]


def row_of(setting, verdict, criterion="value above 0"):
    return {"claim": "C0", "case": "bump", "scale": "quick", "setting": setting,
            "verdict": verdict, "criterion": criterion}  # fmt: skip


def test_rows_of_settings_stay_while_the_criterion_is_the_same():
    base, before, newer = row_of("base", R), row_of("upright", C), row_of("upright", U)
    other, older = row_of("wide", C, "value above 1"), row_of("base", C)
    assert committed.merged([before, other, older], [base]) == [base, before]
    assert committed.merged([before], [base, newer]) == [base, newer]
    assert committed.merged([before], []) == []


@pytest.mark.parametrize(
    ("scale", "case", "setting", "network"),
    [
        ("quick", {}, "", "ours"),
        ("paper", {}, "", "figure"),
        ("paper", {"network": "longer"}, "base", "longer"),
        ("paper", {"setting": "authors'"}, "", "figure"),
        ("paper", {}, "upright", "ours"),
    ],
)
def test_a_row_says_whose_network_was_judged(scale, case, setting, network):
    said = claim_of(HIGH, network="figure")
    assert judge(said, RUN, case, scale, setting)["network"] == network
    assert judge(claim_of(HIGH), RUN, {}, "paper")["network"] == "text"


def test_seeds_that_do_it_are_counted():
    """The interval of 11 of 12 is that of tables (Clopper and Pearson 1934)."""
    row = judged(claims.most_seeds(np.arange(12) > 0, "x"), seeds=range(12))
    number = row["conditions"]["x"]
    assert number["ci95"] == pytest.approx([0.6152, 0.9979], abs=1e-4)
    assert number["value"] == 11 / 12 and row["verdict"] == R
    late = np.array([[1, 0, 1, 0], [1, 0, 1, 1]])  # more than half of the late checkpoints
    assert judged(claims.most_seeds(late, "x"), seeds=(0, 1))["conditions"]["x"]["value"] == 0.5
    assert verdict(claims.most_seeds(np.zeros(12), "x"), seeds=range(12)) == C


def test_networks_of_a_paper_are_judged_as_it_trained_them():
    for case, expected in (({"as_trained": True}, R), ({}, U)):
        assert judge(claim_of(learnt(0.1), HIGH), RUN, case)["verdict"] == expected
