"""The installed package, outside the checkout: its console command, its presets, its data files."""

import json
import os
import shutil
import subprocess
import sys

import pytest

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


def test_it_trains_a_preset_by_name_and_explores_it_from_an_empty_directory(installed, tmp_path):
    _, target = installed

    def run(*command):
        environment = os.environ | {"PYTHONPATH": str(target)}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    compgen = [str(target / "bin" / "compgen-jax")]
    flags = [*TINY, "--config.training.steps=4", "--config.model.name=mlp", "--workdir=run"]
    assert "wrote run/summary.json" in run(*compgen, "train", *flags)
    assert set(json.loads((tmp_path / "run" / "summary.json").read_text())["seeds"]) == {"0", "3"}
    assert "wrote run/explorer.html" in run(*compgen, "explore", "--workdir=run")
    assert run(*compgen, "example", "own_task.py") == "wrote own_task.py\n"
    shown = run(*compgen, "train", "--config=own_task.py:quick", "--print_config")
    assert json.loads(shown)["task"]["name"] == f"{tmp_path}/own_task.py:Sprites"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own_task.py", "run"]
