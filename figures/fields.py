"""What docs/reference/config.md and api.md say: every field, and the public names of modules, from
the code itself."""

import importlib
import inspect
import math
import re
import textwrap
from dataclasses import fields, is_dataclass
from functools import cached_property
from types import FunctionType

import compgen_jax
from compgen_jax import settings
from compgen_jax.config import ExecutionConfig, SweepConfig, TrainingConfig

MEMBERS = FunctionType, classmethod, cached_property  # of a class, on the page of public names
GROUPS = {"training": TrainingConfig, "sweep": SweepConfig, "execution": ExecutionConfig}


def groups() -> list[tuple]:
    """A section for every group of fields: the docstrings of what no section before has, then
    a line for each field: its default, what is allowed, and whether runs that differ in it share a
    compiled program."""
    sections = [
        (f"{group}.name={name}", settings.family(group, name), group)
        for group, names in settings.FAMILIES.items()
        for name in names
    ]
    sections += [(name, kind, name) for name, kind in GROUPS.items()]
    groups, documented = [], set()
    for title, kind, path in sections:
        leaves, docs, rows = settings.leaves(kind(), path), [], []
        traced = {name for name, _, _, metadata in leaves if metadata["traced"]}
        add(kind, path, traced, documented, docs, rows)
        groups.append((title, docs, rows))
    return groups


def add(kind: type, path: str, traced, documented: set, docs: list[str], rows: list[str]):
    if (kind, path) not in documented:
        documented.add((kind, path))
        docs.append(f"`{path}`: {' '.join(inspect.getdoc(kind).split())}")
    for field in fields(kind):
        name, type_ = f"{path}.{field.name}", settings.types(kind)[field.name]
        if is_dataclass(type_):
            add(type_, name, traced, documented, docs, rows)
            continue
        allowed, bounds = [type_.__name__], field.metadata.get("bounds", {})
        for word, bound in (("from", "at least"), ("above", "greater than"), ("to", "at most")):
            if math.isfinite(bounds.get(bound, math.inf)):
                allowed.append(f"{word} {bounds[bound]:g}")
        allowed = ", ".join(map(str, field.metadata.get("options") or [" ".join(allowed)]))
        shared = "; one program" if name in traced else ""
        rows.append(f"{name} = {field.default!r}  # {allowed}{shared}")


def public(module: str, names: str) -> str:
    """Signatures and first sentences of names of a module."""
    values = vars(importlib.import_module(module))
    return "\n".join(line for name in names.split() for line in entry(name, values[name]))


def surface() -> str:
    """The same of what `import compgen_jax` gives, and of the methods of its classes."""
    lines = []
    for name in compgen_jax.__all__:
        value = getattr(compgen_jax, name)
        lines += entry(name, value)
        for member, method in vars(value).items() if inspect.isclass(value) else ():
            if isinstance(method, MEMBERS) and member[0] != "_" and inspect.getdoc(method):
                lines += entry(f"{name}.{member}", method)
    return "\n".join(lines)


def families(group: str) -> str:
    """Every family of tasks or of models: its name, its class and first sentence."""
    lines = []
    for name in settings.FAMILIES[group]:
        kind = settings.family(group, name)
        lines += entry(f"{group}.name={name}  # {kind.__module__}.{kind.__name__}", kind)
    return "\n".join(lines)


def entry(title: str, value) -> list[str]:
    """The title with the arguments of a function, and the first sentence below it."""
    value = getattr(value, "__func__", value)  # of a class method
    if inspect.isfunction(value):
        parameters = inspect.signature(value).parameters.values()
        bare = [p.replace(annotation=p.empty) for p in parameters if p.name not in ("self", "cls")]
        title += str(inspect.Signature(bare))
    paragraph, *_ = (inspect.getdoc(value) or "").split("\n\n")
    sentence, *_ = re.split(r"(?<=[^.][.]) ", " ".join(paragraph.split()))
    return [title, *textwrap.wrap(sentence, 96, initial_indent="    ", subsequent_indent="    ")]
