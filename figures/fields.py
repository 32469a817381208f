"""The tables of docs/reference/config.md: every field, from the dataclasses themselves."""

import inspect
import math
from dataclasses import fields, is_dataclass

from compgen_jax import settings
from compgen_jax.config import ExecutionConfig, SweepConfig, TrainingConfig


def lines() -> list[str]:
    """A section for every group of fields."""
    sections = [
        _section(f"{group}.name={name}", settings.family(group, name), group)
        for group, names in settings.FAMILIES.items()
        for name in names
    ]
    groups = {"training": TrainingConfig, "sweep": SweepConfig, "execution": ExecutionConfig}
    sections += [_section(name, kind, name) for name, kind in groups.items()]
    return ["\n\n".join(sections)]


def _section(title: str, kind: type, path: str) -> str:
    """The docstrings of a group and of the groups in it, then a table: field, default, what is
    allowed, and whether runs that differ in the field share a compiled program."""
    inner = {field.name: settings.types(kind)[field.name] for field in fields(kind)}
    documented = {path: kind} | {
        f"{path}.{name}": of for name, of in inner.items() if is_dataclass(of)
    }
    docs = [f"`{name}`: {' '.join(inspect.getdoc(of).split())}" for name, of in documented.items()]
    traced = settings.traced_names(kind(), path)
    table = ["| field | default | allowed | one program |", "|---|---|---|---|"]
    table += [
        f"| `{name}` | `{default}` | {allowed} | {'yes' if name in traced else ''} |"
        for name, default, allowed in _rows(kind, path)
    ]
    return "\n\n".join([f"### {title}", *docs, "\n".join(table)])


def _rows(kind: type, path: str):
    for field in fields(kind):
        name, of = f"{path}.{field.name}", settings.types(kind)[field.name]
        if is_dataclass(of):
            yield from _rows(of, name)
        elif options := field.metadata.get("options"):
            yield name, field.default, ", ".join(map(str, options))
        else:
            words = {"at least": "from", "greater than": "above", "at most": "to"}
            bounds = field.metadata.get("bounds", {})
            limits = [
                f"{word} {bounds[bound]:g}"
                for bound, word in words.items()
                if math.isfinite(bounds.get(bound, math.inf))
            ]
            yield name, field.default, " ".join([of.__name__, *limits])
