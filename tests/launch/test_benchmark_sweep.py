"""The suites' tables and programs at sizes of a second; nothing is timed."""

import functools
import gc
import time

import jax
import pytest

from compgen_jax.config import changed
from compgen_jax.training import loop
from launch import benchmark
from launch.suites import contenders, decoders, sweep, timing, train
from launch.suites.timing import Contender


@pytest.fixture
def config(tiny):
    conv = {"model.name": "conv", "model.depth": 2, "model.width": 4}
    steps = {"training.steps": 4, "training.batch_size": 4}
    return changed(tiny, conv | steps | {"task.support.region": "none"})


def peer(singles, steps):
    """In the place of PyTorch."""
    return lambda: time.sleep(1e-4)


def refuse(*_, **__):
    raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nand much more")


def test_rows_compare_with_the_best_of_pytorch_and_with_single_runs(monkeypatch):
    seconds = {"float32": 2.0, "PyTorch a": 6.0, "PyTorch b": 4.0, "one": 3.0, "many": 2.0}
    monkeypatch.setattr(timing, "interleave", lambda turns, rounds: {n: seconds[n] for n in turns})
    contenders = [Contender(name, 2, 10, 100.0, lambda: None) for name in list(seconds)[1:]]
    contenders.append(Contender("none", 2, 10, 100.0, note="does not fit"))
    rows = timing.compare({"of": "x"}, contenders, "one", 1, 5)
    ratios = [row["over best PyTorch"] for row in rows]
    assert ratios[:4] == pytest.approx([1.5, 1, 0.75, 0.5]) and ratios[4] is None
    assert rows[3]["over single runs"] == pytest.approx(2 / 3) and rows[3]["of"] == "x"
    assert rows[3]["ms per step and trial"] == pytest.approx(100)
    assert rows[3]["share of GEMM peak"] == pytest.approx(100 / 0.1 / (2 * 5**3 / 2))
    assert rows[4]["note"] == "does not fit" and rows[4]["ms per step and trial"] is None
    assert "-" in timing.table(rows).splitlines()[-1].split()


def test_trials_of_several_grids_train_padded_in_one_program(config):
    singles = sweep.singles_of(sweep.Work(config, (8, 12), (), 2, 4), 2)
    timed = contenders.program("", singles, 2, 1.0, 2, lowering="gemm")
    assert timed.trials == 2 and timed.compile_s > 0 and timed.run().shape == (2, 2)
    assert timed.waste == pytest.approx(1 - (64 + 144) / 288)


def test_a_program_that_does_not_fit_has_a_note(config, monkeypatch):
    monkeypatch.setattr(loop, "make_trainer", refuse)
    monkeypatch.setattr(contenders, "cores", lambda: 1)
    programs = ((2, "gemm", "float32", True, 1),)
    rows = sweep.compare(sweep.Work(config, (8,), programs, 1, 4), 1, peer, 32)
    note = "RESOURCE_EXHAUSTED: Out of memory"
    assert [row["note"] for row in rows] == ["", note, note]


def test_pytorchs_decoder_has_as_many_parameters(config):
    torch = pytest.importorskip("torch")
    model = decoders.torch_decoder(config, sum(config.task.make().parts))
    ours = jax.eval_shape(loop.make_trainer(config).init, jax.random.key(0)).params
    count = sum(leaf.size for leaf in jax.tree.leaves(ours))
    assert sum(torch.numel(parameter) for parameter in model.parameters()) == count
    decoders.torch_decoders([config], 2)()


def test_a_process_for_every_share_takes_its_turns():
    run = contenders.in_processes(functools.partial, [time.sleep], 0, gc.collect)
    run()
    run()


def test_every_suite_has_its_module():
    for name in benchmark.SUITES:
        __import__(f"launch.suites.{name}")


def test_the_decoders_contenders(config, monkeypatch):
    fake = lambda name, singles, steps, flops, *how: Contender(
        name, len(singles), steps, flops, lambda: None
    )
    monkeypatch.setattr(train, "program", fake)
    monkeypatch.setattr(train, "torch_arrangements", lambda _, *rest: [fake("PyTorch", *rest[:3])])
    rows = train._compare(config, 2, 1)
    assert [row["contender"] for row in rows] == [
        "PyTorch", train.SINGLE, "one seed, gemm", "4 seeds in turn", "4 seeds vmapped",
        "4 seeds on 2 devices",
    ]  # fmt: skip
    assert {row["preset"] for row in rows} == {"tiny"}
