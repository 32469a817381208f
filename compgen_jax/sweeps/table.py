"""A sweep's table: one row for each trained trial, as text that is the same whoever wrote it."""

import csv
import io
from typing import Any, NamedTuple

import numpy as np


class TableError(ValueError):
    """A table that cannot be read: the message is one line, for the user."""


class Case(NamedTuple):
    """What tells a trial from another of its sweep. All but `value` tell its curve."""

    axes: tuple  # the values of the sweep's axes, in their order
    seed: int
    value: Any = 0  # of the searched field; 0 where nothing is searched


class Layout(NamedTuple):
    """What a table's columns are: axes, values by field name; the searched field ('' for none) and
    its type; and the measures."""

    axes: dict
    searched: str
    kind: type | None
    measures: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Those of a case's columns."""
        return (*self.axes, "seed", *([self.searched] if self.searched else []))

    @property
    def header(self) -> tuple[str, ...]:
        return ("config", *self.names, "status", *self.measures)

    def values(self, case: Case) -> tuple:
        """Those of a case's columns."""
        return (*case.axes, case.seed, *([case.value] if self.searched else []))


Table = dict[Case, np.ndarray]  # the measures, float32; all NaN for a trial that failed


def rows(table: Table, layout: Layout) -> list[dict]:
    """The table as dicts of axes by their names, `seed`, the searched field, `status` ('ok' or
    'failed') and measures, in order."""
    return [
        dict(zip(layout.names, layout.values(case), strict=True))
        | {"status": status(values)}
        | dict(zip(layout.measures, values.tolist(), strict=True))
        for case, values in sorted(table.items())
    ]


def status(values) -> str:
    """A trial has failed if its training loss is not finite."""
    return "ok" if np.isfinite(values[0]) else "failed"


def to_text(table: Table, layout: Layout, fingerprint: str) -> str:
    """CSV in the order of the cases; a measure of nothing is empty, all else reads back exactly.
    `fingerprint` of the sweep's config stands in each row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(layout.header)
    for case, values in sorted(table.items()):
        shown = ["" if np.isnan(value) else str(value) for value in values.astype(np.float32)]
        writer.writerow([fingerprint, *layout.values(case), status(values), *shown])
    return text.getvalue()


def from_text(text: str, layout: Layout, fingerprint: str) -> tuple[Table, str]:
    """The table, and what was left out: the last line, if it is cut off (no line end).

    Raises TableError, with the number of the line, for any other damage and for a row of another
    config.
    """
    lines = text.splitlines(keepends=True)
    cut = lines.pop() if lines and not lines[-1].endswith("\n") else ""
    records = list(csv.reader(lines))
    if not records:
        return {}, cut
    if records[0] != list(layout.header):
        raise TableError("line 1 is not the header of this sweep's table")
    table = {}
    for number, record in enumerate(records[1:], start=2):
        case, values = _parse(record, number, layout, fingerprint)
        if case in table:
            raise TableError(f"line {number} repeats a trial")
        table[case] = values
    return table, cut


def _parse(record: list[str], number: int, layout: Layout, fingerprint: str):
    if len(record) != len(layout.header):
        raise TableError(f"line {number} has {len(record)} fields instead of {len(layout.header)}")
    if record[0] != fingerprint:
        raise TableError(f"line {number} is of another config ({record[0]}, not {fingerprint})")
    end = 1 + len(layout.names)
    try:
        case = _case(record[1:end], layout)
        values = np.array([float(field or "nan") for field in record[end + 1 :]], np.float32)
    except ValueError as error:
        raise TableError(f"line {number}: {error}") from error
    if record[end] != status(values):
        raise TableError(f"line {number}: status {record[end]!r} and training loss do not agree")
    return case, values


def _case(fields: list[str], layout: Layout) -> Case:
    axes = []
    for (name, values), text in zip(layout.axes.items(), fields, strict=False):
        found = [value for value in values if str(value) == text]
        if not found:
            raise ValueError(f"{name}={text}: is no value of this axis")
        axes.append(found[0])
    return Case(
        tuple(axes),
        int(fields[len(axes)]),
        layout.kind(fields[len(axes) + 1]) if layout.searched else 0,
    )
