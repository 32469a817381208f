"""The tables of docs/reference/config.md: every field, from the dataclasses themselves."""

import inspect
import math
from dataclasses import fields, is_dataclass

from compgen_jax import settings
from compgen_jax.config import ExecutionConfig, SweepConfig, TrainingConfig

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
