"""Which runs the benchmark has."""

import numpy as np
import pytest

from compgen_jax.runs import study
from compgen_jax.studies.benchmark import benchmark_presets as benchmark
from compgen_jax.tasks import task as tasks


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_hold_outs_of_a_task_leave_out_as_many_combinations_and_share_a_program(scale):
    counts, schedules = {}, {}
    for name, config in benchmark.runs(scale).items():
        task, entry = config.task.make(), benchmark.ENTRIES[name]
        held_out = np.asarray(task.held_out(tasks.points(task)))
        counts.setdefault(entry.task, set()).add(int(held_out.sum()))
        schedule = study.group_key(config, task)
        schedules.setdefault((entry.model, entry.task), set()).add(schedule)
    assert {task: len(numbers) for task, numbers in counts.items()} == dict.fromkeys(counts, 1)
    assert all(len(programs) == 1 for programs in schedules.values())
