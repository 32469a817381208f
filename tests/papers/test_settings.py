"""Settings around base networks: their configs, claims judged there, and verdicts that depend on
them."""

import fnmatch
from types import SimpleNamespace

import numpy as np
import pytest

from compgen_jax.claims import Claim, Condition, from_rows, judge_all, rows
from compgen_jax.config import changed
from compgen_jax.papers import robustness, settings
from compgen_jax.papers.forced_rendering import runs as first_paper
from compgen_jax.papers.forced_rendering.settings import GROUPS
from compgen_jax.papers.settings import Group, times, to, training_time

R, C, U = "reproduced", "contradicted", "inconclusive"
LOW, MIDDLE, HIGH = (0.1, 0.2, 0.1), (0.1, 0.9, 0.5), (0.9, 0.8, 0.9)


def network(values, learnt=1.0):
    return SimpleNamespace(seeds=(0, 1, 2), values=np.array(values), learnt=np.full(3, learnt))


def above_half(argument):
    return Condition("value", lambda e: getattr(e, argument).values, above=0.5)


def claim(name="X1", **fields):
    fields = {"runs": {"net": "base"}, "code": "bump"} | fields
    fields.setdefault("as_stated", above_half("net"))
    return Claim(name, "it is high", trained=lambda e: e.net.learnt, **fields)


# --- configs


def test_settings_change_one_thing_and_keep_the_names_of_runs_that_exist(tiny):
    wide = changed(tiny, {"name": "broad", "model.width": 16})
    group = Group(("net",), (times("model.width", 2), times("training.learning_rate", 1 / 3),
                             training_time(2.0), to("depth 3", model__depth=3)))  # fmt: skip
    found = settings.configs((group,), {"net": tiny, "wide": wide})
    assert found["net", "width x2"] == wide
    slow = found["net", "learning rate x1/3"]
    assert slow.training.learning_rate == pytest.approx(tiny.training.learning_rate / 3)
    assert slow.name == "tiny_learning_rate_x1_3"
    assert changed(slow, {"name": "tiny", "training.learning_rate":
                          tiny.training.learning_rate}) == tiny  # fmt: skip
    long = found["net", "training time x2"].training
    assert (long.epochs, long.evaluate_every) == (12, 4)
    assert found["net", "depth 3"].model.depth == 3
    assert settings.configs((group,), {"other": tiny}) == {}


def test_a_setting_has_one_meaning_in_all_groups_of_the_first_paper():
    """Claims that compare networks of two groups are judged where both have a setting."""
    base = {name: one for name, one in first_paper.runs("quick").items() if not one.is_sweep}
    found = settings.configs(GROUPS, base)
    assert len(found) == sum(len(group.bases) * len(group.settings) for group in GROUPS)
    assert all(name.endswith("_quick") for name in [config.name for config in found.values()])
    assert found["bump_cnn", "corner"] == base["corner_bumps"]
    assert found["stripes_0_bumps", "upright"].task.image.polarity == "upright"
    # what C12 and C13 compare as stated is changed together
    (stripes,) = (set(group.bases) for group in GROUPS if "stripes_0_bumps" in group.bases)
    compared = {name for name in base if fnmatch.fnmatchcase(name, "stripes_*_bumps")}
    assert stripes == compared | {"corner_bumps"} and len(compared) == 3


# --- judging at a setting


def test_a_claim_is_asked_where_all_runs_that_it_compares_are_at_the_setting():
    runs = {"base": network(HIGH), "other": network(HIGH), "far": network(LOW)}
    less = Condition("less the other's", lambda e: e.net.values - e.other.values, above=-2)
    claims = (
        claim(),
        claim("X2", runs={"net": "base", "other": "far?"}, stricter=less),
        claim("X3", runs={"net": "base", "other": "far"}, as_stated=less),
        claim("X4", runs={"net": "base", "other": "other"}, as_stated=less),
        claim("X5", runs={"net": "far"}),
        claim("X6", runs={"net": "other", "all": "*"}, as_stated=lambda e: above_half("net")),
    )
    judged = judge_all(claims, runs)
    there = {"base": network(LOW), "other": network(MIDDLE)}
    found = robustness.at_setting(claims, judged, runs, there, runs, "upright", in_paper=False)
    assert [(row["claim"], row["verdict"]) for row in found] == [
        ("X1", C), ("X2", C), ("X4", R), ("X6", U)
    ]  # fmt: skip
    # all runs of a pattern, of which one is not finished
    total = Condition("sum", lambda e: sum(run.values for run in e.all), above=0.5)
    of_all = [claim("X7", runs={"net": "base", "all": "*"}, as_stated=total)]
    both = {name: runs[name] for name in there}
    judged_both = judge_all(of_all, both)
    for names, asked in ((there, 1), (runs, 0)):
        at_s = robustness.at_setting(of_all, judged_both, both, there, names, "s")
        assert len(at_s) == asked
    # what is no name of a run: it stands for itself, or is chosen by a function
    others = {"sizes": [1, 2], "chosen": lambda runs: [runs["base"]]}
    asked = Condition("sum", lambda e: e.net.values + sum(e.sizes) + e.chosen[0].values, above=0)
    no_names = [claim("X8", runs={"net": "base", **others}, as_stated=asked)]
    at_s = robustness.at_setting(no_names, judge_all(no_names, both), both, there, runs, "s")
    assert [row["verdict"] for row in at_s] == [R]
    row = found[0]
    assert (row["setting"], row["in_paper"], row["trained"]) == ("upright", False, True)
    assert row["measured"] == pytest.approx(np.mean(LOW))
    assert row["criterion"] == "value above 0.5"
    assert (
        robustness.at_setting(claims, judged[1:], runs, there, runs, "upright")[0]["claim"] == "X2"
    )
    untrained = {"base": network(LOW, learnt=0.5)}
    (row, *_) = robustness.at_setting(claims[:1], judged, runs, untrained, runs, "upright")
    assert (row["verdict"], row["trained"]) == (U, False)


def test_rows_are_kept_only_while_their_criterion_is_the_same():
    judged = judge_all([claim()], {"base": network(HIGH)})
    before = robustness.at_base(judged)
    stricter = judge_all([claim(as_stated=above_half("net")._replace(above=0.6))],
                         {"base": network(HIGH)})  # fmt: skip
    assert robustness.current(before, judged) == before
    assert robustness.current(before, stricter) == []
    newer = [row | {"verdict": U} for row in before]
    assert robustness.merged(before, newer) == newer


# --- what settings say of a verdict


def judged_as(verdict, code="bump", statement="it is high", name="X1", reason=""):
    reading = {"verdict": verdict, "reason": reason, "criterion": "c", "measured": 1.0,
               "ci95": [0.9, 1.1], "conditions": {}}  # fmt: skip
    return {"claim": name, "code": code, "statement": statement, "figure": "", "seeds": [0],
            "as_stated": dict(reading), "stricter": dict(reading), "details": {}}  # fmt: skip


def at(*verdicts, code="bump", statement="it is high"):
    """Rows of settings s1, s2, ...; '!' marks one that is not trained, '*' one that no text of the
    paper allows."""
    return [
        robustness.at_base([judged_as(verdict.strip("*!"), code, statement)])[0]
        | {"setting": f"s{n}"}
        | {"trained": "!" not in verdict, "in_paper": "*" not in verdict}
        for n, verdict in enumerate(verdicts, start=1)
    ]


@pytest.mark.parametrize(
    ("verdict", "others", "expected", "reason"),
    [
        (C, [C, C, C], C, ""),
        (C, [C, U, C], U, "depends on s2"),
        (C, [R, R, U, C], U, "depends on s1; s2; 1 more"),
        (C, [C, U + "!"], C, ""),  # not trained: says nothing
        (C, [C, R + "*"], C, ""),  # not allowed by the paper's text
        (R, [U, U, R], R, ""),
        (R, [U, C, R], U, "depends on s2"),
        (R, [R, C + "*"], R, ""),
        (U, [C, R], U, "why"),
    ],
)
def test_a_verdict_stands_unless_it_depends_on_a_setting(verdict, others, expected, reason):
    before = [judged_as(verdict, reason="why" if verdict == U else "")]
    (found,) = robustness.with_settings(before, at(*others))
    for reading in (found["as_stated"], found["stricter"]):
        assert (reading["verdict"], reading["reason"]) == (expected, reason)
        settings = reading["settings"]
        trained = [one for one in others if "!" not in one]
        assert settings["trained"] == len(trained)
        assert settings["untrained"] == len(others) - len(trained)
        assert settings["agree"] == sum(one.strip("*") == verdict for one in trained)
        assert len(settings["differ"]) == settings["trained"] - settings["agree"]
        assert robustness.share(reading) == f"{settings['agree']} of {settings['trained']}"
    assert robustness.without_settings(found) == before[0]
    assert robustness.with_settings([found], at(*others)) == [found]  # not applied twice
    assert from_rows(rows([found], "quick")) == [found]


def test_a_stricter_reading_that_asks_something_else_keeps_its_verdict_but_contradicted():
    """It is judged at the base alone, so it cannot say that the paper is wrong at every setting."""
    for verdict, others, expected in ((C, R, U), (C, U, U), (R, C, R), (C, C, C)):
        before = judged_as(verdict)
        before["stricter"] |= {"criterion": "more"}
        (found,) = robustness.with_settings([before], at(others, U + "!", U + "*"))
        assert found["stricter"]["verdict"] == expected
        assert found["stricter"]["reason"] == ("not asked at s1" if expected == U else "")
        assert robustness.without_settings(found) == before
    (found,) = robustness.with_settings([judged_as(C)], at(U + "!"))
    assert found["as_stated"]["verdict"] == C and robustness.share(found["as_stated"]) == ""


def test_a_stricter_reading_that_asks_all_and_more_fails_where_the_one_as_stated_does():
    for others, expected in ((U, R), (R, R), (C, U), (C + "*", R)):
        before = judged_as(R)
        before["as_stated"] |= {"verdict": U, "reason": "why"}
        before["stricter"] |= {"criterion": "more; c"}
        (found,) = robustness.with_settings([before], at(others))
        reason = "depends on s1" if expected == U else ""
        assert (found["stricter"]["verdict"], found["stricter"]["reason"]) == (expected, reason)
        assert robustness.share(found["stricter"]) == ""  # it was asked at the base alone
        assert robustness.with_settings([found], at(others)) == [found]


def test_a_contradicted_stricter_reading_needs_that_of_every_code_that_names_a_setting():
    """Though the readings as stated agree, or decide nothing."""
    for sibling, expected in ((U, U), (R, U), (C, C)):
        before = [judged_as(U, reason="why"), judged_as(U, "bump, upright", reason="why")]
        before[0]["stricter"] |= {"criterion": "more", "verdict": C, "reason": ""}
        before[1]["stricter"] |= {"criterion": "more", "verdict": sibling}
        found = robustness.with_settings(before, [])
        assert found[0]["stricter"]["verdict"] == expected
        reason = "" if expected == C else "depends on upright"
        assert found[0]["stricter"]["reason"] == reason
        assert found[0]["as_stated"]["reason"] == "why"
        assert [robustness.without_settings(one) for one in found] == before
        assert robustness.with_settings(found, []) == found


def test_codes_that_name_a_setting_are_settings_of_each_other():
    """'bump, upright' and 'bump' are one claim; another code or statement is another."""
    before = [judged_as(C), judged_as(R, "bump, upright"), judged_as(C, "ramp"),
              judged_as(R, statement="else")]  # fmt: skip
    found = robustness.with_settings(before, [])
    assert found[0]["as_stated"]["reason"] == "depends on upright"
    assert found[1]["as_stated"]["reason"] == "depends on the base settings"
    assert found[2:] == before[2:]


def test_at_the_papers_size_the_quick_settings_must_agree():
    """Statements name numbers of their scale. 'Contradicted' needs every quick setting,
    'reproduced' that none contradicts."""
    before = [judged_as(C, statement="50 are enough")]
    small = lambda base, *others: (
        robustness.at_base([judged_as(base, statement="30 are enough")])
        + at(*others, statement="30 are enough")
    )  # fmt: skip
    found = lambda before, quick: robustness.with_settings(before, [], quick)[0]["as_stated"]
    assert found(before, small(C, C, C))["settings"]["quick"] == 3  # the base is one of them
    assert found(before, small(R, C, C))["reason"] == "depends on quick: the base settings"
    assert found(before, small(C, C, R))["reason"] == "depends on quick: s2"
    before = [judged_as(R, statement="50 are enough")]
    assert found(before, small(R, R, C))["reason"] == "depends on quick: s2"
    assert found(before, small(U, U))["verdict"] == R
    assert found(before, small(U, C))["reason"] == "depends on quick: s1"
    differ = ["quick: the base settings", "quick: s1"]
    assert found(before, small(U, C))["settings"]["differ"] == differ
