"""Every field of a config, from the dataclasses themselves: the tables of docs/config.md.

    python -m launch.fields

Writes them into the page; a test compares.
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


def groups() -> dict[str, tuple]:
    """(settings class, path) of every group of fields, by its title."""
    families = {
        f"{group}.name={name}": (settings.family(group, name), group)
        for group, names in settings.FAMILIES.items()
        for name in names
    }
    own = {"training": TrainingConfig, "sweep": SweepConfig, "execution": ExecutionConfig}
    return families | {name: (kind, name) for name, kind in own.items()}


def tables() -> str:
    """A table for every group: field, default, what is allowed, and whether runs that differ in it
    share a compiled program."""
    parts = []
    for title, (kind, path) in groups().items():
        traced = set(settings.traced_names(kind(), path))
        lines = ["| field | default | allowed | one program |", "|---|---|---|---|"]
        lines += [
            f"| `{name}` | `{default}` | {allowed} | {'yes' if name in traced else ''} |"
            for name, default, allowed in _rows(kind, path)
        ]
        parts += [f"### {title}", *_documented(kind, path), "\n".join(lines)]
    return "\n\n".join(parts)


def _documented(kind, path: str):
    """The docstrings of a group and of the groups in it."""
    found = [(path, kind)] + [
        (f"{path}.{field.name}", of)
        for field in fields(kind)
        if is_dataclass(of := settings.types(kind)[field.name])
    ]
    for name, of in found:
        yield f"`{name}`: {' '.join(inspect.getdoc(of).split())}"


def _rows(kind, path: str):
    for field in fields(kind):
        name, of, default = f"{path}.{field.name}", settings.types(kind)[field.name], field.default
        if is_dataclass(of):
            yield from _rows(of, name)
        else:
            yield name, default, _allowed(field.metadata, of)


def _allowed(metadata, kind) -> str:
    if "options" in metadata:
        return ", ".join(str(option) for option in metadata["options"])
    bounds = metadata.get("bounds", {})
    low, high, above = (bounds.get(name, math.nan) for name in ("low", "high", "above"))
    parts = [f"from {low:g}"] if math.isfinite(low) else []
    parts += [f"above {above:g}"] if math.isfinite(above) else []
    parts += [f"to {high:g}"] if math.isfinite(high) else []
    return " ".join([kind.__name__, *parts])


def with_tables(page: str) -> str:
    """The page with the tables between its two marks."""
    return text.between(page, MARKS, [tables()])


if __name__ == "__main__":
    directory.write_text(PAGE, with_tables(PAGE.read_text()))
    print(f"wrote {PAGE.name}")
