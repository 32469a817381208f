"""The engine of claims: numbers over seeds, conditions, readings, and which runs a claim needs."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.calibration import Case, wrongly_decided
from compgen_jax.claims import Claim, Condition, Evidence, Reading, Undecided, judge
from compgen_jax.statistics import mean_with_interval

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
NAN = float("nan")


def judged(*conditions, seeds=(0, 1, 2), **changes):
    """The judged claim of these conditions on a run of these seeds, which needs no training."""
    claim = Claim("C0", "what is said", conditions, **{"trained": None} | changes)
    return judge(claim, Evidence({"net": SimpleNamespace(seeds=seeds)}))


def verdict(*conditions, seeds=(0, 1, 2)):
    return judged(*conditions, seeds=seeds)["as_stated"]["verdict"]


def over_seeds(values, **bounds):
    return Condition(f"{values} {sorted(bounds)}", np.array(values), **bounds)


def test_a_condition_needs_the_whole_interval():
    two = (0, 1)
    assert verdict(over_seeds([0.65, 0.7, 0.75], above=0.5)) == R
    assert verdict(over_seeds([0.65, 0.7, 0.75], below=0.5)) == C
    assert verdict(over_seeds([0.1, 0.7, 0.8], above=0.5)) == U
    pair = over_seeds([0.6, 0.61], above=0.5), over_seeds([0.1, 0.9], above=0.5)
    assert verdict(*pair, seeds=two) == U
    assert verdict(pair[1], over_seeds([0.1, 0.11], above=0.5), seeds=two) == C
    assert verdict(over_seeds([0.9], above=0.5), seeds=(0,)) == U  # one seed shows no spread


@pytest.mark.parametrize(
    ("interval", "bounds", "expected"),
    [
        ((1.1, 1.9), (1, 2), R),
        ((0.5, 1.0), (1, 2), C),
        ((2.0, 2.1), (1, 2), C),
        ((0.9, 1.5), (1, 2), U),
        ((1.5, 2.1), (1, 2), U),
        ((0.0, 3.0), (1, 2), U),
        ((NAN, NAN), (1, 2), U),
        ((1.1, 1.2), (1, None), R),
        ((0.9, 1.0), (1, None), C),
        ((0.9, 1.1), (1, None), U),
        ((1.1, 1.2), (None, 1), C),
    ],
)
def test_a_statistic_brings_its_interval(interval, bounds, expected):
    number = {"value": 1.5, "ci95": list(interval)}
    assert verdict(Condition("x", number, *bounds)) == expected
    reasoned = judged(Condition("x", number | {"undecided_because": "why"}, *bounds))
    assert reasoned["as_stated"]["verdict"] == U and reasoned["as_stated"]["reason"] == "why: x"


def test_a_reading_says_why_nothing_is_concluded():
    def missing(evidence):
        raise Undecided("does not compose")

    for reason, quantity in {
        "no interval": {"value": 0.9, "ci95": [NAN, NAN]},
        "interval crosses the bound": np.array([0.1, 0.9, 0.5]),
        "not known": np.full(3, NAN),
        "does not compose": missing,
    }.items():
        found = judged(Condition("what", quantity, above=0.5))["as_stated"]
        assert (found["verdict"], found["reason"]) == (U, f"{reason}: what")


def test_for_a_seed_with_several_checkpoints_the_median_counts():
    """In every number of a row; intervals are over seeds."""
    values = np.array([[0.1, 0.9, 0.8], [0.6, 0.0, 0.7]])
    medians = mean_with_interval([0.8, 0.6])
    for quantity in (values, lambda evidence: values):
        row = judged(
            Condition("what", quantity, above=0.5),
            seeds=(4, 9),
            trained=lambda evidence: [[1, 0, 1], [1, 0.9, 1]],
            details={"else": -values, "constant": 7},
        )
        assert row["seeds"] == [4, 9]
        assert row["as_stated"]["measured"] == medians["value"] == pytest.approx(0.7)
        assert row["as_stated"]["ci95"] == row["stricter"]["ci95"] == medians["ci95"]
        assert row["details"]["else"]["value"] == pytest.approx(-0.7)
        assert row["details"]["exact accuracy ID"]["value"] == 1.0
        assert row["details"]["constant"] == {"value": 7, "ci95": [7, 7]}
    other = np.arange(12).reshape(3, 4)  # of a run with three seeds of four checkpoints
    row = judged(Condition("what", other, above=0), seeds=(4, 9))
    assert row["as_stated"]["measured"] == pytest.approx(5.5)


def test_a_share_is_known_to_no_less_than_its_cells():
    """Seeds that agree to the cell have an interval; no share is beyond 0 or 1, and no difference
    of two beyond -1."""
    assert verdict(over_seeds([1.0] * 3, above=0.9, cells=30)) == R
    assert verdict(over_seeds([0.93] * 3, above=0.9, cells=lambda evidence: 30)) == U
    wide = [0.5, 0.9, 1.0]
    row = judged(over_seeds(wide, above=0.9, cells=30))
    low, high = mean_with_interval(wide)["ci95"]
    assert 0 < low and high > 1 and row["as_stated"]["ci95"] == [low, 1]
    apart = np.array([-1.0, 0.0, 0.2])
    low, high = mean_with_interval(apart)["ci95"]
    assert low < -1 and high > 1
    for least in (0, -1):
        one = Condition("apart", apart, above=0, cells=30, least=least)
        assert judged(one)["as_stated"]["ci95"] == [least, 1]


def test_a_ratio_is_judged_by_its_logarithm():
    """A geometric mean: 1/10 and 10 are 1 on the mean, and a ratio and its inverse agree."""
    values = np.array([0.2, 0.7, 0.4])
    found = judged(
        Condition("what", values, below=1, ratio=True),
        Condition("inverse", 1 / values, above=1, ratio=True),
    )["as_stated"]["conditions"]
    assert found["what"]["value"] == pytest.approx(np.prod(values) ** (1 / 3))
    assert found["inverse"]["value"] == pytest.approx(1 / found["what"]["value"])
    assert found["inverse"]["ci95"][0] == pytest.approx(1 / found["what"]["ci95"][1])
    assert verdict(over_seeds([0.1, 10.0], below=1, ratio=True), seeds=(0, 1)) == U
    assert verdict(over_seeds([0.0] * 3, below=1, ratio=True)) == R


@pytest.mark.parametrize(
    ("conditions", "verdict", "reason"),
    [
        # .9 +- .12 on three seeds; with the fourth .69 +- .68
        ([([0.05, 0.85, 0.9, 0.95], {"above": 0.5})], U, "one seed decides: reproduced without 0"),
        ([([0.9, 0.1, 0.15, 0.2], {"above": 0.5})], U, "one seed decides: contradicted without 0"),
        ([([0.0, 0.9, 0.1, 0.9], {"above": 0.5})], U, "interval crosses the bound"),
        ([([0.85, 0.9, 0.95, 0.9], {"above": 0.5})], R, ""),
        # a seed that decides one condition of two decides nothing, unless it fails
        (
            [([0.05, 0.85, 0.9, 0.95], {"above": 0.5}), ([0.0, 0.9, 0.1, 0.9], {"above": 0.5})],
            U,
            "interval crosses the bound",
        ),
        (
            [([0.95, 0.2, 0.15, 0.1], {"above": 0.5}), ([0.0, 0.9, 0.1, 0.9], {"above": 0.5})],
            U,
            "one seed decides: contradicted without 0",
        ),
        # what is no mean over seeds stays as it is
        (
            [([0.05, 0.85, 0.9, 0.95], {"above": 0.5}),
             ({"value": 1.0, "ci95": [0.9, 1.1]}, {"above": 0.5})],
            U,
            "one seed decides: reproduced without 0",
        ),
        ([({"value": 1.0, "ci95": [0.4, 1.1]}, {"above": 0.5})], U, "interval crosses the bound"),
    ],
)  # fmt: skip
def test_one_seed_decides_where_its_absence_does(conditions, verdict, reason):
    made = [Condition(f"{n}", value if isinstance(value, dict) else np.array(value), **bounds)
            for n, (value, bounds) in enumerate(conditions)]  # fmt: skip
    for values in (made, made[::-1]):
        found = judged(*values, seeds=(0, 1, 2, 3))["as_stated"]
        assert found["verdict"] == verdict
        assert found["reason"].startswith(reason.replace("without 0", "without seed 0"))


def test_two_seeds_cannot_lack_one_and_a_share_keeps_its_least_interval():
    two = judged(over_seeds([0.1, 0.9], above=0.5), seeds=(0, 1))["as_stated"]
    assert two["reason"].startswith("interval crosses the bound")
    shares = [0.2, 0.93, 0.93, 0.93]
    for cells, reason in ((30, "interval crosses"), (300, "one seed decides: reproduced")):
        condition = over_seeds(shares, above=0.9, cells=cells)
        found = judged(condition, seeds=(0, 1, 2, 3))["as_stated"]
        assert found["reason"].startswith(reason)
    ratio = over_seeds([100.0, 0.1, 0.12, 0.11], below=1, ratio=True)
    found = judged(ratio, seeds=(5, 6, 7, 8))["as_stated"]
    crosses = f"(interval crosses the bound: {ratio.name})"
    assert found["reason"] == f"one seed decides: reproduced without seed 5 {crosses}"
    two_low = over_seeds([0.9, 0.15, 0.9, 0.9, 0.9, 0.15, 0.9, 0.9], above=0.5)
    reason = judged(two_low, seeds=range(8))["as_stated"]["reason"]
    assert reason.startswith("one seed decides: reproduced without seed 1 or seed 5 (interval")


def test_nothing_is_concluded_from_what_was_not_learnt():
    """Each reading has its own gate."""
    high, low = (lambda evidence, level=level: np.full(3, level) for level in (1.0, 0.5))
    condition = over_seeds([1.0, 1.1, 1.2], above=0)
    row = judged(condition, trained=low)
    assert {row[reading]["verdict"] for reading in claims.READINGS} == {U}
    assert row["as_stated"]["reason"] == "not trained: exact accuracy ID 0.5, 0.95 asked"
    for first, second, expected in ((high, low, (R, U)), (low, high, (U, R))):
        row = judged(condition, trained=first, stricter=Reading((condition,), second, "the other"))
        assert tuple(row[reading]["verdict"] for reading in claims.READINGS) == expected
        assert row["details"].keys() == {"exact accuracy ID", "the other"}


def test_a_claim_is_judged_for_every_combination_whose_runs_are_there():
    runs = {name: SimpleNamespace(name=name, seeds=(0, 1)) for name in
            ("bump_cnn", "bump_cnn_depth2", "bump_cnn_depth6", "ramp_cnn", "random")}  # fmt: skip
    claim = Claim(
        "C0",
        "of {code}",
        lambda e: (Condition("{code}", np.array([1.0, 1.1]), above=0),),
        stricter=(Condition("less the other's", lambda e: e.other.size, above=0),),
        each={"code": ("bump", "ramp", "onehot")},
        runs={"net": "{code}_cnn", "deeper": "{code}_cnn_depth*", "other": "{code}_random?"},
        trained=None,
    )
    (row,) = claims.judge_all([claim], runs)  # ramps have no other depth, one-hot codes no run
    assert (row["code"], row["statement"]) == ("bump", "of bump")
    assert list(row["as_stated"]["conditions"]) == ["bump"]
    assert row["stricter"]["reason"] == "not run: bump_random: less the other's"
    (evidence,) = claims.evidences(claim, runs)
    assert [run.name for run in evidence.deeper] == ["bump_cnn_depth2", "bump_cnn_depth6"]
    listed = Claim("C0", "", (), each=({"a": 1, "run": "random"},), runs={"net": "{run}"})
    (evidence,) = claims.evidences(listed, runs)
    assert evidence.a == 1 and evidence.first is evidence.net is runs["random"]
    with pytest.raises(AttributeError, match="names no run 'nets'; it has net"):
        evidence.nets  # noqa: B018


def test_a_claim_makes_two_rows_that_are_read_back():
    found = [judged(over_seeds([0.6, 0.7, 0.8], above=bound)) for bound in (0.5, 0.9)]
    rows = claims.rows(found, "quick")
    assert [row["reading"] for row in rows] == ["as stated", "stricter"] * 2
    fields = {"claim", "reading", "statement", "figure", "criterion", "measured", "ci95", "seeds",
              "scale", "verdict", "reason", "code", "conditions", "details", "runs"}  # fmt: skip
    assert all(row.keys() == fields and row["scale"] == "quick" for row in rows)
    assert rows[3]["measured"] == found[1]["stricter"]["measured"]
    (number,) = rows[0]["conditions"].values()
    assert number["per_seed"] == pytest.approx([0.6, 0.7, 0.8])
    assert claims.from_rows(json.loads(json.dumps(rows))) == found


def test_what_is_decided_wrongly_is_named():
    case = Case("C1", mechanism=("noise", "blank"), excluded=("bump", "edge"), passes=("edge",))
    table = {"noise": (R, C), "blank": (R, R), "bump": (R, C), "edge": (R, R)}
    assert wrongly_decided({"C1": table}, (case,)) == [
        "C1 stricter: noise is contradicted",
        "C1 as_stated: bump is reproduced",
        "C1 stricter: edge is reproduced",
    ]
