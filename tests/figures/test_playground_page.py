"""The page that trains, without a browser: its command, its size, and what bumps can leave out."""

import re
from pathlib import Path

import numpy as np
import pytest

from compgen_jax.config import changed
from compgen_jax.settings import ConfigError
from compgen_jax.tasks import task as tasks
from figures.explorer import page
from launch import playground
from tests.command import call


def test_the_command_writes_one_small_page_that_loads_nothing(tmp_path, capsys):
    call(playground, f"--out={tmp_path}")
    assert capsys.readouterr().out == f"wrote {tmp_path / 'playground.html'}\n"
    text = (tmp_path / "playground.html").read_text()
    assert len(text) < 400_000
    assert not re.findall(r"(?:src|href)=|https?://", text)


def test_a_worker_imports_from_no_import_map(tmp_path):
    for name, source in {"one": 'import { b } from "two";\n', "two": "export const b = 2;"}.items():
        (tmp_path / f"{name}.js").write_text(source)
    text = page.bundled('import { a } from "one";', [*Path(tmp_path).glob("*.js")])
    assert re.findall(r'from "([^":]+)"', text) == []
    inner = page.address((tmp_path / "two.js").read_text())
    assert page.address(f'import {{ b }} from "{inner}";\n') in text


def test_javascript_of_explorer_and_playground_has_at_most_3000_lines():
    folders = page.HERE, page.HERE.parent / "playground"
    sources = [path.read_text() for folder in folders for path in folder.glob("*.js")]
    assert sum(text.count("\n") for text in sources) <= 3000


def test_a_sentence_replaces_the_region_of_bumps(tiny):
    fields = {"task.support.held_out": "x == 2 or y > 5", "task.support.sampling": "every_cell"}
    fields["task.support.require_marginals"] = False
    task = changed(tiny, fields).task.make()
    x, y = tasks.cells(task.factors).T
    np.testing.assert_array_equal(tasks.regions(task)["ood"], (x == 2) | (y > 5))
    with pytest.raises(ConfigError, match=r"^config.task.support.held_out='z': no factor 'z'"):
        changed(tiny, {"task.support.held_out": "z"}).task.make()
