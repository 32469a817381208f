"""Which runs the league has."""

from pathlib import Path

import numpy as np
import pytest

from compgen_jax.config import ConfigError
from compgen_jax.runs import study
from compgen_jax.studies.benchmark import benchmark_presets as runs
from compgen_jax.tasks import task as tasks

OWN_MODEL = """
from dataclasses import dataclass

from compgen_jax.models.mlp import MLP


@dataclass(frozen=True)
class Mine(MLP):
    width: int = 7
"""


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


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_hold_outs_of_a_task_leave_out_as_many_combinations_and_share_a_program(scale):
    counts, schedules = {}, {}
    for config in runs.runs(scale).values():
        task, entry = config.task.make(), runs.entry_of(config)
        held_out = np.asarray(task.held_out(tasks.points(task)))
        counts.setdefault(entry.task, set()).add(int(held_out.sum()))
        schedule = study.schedule(config, task)
        schedules.setdefault((entry.model, entry.task), set()).add(schedule)
    assert {task: len(each) for task, each in counts.items()} == dict.fromkeys(counts, 1)
    assert all(len(each) == 1 for each in schedules.values())
