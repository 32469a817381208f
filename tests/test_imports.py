"""Data flows one way: every room imports only the rooms to its left."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOWEST = {"config", "settings", "grids"}  # every room may import them
# rooms that serve any task and any model know no family of either
TASKS, MODELS = {"tasks.task", "tasks.sampling", "tasks.baselines"}, {"models.model"}
SERVE_ALL = LOWEST | TASKS | MODELS | {"models.convolution", "models.intervention"}
SERVE_ALL |= {"training", "statistics", "metrics"}
ALLOWED = {
    "settings": set(),
    "grids": set(),
    "config": {"settings"},
    "tasks": LOWEST | {"tasks"},
    "models": LOWEST | {"models"},
    "training": LOWEST | TASKS | MODELS | {"models.convolution", "training"},
    "statistics": LOWEST,
    "metrics": LOWEST | {"statistics", "metrics"},
    "claims": LOWEST | {"statistics", "metrics"},
    "runs": SERVE_ALL | {"claims", "runs"},
    "papers": SERVE_ALL | {"tasks", "models", "claims", "runs", "papers"},
    "studies": SERVE_ALL | {"tasks", "models", "claims", "runs", "papers", "studies"},
    "catalog": {"papers", "studies"},
    "presets": LOWEST | {"papers", "studies"},
    "compilation_cache": set(),
    "api": SERVE_ALL
    | {"runs", "cli", "compilation_cache", "papers.verdicts", "catalog"}
    | {"tasks.holdouts"},
    "cli": LOWEST | {"compilation_cache", "runs.directory", "presets"},
}


def imported(path: Path) -> set[str]:
    """What a file imports of the project: 'tasks.task', 'config', '.plotting', 'launch'."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names |= {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    inner = {name.removeprefix("compgen_jax.") for name in names if name.startswith("compgen_jax.")}
    return inner | {n for n in names if n.startswith((".", "launch", "figures"))}


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_imports_only_rooms_to_its_left(room):
    for path in [ROOT / f"compgen_jax/{room}.py", *(ROOT / "compgen_jax" / room).rglob("*.py")]:
        for name in imported(path) if path.exists() else ():
            first, second = (name.split(".") + [""])[:2]
            assert {first, f"{first}.{second}"} & ALLOWED[room], f"{path} imports {name}"


def test_every_room_has_its_rule():
    paths = [path for path in (ROOT / "compgen_jax").iterdir() if path.name[0] not in "_."]
    rooms = {path.stem for path in paths if path.name != "py.typed"}
    assert rooms == set(ALLOWED)


def test_studies_import_public_names_alone():
    for path in (ROOT / "compgen_jax/studies").rglob("*.py"):
        assert not [name for name in imported(path) if "._" in name], path


@pytest.mark.parametrize("folder", ["launch", "figures"])
def test_commands_and_figures_import_their_own_folder_relatively(folder):
    """A wheel has them as compgen_jax.launch and compgen_jax.figures, a checkout beside it."""
    for path in (ROOT / folder).rglob("*.py"):
        assert not {n for n in imported(path) if n.startswith(("launch", "figures"))}, path
