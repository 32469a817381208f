"""A sweep's table: one row for each trained trial, as text that is the same whoever wrote it."""

import csv
import io
from typing import Any, NamedTuple

import numpy as np


class SweepTrial(NamedTuple):
    """What distinguishes a trial from the others of its sweep; all but `value` name its curve."""

    axes: tuple  # the values of the sweep's axes, in their order
    seed: int
    value: Any = 0  # of the searched field; 0 where nothing is searched


class Layout(NamedTuple):
    """What a table's columns are.

    axes: their values by field name.  searched: the searched field, '' for none.  kind: its type.
    measures: names of the measured numbers.
    """

    axes: dict
    searched: str
    kind: type | None
    measures: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a trial's columns."""
        return (*self.axes, "seed", *([self.searched] if self.searched else []))

    @property
    def header(self) -> tuple[str, ...]:
        return ("config", *self.names, "status", *self.measures)

    def values(self, trial: SweepTrial) -> tuple:
        """The values in a trial's columns."""
        return (*trial.axes, trial.seed, *([trial.value] if self.searched else []))

    def describe(self, trial: SweepTrial) -> str:
        pairs = zip(self.names, self.values(trial), strict=True)
        return ", ".join(f"{name}={value!r}" for name, value in pairs)


Table = dict[SweepTrial, np.ndarray]  # the measures, float32; all NaN for a trial that failed


def rows(table: Table, layout: Layout) -> list[dict]:
    """The table as dicts of axes by their names, `seed`, the searched field, `status` ('ok' or
    'failed') and measures, in order."""
    return [
        dict(zip(layout.names, layout.values(trial), strict=True))
        | {"status": status(values)}
        | dict(zip(layout.measures, values.tolist(), strict=True))
        for trial, values in sorted(table.items())
    ]


def status(values) -> str:
    """A trial has failed if its training loss is not finite."""
    return "ok" if np.isfinite(values[0]) else "failed"


def to_text(table: Table, layout: Layout, fingerprint: str) -> str:
    """CSV in the order of the trials; a measure of nothing is empty, all else reads back exactly.
    Each row begins with the `fingerprint` of the sweep's config."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(layout.header)
    for trial, values in sorted(table.items()):
        shown = ["" if np.isnan(value) else str(value) for value in values.astype(np.float32)]
        writer.writerow([fingerprint, *layout.values(trial), status(values), *shown])
    return text.getvalue()


def from_text(text: str, layout: Layout, fingerprint: str) -> tuple[Table, str]:
    """The table, and the last line if it is cut off (has no line end), which is left out.

    Raises ValueError, one line that begins with the number of the line, for any other damage and
    for a row of another config.
    """
    whole, _, cut = text.rpartition("\n")
    table = {}
    for number, record in enumerate(csv.reader(whole.splitlines()), start=1):
        try:
            if number > 1:
                trial, values = _parse(record, layout, fingerprint)
                if trial in table:
                    raise ValueError("repeats a trial")
                table[trial] = values
            elif tuple(record) != layout.header:
                raise ValueError("is not the header of this sweep's table")
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return table, cut


def _parse(record: list[str], layout: Layout, fingerprint: str) -> tuple[SweepTrial, np.ndarray]:
    if len(record) != len(layout.header):
        raise ValueError(f"has {len(record)} fields instead of {len(layout.header)}")
    fields = dict(zip(layout.header, record, strict=True))
    if fields["config"] != fingerprint:
        raise ValueError(f"is of another config ({fields['config']}, not {fingerprint})")
    for name, allowed in layout.axes.items():
        by_text = {str(value): value for value in allowed}
        if fields[name] not in by_text:
            raise ValueError(f"{name}={fields[name]}: is no value of this axis")
        fields[name] = by_text[fields[name]]
    value = layout.kind(fields[layout.searched]) if layout.searched else 0
    trial = SweepTrial(tuple(fields[name] for name in layout.axes), int(fields["seed"]), value)
    values = np.array([float(fields[name] or "nan") for name in layout.measures], np.float32)
    if fields["status"] != status(values):
        raise ValueError(f"status {fields['status']!r} and training loss do not agree")
    return trial, values
