"""L1 on leagues whose answer is known; which runs the league has."""

from pathlib import Path

import numpy as np
import pytest

from compgen_jax.calibration import decided, wrongly_decided
from compgen_jax.claims import REPRODUCED, Evidence, evidences, judge
from compgen_jax.config import ConfigError
from compgen_jax.metrics import prediction
from compgen_jax.papers.league import claims, runs
from compgen_jax.papers.league.calibrations import CALIBRATIONS, known, known_runs
from compgen_jax.runs import experiment
from compgen_jax.tasks import task as tasks

(L1,) = claims.CLAIMS
OWN_MODEL = """
from dataclasses import dataclass

from compgen_jax.models.mlp import MLP


@dataclass(frozen=True)
class Mine(MLP):
    width: int = 7
"""


def judged(networks):
    return judge(L1, Evidence({"league": known_runs(networks)}))


@pytest.mark.parametrize("calibration", CALIBRATIONS, ids=lambda each: each.title)
def test_leagues_are_decided_rightly(calibration):
    table = decided(calibration, claims.CLAIMS)
    assert wrongly_decided(table, calibration.cases) == []


def test_a_league_without_a_relation_seldom_passes():
    """With eight architectures, each drawn once; nominally .025."""
    rows = [
        judged(known(name, seed=seed))
        for name in ("noise", "tells the family")
        for seed in range(20)
    ]
    assert sum(row["as_stated"]["verdict"] == REPRODUCED for row in rows) <= 4
    assert not any(row["stricter"]["verdict"] == REPRODUCED for row in rows)


def test_the_stricter_reading_is_of_networks_that_learnt():
    """Half did not learn, and their numbers tell the opposite."""
    told = known("tells", seed=2)
    failing = np.arange(len(told.family)) % 2 == 0
    predictors = {
        name: np.where(failing, -values, values) for name, values in told.predictors.items()
    }
    predictors[claims.LEARNT] = np.where(failing, 0.5, told.predictors[claims.LEARNT])
    row = judged(told._replace(predictors=predictors))
    kept = judged(prediction.select(told, ~failing))
    assert row["stricter"] == kept["stricter"] and row["as_stated"] != kept["as_stated"]
    assert row["details"]["networks that learnt"]["value"] == 32


def test_networks_without_a_volume_are_counted_and_left_out():
    told = known("tells")
    blind = told.family == "0"
    spread = np.where(blind, np.nan, told.predictors["log10_volume_spread"])
    row = judged(told._replace(predictors=told.predictors | {"log10_volume_spread": spread}))
    counts = {name: number["value"] for name, number in row["details"].items()}
    assert (counts["networks"], counts["families"], counts["dropped"]) == (56, 7, 8)
    assert row["as_stated"] == judged(prediction.select(told, ~blind))["as_stated"]
    assert np.isfinite(counts["without volume"])


def test_two_architectures_are_too_few():
    few = prediction.select(known("tells"), np.arange(64) < 16)
    assert judged(few)["as_stated"]["reason"].startswith("not known")
    some = {f"league_{k}": run for k, run in enumerate(known_runs(few))}
    assert evidences(L1, some) == []


# --- runs ----------------------------------------------------------------------------------------


@pytest.fixture
def own_model(tmp_path):
    path = tmp_path / "my_model.py"
    path.write_text(OWN_MODEL)
    return f"{path}:Mine"


def test_an_own_model_is_a_row_at_its_defaults(own_model):
    all_runs = runs.runs("quick", (own_model,))
    added = [all_runs[name] for name in all_runs.keys() - runs.runs("quick").keys()]
    assert len(added) == 10
    for config in added:
        assert config.model.width == 7 and config.training.steps == 1200
        assert runs.entry_of(config)[:2] == ("my_model:Mine", "my_model:Mine")
    with pytest.raises(ConfigError, match="--models: two are named my_model:Mine"):
        runs.runs("quick", (own_model, f"elsewhere/{Path(own_model).name}"))


def test_what_a_run_is_can_be_told_from_its_config():
    entries = {name: runs.entry_of(config) for name, config in runs.runs("paper").items()}
    title = "conv, one-hot code"
    assert entries["league_bumps_corner_conv_one-hot_code"] == (title, "conv", "bumps", "corner")
    assert {entry.model for entry in entries.values()} == set(runs.MODELS)
    assert len({entry.group for entry in entries.values()}) == 10


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_hold_outs_of_a_task_leave_out_as_many_combinations_and_share_a_program(scale):
    counts, schedules = {}, {}
    for config in runs.runs(scale).values():
        task, entry = config.task.make(), runs.entry_of(config)
        held_out = np.asarray(task.held_out(tasks.points(task)))
        counts.setdefault(entry.task, set()).add(int(held_out.sum()))
        schedule = experiment.schedule(config, task)
        schedules.setdefault((entry.model, entry.task), set()).add(schedule)
    assert {task: len(each) for task, each in counts.items()} == dict.fromkeys(counts, 1)
    assert all(len(each) == 1 for each in schedules.values())
