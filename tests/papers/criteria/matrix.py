"""Criteria tried on known answers."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from compgen_jax.claims import REPRODUCED, judge


class Matrix(NamedTuple):
    """What criteria must say of known answers.

    title: such as 'N = 16, donut'.  does: what each known answer does, in words, by name.
    make: () -> known answers by name, and whatever else `beside` asks for.
    rows: {claim: {known answer: letter}}: 'R' must be reproduced; '-' must not; 'r' is reproduced
      though it is not what the sentence says, so the criterion cannot tell it. What follows a comma
      in the name of a claim tells its rows apart: 'C7.mlp, beside a fading CNN'.
    beside: {claim: (name, known answers) -> runs by argument}; by default the answer is `net`.
    """

    title: str
    does: dict[str, str]
    make: Callable[[], dict[str, Any]]
    rows: dict[str, dict[str, str]]
    beside: dict[str, Callable] = {}


def letters(names: Iterable[str], left: Iterable[str] = (), **named) -> dict[str, str]:
    """A row of a `Matrix`: `R` and `r` name the known answers of that letter, the others have '-'.
    Those that are `left` out are not asked."""
    row = dict.fromkeys(names, "-")
    for letter, of_letter in named.items():
        row |= dict.fromkeys(of_letter, letter)
    return {name: letter for name, letter in row.items() if name not in left}


def tried(matrix: Matrix, claims) -> dict[str, dict[str, str]]:
    """{claim: {known answer: verdict}} of every row of a matrix."""
    by_name, known, table = {one.name: one for one in claims}, matrix.make(), {}
    for row, names in matrix.rows.items():
        one = by_name[row.partition(",")[0]]
        runs = matrix.beside.get(row, lambda name, known: {"net": known[name]})
        table[row] = {
            name: judge(one, runs(name, known), one.cases[0])["verdict"] for name in names
        }
    return table


def wrongly_decided(table: dict, matrix: Matrix) -> list[str]:
    """What of `tried` differs from the matrix, in words."""
    return [
        f"{matrix.title}: {row}: {name} is {verdict}, and must be {matrix.rows[row][name]}"
        for row, verdicts in table.items()
        for name, verdict in verdicts.items()
        if (verdict == REPRODUCED) != (matrix.rows[row][name] in "Rr")
    ]
