"""Writes the tables of docs/config.md: every field of a config, from the dataclasses themselves.

python -m launch.fields
"""

import inspect
import math
from dataclasses import fields, is_dataclass
from pathlib import Path

from compgen_jax import settings
from compgen_jax.config import ExecutionConfig, SweepConfig, TrainingConfig
from compgen_jax.metrics import text
from compgen_jax.runs import directory

PAGE = Path(__file__).parents[1] / "docs" / "config.md"
MARKS = "<!-- fields: python -m launch.fields -->", "<!-- end of fields -->"


def page() -> str:
    """The page with a section for every group of fields between its two marks."""
    sections = [
        _section(f"{group}.name={name}", settings.family(group, name), group)
        for group, names in settings.FAMILIES.items()
        for name in names
    ]
    groups = {"training": TrainingConfig, "sweep": SweepConfig, "execution": ExecutionConfig}
    sections += [_section(name, kind, name) for name, kind in groups.items()]
    return text.between(PAGE.read_text(), MARKS, ["\n\n".join(sections)])


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
            words = {"low": "from", "above": "above", "high": "to"}
            bounds = field.metadata.get("bounds", {})
            limits = [
                f"{word} {bounds[bound]:g}"
                for bound, word in words.items()
                if math.isfinite(bounds.get(bound, math.inf))
            ]
            yield name, field.default, " ".join([of.__name__, *limits])


if __name__ == "__main__":
    directory.write_text(PAGE, page())
    print(f"wrote {PAGE.name}")
