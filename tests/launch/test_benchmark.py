"""The suites' tables and programs at sizes of a second; nothing is timed, and the parts of PyTorch
and scikit-learn are replaced."""

import time

import jax
import numpy as np
import pytest

from compgen_jax.config import changed
from compgen_jax.presets import PRESETS
from launch import benchmark, metric_peers, speed, torch_peers
from tests.command import call


@pytest.fixture(autouse=True)
def two_cores_without_peers(monkeypatch):
    monkeypatch.setattr(metric_peers, "ridges", lambda *rows, rank: metric_peers.probe(*rows))
    monkeypatch.setattr(speed, "cores", lambda: 2)
    monkeypatch.setattr(speed, "SIDES", (5, 5))
    for name in ("in_processes", "decoders"):
        monkeypatch.setattr(torch_peers, name, lambda *_: lambda: time.sleep(1e-4))


def test_rows_compare_with_the_best_of_pytorch_and_with_single_runs(monkeypatch):
    seconds = {
        "single runs": 3.0,
        "2 in turn": 2.0,
        "gemm": 2.0,
        "PyTorch eager": 6.0,
        "PyTorch eager, in 2 processes of a thread": 4.0,
    }
    monkeypatch.setattr(speed, "interleave", lambda turns, _: {n: seconds[n] for n in turns})
    monkeypatch.setattr(speed.cost, "flops_of_step", lambda *_: 100.0)
    monkeypatch.setattr(jax, "local_devices", lambda: [None])

    def program(name, singles, *_, **__):
        run, note = (None, "does not fit") if "vmapped" in name else (print, "")
        return speed.Contender(name, len(singles), run, note=note)

    monkeypatch.setattr(speed, "program", program)
    singles = [PRESETS["bump_cnn_quick"]] * 2
    table = speed.compare("heading", singles, 10, 1).set_index("contender")
    ratios = pytest.approx([1.5, 1, 1.5, 0.5, np.nan], nan_ok=True)
    assert table["over best PyTorch"].tolist() == ratios
    many = table.loc["2 in turn"]
    assert many["over single runs"] == pytest.approx(1 / 3)
    assert many["ms per step and trial"] == pytest.approx(100)
    assert many["share of GEMM peak"] == pytest.approx(100 / 0.1 / (2 * 5**3 / 2))
    assert table.loc["2 vmapped", "note"] == "does not fit"


def test_every_suite_has_its_contenders(tiny, monkeypatch, capsys):
    conv = {"model.name": "conv", "model.depth": 2, "model.width": 4}
    config = changed(tiny, conv | {"training.steps": 4, "training.batch_size": 4})
    monkeypatch.setitem(PRESETS, "bump_cnn", config)

    table = speed.train(1, {"bump_cnn": 2})
    assert len(table) == 7 and (table["ms per step and trial"][2:] > 0).all()
    monkeypatch.setattr(speed, "MANY", ((2,), ()))
    assert len(speed.sweep(1, config, grid=8)) == 6
    assert len(speed.metrics(1, "bump_cnn")) == 6
    assert len(speed.judge(1, "bump_cnn", 20)) == 2
    monkeypatch.setattr(speed.geometry, "__defaults__", (("bump_cnn",),))
    call(benchmark, "--suite=geometry", "--rounds=1")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 2 + 1 + 2 + 1 and '"suite":"geometry"' in lines[-2]
