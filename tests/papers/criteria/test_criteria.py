"""Criteria decide rightly on known answers, and every claim is tried on some."""

import pytest

from compgen_jax.catalog import PAPERS
from compgen_jax.claims import REPRODUCED, judge
from tests.papers.criteria import (
    known_low_rank,
    known_maps,
    known_networks,
    known_turns,
    real_factors_answers,
    scale_answers,
)

TABLES = (
    known_maps,
    known_low_rank,
    known_networks,
    known_turns,
    real_factors_answers,
    scale_answers,
)
MATRICES = {name: matrix for module in TABLES for name, matrix in module.MATRICES.items()}
CLAIMS = {claim.name: claim for paper in PAPERS for claim in paper.claims}


@pytest.mark.parametrize("name", MATRICES)
def test_criteria_reproduce_what_the_matrix_says(name):
    matrix, wrong = MATRICES[name], []
    known = matrix.make()
    for row, letters in matrix.rows.items():
        claim = CLAIMS[row.partition("/")[0]]
        runs_of = matrix.beside.get(row, lambda answer, known: {"net": known[answer]})
        for answer, letter in letters.items():
            verdict = judge(claim, runs_of(answer, known), claim.cases[0])["verdict"]
            if (verdict == REPRODUCED) != {"R": True, "r": True, "-": False}[letter]:
                wrong.append(f"{row}: {answer} is {verdict}, and must be {letter}")
    assert not wrong


def test_every_claim_is_tried():
    rows = {row.partition("/")[0] for matrix in MATRICES.values() for row in matrix.rows}
    # exponents: tests/papers/test_scaling.py
    untried = {name for name in CLAIMS if name.startswith("C11")}
    assert CLAIMS.keys() - untried == rows
