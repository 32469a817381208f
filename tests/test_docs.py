"""The documentation: short enough to read, all fields listed, links that lead somewhere.

`make docs-check` compares the generated pages with what their sources print."""

import re
from pathlib import Path

import pytest

from compgen_jax import settings
from compgen_jax.config import to_dict
from compgen_jax.papers.presets import PAPERS, PRESETS
from figures import fields, presets

ROOT = Path(__file__).parent.parent
NAMES = "README.md", "CHANGELOG.md", "CONTRIBUTING.md"
PAGES = [*(ROOT / name for name in NAMES), *(ROOT / "docs").rglob("*.md")]


def test_the_config_page_lists_every_field_of_every_preset():
    page = "\n".join(fields.lines())
    for preset in PRESETS.values():
        for name in settings.flat(to_dict(preset), "config"):
            short = name.removeprefix("config.")
            assert f"`{short}`" in page or short in ("name", "task.name", "model.name"), name
    assert "| `task.grid` | `28` | int from 8 to 128 |  |" in page
    assert "| `training.learning_rate` | `0.001` | float above 0 to 1e+06 | yes |" in page
    assert "| `training.schedule` | `constant` | constant, cosine, plateau |  |" in page


def test_the_page_of_presets_has_a_command_that_works_from_any_directory():
    page, preset = presets.page(), PAPERS["Forced rendering"]["bump_cnn_quick"]
    command = "python -m launch.train --config=bump_cnn_quick --workdir=runs/bump_cnn_quick"
    assert f"| `bump_cnn_quick` | `{command}` | {preset.takes} | {preset.result} |" in page
    assert all(f"| `{name}` |" in page for name in PRESETS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target:
            assert (page.parent / target.partition("#")[0]).exists(), f"{page}: {target}"
