"""Claims of the study of real factors are reproduced on the known answers that they describe."""

import pytest

from compgen_jax.claims import REPRODUCED, judge
from compgen_jax.studies.real_factors.real_factors_claims import CLAIMS

from .real_factors_answers import CRITERIA

BY_NAME = {claim.name: claim for claim in CLAIMS}


@pytest.mark.parametrize(("name", "runs_of", "right", "wrong"), CRITERIA)
def test_a_claim_is_reproduced_on_the_right_answers_alone(name, runs_of, right, wrong):
    claim = BY_NAME[name]
    verdicts = {
        answer: judge(claim, runs_of(answer), claim.cases[0])["verdict"]
        for answer in (*right, *wrong)
    }
    assert [answer for answer, verdict in verdicts.items() if verdict == REPRODUCED] == right


def test_every_claim_is_tried():
    assert BY_NAME.keys() == {name for name, *_ in CRITERIA}
