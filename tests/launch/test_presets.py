"""The page of presets says what the presets say."""

from pathlib import Path

from compgen_jax.config import Config
from compgen_jax.papers.preset import Preset
from compgen_jax.papers.presets import PAPERS, PRESETS
from launch import presets as document

PAGE = Path(__file__).parent.parent.parent / "docs" / "presets.md"


def test_the_page_has_the_table_of_all_presets():
    assert document.table(PAPERS) in PAGE.read_text(), "python -m launch.presets > docs/presets.md"
    assert all(f"| `{name}` |" in PAGE.read_text() for name in PRESETS)


def test_a_row_has_name_command_time_and_result():
    presets = {
        "mine": Preset(Config(name="mine"), "3 s", "good"),
        "other": Preset(Config(name="o")),
    }
    lines = document.table({"A paper": presets}).splitlines()
    assert lines[:4] == [
        "## A paper", "", "| preset | command | time on 2 cores | result |",
        "| --- | --- | --- | --- |",
    ]  # fmt: skip
    command = "python -m launch.train --config=launch/config.py:mine --workdir=runs/mine"
    assert lines[4] == f"| `mine` | `{command}` | 3 s | good |"
    assert lines[5].endswith("| ? | not run yet |")
