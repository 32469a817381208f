"""What is generated in the documentation is what its source says, and links lead somewhere."""

import re
from pathlib import Path

import pytest

from compgen_jax import settings
from compgen_jax.config import to_dict
from compgen_jax.papers.presets import PRESETS
from figures import results
from launch import fields

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


def test_the_readme_has_the_verdicts_of_the_committed_run():
    claims = {scale: results.claims(scale) for scale in results.SCALES}
    page = (ROOT / "README.md").read_text()
    assert claims["quick"] and results.with_table(page, claims) == page
    first = claims["quick"][0]
    changed = [first | {"as_stated": first["as_stated"] | {"verdict": "inconclusive"}}]
    assert results.with_table(page, claims | {"quick": changed}) != page
    assert len(page.splitlines()) <= 150


def test_the_page_of_criteria_has_what_each_claim_asks():
    page, claims = results.CRITERIA.read_text(), results.claims("quick")
    assert results.with_asked(page, claims) == page
    asked = page.partition(results.ASKED[0])[2].partition(results.ASKED[1])[0]
    assert all(f"| {claim['claim']} | " in asked for claim in claims)


def test_the_page_of_sweeps_has_the_committed_exponents():
    page = results.SWEEPS.read_text()
    claims = {scale: results.claims(scale) for scale in results.SCALES}
    assert results.with_exponents(page, claims) == page
    assert results.with_exponents(page, {"quick": []}) != page


@pytest.mark.parametrize("scale", results.SCALES)
def test_results_md_has_the_committed_runs_and_claims(scale):
    assert (results.RESULTS / scale / "RESULTS.md").read_text() == results.page(scale)


def test_the_gallery_has_every_committed_picture():
    page = (ROOT / "docs" / "gallery.md").read_text()
    assert results.gallery() == page
    for picture in (ROOT / "docs" / "results").rglob("*.png"):
        assert f"({picture.relative_to(ROOT / 'docs').as_posix()})" in page


def test_the_config_page_has_every_field():
    page = fields.PAGE.read_text()
    assert fields.with_tables(page) == page
    for preset in PRESETS.values():
        for name in settings.flat(to_dict(preset), "config"):
            short = name.removeprefix("config.")
            assert f"`{short}`" in page or short in ("name", "task.name", "model.name"), name


def test_a_claim_has_one_row_for_all_codes_and_scales():
    """Though its statement names other numbers; what was not run has no symbol."""
    row = lambda statement, verdict, code="bump": {
        "claim": "C10", "code": code, "statement": statement,
        "as_stated": {"verdict": verdict}, "stricter": {"verdict": "inconclusive"},
    }  # fmt: skip
    quick = [
        row("with the bump code, 30 are enough", "reproduced"),
        row("with the ramp code, 30 are enough", "contradicted", "ramp"),
        row("what else", "contradicted"),
    ]
    paper = [row("with the bump code, 50 are enough", "inconclusive"), row("red", "reproduced")]
    assert results.table({"quick": quick, "paper": paper})[2:] == [
        "| C10 | bump / ramp | 30 are enough | ✓ / ✗ | – / – | – / · | – / · |",
        "| C10 | bump | what else | ✗ | – |  |  |",
        "| C10 | bump | red |  |  | ✓ | – |",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target:
            assert (page.parent / target.partition("#")[0]).exists(), f"{page}: {target}"
