"""Criteria decide rightly on known answers, and every claim is tried on some."""

import pytest

from compgen_jax.catalog import PAPERS
from compgen_jax.studies.real_factors import known as known_sprites
from tests.papers.criteria import known_low_rank, known_maps, known_networks, known_turns
from tests.papers.criteria.matrix import tried, wrongly_decided

ANSWERS = {
    "Forced rendering": (known_maps, known_low_rank, known_networks, known_turns),
    "Real factors": (known_sprites,),
}
OF_PAPERS = {
    paper.title: [matrix for answers in ANSWERS[paper.title] for matrix in answers.MATRICES]
    for paper in PAPERS
    if paper.title in ANSWERS
}
# images of bumps of 28 pixels take as long again; turned digits have as many at either scale
MATRICES = {
    f"{paper.title}, {number}, {matrix.title}": (matrix, paper.claims)
    for paper in PAPERS
    for number, matrix in enumerate(OF_PAPERS.get(paper.title, ()))
    if "N = 28" not in matrix.title or matrix.make.func is known_turns.turns
}
UNTRIED = ("C11",)  # exponents: tests/papers/test_scaling.py


@pytest.mark.parametrize("name", MATRICES)
def test_criteria_reproduce_what_the_matrix_says(name):
    matrix, claims = MATRICES[name]
    assert wrongly_decided(tried(matrix, claims), matrix) == []


@pytest.mark.parametrize(
    "paper", [paper for paper in PAPERS if paper.title in OF_PAPERS], ids=lambda paper: paper.title
)
def test_every_claim_is_tried(paper):
    matrices = OF_PAPERS[paper.title]
    rows = {row.partition(",")[0] for matrix in matrices for row in matrix.rows}
    untried = {claim.name for claim in paper.claims} - rows
    assert all(name.partition(".")[0] in UNTRIED for name in untried), untried
    for matrix in matrices:
        for letters in matrix.rows.values():
            assert letters.keys() <= matrix.does.keys() and set(letters.values()) <= set("Rr-")
