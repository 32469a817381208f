"""What is generated in the documentation is what its source says, and links lead somewhere."""

import json
import re
from pathlib import Path

import pytest

from figures import results

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


def test_the_readme_has_the_verdicts_of_the_committed_run():
    claims = json.loads((ROOT / "docs" / "results" / "quick" / "claims.json").read_text())
    page = (ROOT / "README.md").read_text()
    assert results.with_table(page, claims) == page
    changed = [claims[0] | {"as_stated": claims[0]["as_stated"] | {"verdict": "inconclusive"}}]
    assert results.with_table(page, changed) != page
    assert len(page.splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target:
            assert (page.parent / target.partition("#")[0]).exists(), f"{page}: {target}"
