"""The generated parts of the documentation, from rows that are written here."""

import re
from types import SimpleNamespace

import pytest

from compgen_jax.claims import above, claim
from compgen_jax.papers.paper import Paper
from figures import pages, quoted
from figures.figure import FIGURES


@claim(
    "C10", figure="Fig 4b", cases=[{"case": c} for c in ("bump", "ramp")], runs={"net": "{case}"}
)
def are_enough(net):
    """With the {case} code, a few are enough."""
    yield above(0.5, net, "share rendered OOD")


@claim("C11", runs={"net": "another"})
def is_run(net):
    """It is run."""
    yield above(0.5, net, "share")


def row(case="bump", verdict="reproduced", scale="quick", setting="base", reason="", **more):
    number = {"value": 0.25, "ci95": [0.2, 0.3], "must be": "above 0.5", "holds": True}
    number["per_seed"] = [1.0, 0.0, 0.0, 0.0]
    return {"claim": "C10", "case": case, "scale": scale, "setting": setting, "verdict": verdict,
            "reason": reason, "network": "ours",
            "statement": f"With the {case} code, a few are enough",
            "criterion": "share rendered OOD above 0.5", "runs": [],
            "conditions": {"share rendered OOD": number},
            "notes": {"share (post hoc)": number | {"value": 0.5}}} | more  # fmt: skip


@pytest.fixture
def paper(tmp_path):
    (tmp_path / "claims.md").write_text("# Head\n\n## C10\n\nToo few.\n\nChanged: twice.\n")
    return Paper("Bumps", lambda scale: {}, (are_enough, is_run), folder=tmp_path)


def test_the_page_of_claims_has_numbers_verdicts_settings_and_prose(paper):
    rows = {
        "quick": [
            row(),
            row("ramp", "inconclusive", reason="no hole"),
            *(row(setting=f"depth {depth}", verdict="contradicted") for depth in (2, 3, 6)),
            *(row(setting=setting) for setting in ("upright", "fresh seeds")),
            row(setting="N = 20", verdict="inconclusive", reason="not trained: 0.5"),
        ],
        "paper": [row(scale="paper", verdict="contradicted", network="figure")],
    }
    settings = "the same at 1 of 4 settings (not depth 2; depth 3; 1 more)"
    settings += "; 1 settings did not learn; fresh seeds agree"
    assert pages.verdicts((paper,), rows) == [
        "## Bumps", "",
        "### With the [case] code, a few are enough (C10, Fig 4b)", "",
        "| share rendered OOD, above 0.5 | quick | papers' size | network |",
        "| --- | --- | --- | --- |",
        f"| bump | 0.25 [0.2, 0.3] **✓**; {settings} | 0.25 [0.2, 0.3] **✓**; verdict **✗** | "
        "ours, figure |",
        "| ramp | 0.25 [0.2, 0.3] **✓**; verdict **–**; no hole |  | ours |",
        "", "Too few.", "", "Changed: twice.", "",
        "### Not run of Bumps", "", "- It is run (C11)."
    ]  # fmt: skip


def test_results_begin_with_verdicts_and_what_chance_would_give(paper, monkeypatch):
    rows = [row(), row("ramp", "inconclusive"), row(setting="upright")]
    rows[1]["conditions"] |= {"unknown": {"value": None, "ci95": [None, None], "must be": ""}}
    page = pages.results("quick", [paper], {}, rows, ["fig1"])
    assert "--scale=quick --workdir=DIR --only=fig1\n" in page
    assert "judges 1 conditions" in page and "would have 0.0 of them hold (2.5%)" in page
    assert page.count("a few are enough") == 2
    assert "Verdicts" not in pages.results("quick", [paper], {}, [], [])
    monkeypatch.setattr(pages, "PAPERS", (paper,))
    assert pages.counts({"quick": rows}) == {"Bumps, quick": [1, 0, 1]}


def test_a_number_is_found_by_name_and_formatted():
    half = {"share rendered OOD": {"value": 0.5, "ci95": [0.4, 0.6]}}
    fresh = row(setting="fresh seeds", verdict="contradicted", conditions=half)
    rows = quoted.by_key({"quick": [row(), fresh]})
    for name, how, words in (
        ("quick C10/bump; share rendered OOD", "%", "25% [20, 30]"),
        ("quick C10/bump; share", "%.", "50%"),  # a note whose name goes on in brackets
        ("quick C10/bump; share rendered OOD", "2", "0.25 [0.20, 0.30]"),
        ("quick C10/bump; share rendered OOD", "2.", "0.25"),
        ("quick C10/bump; share rendered OOD", "2±", "0.25 ± 0.05"),
        ("quick C10/bump; share rendered OOD", "of", "1 of 4"),
        ("fresh C10/bump; share rendered OOD", "%", "50% [40, 60]"),
    ):
        assert quoted.formatted(quoted.number(name, rows), how) == words
    with pytest.raises(ValueError, match="C10/bump; size: no such number"):
        quoted.number("quick C10/bump; size", rows)


def test_claims_at_a_glance(paper):
    """A row for each claim that is shown, with the verdict of each of its cases."""
    rows = {"quick": [row(), row("ramp", "inconclusive")], "paper": [row(verdict="contradicted")]}
    assert pages.glance((paper,), rows)[2:] == [
        "| C10 | With the [case] code, a few are enough | bump ✓; ramp – | bump ✗ |",
        "| C11 | It is run |  |  |",
    ]


@pytest.mark.parametrize(
    ("holds", "reason", "sign"),
    [
        (True, "", "✓"),
        (False, "", "✗"),
        (None, "", "–"),
        (True, "not trained: exact accuracy ID 0.1", "–"),
    ],
)
def test_a_number_has_its_own_sign_whatever_else_its_claim_yields(holds, reason, sign):
    share = {"value": 0.7, "ci95": [0.6, 0.8], "must be": "", "holds": holds}
    of_claim = row(verdict="inconclusive", reason=reason, conditions={"share": share})
    rows = quoted.by_key({"quick": [of_claim]})
    panel = {"paper": "C10/bump; share", "how": "%"}
    assert quoted.panel_result(panel, "quick", rows) == f"70% [60, 80] **{sign}**"
    # below 0.95, a network has not learnt
    gated = panel | {"gate": "C10/bump; share"}
    assert quoted.panel_result(gated, "quick", rows) == "70% [60, 80] **–**"
    assert quoted.panel_result(panel | {"quick": ""}, "quick", rows) == "not run"


@pytest.mark.parametrize(
    ("ends", "trained", "signs"),
    [
        ((0.1, 0.4), 1.0, "✓✗"),
        ((0.6, 0.9), 1.0, "✗✓"),
        ((0.4, 0.6), 1.0, "––"),
        ((0.1, 0.4), 0.9, "––"),
    ],
)
def test_a_run_has_the_sign_of_its_interval_if_it_learnt(monkeypatch, ends, trained, signs):
    mean = {"ood.exact_accuracy": {"value": 0, "ci95": ends}}
    mean["id.exact_accuracy"] = {"value": trained}
    run = SimpleNamespace(summary={"mean": mean})
    monkeypatch.setattr(quoted, "of_runs", lambda scale: {"net": run})
    for must, sign in zip(("below 0.5", "above 0.5"), signs, strict=True):
        number = quoted.number("quick run/net; ood.exact_accuracy", {}, must)
        assert quoted.formatted(number, "sign") == sign


def test_every_panel_names_a_figure_and_each_figure_has_its_caption():
    every = [panel for paper in quoted.read("panels")["paper"] for panel in paper["panel"]]
    assert {panel["see"] for panel in every if "see" in panel} <= set(FIGURES)
    captions = (pages.HERE / "captions.md").read_text()
    assert sorted(re.findall(r"^## (.*)", captions, re.M)) == sorted(FIGURES)
