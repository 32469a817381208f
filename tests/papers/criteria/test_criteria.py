"""Criteria decide rightly on known answers, and every claim is tried on some."""

import pytest

from compgen_jax.catalog import PAPERS
from compgen_jax.claims import REPRODUCED, judge
from tests.papers.criteria import known_low_rank, known_maps, known_networks, known_turns

MATRICES = (
    known_maps.MATRICES | known_low_rank.MATRICES | known_networks.MATRICES | known_turns.MATRICES
)
TRIED = "Forced rendering", "Why not"  # those of others have tests of their own
CLAIMS = {one.name: one for paper in PAPERS if paper.title in TRIED for one in paper.claims}


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
    tried = {row.partition("/")[0] for matrix in MATRICES.values() for row in matrix.rows}
    # exponents: tests/papers/test_scaling.py
    assert {name for name in CLAIMS if not name.startswith("C11")} <= tried
