"""The students' suite at sizes of a second, and how many programs its trials are; nothing is
timed."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from compgen_jax.config import changed
from compgen_jax.papers.presets import PRESETS
from compgen_jax.sweeps import groups, plan
from compgen_jax.tasks import modules
from compgen_jax.training import loop
from launch import benchmark
from launch.suites import contenders, students, timing

SMALL = changed(
    PRESETS["hyperteacher_quick"],
    {
        "task.modules": 4,
        "task.most": 2,
        "task.inputs": 3,
        "task.hidden": 5,
        "task.outputs": 2,
        "task.samples": 3,
        "task.tests": 8,
        "task.support.seen": 5,
        "training.batch_size": 6,
        "training.steps": 4,
        "training.evaluate_every": 4,
        "training.seeds": (0, 1),
        "sweep.axes": (("task.support.seen", (4, 6)), ("model.width", (4, 8))),
    },
)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(contenders, "cores", lambda: 2)


@pytest.fixture(autouse=True)
def few_examples(monkeypatch):
    """Those of which a task's means are."""
    monkeypatch.setattr(modules, "FITTED", 16)


@pytest.fixture
def torch():
    """Of one thread: other tests have the other cores."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


def peers(singles, steps):
    """In the place of PyTorch's."""
    run = lambda: time.sleep(1e-4)
    return {
        "PyTorch": students.Timed(run, 1),
        "PyTorch, batched": students.Timed(run, len(singles)),
    }


def alone(single, steps):
    return lambda: time.sleep(1e-4)


def test_rows_are_complete():
    rows = students.run(1, SMALL, (8,), 2, peers, alone, 32)
    assert "students" in benchmark.SUITES and "students" in benchmark.NEED_TORCH
    assert len({tuple(row) for row in rows}) == 1  # one heading for all
    assert len(timing.table(rows).splitlines()) == len(rows) + 1
    assert [row["student"] for row in rows] == ["width 8, depth 2"] * 7
    assert [row["contender"] for row in rows] == [
        "PyTorch", "PyTorch, batched", students.SINGLE, "4 trials in turn, all cores",
        "4 trials, one at a time on each of 2 devices", "4 vmapped", students.ALONE,
    ]  # fmt: skip
    assert [row["trials"] for row in rows] == [1, 4, 1, 4, 4, 4, 1]
    for row in rows:
        theirs, own = row["contender"].startswith("PyTorch"), row["ms per step and trial"]
        assert own > 0 and row["over best PyTorch"] > 0 and row["over single runs"] > 0
        assert row["share of GEMM peak"] > 0 and row["GEMM peak GFLOP/s"] > 0
        assert (row["share of cores x single rate"] is None) == theirs
        assert (row["compile s"] is None) == (theirs or row["contender"] == students.ALONE)
        if row["contender"] == students.ALONE:  # of two cores
            assert row["share of cores x single rate"] == pytest.approx(0.5)
    best = [row["over best PyTorch"] for row in rows if row["contender"].startswith("PyTorch")]
    assert min(best) == 1 and rows[2]["over single runs"] == 1


def test_the_accelerators_trials_are_vmapped(monkeypatch):
    monkeypatch.setattr(students, "COUNTS", (1, 3))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    rows = students.run(1, SMALL, (8, 4), 2, peers, alone, 32)
    assert [row["contender"] for row in rows[2:4]] == ["1 vmapped", "3 vmapped"]
    assert [row["trials"] for row in rows] == 2 * [1, 3, 1, 3]
    assert [row["student"] for row in rows] == 4 * ["width 8, depth 2"] + 4 * ["width 4, depth 2"]
    assert all(row["share of cores x single rate"] is None for row in rows)


def test_a_system_that_binds_no_process_to_a_core_has_no_row_for_one(monkeypatch):
    monkeypatch.delattr(students.os, "sched_setaffinity", raising=False)
    assert students.on_a_core(SMALL, 2) is None


def test_trials_are_the_sweeps_runs():
    singles = students.trials_of(SMALL, 8, 5)
    assert [single.task.support.seen for single in singles] == [4, 6, 4, 6, 4]
    assert [single.training.seeds[0] for single in singles] == [0, 0, 1, 1, 0]
    assert {single.model.width for single in singles} == {8}
    slots = students.stacked(singles)
    assert slots.dataset.points.shape == (5, 6, 4) and slots.dataset.count.tolist() == [
        4,
        6,
        4,
        6,
        4,
    ]


def test_a_turn_goes_on_where_the_last_one_ended():
    """And its losses are those of a run alone, on one device or several."""
    singles = students.trials_of(SMALL, 4, 4)
    train = loop.make_train(changed(singles[1], {"execution.chunk_steps": 2}))
    _, losses = train(jax.random.key(0), loop.hyper_of(singles[1]))
    for devices in (jax.local_devices()[:1], jax.local_devices()):
        timed = students.program(singles, 2, 1, devices)
        found = np.concatenate([np.reshape(timed.run(), (4, 2)) for _ in range(2)], axis=1)
        np.testing.assert_allclose(found[1], losses, rtol=1e-5)
        assert timed.trials == 4 and timed.compile_s > 0


def test_supports_of_every_kind_and_size_and_seeds_share_a_program_per_width(monkeypatch):
    """A sweep over them traces a training step once for every width."""
    traces, make_trainer = [], loop.make_trainer

    def counting(config, *args, **kwargs):
        trainer = make_trainer(config, *args, **kwargs)

        def advance(*arguments):
            traces.append(config.model.width)
            return trainer.advance(*arguments)

        return trainer._replace(advance=advance)

    monkeypatch.setattr(loop, "make_trainer", counting)
    axes = (
        ("task.support.name", ("random", "equal", "popular", "unpopular", "non_compositional")),
        ("task.support.seen", (4, 5)),
        ("model.width", (4, 8)),
    )
    sweep = changed(SMALL, {"sweep.axes": axes})
    trials = plan.first_trials(sweep)
    compile_groups = groups.compile_groups(sweep, trials)
    assert len(trials) == 5 * 2 * 2 * 2 and len(compile_groups) == 2
    for group in compile_groups:
        members = [trial for trial in trials if group.trains(trial)]
        assert len(members) == 20
        for batch in (members[:: 20 // group.size][: group.size], members[-group.size :]):
            assert np.isfinite(group.train(batch, lambda share: None)[:, 0]).all()
    assert sorted(traces) == [4, 8]


def products(jaxpr) -> float:
    """The FLOPs of all matrix products in a program, of a loop's body once."""
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            total += 2 * equation.outvars[0].aval.size * np.prod([shape[k] for k in contracted])
        total += sum(products(inner) for inner in jaxprs_in_params(equation.params))
    return total


def test_flops_are_those_of_the_steps_products():
    for single in students.trials_of(SMALL, 8, 1) + students.trials_of(SMALL, 4, 1):
        trainer, trial = loop.make_trainer(single), students.stacked([single])
        trial = jax.tree.map(lambda leaf: leaf[0], trial)
        state = jax.eval_shape(trainer.init, trial.key)
        traced = jax.make_jaxpr(trainer.advance)(trial, state, jnp.int32(2))
        assert students.step_flops(single) == products(traced.jaxpr)


def test_pytorch_takes_the_same_steps(torch):
    singles = students.trials_of(SMALL, 8, 3)
    settings, rng = SMALL.task, np.random.default_rng(0)
    latents = rng.uniform(size=(6, 4)).astype(np.float32)
    inputs = rng.uniform(-1, 1, (6, 3, 3)).astype(np.float32)
    found = students.torch_teacher(settings, "cpu")(torch.tensor(latents), torch.tensor(inputs))
    answer = jax.vmap(lambda z, x: modules.respond(modules.draw_teacher(settings), z, x))
    np.testing.assert_allclose(found, answer(jnp.array(latents), jnp.array(inputs)), atol=1e-5)

    given, asked = students.torch_tasks(singles, "cpu")()
    assert given.shape == (3 * 6 * 3, 4 + 3) and asked.shape == (3 * 6 * 3, 2)
    for index, single in enumerate(singles):  # each draws from its own support
        drawn = given.view(3, 6, 3, 7)[index, :, 0, :4].numpy()
        seen = students._seen_sets(single)
        assert {tuple(row) for row in (drawn > 0).astype(np.float32)} <= {tuple(s) for s in seen}
        assert np.isin(drawn, np.float32([0, *modules.LEVELS])).all()


def test_pytorchs_students_learn(torch, monkeypatch):
    singles = students.trials_of(changed(SMALL, {"training.steps": 150}), 8, 3)
    found, loss_of = [], torch.nn.functional.mse_loss

    def recorded(*arguments):
        found.append(loss_of(*arguments))
        return found[-1]

    monkeypatch.setattr(torch.nn.functional, "mse_loss", recorded)
    for run in (students.torch_steps(singles[0], 150), students.torch_batched_steps(singles, 150)):
        found.clear()
        run()
        losses = [loss.item() for loss in found]
        assert len(losses) == 150 and np.mean(losses[-50:]) < 0.7 * np.mean(losses[:20])


def test_pytorch_is_arranged_for_trials_and_cores(torch, monkeypatch):
    taken = []

    def processes(items, steps, count, of):
        taken.append((items, steps, count, of))
        return lambda: None

    monkeypatch.setattr(contenders, "torch_processes", processes)
    singles = students.trials_of(SMALL, 8, 4)
    found = students.torch_peers(singles, 2)
    assert {name: each.trials for name, each in found.items()} == {
        "PyTorch eager": 1, "PyTorch eager, 4 batched": 4,
        "PyTorch eager, 2 processes of a thread": 4,
        "PyTorch eager, batched in 2 processes of a thread": 4,
    }  # fmt: skip
    shares = [singles[::2], singles[1::2]]
    assert taken == [
        (singles, 2, 2, students.torch_steps), (shares, 2, 2, students.torch_batched_steps)
    ]  # fmt: skip


@pytest.mark.skipif(not hasattr(students.os, "sched_setaffinity"), reason="binds no process")
def test_a_trial_on_a_core_of_its_own_takes_its_steps():
    run = students.on_a_core(students.trials_of(SMALL, 4, 1)[0], 2)
    run()
    run()
