"""The engine of claims: numbers over seeds, conditions, verdicts, their settings, known answers."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax import claims
from compgen_jax.claims import Condition, above, below, between, claim, judge, learnt, note
from compgen_jax.criteria_source import fingerprint
from compgen_jax.statistics import mean_with_interval, share_with_interval

R, C, U = claims.REPRODUCED, claims.CONTRADICTED, claims.INCONCLUSIVE
NAN = float("nan")


def judged(*yielded, seeds=(0, 1, 2)):
    """The row of a claim that yields this, on a run of these seeds."""

    @claim("C0", runs={"net": "net"})
    def said(net):
        """What is said."""
        yield from yielded

    return judge(said, {"net": SimpleNamespace(seeds=seeds)})


def verdict(*yielded, seeds=(0, 1, 2)):
    return judged(*yielded, seeds=seeds)["verdict"]


def over_seeds(values, **how):
    return Condition(f"{values} {sorted(how)}", np.array(values), **how)


def test_a_condition_needs_the_whole_interval():
    assert verdict(above(0.5, np.array([0.65, 0.7, 0.75]), "x")) == R
    assert verdict(below(0.5, np.array([0.65, 0.7, 0.75]), "x")) == C
    assert verdict(between(0.1, 0.5, np.array([0.65, 0.7, 0.75]), "x")) == C
    assert verdict(over_seeds([0.1, 0.7, 0.8], above=0.5)) == U
    pair = over_seeds([0.1, 0.9], above=0.5), over_seeds([0.1, 0.11], above=0.5)
    assert verdict(*pair, seeds=(0, 1)) == C
    assert verdict(over_seeds([0.9], above=0.5), seeds=(0,)) == U  # one seed shows no spread
    assert judged(note("alone", 1.0)) is None


@pytest.mark.parametrize(
    ("interval", "bounds", "expected"),
    [
        ((1.1, 1.9), (1, 2), R),
        ((0.5, 1.0), (1, 2), C),
        ((1.5, 2.1), (1, 2), U),
        ((NAN, NAN), (1, 2), U),
        ((0.9, 1.0), (1, None), C),
        ((1.1, 1.2), (None, 1), C),
    ],
)
def test_a_statistic_brings_its_interval(interval, bounds, expected):
    number = {"value": 1.5, "ci95": list(interval)}
    assert verdict(Condition("x", number, *bounds)) == expected
    row = judged(Condition("x", number | {"undecided_because": "why"}, *bounds))
    assert (row["verdict"], row["reason"]) == (U, "why: x")


def test_a_claim_says_why_nothing_is_concluded():
    for reason, values in {
        "no interval": {"value": 0.9, "ci95": [NAN, NAN]},
        "interval crosses the bound": np.array([0.1, 0.9, 0.5]),
        "not known": np.full(3, NAN),
        "does not compose": claims.unknown("does not compose"),
    }.items():
        row = judged(above(0.5, values, "what"))
        assert (row["verdict"], row["reason"]) == (U, f"{reason}: what")
    sure = over_seeds([1.0, 1.1, 1.2], above=0)
    assert verdict(claims.Undecided(""), sure) == R
    assert judged(claims.Undecided("too few"), sure)["reason"] == "too few"
    row = judged(learnt(np.full(3, 0.5)), sure)
    assert row["verdict"] == U
    assert row["reason"] == "not trained: exact accuracy ID 0.5, 0.95 asked"
    assert verdict(learnt(np.full(3, 0.5), "share", at=0.4), sure) == R


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
    assert verdict(over_seeds([1.0] * 3, above=0.9, cells=30)) == R
    assert verdict(over_seeds([0.93] * 3, above=0.9, cells=30)) == U
    for values, least in (([0.5, 0.9, 1.0], 0), ([-1.0, 0.0, 0.2], -1), ([-1.0, 0.0, 0.2], 0)):
        low, high = mean_with_interval(values)["ci95"]
        row = judged(Condition("x", np.array(values), above=0.9, cells=30, least=least))
        assert row["conditions"]["x"]["ci95"] == [max(low, least), min(high, 1)]


def test_a_ratio_is_judged_by_its_logarithm():
    """A geometric mean: 1/10 and 10 are 1 on the mean, and a ratio and its inverse agree."""
    values = np.array([0.2, 0.7, 0.4])
    found = judged(
        below(1, values, "what", ratio=True), above(1, 1 / values, "inverse", ratio=True)
    )["conditions"]
    assert found["what"]["value"] == pytest.approx(np.prod(values) ** (1 / 3))
    assert found["inverse"]["value"] == pytest.approx(1 / found["what"]["value"])
    assert found["inverse"]["ci95"][0] == pytest.approx(1 / found["what"]["ci95"][1])
    assert verdict(over_seeds([0.1, 10.0], below=1, ratio=True), seeds=(0, 1)) == U


@pytest.mark.parametrize(
    ("conditions", "verdict", "reason"),
    [
        # .9 +- .12 on three seeds; with the fourth .69 +- .68
        ([[0.05, 0.85, 0.9, 0.95]], U, "one seed decides: reproduced without seed 0"),
        ([[0.9, 0.1, 0.15, 0.2]], U, "one seed decides: contradicted without seed 0"),
        ([[0.85, 0.9, 0.95, 0.9]], R, ""),
        # a seed that decides one condition of two decides nothing, unless it fails
        ([[0.05, 0.85, 0.9, 0.95], [0.0, 0.9, 0.1, 0.9]], U, "interval crosses the bound"),
        # what is no mean over seeds stays as it is
        ([[0.05, 0.85, 0.9, 0.95], {"value": 1.0, "ci95": [0.9, 1.1]}], U, "one seed decides: rep"),
    ],
)
def test_one_seed_decides_where_its_absence_does(conditions, verdict, reason):
    made = [Condition(f"{n}", v if isinstance(v, dict) else np.array(v), above=0.5)
            for n, v in enumerate(conditions)]  # fmt: skip
    for values in (made, made[::-1]):
        row = judged(*values, seeds=(0, 1, 2, 3))
        assert row["verdict"] == verdict and row["reason"].startswith(reason)


def test_a_seed_that_decides_is_named_and_a_share_keeps_its_least_interval():
    for cells, reason in ((30, "interval crosses"), (300, "one seed decides: reproduced")):
        condition = over_seeds([0.2, 0.93, 0.93, 0.93], above=0.9, cells=cells)
        assert judged(condition, seeds=(0, 1, 2, 3))["reason"].startswith(reason)
    ratio = over_seeds([100.0, 0.1, 0.12, 0.11], below=1, ratio=True)
    crosses = f"(interval crosses the bound: {ratio.name})"
    reason = judged(ratio, seeds=(5, 6, 7, 8))["reason"]
    assert reason == f"one seed decides: reproduced without seed 5 {crosses}"


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
    (row,) = claims.judge_all([is_high], runs, "quick")  # ramps have no other depth
    assert claims.key_of(row) == ("C0", "bump, 2", "quick", "base")
    assert row["statement"] == "With the bump code it is high" and row["figure"] == "Fig 1"
    assert row["runs"] == ["bump_cnn", "bump_cnn_depth*"]
    assert row["criterion"] == "value of bump and 2 more above 0.5"
    assert claims.missing(is_high, is_high.cases[1], runs) == ["ramp_cnn_depth*"]
    assert json.loads(json.dumps(row)) == row  # as claims.json keeps it
    # at a setting, all runs of a pattern must have it
    for count, verdicts in ((2, []), (3, [C])):
        there = {name: network(0.1, 0.2, 0.1) for name in names[:count]}
        at = claims.judge_all([is_high], there, "quick", "upright", every=names)
        assert [row["verdict"] for row in at] == verdicts


def test_rows_of_settings_stay_while_the_criterion_is_the_same():
    base = rows_of("base", R)
    before, newer = rows_of("upright", C), rows_of("upright", U)
    other = rows_of("wide", C, criterion="another")
    assert claims.of_settings([*before, *other], [], base) == before
    assert claims.of_settings(before, newer, base) == newer
    (renamed,) = claims.of_settings([], other, base)  # its numbers may be named by the setting
    assert renamed["criterion"] == "c"
    assert claims.of_settings(before, [], []) == []


def rows_of(setting, *verdicts, criterion="c", case="bump", scale="quick", reason=""):
    return [{"claim": "C0", "case": case, "scale": scale, "setting": setting, "verdict": verdict,
             "reason": reason, "criterion": criterion} for verdict in verdicts]  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "others", "expected", "reason"),
    [
        (C, [C, C, C], C, ""),
        (C, [C, U, C], U, "depends on s2"),
        (C, [R, R, U, C], U, "depends on s1; s2; 1 more"),
        (C, [C, "not trained"], C, ""),  # says nothing
        (R, [U, R], R, ""),
        (R, [U, U, R], U, "depends on s1; s2"),  # fewer than half agree
        (R, [U, C, R, R, R], U, "depends on s2"),
        (U, [C, R], U, ""),
    ],
)
def test_a_verdict_stands_unless_it_depends_on_a_setting(verdict, others, expected, reason):
    base, rows = rows_of("base", verdict), []
    for number, other in enumerate(others, start=1):
        why = "not trained: 0.1" if other == "not trained" else ""
        rows += rows_of(f"s{number}", U if why else other, reason=why)
    found, *same = claims.with_settings([*base, *rows, *rows_of("base", R, case="ramp")])
    assert list(map(claims.at_base, same)) == [*rows, *rows_of("base", R, case="ramp")]
    assert (found["verdict"], found["reason"]) == (expected, reason)
    trained = [other for other in others if other != "not trained"]
    assert claims.share(found) == f"{trained.count(verdict)} of {len(trained)}"
    assert claims.at_base(found) == base[0]
    assert claims.with_settings([found, *rows])[0] == found  # not applied twice


def test_a_claim_that_was_asked_at_the_base_alone_goes_by_the_one_that_it_is_part_of():
    for verdict, other, criterion, expected, reason in (
        (R, C, "c; more", U, "depends on s"),  # asks all of it, and more
        (R, C, "more", R, ""),
        (C, R, "more", U, "not asked at s"),
    ):
        own = rows_of("base", verdict, criterion=criterion)[0] | {"claim": "C0.part"}
        found = claims.with_settings([own, *rows_of("base", U), *rows_of("s", other)])[0]
        assert (found["verdict"], found["reason"]) == (expected, reason)
        assert claims.at_base(found) == own and claims.share(found) == ""


@pytest.mark.parametrize(
    ("own", "scale", "settings", "expected"),
    [
        (None, "quick", (), C),  # a sentence of ours
        ("base", "paper", (), C),
        ("base", "quick", (), U),
        ("authors'", "paper", ("authors'",), C),
        ("authors'", "paper", ("other",), U),
        (claims.NOWHERE, "paper", ("other",), U),
    ],
)
def test_a_paper_is_contradicted_by_its_figures_own_networks_alone(own, scale, settings, expected):
    rows = [rows_of(setting, C, scale=scale)[0] | {"own": own} for setting in ("base", *settings)]
    found, *others = claims.with_settings(rows)
    assert found["verdict"] == expected
    assert found["reason"] == ("" if expected == C else claims.OTHER_NETWORK)
    assert [one["verdict"] for one in others] == [C if own in settings else U] * len(others)


def test_seeds_that_do_it_are_counted():
    """The interval of 11 of 12 is that of tables (Clopper and Pearson 1934)."""
    row = judged(claims.most_seeds(np.arange(12) > 0, "x"), seeds=range(12))
    number = row["conditions"]["x"]
    assert number["ci95"] == pytest.approx([0.6152, 0.9979], abs=1e-4)
    assert number["value"] == 11 / 12 and row["verdict"] == R
    late = np.array([[1, 1, 0], [0, 1, 0]])  # more than half of the late checkpoints
    assert judged(claims.most_seeds(late, "x"), seeds=(0, 1))["conditions"]["x"]["value"] == 0.5
    assert verdict(claims.most_seeds(np.zeros(12), "x"), seeds=range(12)) == C


def test_a_small_effect_of_the_right_sign_does_not_contradict():
    small = np.array([0.2, 0.25, 0.3])
    assert verdict(above(0.8, small, "x", against=0)) == U
    assert verdict(above(0.8, -small, "x", against=0)) == C
    assert verdict(below(-0.8, -small, "x", against=0)) == U


def test_networks_of_a_paper_are_judged_as_it_trained_them():
    @claim("C0", cases=[{"as_trained": True}, {}], runs={"net": "net"})
    def said(net):
        """What is said."""
        yield learnt(0.1)
        yield above(0.5, np.array([0.65, 0.7, 0.75]), "x")

    run = SimpleNamespace(seeds=(0, 1, 2))
    verdicts = [judge(said, {"net": run}, case)["verdict"] for case in said.cases]
    assert verdicts == [R, U]


def test_a_verdict_is_confirmed_once_while_its_criterion_is_the_same():
    base = rows_of("base", R)[0] | {"source": "a"}
    fresh = rows_of(claims.FRESH, C)[0] | {"source": "a"}
    again = rows_of(claims.FRESH, R)[0] | {"source": "a"}
    assert claims.of_settings([fresh], [again], [base]) == [fresh]
    confirmed = lambda row, *others: claims.with_settings([row, *others])[0]["confirmed"]
    assert confirmed(base, fresh) == "no" and confirmed(base, again) == "yes"
    assert confirmed(base) == "" and claims.with_settings([base, fresh])[0]["verdict"] == R
    changed = base | {"source": "b"}
    assert claims.of_settings([fresh], [], [changed]) == [] and confirmed(changed, again) == ""


CRITERION = """
from compgen_jax.claims import above
BOUND = 0.5

def helper(net):
    return net.values

def said(net):
    'A sentence.'
    yield above(BOUND, helper(net), "x")
"""


def test_a_fingerprint_follows_the_code_of_a_criterion(tmp_path):
    def of(text, case=None):
        path, scope = tmp_path / f"{len(list(tmp_path.iterdir()))}.py", {}
        path.write_text(text)
        exec(compile(text, str(path), "exec"), scope)
        return fingerprint(scope["said"], case or {}, {"net": "net"})

    same = CRITERION.replace("A sentence", "Another"), CRITERION.replace("0.5", ".5  # half")
    assert {of(each) for each in same} == {of(CRITERION)}
    others = CRITERION.replace("0.5", "0.6"), CRITERION.replace("net.values", "-net.values")
    assert len({of(CRITERION), *map(of, others), of(CRITERION, {"code": "ramp"})}) == 4


def test_what_a_matrix_does_not_say_is_named():
    @claim("C1", cases=[{"case": "bump"}], runs={"net": "net"})
    def high(net):
        """It is high."""
        yield above(0.5, net.values, "value")

    known = {"bump": network(0.9, 0.9, 0.8), "noise": network(0.1, 0.2, 0.1)}
    letters = {"bump": "-", "noise": "R"}
    matrix = claims.Matrix("N = 16", {}, lambda: known, {"C1": letters, "C1, again": {"bump": "r"}},
                    {"C1, again": lambda name, known: {"net": known["noise"]}})  # fmt: skip
    table = claims.tried(matrix, [high])
    assert table == {"C1": {"bump": R, "noise": C}, "C1, again": {"bump": C}}
    assert claims.wrongly_decided(table, matrix) == [
        "N = 16: C1: bump is reproduced, and must be -",
        "N = 16: C1: noise is contradicted, and must be R",
        "N = 16: C1, again: bump is contradicted, and must be r",
    ]
