"""Numbers that pages quote, from rows written here; `make docs-check` compares the pages."""

import itertools
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import compgen_jax as cg
from compgen_jax import claims, settings
from compgen_jax.runs import free_score
from compgen_jax.settings import FAMILIES
from compgen_jax.tasks import task as tasks
from figures import fields, holdout_atlas, pages, quoted
from figures.figure import FIGURES


def row(**fields):
    number = {"value": 0.25, "ci95": [0.2, 0.3], "must be": "above 0.5", "holds": True,
              "per_seed": [1.0, 0.0, 0.0, 0.0]}  # fmt: skip
    return {"claim": "C10", "case": "bump", "scale": "quick", "setting": "base", "runs": [],
            "statement": "A few are enough", "verdict": "reproduced", "reason": "",
            "seeds": [0, 1, 2, 3], "criterion": "share rendered OOD above 0.5",
            "conditions": {"share rendered OOD": number},
            "notes": {"share (post hoc)": number | {"value": 0.5}}} | fields  # fmt: skip


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
    number = quoted.number("quick C10/bump; share", rows)
    assert quoted.shown(number, "%") == f"70% [60, 80] **{sign}**"
    assert quoted.shown(None, "%") == ""


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
    run = SimpleNamespace(summary={"mean": mean}, seeds=range(4))
    monkeypatch.setattr(quoted, "of_runs", lambda scale: {"net": run})
    for must, sign in zip(("below 0.5", "above 0.5"), signs, strict=True):
        number = quoted.number("quick run/net; ood.exact_accuracy", {}, must)
        assert quoted.formatted(number, "sign") == sign


def test_primary_panels_are_judged_together(monkeypatch):
    """The second of two holds alone, and no longer beside a third."""
    numbers = {
        name: {"value": 0.7, "ci95": [low, 1.4 - low], "must be": "above 0.5", "holds": low > 0.5}
        for name, low in (("sure", 0.62), ("nearly", 0.51), ("open", 0.4))
    }
    rows = quoted.by_key({"quick": [row(conditions=numbers)]})
    panels = [{"paper": "", "quick": f"C10/bump; {name}", "how": "2"} for name in numbers]
    monkeypatch.setattr(quoted, "read", lambda name: {"ours": [{"panel": panels}]})
    for of_family, holds in (2, [True, False, False]), (1, [True, True, False]):
        for panel in panels:
            panel["primary"] = of_family == 2 or panel is panels[1]
        judged = quoted.panel_numbers("ours", rows)
        assert [bool(number["holds"]) for number in judged.values()] == holds
    assert judged["quick C10/bump; nearly"]["holm"] == pytest.approx([0.51, 0.89])
    panels[2] |= {"how": "%", "primary": True}
    ends = quoted.panel_numbers("ours", rows)["quick C10/bump; open"]["holm"]
    assert 0 < ends[0] < 0.4 and ends[1] == 1  # of a share


def test_a_number_is_as_far_from_its_bound_as_the_end_beside_it_says():
    number = {"value": 0.5, "ci95": [0.4, 0.7], "must be": "between 0.1 and 0.9"}
    assert quoted.halves_to_bound(number) == pytest.approx(2)
    assert quoted.halves_to_bound(number | {"must be": "above 0.1"}) == pytest.approx(4)


def test_settings_are_counted_where_the_sign_is_that_of_the_base():
    signs = {"base": "✓", "a": "✓", "b": "–", "c": "✓", "fresh seeds": "–"}
    assert quoted.at_settings(signs) == "2/3 –"


def test_a_ratio_is_widened_in_logarithms():
    ratio = {"value": 0.25, "ci95": [0.125, 0.5], "must be": "below 1"}
    assert quoted.halves_to_bound(ratio) == pytest.approx(2)
    assert quoted.widened(ratio, 2) == pytest.approx([1 / 16, 1])


def test_a_cell_names_its_condition_where_it_is_not_that_of_the_head():
    (number,) = row()["conditions"].values()
    rows = [row(case=case, network="ours", conditions={case: number}) for case in ("low", "high")]
    _, _, low, high = pages._cases(claims.Claim("C10", None), {"C10": rows})
    assert "above" not in low and high.endswith("; high | ours |")


def test_the_atlas_has_each_published_split_as_it_is(monkeypatch):
    """All but what baselines get, of data sets of less than a million combinations."""
    monkeypatch.setattr(free_score, "baseline_means", lambda *_: {"": {"rendered": 0, "mse": 0}})
    known = json.loads(holdout_atlas.PATH.read_text())
    assert list(known) == list(holdout_atlas.SOURCES)
    sizes = {name: tasks.counts(factors) for name, factors in holdout_atlas.GRIDS.items()}
    assert sizes == {"3dshapes": (10, 10, 10, 8, 4, 15), "mpi3d": (6, 6, 2, 3, 3, 40, 40)}
    for split in (split for split in known if "mpi3d" not in split):
        found, expected = (
            {
                name: value
                for name, value in settings.flat(numbers, "").items()
                if not name.startswith((".baselines", ".best"))
            }
            for numbers in (holdout_atlas.measured(split), known[split])
        )
        assert found == pytest.approx(expected), split
    assert len(holdout_atlas.lines()) == 2 + len(known)


def test_every_panel_names_figures_and_each_figure_has_its_caption():
    sections = sum(quoted.read("panels").values(), [])
    assert {section["picture"] for section in sections} <= {*FIGURES, ""}
    assert {name for section in sections for name in section["only"].split(",")} <= set(FIGURES)
    captions = (pages.HERE / "captions.md").read_text()
    assert sorted(re.findall(r"^## (.*)", captions, re.M)) == sorted(FIGURES)


def test_the_page_on_python_has_every_public_name_with_its_arguments_and_every_family():
    text, lines = fields.surface(), fields.surface().splitlines()
    assert (
        "train(config, workdir, overrides=None, progress=True)\n    Trains all seeds of a" in text
    )
    assert "\nRun.load(workdir, with_networks=True)\n    A finished run.\n" in text
    assert "\nRun.cells\n    The outputs at every cell.\n" in text and "Run.sizes" not in text
    titles = [re.split(r"\W", line)[0] for line in lines if line[0] != " "]
    assert list(dict.fromkeys(titles)) == list(cg.__all__)
    for title, below in itertools.pairwise(lines):
        assert title[0] == " " or below.startswith("    "), f"{title} has no sentence"
    for group, names in FAMILIES.items():
        pattern = rf"^{group}\.name=(\S+)  # (\S+)\n    \S"
        places = {name: place.replace(":", ".") for name, place in names.items()}
        assert dict(re.findall(pattern, fields.families(group), re.M)) == places
    page = (Path(__file__).parents[2] / "docs/reference/api.md").read_text()
    assert text in page and fields.families("task") in page and ":::" not in page


def test_a_row_of_the_claims_page_says_that_it_is_near_its_bound():
    near = {"value": 1.0, "ci95": [0.55, 1.45], "must be": "above 0.5", "holds": True}
    for number, words in ((near, "; near its bound"), (near | {"ci95": [0.7, 1.3]}, "")):
        of_row = row(conditions={"x": number})
        low, high = number["ci95"]
        assert pages._cell(of_row, "x", []) == f"1 [{low}, {high}] **✓**{words}"
