"""Tables of known answers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Matrix(NamedTuple):
    """What criteria must say of known answers.

    make: () -> known answers by name, and whatever else `beside` asks for.
    rows: {claim: {known answer: letter}}: 'R' must be reproduced; '-' must not; 'r' is reproduced
      though it is not what the sentence says, so the criterion cannot tell it. What follows a slash
      in the name of a claim tells its rows apart.
    beside: {row: (name, known answers) -> runs by argument}; by default the answer is `net`.
    """

    make: Callable[[], dict[str, Any]]
    rows: dict[str, dict[str, str]]
    beside: dict[str, Callable] = {}


def runs_by(**answers: str) -> Callable:
    """Runs by argument: known answers, and for '' the one that is tried."""
    return lambda name, known: {key: known[answer or name] for key, answer in answers.items()}


def rows_of(*tables: str) -> dict[str, dict[str, str]]:
    """The rows of a `Matrix` by tables of words that have one line for each claim or, if they begin
    with 'answer', for each known answer. '.' is not tried."""
    rows = {}
    for table in tables:
        cells = np.array([line.split() for line in table.strip().splitlines()])
        if cells[0, 0] == "answer":
            cells = cells.T
        for claim, *letters in cells[1:].tolist():
            answers = zip(cells[0, 1:].tolist(), letters, strict=True)
            row = rows.setdefault(claim, {})
            row |= {name: letter for name, letter in answers if letter != "."}
    return rows
