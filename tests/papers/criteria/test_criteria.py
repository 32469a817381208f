"""Criteria decide rightly on known answers, and every claim is tried on some."""

import pytest

from compgen_jax.catalog import PAPERS
from tests.papers.criteria import known_low_rank, known_maps, known_networks, known_turns
from tests.papers.criteria.matrix import tried, wrongly_decided

EVERY = {
    f"{module.__name__.rpartition('.')[2]}, {number}, {matrix.title}": matrix
    for module in (known_maps, known_low_rank, known_networks, known_turns)
    for number, matrix in enumerate(module.MATRICES)
}
# images of bumps of 28 pixels take as long again; turned digits have as many at either scale
MATRICES = [
    name
    for name, matrix in EVERY.items()
    if "N = 28" not in matrix.title or matrix.make.func is known_turns.turns
]
TRIED = "Forced rendering", "Why not"  # those of others have tests of their own
CLAIMS = [claim for paper in PAPERS if paper.title in TRIED for claim in paper.claims]
UNTRIED = ("C11",)  # exponents: tests/papers/test_scaling.py


@pytest.mark.parametrize("name", MATRICES)
def test_criteria_reproduce_what_the_matrix_says(name):
    assert wrongly_decided(tried(EVERY[name], CLAIMS), EVERY[name]) == []


def test_every_claim_is_tried():
    rows = {row.partition(",")[0] for matrix in EVERY.values() for row in matrix.rows}
    untried = {claim.name for claim in CLAIMS} - rows
    assert all(name.partition(".")[0] in UNTRIED for name in untried), untried
    for matrix in EVERY.values():
        for letters in matrix.rows.values():
            assert letters.keys() <= matrix.does.keys() and set(letters.values()) <= set("Rr-")
