"""The installed package, outside the checkout: its console command, its presets, its data files."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.command import blocks
from tests.launch.test_command_lines import ROOT, TINY

# where each folder of the sources is in the installed package
FOLDERS = {
    "compgen_jax": "",
    "figures": "figures",
    "launch": "launch",
    "docs/tutorials": "examples",
}
SOURCES = *FOLDERS, "setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"
DATA = "*.js", "*.css", "*.jinja", "*.ipynb", "*.typed"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """(sources, target): a copy of the sources, and what pip installs of it, without network. What
    the package needs comes from the environment of the tests."""
    sources, target = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("installed")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, sources / name)
    for pattern in DATA:  # at least one of each
        (sources / "figures" / "benchmark" / pattern.replace("*", "mine")).write_text("mine")
    pip = ["pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
           "--disable-pip-version-check", f"--target={target}", str(sources)]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", *pip], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return sources, target


def test_all_modules_and_data_files_are_installed(installed):
    sources, target = installed
    for folder, place in FOLDERS.items():
        for pattern in ("*.py", *DATA):
            for path in (sources / folder).rglob(pattern):
                there = target / "compgen_jax" / place / path.relative_to(sources / folder)
                assert there.is_file(), path
    for name in ("launch", "figures", "tests", "docs"):  # names that others may use
        assert not (target / name).exists()


@pytest.fixture
def run(installed, tmp_path):
    """run(*command): what a command prints in an empty directory."""
    environment = os.environ | {"PYTHONPATH": str(installed[1])}

    def run(*command):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_it_trains_a_preset_by_name_and_explores_it_from_an_empty_directory(
    installed, run, tmp_path
):
    compgen = [str(installed[1] / "bin" / "compgen-jax")]
    flags = [*TINY, "--config.training.steps=4", "--config.model.name=mlp", "--workdir=run"]
    assert "wrote run/summary.json" in run(*compgen, "train", *flags)
    assert set(json.loads((tmp_path / "run" / "summary.json").read_text())["seeds"]) == {"0", "3"}
    assert "wrote run/explorer.html" in run(*compgen, "explore", "--workdir=run")
    assert run(*compgen, "example", "own_task.py") == "wrote own_task.py\n"
    shown = run(*compgen, "train", "--config=own_task.py:quick", "--print_config")
    assert json.loads(shown)["task"]["name"] == f"{tmp_path}/own_task.py:Sprites"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own_task.py", "run"]


OF_README = """
import jax
import jax.numpy as jnp
import numpy as np
import pandas

data = np.load("mine.npz")
frame = pandas.DataFrame({name: data[name] for name in ("shape", "x", "y")})
predictions = np.zeros((2, 256, 16, 16))
rng = np.random.default_rng(0)
held_out, factors = np.arange(60) > 40, rng.normal(size=(60, 2))
activations = {"hidden": rng.normal(size=(60, 8))}
tensors = np.tile(np.eye(2), (60, 1, 1))
axes = [np.arange(5.0)] * 2
activations_of = lambda point: {"hidden": jnp.sin(point)}
is_held_out = lambda points: (points > 2).all(axis=1)
%s
assert rows.sum() == 32
"""


def test_what_readme_does_with_own_data_runs_from_the_package(installed, run, tmp_path):
    folder, compgen = ROOT / "docs" / "tutorials", str(installed[1] / "bin" / "compgen-jax")
    section = (ROOT / "README.md").read_text().partition("## Use it on your own")[2]
    section = section.partition("\n## ")[0]
    make_file, *_ = blocks((folder / "your_data.md").read_text(), "python")
    snippets = "".join(blocks(section, "python"))
    (tmp_path / "use.py").write_text(make_file + OF_README % snippets)
    run(sys.executable, "use.py")
    for line in "".join(blocks(section)).splitlines():
        command, *words = shlex.split(line)[1:]
        steps = ["--config.training.steps=4", "--config.training.seeds=(0,)"]
        run(compgen, command, *words, *(steps if command == "train" else ()))


def test_the_tutorial_of_pytorch_runs_from_the_package(installed, run, tmp_path):
    pytest.importorskip("torch")
    folder = ROOT / "docs" / "tutorials"
    page = "".join(blocks((folder / "pytorch.md").read_text(), "python"))
    (tmp_path / "with_torch.py").write_text(page.replace("steps=2000", "steps=20"))
    printed = run(sys.executable, "with_torch.py")
    assert "the held-out cells are composed" in printed and "volume.log10_ratio" in printed
