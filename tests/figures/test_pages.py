"""Tables of verdicts, of criteria and of known answers, from rows that are written here."""

import pytest

from compgen_jax.calibration import Calibration, Case
from compgen_jax.claims import Claim, Condition
from compgen_jax.papers.paper import Paper
from figures import committed, criteria, findings, pages, verdicts

CONDITION = Condition("share rendered OOD", 0.0, below=0.5)


def reading(verdict, reason="", **fields):
    number = {"value": 0.25, "ci95": [0.2, 0.3], "must be": "below 0.5"}
    return {
        "verdict": verdict, "reason": reason, "measured": 0.25, "ci95": [0.2, 0.3],
        "conditions": {"share rendered OOD": number},
    } | fields  # fmt: skip


def row(statement, verdict, code="bump", name="C10", **fields):
    return {
        "claim": name, "code": code, "statement": statement,
        "as_stated": reading(verdict, **fields), "stricter": reading("inconclusive"),
    }  # fmt: skip


SETTINGS = {"agree": 14, "trained": 16, "untrained": 2, "differ": ["depth 6", "N = 20"]}


def test_a_sentence_has_one_row_for_all_codes_and_scales():
    """Though it names other numbers; what was not run is left empty."""
    quick = [
        row("with the bump code, 30 are enough", "reproduced", settings=SETTINGS),
        row("with the ramp code, 30 are enough", "contradicted", "ramp"),
        row("at depth 2, it falls", "contradicted", ""),
        row("at depth 6, it falls", "reproduced"),
    ]
    paper = [row("with the bump code, 50 are enough", "inconclusive"), row("red", "reproduced")]
    assert verdicts.table({"quick": quick, "paper": paper})[2:] == [
        "| **C10** 30 are enough | bump ✓ 14/16<br>ramp ✗ | bump –<br>ramp – | bump – | bump – |",
        "| **C10** at depth 2, it falls | ✗ | – |  |  |",
        "| **C10** at depth 6, it falls | bump ✓ | bump – |  |  |",
        "| **C10** red |  |  | bump ✓ | bump – |",
    ]
    papers = Paper("Scale", "S", lambda scale: {}, ()), Paper("Bumps", "C", lambda scale: {}, ())
    assert verdicts.counts(papers, {"quick": quick, "paper": []}) == [
        "| | reading | reproduced | contradicted | inconclusive |",
        "|---|---|---|---|---|",
        "| Bumps, quick | as stated | 2 | 2 | 0 |",
        "|  | stricter | 0 | 0 | 4 |",
    ]


def test_rows_are_in_order_of_depth_whichever_scale_has_them():
    at = lambda depth, *code: row(f"depth {depth}, it falls", "reproduced", *code)
    quick, paper = [at(3), at(7), row("red", "reproduced")], [at(5), at(3)]
    rows = verdicts.table({"quick": quick, "paper": paper})[2:]
    assert [one.split(" |")[0] for one in rows] == [
        *(f"| **C10** depth {depth}, it falls" for depth in (3, 5, 7)),
        "| **C10** red",
    ]
    claim = Claim("C10", "depth {depth}, it falls", CONDITION, each=({"depth": 3}, {"depth": 5}))
    page = Paper("Forced rendering", "C", lambda scale: {}, (claim,))
    found = verdicts.lines((page,), {"quick": [at(3, "a"), at(7, "b"), at(7, "a")],
                                     "paper": [at(5, "a")]})  # fmt: skip
    rows = [line.split(" |")[0] for line in found if line.startswith(("| a", "| b"))]
    assert rows == ["| a, depth 3", "| a, depth 5", "| a, depth 7", "| b, depth 7"]


def test_the_page_of_claims_has_their_numbers_verdicts_settings_and_objections():
    claims = (
        Claim("C10", "with the {code} code, {few} (of all) are enough", CONDITION, figure="Fig 4b",
              objection="Too few. More do no better."),
        Claim("C10", "none is enough", CONDITION),
        Claim("C11", "with the bump code, depth {depth}, it is run", CONDITION,
              each={"depth": (2, 4)}),
    )  # fmt: skip
    quick = [
        row("with the bump code, 30 (of all) are enough", "reproduced", settings=SETTINGS),
        row("with the ramp code, 30 (of all) are enough", "inconclusive", "ramp", reason="no hole"),
        row("an older sentence", "reproduced"),
    ]
    paper = [row("with the bump code, 50 (of all) are enough", "contradicted")]
    page = Paper("Forced rendering", "C", lambda scale: {}, claims)
    found = verdicts.lines((page,), {"quick": quick, "paper": paper})
    settings = "14 of 16 settings agree (not depth 6; N = 20); 2 did not learn"
    assert found == [
        "## Forced rendering", "",
        "### C10: 30 (of all) are enough (Fig 4b)", "",
        "| share rendered OOD, below 0.5 | quick | papers' size |", "|---|---|---|",
        f"| bump | 0.25 [0.2, 0.3] **✓** / **–**; {settings} | 0.25 [0.2, 0.3] **✗** / **–** |",
        "| ramp | 0.25 [0.2, 0.3] **–** / **–**; no hole |  |",
        "", "Objection: Too few. More do no better.", "",
        "### Not run of Forced rendering", "",
        "- C10: none is enough.", "- C11: it is run.", "",
        "Judged under an earlier sentence, and not shown: C10 at quick scale.",
    ]  # fmt: skip


def test_each_depth_of_a_claim_has_a_row_of_its_own():
    """A sentence of its own is a section of its own."""
    claim = Claim("C6", "with the {code} code, {depth}it {what}", CONDITION)
    quick = [
        row("with the bump code, it falls", "reproduced", name="C6"),
        row("with the bump code, depth 6, it falls", "contradicted", name="C6"),
        row("with the bump code, it rises", "contradicted", name="C6"),
    ]
    found = verdicts.lines((Paper("P", "C", lambda scale: {}, (claim,)),), {"quick": quick})
    heads = [line.partition(" 0.25")[0] for line in found if line.startswith(("###", "| bump"))]
    assert heads == ["### C6: it falls", "| bump |", "| bump, depth 6 |",
                     "### C6: it rises", "| bump |"]  # fmt: skip


def test_criteria_are_asked_once_and_changed_ones_are_named():
    same, other = row("a", "reproduced"), row("b", "reproduced")
    other["stricter"] = reading("reproduced", conditions={"more": {"must be": "above 0"}})
    many = {f"condition {k}": {"must be": "above 0"} for k in range(6)}
    long = row("c", "reproduced", name="C11", conditions=many)
    long["stricter"] = long["as_stated"]
    assert criteria.asked([same, same, other, long])[2:] == [
        "| C10 | share rendered OOD below 0.5 | the same<br>more above 0 |",
        "| C11 | condition 0 above 0; condition 1 above 0; and 4 more | the same |",
    ]
    claims = (
        Claim("C1", "fails", CONDITION),
        Claim("S3b", "graded", CONDITION, changed="its bound went from 1.1 to 2"),
    )
    paper = Paper("P", "CS", lambda scale: {}, claims)
    assert criteria.changed((paper,))[2:] == ["| S3b | its bound went from 1.1 to 2 |"]
    assert len(criteria.changed((paper._replace(claims=claims[:1]),))) == 1


def test_known_answers_have_a_line_for_each_claim_with_both_sizes():
    does = {"bump": "the bump", "plus": "its stripes", "blank": "nothing"}
    yes, no, maybe = "reproduced", "contradicted", "inconclusive"
    calibration = lambda title, *cases: Calibration(
        title, dict(does), tuple(Case(name, ("plus",), ("blank",)) for name in cases), dict
    )
    first = {"C4": {"bump": (maybe, no), "plus": (yes, yes), "blank": (no, no)}}
    corner = {"C9": {"bump": (yes, no), "plus": (yes, no), "blank": (maybe, no)}}
    second = {"C4": {"bump": (no, no), "plus": (yes, yes), "blank": (no, no)}}
    tables = [
        (calibration("N = 16, donut", "C4"), first),
        (calibration("N = 16, corner", "C9"), corner),
        (calibration("N = 28, donut", "C4"), second),
    ]
    assert criteria.decided_lines(tables) == [
        "*bump*: the bump; *plus*: its stripes; *blank*: nothing.",
        "",
        "| claim | N = 16: as stated | N = 16: stricter | N = 28: as stated | N = 28: stricter |",
        "|---|---|---|---|---|",
        "| C4 | **plus** (open: bump) | **plus** | **plus** | the same |",
        "| C9 | bump, **plus** (open: blank) | none |  |  |",
    ]
    students = [(calibration("Students", "S1", "S2"), {"S1": first["C4"], "S2": first["C4"]})]
    assert criteria.decided_lines(students) == [
        "Students: *bump*: the bump; *plus*: its stripes; *blank*: nothing.",
        "",
        "| claim | as stated | stricter |",
        "|---|---|---|",
        "| S1; S2 | **plus** (open: bump) | **plus** |",
    ]


def test_the_gallery_lists_figures_that_are_older_than_what_they_show(monkeypatch):
    changes = {"fig1": [], "fig7": ["caption", "code"], "fig9": ["no digest"]}
    monkeypatch.setattr(
        committed, "changes_since", lambda scale: changes if scale == "paper" else {}
    )
    assert "- paper, caption, code: fig7.\n- paper, no digest: fig9.\n" in pages.gallery()
    monkeypatch.setattr(committed, "changes_since", lambda scale: {"fig1": []})
    assert pages.OLDER not in pages.gallery()


def test_findings_on_real_factors_wait_until_they_are_judged_as_they_were_written():
    assert findings.real_factors([], ["sprites"]) == ["*Not run yet.*"]
    judged = [row("range", "inconclusive", "", "F1"), row("element", "inconclusive", "", "F2")]
    for one in judged:
        one["details"] = {"share rendered OOD, at random": {"value": 0.99}}
    picture, sentence = findings.real_factors(judged, ["sprites", "sprites_pairs"])
    assert picture == "![sprites](../results/quick/figures/sprites.png)\n"
    assert "renders 25% [20, 30] of them" in sentence and "random, 99% are rendered" in sentence
    assert "[figure](../results/quick/figures/sprites.png)" in sentence
    judged[1]["as_stated"]["verdict"] = "contradicted"
    with pytest.raises(ValueError, match="F2 .* is now contradicted"):
        findings.real_factors(judged, [])
