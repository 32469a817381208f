"""The documentation: short enough to read, all fields listed, links and commands that lead
somewhere.

`make docs-check` compares the generated pages with what their sources print."""

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from absl import flags
from absl.testing import flagsaver

from compgen_jax import cli, settings
from compgen_jax.config import to_dict
from compgen_jax.papers.presets import PRESETS
from figures import committed, fields, make, pages
from figures.papers import FIGURES
from launch import compgen

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SITE = sorted(DOCS.rglob("*.md"))
NAMES = "README.md", "CHANGELOG.md", "CONTRIBUTING.md"
PAGES = [*(ROOT / name for name in NAMES), *SITE]
GENERATED = {"claims", "gallery", "criteria", "config", "presets", "RESULTS"}
MOST_LINES = 200
BESIDE_FIGURES = {"claims"}  # what --only takes that is no figure
CONFIG = cli.define_config()


def test_the_config_page_lists_every_field_of_every_preset():
    page = "\n".join(fields.lines())
    for preset in PRESETS.values():
        for name in settings.flat(to_dict(preset), "config"):
            short = name.removeprefix("config.")
            assert f"`{short}`" in page or short in ("name", "task.name", "model.name"), name
    assert "| `task.grid` | `28` | int from 8 to 128 |  |" in page
    assert "| `training.learning_rate` | `0.001` | float above 0 to 1e+06 | yes |" in page
    assert "| `training.schedule` | `constant` | constant, cosine, plateau |  |" in page


def test_a_presets_result_is_that_of_the_committed_run_with_its_config():
    assert all(f"| `{name}` |" in pages.presets() for name in PRESETS)
    rows = {line.split("`")[1]: line.split(" | ")[-1] for line in pages.presets().splitlines()
            if line.startswith("| `")}  # fmt: skip
    runs = committed.RESULTS / "paper" / "runs"
    share = json.loads((runs / "stripes_50_bumps.json").read_text())["mean"]["ood.rendered"]
    low, high = share["ci95"]
    assert f"OOD {share['value']:.2g} [{low:.2g}, {min(high, 1):.2g}] |" in rows["stripes_bumps"]
    assert rows["bump_mlp"].endswith(": not trained in the paper's 20 epochs |")
    assert rows["bump_cnn_authors"] == "not run yet |"


def prose(page) -> str:
    """A page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.S)


def anchors(page) -> set[str]:
    """Those of a page's headings, as GitHub and mkdocs name them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.M)
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"\s", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            there = page.parent / path if path else page
            assert there.exists(), f"{page}: {target}"
            assert not anchor or anchor in anchors(there), f"{page}: {target}"


@pytest.mark.parametrize("page", SITE)
def test_a_page_names_its_question_and_is_short(page):
    if page.stem != "RESULTS":
        _, first = re.split(r"\n\n+", page.read_text())[:2]
        assert first.replace("\n", " ").partition("?")[1] or page.name == "index.md", first
    if page.stem not in GENERATED:
        assert len(page.read_text().splitlines()) <= MOST_LINES


def test_the_site_has_every_page_in_its_navigation():
    def pages(entry):
        if isinstance(entry, str):
            return [entry]
        return [page for one in (entry.values() if isinstance(entry, dict) else entry)
                for page in pages(one)]  # fmt: skip

    named = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert len(set(named)) == len(named)
    assert {page.relative_to(DOCS).as_posix() for page in SITE} <= set(named)


def commands(page) -> list[list[str]]:
    """The words of every command of this package in a page's blocks, after `python -m`."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), flags=re.S | re.M)
    text = "\n".join(block for language, block in blocks if not language).replace("\\\n", " ")
    words = [shlex.split(line, comments=True) for line in text.splitlines()]
    found = [line[line.index("-m") + 1 :] for line in words if "-m" in line]
    found += [
        [compgen.COMMANDS[line[1]][0], *line[2:]] for line in words if line[:1] == ["compgen-jax"]
    ]
    return [line for line in found if line[0].split(".")[0] in ("launch", "figures")]


@pytest.mark.parametrize("page", [page for page in SITE if commands(page)])
def test_commands_parse(page, monkeypatch):
    """Each flag is one of its command's, and built-in names exist."""
    monkeypatch.chdir(ROOT)
    for module, *arguments in commands(page):
        module = importlib.import_module(module)
        holders = [one for one in vars(module).values() if isinstance(one, flags.FlagHolder)]
        known = {one.name for one in holders} | {"flagfile"}
        arguments = [one for one in arguments if not one.startswith("--flagfile")]
        asked = [re.split(r"[.=]", one.removeprefix("--"))[0] for one in arguments]
        positional = [one for one in arguments if not one.startswith("-")]
        assert known.issuperset({*asked} - {*positional}), arguments
        with flagsaver.flagsaver():
            cli._parse(["command", *(one for one in arguments if one.startswith("-"))])
            if CONFIG.value and not CONFIG.value.startswith("my_"):
                cli.read_config(CONFIG)
            if not cli.define_extend().value:
                assert {*make.ONLY.value} <= {*FIGURES, *BESIDE_FIGURES}, make.ONLY.value
