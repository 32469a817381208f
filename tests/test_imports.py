"""Data flows one way: every room imports only the rooms to its left."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALLOWED = {
    "config": set(),
    "tasks": {"config", "tasks"},
    "models": {"config", "models"},
    "analysis": {"config", "analysis"},
    "training": {"config", "tasks", "models", "training"},
    "claims": {"analysis", "claims"},
    "runs": {"config", "tasks", "models", "training", "analysis", "runs"},
    "sweeps": {"config", "tasks", "models", "training", "analysis", "runs", "sweeps"},
}


def imported_rooms(path: Path) -> set:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "compgen_jax":
                rooms.add(rest.partition(".")[0])
            elif package in ("launch", "figures"):
                rooms.add(package)
    return rooms


@pytest.mark.parametrize("room", ALLOWED)
def test_room_imports_only_rooms_to_its_left(room):
    paths = [ROOT / "compgen_jax" / f"{room}.py", *(ROOT / "compgen_jax" / room).glob("*.py")]
    found = {path.name: imported_rooms(path) - ALLOWED[room] for path in paths if path.exists()}
    assert found and not any(found.values()), found


def test_only_launch_and_figures_import_launch():
    for path in (ROOT / "compgen_jax").rglob("*.py"):
        assert not imported_rooms(path) & {"launch", "figures"}, path
    for path in (ROOT / "launch").glob("*.py"):
        assert "figures" not in imported_rooms(path), path


def test_pmap_has_one_home():
    users = [
        path.relative_to(ROOT).as_posix()
        for folder in ("compgen_jax", "launch", "figures")
        for path in (ROOT / folder).rglob("*.py")
        if "jax.pmap(" in path.read_text()
    ]
    assert users == ["compgen_jax/training/trials.py"]
