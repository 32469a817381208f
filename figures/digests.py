"""What each picture was drawn by and from, as digests beside the pictures.

figures/digests.json has a line for each picture of its folder: digests of the file itself, of its
caption, of the code that drew it, and of the summaries of the runs that it shows. `figures.make`
writes the line, `figures.results` takes it along into docs/results. The gallery lists pictures
whose caption, code or runs have changed since. A picture that is not the one of its line is an
error.

The code is the drawing function and all that it uses, by name, of modules in figures/ and in
compgen_jax/papers/: functions, classes and constants. What lies below these (metrics, training)
shows in the summaries.
"""

import ast
import hashlib
import inspect
import json
from functools import cache
from pathlib import Path

from compgen_jax.runs import directory

from .figure import Figure

ROOT = Path(__file__).parents[1]
FOLLOWED = "figures", "compgen_jax.papers"  # packages
DOCUMENTED = ast.FunctionDef | ast.ClassDef
DIGITS = 12  # of a digest in hexadecimal


def of_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def line_of(figure: Figure, png: bytes, summaries: dict[str, bytes]) -> dict:
    """A figure's line, of its picture and of the summaries of its runs, by their configs' names."""
    return {"png": of_bytes(png)} | current(figure, summaries)


def current(figure: Figure, summaries: dict[str, bytes]) -> dict:
    """The same without the picture: digests of the caption, of the code and of every summary."""
    code = sources(figure.draw.__module__, figure.draw.__name__)
    content = "\n".join(f"{name}\n{source}" for name, source in sorted(code.items()))
    return {
        "caption": of_bytes((inspect.getdoc(figure.draw) or "").encode()),
        "code": of_bytes(content.encode()),
        "runs": {name: of_bytes(summary) for name, summary in sorted(summaries.items())},
    }


def read(folder: Path) -> dict[str, dict]:
    """The lines of a folder of figures by name; {} without its file."""
    path = folder / "digests.json"
    return json.loads(path.read_text()) if path.exists() else {}


def note(path: Path, figure: Figure, summaries: dict[str, bytes]):
    """Writes the line of a picture that was drawn just now, of the summaries of its runs."""
    lines = read(path.parent) | {figure.name: line_of(figure, path.read_bytes(), summaries)}
    write(path.parent, lines)


def write(folder: Path, lines: dict[str, dict]):
    """Writes the lines of the pictures that are there; None is no line."""
    there = {path.stem for path in folder.glob("*.png")}
    kept = {name: lines[name] for name in sorted(lines) if name in there and lines[name]}
    directory.write_json(folder / "digests.json", kept)


def wrong(folder: Path) -> list[str]:
    """What contradicts the lines of a folder of figures, in words."""
    found, lines = [], read(folder)
    for name, one in lines.items():
        path = folder / f"{name}.png"
        if not path.exists():
            found.append(f"{path.name} is in digests.json but not there")
        elif of_bytes(path.read_bytes()) != one["png"]:
            found.append(f"{path.name} is not the picture of its line in digests.json")
    return found


def changes(line: dict | None, figure: Figure, summaries: dict[str, bytes]) -> list[str]:
    """What has changed since the picture of this line was drawn: of 'caption', 'code', 'runs';
    'no digest' for None. `summaries` are those of the runs that the figure shows now."""
    if line is None:
        return ["no digest"]
    now = current(figure, summaries)
    return [name for name in now if now[name] != line[name]]


# --- the code that a name stands on ------------------------------------------------------------


def sources(module: str, name: str) -> dict[str, str]:
    """{'MODULE.NAME': source} of a top-level name and of all that it uses in `FOLLOWED`, without
    docstrings and decorators; {} for one of another module."""
    found, waiting = {}, [(module, name)]
    while waiting:
        module, name = waiting.pop()
        if f"{module}.{name}" not in found and name in _definitions(module):
            nodes = _definitions(module)[name]
            found[f"{module}.{name}"] = "\n".join(_source(module, node) for node in nodes)
            waiting += [used for node in nodes for used in _used(module, node)]
    return found


def _used(module: str, node) -> list[tuple[str, str]]:
    """(module, name) of every name that a definition may mean."""
    imported, used = _imports(module), []
    decorators = {id(one) for of in getattr(node, "decorator_list", ()) for one in ast.walk(of)}
    for each in (one for one in ast.walk(node) if id(one) not in decorators):
        if isinstance(each, ast.Name):
            # a name of this module, or one that it imports from another
            used.append((module, each.id))
            of, original = imported.get(each.id, ("", ""))
            used += [(of, original)] if original else []
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            of, original = imported.get(each.value.id, ("", ""))
            used += [] if original else [(of, each.attr)]
    return [(of, name) for of, name in used if _path(of)]


def _source(module: str, node) -> str:
    shown = range(node.lineno, node.end_lineno + 1)
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
        doc = node.body[0]
        shown = [line for line in shown if not doc.lineno <= line <= doc.end_lineno]
    lines = _path(module).read_text().splitlines()
    return "\n".join(lines[line - 1] for line in shown)


@cache
def _definitions(module: str) -> dict[str, list]:
    """The statements that define each top-level name."""
    found = {}
    for node in _parsed(module).body if _path(module) else ():
        if isinstance(node, DOCUMENTED):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for each in (one for target in targets for one in ast.walk(target)):
                if isinstance(each, ast.Name):
                    found.setdefault(each.id, []).append(node)
    return found


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """{local name: (module, name in it, '' for the module itself)} of what is followed."""
    found = {}
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = [*module.split(".")[: -node.level], base]
                base = ".".join(part for part in parts if part)
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                meant = (whole, "") if _path(whole) else (base, alias.name)
                found[alias.asname or alias.name] = meant
    return found


@cache
def _parsed(module: str):
    return ast.parse(_path(module).read_text())


@cache
def _path(module: str) -> Path | None:
    """The file of a module that is followed, else None."""
    if not any(module == one or module.startswith(f"{one}.") for one in FOLLOWED):
        return None
    path = ROOT / f"{module.replace('.', '/')}.py"
    return path if path.exists() else None
