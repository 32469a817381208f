"""Several configs as one program: each ends as it would alone, and can be resumed alone."""

import pytest

from compgen_jax.config import changed
from compgen_jax.runs import study
from compgen_jax.training import checkpoints
from tests.interrupts import interrupted_after_a_save

CHANGES = {
    "base": {},
    "decay": {"training.weight_decay": 0.5, "task.support.region": "corner"},
    "fewer": {"task.support.samples": 25, "task.support.sampling": "real", "training.seeds": (7,)},
}


def jobs_in(folder, tiny):
    """Three runs that share a program, though other points are shown in each."""
    base = {"training.steps": 12, "training.evaluate_every": 5, "task.stripes.copies": 1,
            "model.name": "mlp"}  # fmt: skip
    configs = [changed(tiny, base | values | {"name": n}) for n, values in CHANGES.items()]
    return [(config, folder / config.name) for config in configs]


@pytest.fixture(scope="module")
def alone(tiny, tmp_path_factory):
    jobs = jobs_in(tmp_path_factory.mktemp("alone"), tiny)
    for config, workdir in jobs:
        study.train(config, workdir)
    return contents(jobs)


def contents(jobs):
    names = ("metrics.csv", "summary.json", "late.npz")
    return [[(path / name).read_bytes() for name in names] for _, path in jobs]


def count_programs(monkeypatch):
    """How many trials each program had that was compiled."""
    built, compile_ = [], study.compiled

    def counting(jobs):
        built.append(sum(len(job.config.training.seeds) for job in jobs))
        return compile_(jobs)

    monkeypatch.setattr(study, "compiled", counting)
    return built


def test_together_is_one_program_and_ends_as_alone(tiny, alone, tmp_path, monkeypatch):
    built, jobs = count_programs(monkeypatch), jobs_in(tmp_path, tiny)
    narrow = changed(jobs[2][0], {"model.width": 4, "name": "narrow"}), tmp_path / "narrow"
    *summaries, _ = study.train_all([*jobs, narrow])
    assert built == [5, 1]  # 2 + 2 + 1 seeds; another width is another program
    assert contents(jobs) == alone
    assert [list(summary["seeds"]) for summary in summaries] == [["0", "7"], ["0", "7"], ["7"]]
    assert study.train_all(jobs) == summaries and built == [5, 1]
    assert [row.split(b",")[0] for row in alone[2][0].split()[1:]] == [b"5", b"10", b"12"]


def test_a_kill_between_the_saves_of_one_evaluation(tiny, alone, tmp_path, monkeypatch):
    jobs = jobs_in(tmp_path, tiny)
    with interrupted_after_a_save(lambda workdir, step: (workdir.name, step) == ("base", 10)):
        study.train_all(jobs)
    steps = [checkpoints.steps(path / "checkpoints")[-1] for _, path in jobs]
    assert steps == [10, 5, 5]
    built = count_programs(monkeypatch)
    study.train(*jobs[2])  # one of them alone
    study.train_all(jobs)
    assert built == [1, 2, 2]  # alone; then the one that was further, and the other
    assert contents(jobs) == alone
