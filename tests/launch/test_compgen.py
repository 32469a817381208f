"""One command for all: its errors, what it hands on; and what a run would cost."""

import json
import sys

import pytest

from compgen_jax import cli, config
from compgen_jax.config import changed
from compgen_jax.models.mlp import MLP
from compgen_jax.training import contracts
from launch import compgen, cost, train
from tests.command import call
from tests.launch.test_command_lines import TINY


def test_a_command_gets_its_flags_and_a_wrong_one_is_one_line(monkeypatch, capsys):
    ran, flags = [], ["--only=fig1", "--scale", "quick"]
    run_module = lambda module, run_name, **_: ran.append((module, run_name, sys.argv))
    monkeypatch.setattr(compgen.runpy, "run_module", run_module)
    monkeypatch.setattr(compgen.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["compgen", "figures", *flags])
    compgen.main()
    assert ran == [("figures.make", "__main__", ["compgen-jax figures", *flags])]
    monkeypatch.setattr(sys, "argv", ["compgen", "trian", "--config=bump_cnn"])
    with pytest.raises(SystemExit) as stop:
        compgen.main()
    assert stop.value.code == cli.USAGE_ERROR
    assert capsys.readouterr().err == "error: no command 'trian'; the nearest is train\n"


# --- what a config is, and what it would cost ------------------------------------------------

FLAGS = [*TINY, "--config.model.name=mlp", "--config.model.depth=1", "--config.training.epochs=2"]


@pytest.fixture
def small(tiny):
    """One hidden layer, and one step of an epoch."""
    return changed(tiny, {"model.depth": 1, "model.width": 128, "training.batch_size": 60})


def test_the_flops_of_a_step_are_those_of_its_matrix_products(small):
    """Two for each weight and example forwards, four backwards; the first layer's input has no
    gradient. The optimiser adds some twenty for each weight, AdamW's moments and square root."""
    inputs, hidden, outputs = 16, 128, 64
    weights = inputs * hidden + hidden * outputs
    products = 60 * (6 * weights - 2 * inputs * hidden)
    found = cost.flops_of_step(small, contracts.check(small))
    assert products < found < 1.25 * products + 30 * weights


def test_print_config_and_dry_run_tell_fields_steps_and_flops_and_write_nothing(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cost, "SECONDS", 0.01)
    monkeypatch.setattr(cost, "MOST_TIMED", 1)
    call(train, *FLAGS, "--print_config")
    read = config.from_dict(json.loads(capsys.readouterr().out))
    assert (read.task.grid, read.model, read.training.seeds) == (8, MLP(depth=1, width=4), (0, 3))
    call(train, *FLAGS, "--dry_run")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "bump_cnn_quick: 2 trials, 12 steps in all, programs: 1"
    # 16 * 4 + 4 weights and biases, then 4 * 64 + 64
    assert lines[1] == "bump_cnn_quick: parameters of one network: 388 to 388"
    total, step = (float(word) for word in lines[2].split() if word[0].isdigit())
    assert total == pytest.approx(2 * 6 * step, rel=0.02)  # each is rounded to three digits
    assert " on each device for 1 of its trials" in lines[3]
    assert not list(tmp_path.iterdir())


def test_a_dry_run_of_a_sweep_adds_up_its_programs(small, monkeypatch):
    monkeypatch.setattr(cost, "SECONDS", 0.01)
    axes = (("model.width", (4, 8)), ("training.epochs", (1, 3)))
    lines = cost.describe(changed(small, {"sweep.axes": axes}))
    assert lines[0] == "tiny: 8 trials, 16 steps in all, programs: 4"
    ones = [changed(small, {"model.width": width}) for width in (4, 8)]
    flops = sum(cost.flops_of_step(one, contracts.check(one)) for one in ones)
    assert float(lines[2].split()[2]) == pytest.approx(8 * flops, rel=0.01)
