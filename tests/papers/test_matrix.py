"""Criteria decide rightly on known answers, and every claim is tried on some."""

import pytest

from compgen_jax.catalog import PAPERS
from compgen_jax.claims import tried, wrongly_decided
from compgen_jax.papers.forced_rendering import known_turns

# Images of bumps of 28 pixels take as long again: `python -m figures.pages --criteria` tries them.
# Turned digits have as many at either scale.
MATRICES = {
    f"{paper.title}, {number}, {matrix.title}": (matrix, paper.claims)
    for paper in PAPERS
    for number, matrix in enumerate(paper.matrices)
    if "N = 28" not in matrix.title or matrix.make.func is known_turns.turns
}
UNTRIED = ("C11",)  # exponents: tests/papers/test_scaling.py


@pytest.mark.parametrize("name", MATRICES)
def test_criteria_reproduce_what_the_matrix_says(name):
    matrix, claims = MATRICES[name]
    assert wrongly_decided(tried(matrix, claims), matrix) == []


@pytest.mark.parametrize(
    "paper", [paper for paper in PAPERS if paper.matrices], ids=lambda paper: paper.title
)
def test_every_claim_is_tried(paper):
    rows = {row.partition(",")[0] for matrix in paper.matrices for row in matrix.rows}
    untried = {claim.name for claim in paper.claims} - rows
    assert all(name.partition(".")[0] in UNTRIED for name in untried), untried
    for matrix in paper.matrices:
        for letters in matrix.rows.values():
            assert letters.keys() <= matrix.does.keys() and set(letters.values()) <= set("Rr-")
