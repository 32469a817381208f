"""L1 on leagues whose answer is known."""

import numpy as np
import pytest

from compgen_jax.analysis.prediction import Networks
from compgen_jax.claims import league
from compgen_jax.claims.verdicts import REPRODUCED

SEEDS = (0, 1, 2, 3)


def test_it_is_reproduced_where_geometry_tells_and_nowhere_else():
    found = league.known_verdicts()["L1"]
    assert set(found) == set(league.KNOWN)
    assert found["tells"] == (REPRODUCED, REPRODUCED)
    assert all(stricter != REPRODUCED for name, (_, stricter) in found.items() if name != "tells")
    for name in ("noise", "tells the task", "tells the family"):
        assert found[name][0] != REPRODUCED, name


def test_a_league_without_a_relation_seldom_passes_as_stated():
    """With eight families, of which each has one draw; nominally .025."""
    rows = [
        league.predicts_composition(league.known(name, seed), SEEDS)
        for name in ("noise", "tells the family")
        for seed in range(20)
    ]
    passed = [row["as_stated"]["verdict"] == REPRODUCED for row in rows]
    assert sum(passed) <= 4 and not all(row["stricter"]["verdict"] == REPRODUCED for row in rows)


@pytest.mark.parametrize("seed", range(4))
def test_no_draw_of_another_league_passes_the_stricter_reading(seed):
    for name in league.KNOWN:
        row = league.predicts_composition(league.known(name, seed), SEEDS)
        assert (row["stricter"]["verdict"] == REPRODUCED) == (name == "tells"), name
        assert row["claim"] == "L1" and row["details"]["networks"]["value"] == 64


def test_networks_that_did_not_learn_have_no_part_in_the_stricter_reading():
    """Here geometry tells of them alone."""
    told, blind = league.known("tells", 2), league.known("noise", 2)
    failing = np.arange(len(told.family)) % 2 == 0
    predictors = {
        name: np.where(failing, told.predictors[name], blind.predictors[name])
        for name in league.GEOMETRY
    }
    predictors[league.LEARNT] = np.where(failing, 0.5, told.predictors[league.LEARNT])
    outcome = np.where(failing, told.outcome, blind.outcome)
    row = league.predicts_composition(Networks(told.family, told.group, outcome, predictors), SEEDS)
    assert row["stricter"]["verdict"] != REPRODUCED
    few = league.predicts_composition(
        Networks(told.family[:16], told.group[:16], outcome[:16],
                 {name: values[:16] for name, values in predictors.items()}), SEEDS
    )  # fmt: skip
    assert few["as_stated"]["reason"].startswith("not known")
