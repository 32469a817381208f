"""The suites' tables and programs at sizes of a second; nothing is timed, and PyTorch's part is
replaced."""

import time

import numpy as np
import pytest

from compgen_jax.config import changed
from compgen_jax.presets import PRESETS
from compgen_jax.tasks import modules
from launch import benchmark
from launch.suites import contenders, decoders, geometry, students, timing
from launch.suites.timing import Contender
from tests.command import call

SMALL = changed(PRESETS["hyperteacher_quick"], {
    "task.modules": 4, "task.most": 2, "task.inputs": 3, "task.hidden": 5, "task.outputs": 2,
    "task.samples": 3, "task.tests": 8, "task.support.seen": 5, "training.batch_size": 6,
    "training.steps": 4, "training.evaluate_every": 4, "training.seeds": (0, 1),
    "sweep.axes": (("task.support.seen", (4, 6)), ("model.width", (4, 8))),
})  # fmt: skip


def test_rows_compare_with_the_best_of_pytorch_and_with_single_runs(monkeypatch):
    seconds = {"gemm": 2.0, "PyTorch a": 6.0, "PyTorch b": 4.0, "one": 3.0, "many": 2.0}
    monkeypatch.setattr(timing, "interleave", lambda turns, rounds: {n: seconds[n] for n in turns})
    given = [Contender(name, 2, lambda: None) for name in list(seconds)[1:]]
    given.append(Contender("none", 2, note="does not fit"))
    table = timing.compare(given, "one", 1, 10, 100.0, 5).set_index("contender")
    ratios = table["over best PyTorch"].tolist()
    assert ratios[:4] == pytest.approx([1.5, 1, 0.75, 0.5]) and np.isnan(ratios[4])
    many = table.loc["many"]
    assert many["over single runs"] == pytest.approx(2 / 3)
    assert many["ms per step and trial"] == pytest.approx(100)
    assert many["share of GEMM peak"] == pytest.approx(100 / 0.1 / (2 * 5**3 / 2))
    assert table.loc["none", "note"] == "does not fit"


def test_every_suite_has_its_contenders(tiny, monkeypatch, capsys):
    conv = {"model.name": "conv", "model.depth": 2, "model.width": 4}
    steps = {"training.steps": 4, "training.batch_size": 4}
    config = changed(tiny, conv | steps | {"task.support.region": "none"})
    monkeypatch.setattr(modules, "FITTED", 16)  # examples, for the means of a task
    monkeypatch.setitem(PRESETS, "bump_cnn", config)
    monkeypatch.setattr(contenders, "in_processes", lambda *_: lambda: time.sleep(1e-4))
    monkeypatch.setattr(contenders, "cores", lambda: 2)
    monkeypatch.setattr(students, "cores", lambda: 2)
    peer = lambda singles, steps: lambda: time.sleep(1e-4)
    monkeypatch.setattr(decoders, "TORCH_DECODERS", {"one after another": peer})
    monkeypatch.setattr(students, "torch_batched", peer)

    table = decoders.train(1, {"bump_cnn": 2}, side=8)
    assert len(table) == 7 and (table["ms per step and trial"][2:] > 0).all()
    monkeypatch.setattr(decoders, "ON_CPU", (3,))
    table = decoders.sweep(1, config, ((8, 12),), side=8).set_index("contender")
    assert table.loc["single runs", "trials"] == 2 and table.loc["single runs", "waste"] == 0
    assert table.loc["4 in turn", "waste"] == pytest.approx(1 - (64 + 144) / 288)
    table = students.run(1, SMALL, (8, 4), 2, 8)
    assert len(table) == 2 * 8
    monkeypatch.setattr(geometry.run, "__defaults__", (("bump_cnn",),))
    call(benchmark, "--suite=geometry", "--rounds=1")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 3 + 1 + 3 + 1 and '"suite":"geometry"' in lines[-2]
