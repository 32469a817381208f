"""The students' suite at sizes of a second, and how many programs its trials are; nothing is
timed."""

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
def few_examples(monkeypatch):
    """The means of a task are over fewer examples."""
    monkeypatch.setattr(modules, "FITTED", 16)


@pytest.fixture
def torch():
    """PyTorch with one thread: other tests use the other cores."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


def test_trials_are_the_sweeps_runs():
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
    timed = contenders.program("", singles, 2, 1.0, devices=jax.local_devices())
    assert timed.trials == 4 and timed.compile_s > 0
    later = np.reshape(timed.run(), (4, 2))[1]  # after the two steps of its first run
    np.testing.assert_allclose(later, losses[2:4], rtol=1e-5)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_contenders_of_a_backend_and_their_rows(monkeypatch, backend):
    def program(name, singles, steps, flops, side_by_side=1, devices=None):
        return timing.Contender(name, len(singles), steps, flops, lambda: None)

    monkeypatch.setattr(students, "program", program)
    monkeypatch.setattr(students, "torch_batched", lambda singles, steps: lambda: None)
    monkeypatch.setattr(students, "COUNTS", (1, 3))
    monkeypatch.setattr(contenders, "in_processes", lambda *_: lambda: None)
    monkeypatch.setattr(contenders, "cores", lambda: 2)
    monkeypatch.setattr(students, "cores", lambda: 2)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    rows = students.run(1, SMALL, (8, 4), 2, 32)
    names = {"gpu": ["PyTorch eager, 1 batched", "PyTorch eager, 3 batched", "1 vmapped",
                     "3 vmapped"],
             "cpu": ["PyTorch eager, one after another",
                     "PyTorch eager, one after another, in 2 processes of a thread",
                     "PyTorch eager, batched", "PyTorch eager, batched, in 2 processes of a thread",
                     "a trial, all cores", "4 trials in turn, all cores", "4 vmapped",
                     "4 trials, one at a time on each of 2 devices", students.ALONE]}  # fmt: skip
    assert [row["contender"] for row in rows] == 2 * names[backend]
    assert [row["student"][:7] for row in rows[:: len(names[backend])]] == ["width 8", "width 4"]
    assert len(timing.table(rows).splitlines()) == len(rows) + 1


def test_supports_of_every_kind_and_size_and_seeds_share_a_program_per_width():
    axes = (
        ("task.support.name", ("random", "equal", "popular", "unpopular", "non_compositional")),
        ("task.support.seen", (4, 5)),
        ("model.width", (4, 8)),
    )
    sweep = changed(SMALL, {"sweep.axes": axes})
    trials = plan.first_trials(sweep)
    sizes = [sum(map(group.trains, trials)) for group in groups.compile_groups(sweep, trials)]
    assert sizes == [20, 20]


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
    (single,) = students.trials_of(SMALL, 8, 1)
    trainer, trial = loop.make_trainer(single), contenders.stacked([single])
    trial = jax.tree.map(lambda leaf: leaf[0], trial)
    state = jax.eval_shape(trainer.init, trial.key)
    traced = jax.make_jaxpr(trainer.advance)(trial, state, jnp.int32(2))
    assert students.step_flops(single) == products(traced.jaxpr)


def test_pytorch_takes_the_same_steps(torch):
    singles = students.trials_of(SMALL, 8, 3)
    settings, rng = SMALL.task, np.random.default_rng(0)
    latents = rng.uniform(size=(6, 4)).astype(np.float32)
    inputs = rng.uniform(-1, 1, (6, 3, 3)).astype(np.float32)
    answers = students.torch_teacher(settings, "cpu")(torch.tensor(latents), torch.tensor(inputs))
    answer = jax.vmap(lambda z, x: modules.respond(modules.draw_teacher(settings), z, x))
    np.testing.assert_allclose(answers, answer(jnp.array(latents), jnp.array(inputs)), atol=1e-5)

    given, targets = students.torch_tasks(singles, "cpu")()
    assert given.shape == (3 * 6 * 3, 4 + 3) and targets.shape == (3 * 6 * 3, 2)
    for index, single in enumerate(singles):  # each draws from its own support
        drawn = given.view(3, 6, 3, 7)[index, :, 0, :4].numpy()
        sets = {tuple(each) for each in students.seen_sets(single)}
        assert {tuple(row) for row in (drawn > 0).astype(np.float32)} <= sets
        assert np.isin(drawn, np.float32([0, *modules.LEVELS])).all()


@pytest.mark.parametrize("count", [1, 3])
def test_pytorchs_students_learn(torch, monkeypatch, count):
    singles = students.trials_of(changed(SMALL, {"training.steps": 150}), 8, count)
    losses, loss_of = [], torch.nn.functional.mse_loss

    def recorded(*arguments):
        losses.append(loss_of(*arguments))
        return losses[-1]

    monkeypatch.setattr(torch.nn.functional, "mse_loss", recorded)
    students.torch_batched(singles, 150)()
    values = [loss.item() for loss in losses]
    assert len(values) == 150 and np.mean(values[-50:]) < 0.7 * np.mean(values[:20])
