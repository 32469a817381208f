"""L1 on leagues whose answer is known."""

import numpy as np
import pytest

from compgen_jax.metrics import prediction
from compgen_jax.old_claims import CONTRADICTED, REPRODUCED
from compgen_jax.papers.league import claims as league

SEEDS = (0, 1, 2, 3)


def reads(networks):
    row = league.predicts_composition(networks, SEEDS)
    return row["as_stated"]["verdict"], row["stricter"]["verdict"]


def test_leagues_are_decided_rightly():
    found = league.known_verdicts()
    assert set(found["L1"]) == set(league.KNOWN) and league.wrongly_decided(found) == []
    assert found["L1"]["tells"] == (REPRODUCED, REPRODUCED)
    assert found["L1"]["tells what was learnt"][1] != REPRODUCED


def test_what_is_wrongly_decided_is_named():
    right = league.known_verdicts()["L1"]
    wrong = {"L1": right | {"tells": (CONTRADICTED, REPRODUCED), "noise": (REPRODUCED, REPRODUCED)}}
    assert league.wrongly_decided(wrong) == [
        "L1 as_stated: tells is contradicted",
        "L1 as_stated: noise is reproduced",
        "L1 stricter: noise is reproduced",
    ]


def test_a_league_without_a_relation_seldom_passes():
    """With eight families, of which each has one draw; nominally .025."""
    found = [
        reads(league.known(name, seed=seed))
        for name in ("noise", "tells the family")
        for seed in range(20)
    ]
    assert sum(as_stated == REPRODUCED for as_stated, _ in found) <= 4
    assert not any(stricter == REPRODUCED for _, stricter in found)


@pytest.mark.parametrize("seed", range(3))
def test_the_stricter_reading_is_of_networks_that_learnt(seed):
    """Some did not, and of them the numbers tell the opposite."""
    told = league.known("tells", seed=seed)
    failing = np.arange(len(told.family)) % 2 == 0
    predictors = {
        name: np.where(failing, -values, values) for name, values in told.predictors.items()
    }
    predictors[league.LEARNT] = np.where(failing, 0.5, told.predictors[league.LEARNT])
    mixed = told._replace(predictors=predictors)
    row = league.predicts_composition(mixed, SEEDS)
    kept = league.predicts_composition(prediction.select(told, ~failing), SEEDS)
    assert row["stricter"] == kept["stricter"] and row["as_stated"] != kept["as_stated"]
    assert row["details"]["networks that learnt"]["value"] == 32


def test_networks_without_a_volume_are_counted_and_left_out():
    told = league.known("tells")
    blind = told.family == "0"
    predictors = told.predictors | {
        "log10_volume_spread": np.where(blind, np.nan, told.predictors["log10_volume_spread"])
    }
    row = league.predicts_composition(told._replace(predictors=predictors), SEEDS)
    counts = {name: number["value"] for name, number in row["details"].items()}
    assert (counts["networks"], counts["families"], counts["dropped"]) == (56, 7, 8)
    assert (
        row["as_stated"]
        == league.predicts_composition(prediction.select(told, ~blind), SEEDS)["as_stated"]
    )
    assert np.isfinite(counts["without volume"])


def test_two_families_are_too_few():
    few = prediction.select(league.known("tells"), np.arange(64) < 16)
    row = league.predicts_composition(few, SEEDS)
    assert row["as_stated"]["reason"].startswith("not known")
