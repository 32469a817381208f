"""The tables of docs/reference/config.md: every field, from the dataclasses themselves."""

import inspect
from dataclasses import fields, is_dataclass

from compgen_jax import settings
from compgen_jax.config import ExecutionConfig, SweepConfig, TrainingConfig

GROUPS = {"training": TrainingConfig, "sweep": SweepConfig, "execution": ExecutionConfig}


def lines() -> list[str]:
    """A section for every group of fields."""
    sections = [
        (f"{group}.name={name}", settings.family(group, name), group)
        for group, names in settings.FAMILIES.items()
        for name in names
    ]
    sections += [(name, kind, name) for name, kind in GROUPS.items()]
    lines = []
    for title, kind, path in sections:
        lines += ["", f"### {title}", "", *_section(kind, path)]
    return lines[1:]


def _section(kind: type, path: str) -> list[str]:
    """The docstrings of a group and of the groups in it, then a table: field, default, what is
    allowed, and whether runs that differ in the field share a compiled program."""
    leaves = settings.leaves(kind(), path)
    traced = {name for name, _, _, metadata in leaves if metadata["traced"]}
    docs, rows = [], []

    def add(kind, path):
        docs.extend([f"`{path}`: {' '.join(inspect.getdoc(kind).split())}", ""])
        for field in fields(kind):
            name, type_ = f"{path}.{field.name}", settings.types(kind)[field.name]
            if is_dataclass(type_):
                add(type_, name)
                continue
            if options := field.metadata.get("options"):
                allowed = ", ".join(map(str, options))
            else:
                bounds = field.metadata.get("bounds", {})
                words = {"at least": "from", "greater than": "above", "at most": "to"}
                limits = [
                    f"{word} {bounds[bound]:g}"
                    for bound, word in words.items()
                    if abs(bounds.get(bound, float("inf"))) != float("inf")
                ]
                allowed = " ".join([type_.__name__, *limits])
            shared = "yes" if name in traced else ""
            rows.append(f"| `{name}` | `{field.default}` | {allowed} | {shared} |")

    add(kind, path)
    return [*docs, "| field | default | allowed | one program |", "|---|---|---|---|", *rows]
