"""The suites' tables and programs at sizes of a second; nothing is timed. PyTorch's part is tested
where it is installed."""

import functools
import gc
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import changed
from compgen_jax.papers.presets import PRESETS
from compgen_jax.tasks import modules
from compgen_jax.training import loop
from launch import benchmark
from launch.suites import contenders, decoders, geometry, students, timing
from launch.suites.timing import Contender
from tests.command import call

SMALL = changed(
    PRESETS["hyperteacher_quick"],
    {
        **{f"task.{name}": value for name, value in {
            "modules": 4, "most": 2, "inputs": 3, "hidden": 5, "outputs": 2, "samples": 3,
            "tests": 8, "support.seen": 5,
        }.items()},
        "training.batch_size": 6,
        "training.steps": 4,
        "training.evaluate_every": 4,
        "training.seeds": (0, 1),
        "sweep.axes": (("task.support.seen", (4, 6)), ("model.width", (4, 8))),
    },
)  # fmt: skip


@pytest.fixture(autouse=True)
def few_examples(monkeypatch):
    """The means of a task are over fewer examples."""
    monkeypatch.setattr(modules, "FITTED", 16)


@pytest.fixture
def config(tiny):
    conv = {"model.name": "conv", "model.depth": 2, "model.width": 4}
    steps = {"training.steps": 4, "training.batch_size": 4}
    return changed(tiny, conv | steps | {"task.support.region": "none"})


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


def test_every_suite_has_its_contenders(config, monkeypatch, capsys):
    """And a program that does not fit has a note."""
    monkeypatch.setitem(PRESETS, "bump_cnn", config)
    monkeypatch.setattr(contenders, "in_processes", lambda *_: lambda: time.sleep(1e-4))
    monkeypatch.setattr(contenders, "cores", lambda: 2)
    monkeypatch.setattr(students, "cores", lambda: 2)
    peer = lambda singles, steps: lambda: time.sleep(1e-4)
    monkeypatch.setattr(decoders, "TORCH_DECODERS", {"one after another": peer})
    monkeypatch.setattr(students, "torch_batched", peer)

    def fits(name, *rest, real=contenders.program, **how):
        if "vmapped" in name:
            monkeypatch.setattr(loop, "make_trainer", refuse)
        return real(name, *rest, **how)

    def refuse(*_, real=loop.make_trainer, **__):
        monkeypatch.setattr(loop, "make_trainer", real)
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nand much more")

    monkeypatch.setattr(contenders, "program", fits)
    by_torch = ["PyTorch eager, one after another",
                "PyTorch eager, one after another, in 2 processes of a thread"]  # fmt: skip
    batched = [name.replace("one after another", "batched") for name in by_torch]
    ours = ["4 in turn", "4 vmapped", "4, one at a time on each of 2 devices"]
    table = decoders.train(1, {"bump_cnn": 2}, side=8)
    assert table["contender"].tolist() == [*by_torch, "single runs", "single runs, gemm", *ours]
    assert set(table["of"]) == {"bump_cnn"}
    table = table.set_index("contender")
    assert table["note"].str.startswith("RESOURCE_EXHAUSTED: Out of memory").sum() == 1
    assert np.isnan(table.loc["4 vmapped", "ms per step and trial"])
    assert (table.drop("4 vmapped")["ms per step and trial"] > 0).all()
    monkeypatch.setattr(decoders, "ON_CPU", (3,))
    table = decoders.sweep(1, config, ((8, 12),), side=8).set_index("contender")
    assert table.loc["single runs", "trials"] == 2 and table.loc["single runs", "waste"] == 0
    assert table.loc["4 in turn", "waste"] == pytest.approx(1 - (64 + 144) / 288)
    table = students.run(1, SMALL, (8, 4), 2, 8)
    assert table["contender"].tolist() == 2 * [*by_torch, *batched, "single runs", *ours]
    monkeypatch.setattr(geometry.run, "__defaults__", (("bump_cnn",),))
    call(benchmark, "--suite=geometry", "--rounds=1")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 3 + 1 + 3 + 1 and '"suite":"geometry"' in lines[-2]


def test_trials_are_the_sweeps_runs(config):
    """Each of its own task in a group of several."""
    grids = contenders.stacked(decoders.singles_of(config, (12, 8), 3))
    assert grids.task_index.tolist() == [1, 0, 1]
    singles = students.trials_of(SMALL, 8, 5)
    assert [single.task.support.seen for single in singles] == [4, 6, 4, 6, 4]
    assert [single.training.seeds[0] for single in singles] == [0, 0, 1, 1, 0]
    assert {single.model.width for single in singles} == {8}
    slots = contenders.stacked(singles)
    assert slots.dataset.points.shape == (5, 6, 4)
    assert slots.dataset.count.tolist() == [4, 6, 4, 6, 4]


def test_a_turn_goes_on_where_the_last_one_ended():
    """And on several devices the losses are those of a run alone."""
    singles = students.trials_of(SMALL, 4, 4)
    trainer, key = loop.make_trainer(singles[1]), jax.random.key(0)
    dataset = loop.dataset_of(singles[1].task.make(), key)
    trial = loop.Trial(key, loop.hyper_of(singles[1]), dataset, jnp.int32(0))
    _, losses = jax.jit(trainer.advance)(trial, trainer.init(key), 4)
    timed = contenders.program("", singles, 2, devices=jax.local_devices())
    assert timed.trials == 4 and timed.compile_s > 0
    later = np.reshape(timed.run(), (4, 2))[1]  # after the two steps of its first run
    np.testing.assert_allclose(later, losses[2:4], rtol=1e-5)


def test_a_process_for_every_share_takes_its_turns():
    run = contenders.in_processes(functools.partial, [gc.collect], 0)
    run()
    run()


def test_pytorch_has_as_many_parameters_and_the_same_teacher(config):
    torch = pytest.importorskip("torch")
    model = decoders.torch_decoder(config, sum(config.task.make().parts))
    ours = jax.eval_shape(loop.make_trainer(config).init, jax.random.key(0)).params
    count = sum(leaf.size for leaf in jax.tree.leaves(ours))
    assert sum(torch.numel(parameter) for parameter in model.parameters()) == count
    decoders.torch_decoders([config], 2)()

    singles, rng = students.trials_of(SMALL, 8, 3), np.random.default_rng(0)
    latents = rng.uniform(size=(6, 4)).astype(np.float32)
    inputs = rng.uniform(-1, 1, (6, 3, 3)).astype(np.float32)
    answers = students.torch_teacher(SMALL.task, "cpu")(torch.tensor(latents), torch.tensor(inputs))
    answer = jax.vmap(lambda z, x: modules.respond(modules.draw_teacher(SMALL.task), z, x))
    np.testing.assert_allclose(answers, answer(jnp.array(latents), jnp.array(inputs)), atol=1e-5)
    students.torch_batched(singles, 2)()
