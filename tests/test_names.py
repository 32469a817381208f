"""Names and idioms: a file's name says what it holds, once, and code reads without tricks."""

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = "compgen_jax", "figures", "launch"
FILES = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
# commands that are called after what they work on
COMMANDS = {"config.py", "presets.py"}


def test_a_basename_occurs_once():
    names = Counter(path.name for path in FILES)
    assert {name for name, count in names.items() if count > 1} <= COMMANDS | {"__init__.py"}


def is_trick(node) -> bool:
    """A text or list times a truth value, a walrus in a call, or `vars(self).update`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = node.left, node.right
        texts = (ast.List, ast.Tuple, ast.JoinedStr)
        is_text = lambda side: isinstance(side, texts) or type(getattr(side, "value", 0)) is str
        is_truth = lambda side: isinstance(side, ast.Compare | ast.BoolOp)
        return any(map(is_text, sides)) and any(map(is_truth, sides))
    if isinstance(node, ast.Call):
        return any(isinstance(value, ast.NamedExpr) for value in node.args) or (
            ast.unparse(node.func) == "vars(self).update"
        )
    return False


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_reads_without_tricks(path):
    tree = ast.parse(path.read_text())
    assert not [node.lineno for node in ast.walk(tree) if is_trick(node)]
    assigned = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert not [value.lineno for value in assigned if isinstance(value, ast.Lambda)]
