"""The fingerprint of a criterion: of the code that decides a claim.

A criterion is frozen before it is confirmed at fresh seeds. Its fingerprint stands beside its
verdict, so that a criterion that was changed afterwards loses its confirmation. It covers the
claim's function and all that this names in `compgen_jax.papers` or in its own file, as far as
needed, and the case with its runs. Sentences, comments and layout are not part of it.
"""

import ast
import hashlib
import importlib.util
import json
from functools import cache
from pathlib import Path

FOLLOWED = "compgen_jax.papers"  # imports from elsewhere are named, and not followed


def fingerprint(function, case: dict, runs: dict) -> str:
    """12 hexadecimal digits; '' of a function whose file cannot be read."""
    path = function.__code__.co_filename
    if not Path(path).exists():
        return ""
    code = _code_of(path, function.__name__)
    asked = json.dumps([case, runs], sort_keys=True, default=str)
    return hashlib.sha256(f"{code}\n{asked}".encode()).hexdigest()[:12]


@cache
def _code_of(path: str, name: str) -> str:
    """What a name of a file stands for, and all that this names, in a fixed order."""
    left, seen = [(path, name)], {}
    while left:
        path, name = left.pop()
        if (path, name) in seen:
            continue
        definitions, imports = _names_of(path)
        node = definitions.get(name)
        seen[path, name] = "" if node is None else _as_text(node)
        if name in imports:
            module, original = imports[name]
            if file := _file_of(module):
                left.append((file, original))
        for one in ast.walk(node) if node else ():
            if isinstance(one, ast.Name):
                left.append((path, one.id))
            if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                module = ".".join(imports.get(one.value.id, ()))
                if file := _file_of(module):
                    left.append((file, one.attr))
    return "\n".join(sorted(f"{name}: {text}" for (_, name), text in seen.items() if text))


@cache
def _names_of(path: str) -> tuple[dict, dict]:
    """{name: the statement that defines it} and {name: (module, its name there)} of a file."""
    definitions, imports = {}, {}
    for node in ast.parse(Path(path).read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            imports |= {one.asname or one.name: (node.module, one.name) for one in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign):
            targets = (one for target in node.targets for one in ast.walk(target))
            definitions |= {one.id: node for one in targets if isinstance(one, ast.Name)}
    return definitions, imports


@cache
def _file_of(module: str) -> str:
    """The file of a module whose code is followed; '' of others."""
    if not f"{module}.".startswith(f"{FOLLOWED}."):
        return ""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a function of a module, not a module
        return ""
    return found.origin if found and found.origin else ""


def _as_text(node) -> str:
    """The tree of a statement, the same on every Python, without decorators and docstrings."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        parts = [*ast.iter_child_nodes(getattr(node, "args", ast.Pass())), *body]
        return " ".join(_as_text(part) for part in parts)
    fields = [
        str(value) for name, value in ast.iter_fields(node) if isinstance(value, str | int | float)
    ]
    inner = (_as_text(child) for child in ast.iter_child_nodes(node))
    return f"({type(node).__name__} {' '.join([*fields, *inner])})"
