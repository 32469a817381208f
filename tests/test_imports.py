"""Data flows one way: every room imports only the rooms to its left."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOWEST = {"config", "settings", "grids"}  # what every room may know
LIBRARY = LOWEST | {"tasks", "models", "training", "statistics", "metrics", "claims"}
ALLOWED = {
    "settings": set(),
    "grids": set(),
    "config": {"settings"},
    "tasks": LOWEST | {"tasks"},
    "models": LOWEST | {"models"},
    "training": LOWEST | {"tasks", "models", "training"},
    "statistics": LOWEST,
    "metrics": LOWEST | {"statistics", "metrics"},
    "claims": LOWEST | {"statistics", "metrics"},
    "tables": set(),
    "calibration": LOWEST | {"claims"},
    "runs": LIBRARY | {"runs"},
    "sweeps": LIBRARY | {"runs", "sweeps"},
    "papers": LIBRARY | {"runs", "sweeps", "calibration", "papers"},
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
    paths = [ROOT / "compgen_jax" / f"{room}.py", *(ROOT / "compgen_jax" / room).rglob("*.py")]
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


def test_every_room_has_its_rule():
    rooms = {path.stem for path in (ROOT / "compgen_jax").iterdir() if path.name[0] not in "_."}
    assert rooms == set(ALLOWED)


def test_what_all_papers_share_imports_no_paper():
    shared = [*(ROOT / "compgen_jax").rglob("*.py"), *(ROOT / "launch").glob("*.py")]
    for path in shared:
        if "forced_rendering" not in path.parts and path != ROOT / "launch" / "config.py":
            assert "forced_rendering" not in path.read_text(), path


def test_the_protocol_knows_no_family():
    """Rooms that serve any task never ask for a bump's settings."""
    for room in ("training", "metrics", "runs", "sweeps"):
        for path in (ROOT / "compgen_jax" / room).glob("*.py"):
            text = path.read_text()
            assert "tasks.bump" not in text and "tasks import bump" not in text, path
            for field in ("task.code", "task.image.", "task.stripes", "task.support"):
                assert f"config.{field}" not in text, (path, field)


def test_what_all_papers_share_names_nothing_of_the_second():
    own = ("scale", "modules", "module_codes", "module_supports", "preference", "task_conditioned",
           "task_transformer", "hypernetwork", "students")  # fmt: skip
    for folder in ("compgen_jax", "launch", "figures"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
            if not parts & {*own, "forced_rendering"} and path.name != "settings.py":
                text = path.read_text().lower()
                assert "teacher" not in text and "preference" not in text, path
