"""A sweep's table: one row for each trained trial, as text that is the same whoever wrote it."""

import csv
import io
from typing import NamedTuple

import numpy as np

from compgen_jax.analysis import scaling

NUMBERS = (*(f"{score}_accuracy" for score in scaling.SCORES), "mse", "blank_mse")
MEASURES = ("train_loss", *(f"{where}.{name}" for where in scaling.PLACES for name in NUMBERS))


class TableError(ValueError):
    """A table that cannot be read: the message is one line, for the user."""


class Case(NamedTuple):
    """What tells a trial from another of its sweep. All but `n_data` tell its curve."""

    grid: int
    scheme: str  # 'bumps' or 'stripes'
    region: str  # 'none', 'donut' or 'corner'
    share: float  # side of the held-out square over N; 0 for 'none'
    learning_rate: float
    weight_decay: float
    seed: int
    n_data: int  # training images in all


HEADER = ("config", *Case._fields, "status", *MEASURES)
Table = dict[Case, np.ndarray]  # the measures, float32; all NaN for a trial that failed


def rows(table: Table) -> list[dict]:
    """The table as dicts of Case fields, `status` ('ok' or 'failed') and measures, in order."""
    return [
        case._asdict()
        | {"status": status(values)}
        | dict(zip(MEASURES, values.tolist(), strict=True))
        for case, values in sorted(table.items())
    ]


def status(values) -> str:
    """A trial has failed if its training loss is not finite."""
    return "ok" if np.isfinite(values[0]) else "failed"


def to_text(table: Table, fingerprint: str) -> str:
    """CSV in the order of the cases; a measure of nothing is empty, all else reads back exactly.
    `fingerprint` of the sweep's config stands in each row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for case, values in sorted(table.items()):
        shown = ["" if np.isnan(value) else str(value) for value in values.astype(np.float32)]
        writer.writerow([fingerprint, *case, status(values), *shown])
    return text.getvalue()


def from_text(text: str, fingerprint: str) -> tuple[Table, str]:
    """The table, and what was left out: the last line, if it is cut off (no line end).

    Raises TableError, with the number of the line, for any other damage and for a row of another
    config.
    """
    lines = text.splitlines(keepends=True)
    cut = lines.pop() if lines and not lines[-1].endswith("\n") else ""
    records = list(csv.reader(lines))
    if not records:
        return {}, cut
    if records[0] != list(HEADER):
        raise TableError("line 1 is not the header of this version's tables")
    table = {}
    for number, record in enumerate(records[1:], start=2):
        case, values = _parse(record, number, fingerprint)
        if case in table:
            raise TableError(f"line {number} repeats a trial")
        table[case] = values
    return table, cut


def _parse(record: list[str], number: int, fingerprint: str):
    if len(record) != len(HEADER):
        raise TableError(f"line {number} has {len(record)} fields instead of {len(HEADER)}")
    own, *fields, found_status = record[: len(Case._fields) + 2]
    if own != fingerprint:
        raise TableError(f"line {number} is of another config ({own}, not {fingerprint})")
    kinds = Case.__annotations__.values()
    try:
        case = Case(*(kind(field) for kind, field in zip(kinds, fields, strict=True)))
        numbers = record[len(Case._fields) + 2 :]
        values = np.array([float(field or "nan") for field in numbers], np.float32)
    except ValueError as error:
        raise TableError(f"line {number}: {error}") from error
    if found_status != status(values):
        raise TableError(f"line {number}: status {found_status!r} and training loss do not agree")
    return case, values
