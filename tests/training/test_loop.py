import chex
import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax.config import Config, ConfigError, changed
from compgen_jax.runs import study
from compgen_jax.tasks import task as tasks
from compgen_jax.training import contracts, loop
from tests.command import refused
from tests.training.steps import functions, gradient_of, trial_of


def test_fewer_samples_use_only_the_first_ones(tiny):
    """The loss of the first step is the mean over the examples that count; the others have no
    gradient, whatever they are."""
    trainer, whole = functions(tiny), trial_of(tiny, 2)
    state, points = trainer.init(whole.key), whole.dataset.points
    errors = np.asarray(trainer.predict(whole.key, state.params, points)[2]["mse"], np.float64)
    for count in (1, 3):
        table = whole.dataset._replace(count=np.int32(count))
        points = np.array(table.points)
        points[count:] = 1e3
        others = table._replace(points=points)
        after, losses = trainer.advance(whole._replace(dataset=table), state, 3)
        same, _ = trainer.advance(whole._replace(dataset=others), state, 3)
        chex.assert_trees_all_equal(after.params, same.params)
        assert float(losses[0]) == pytest.approx(errors[:count].mean(), rel=1e-4)


def test_a_models_own_penalty_is_added_to_the_loss_that_is_differentiated(tiny):
    """The first step with a low-rank decoder's penalty, against the same step without."""
    config = changed(tiny, {"model.name": "lowrank", "task.code.name": "onehot"})
    weights = {"penalty.entropy": 0.03, "penalty.variance": 0.2}
    trainer = functions(config)
    state = trainer.init(jax.random.key(0))

    def first_step(share):
        hyper = {f"model.{name}": np.float32(share * value) for name, value in weights.items()}
        after, losses = trainer.advance(trial_of(config, **hyper), state, 1)
        return np.asarray(losses)[0], gradient_of(after)

    penalty = lambda params: config.model.extra_loss(params, weights)
    expected = jax.jit(jax.value_and_grad(penalty))(state.params)
    assert float(expected[0]) > 0.1
    added = jax.tree.map(np.subtract, first_step(1), first_step(0))
    chex.assert_trees_all_close(added, expected, rtol=1e-3, atol=1e-5)


def test_predictions_and_scores_are_those_of_the_task(tiny):
    task, trainer, key = tiny.task.make(), functions(tiny), jax.random.key(2)
    module = tiny.model.make(loop.shapes_of(task))
    params = trainer.init(key).params
    points = np.float32([[1, 6], [3.5, 2.25], [np.nan, 2]])
    predictions, truths, scores = jax.device_get(trainer.predict(key, params, points))
    assert set(scores) == set(tasks.score_names(task))
    for index, point in enumerate(points):
        example = task.example(key, point)
        output = module.apply(params, example.input)[0]
        assert_allclose(truths[index], 1 - example.target, atol=1e-6)
        assert_allclose(predictions[index], 1 - output, atol=1e-5)
        for name, value in task.scores(predictions[index], truths[index], point).items():
            assert_allclose(scores[name][index], value, rtol=1e-4, err_msg=name)


# --- what shares a program -------------------------------------------------------------------

TRACED = [
    {"task.support.region": "corner"},
    {"task.support.side": 0.5},
    {"task.support.samples": 40},
    {"task.support.sampling": "real"},
    {"task.stripes.copies": 2, "task.stripes.order": "shuffled"},
    {"task.images": 50},
    {"training.learning_rate": 1e-2, "training.weight_decay": 0.5},
]
NOT_PROGRAM = [
    {"training.seeds": (4,), "name": "other"},
    {"execution.chunk_steps": 3, "training.keep": 3},
]
FIXED = {
    "model.width": 5, "model.name": "mlp", "task.grid": 12, "task.code.name": "onehot",
    "task.image.sigma": 2.0, "training.batch_size": 16, "training.precision": "bfloat16",
}  # fmt: skip


def test_trials_that_differ_in_traced_fields_share_their_program_and_in_others_do_not(tiny):
    base = changed(tiny, {"training.steps": 20})
    program = lambda config: loop.program(config, config.task.make())
    schedule = lambda config: study.group_key(config, config.task.make())
    for values in TRACED + NOT_PROGRAM:
        other = changed(base, values)
        assert other != base and program(other) == program(base), values
        assert schedule(other) == schedule(base), values
    for name, value in FIXED.items():
        assert program(changed(base, {name: value})) != program(base), name


# --- lengths ---------------------------------------------------------------------------------


STREAM = changed(Config(), {"task.name": "modules", "model.name": "task_mlp", "training.steps": 12,
                            "training.evaluate_every": 5})  # fmt: skip


def test_the_schedule_of_epochs_and_of_streams(tiny):
    """Steps of an epoch, of a training, and of a mean loss; evaluations are closer at the end."""
    of_steps = changed(tiny, {"training.steps": 7})
    long = changed(tiny, {"training.steps": 1000, "training.evaluate_every": 300})
    late = tuple(range(920, 1001, 20))
    for config, expected in (
        (tiny, (2, 12, 2, (4, 8, 12), (12,) * loop.LAST)),
        (of_steps, (2, 7, 2, (2, 4, 6, 7), (7,) * loop.LAST)),
        (STREAM, (0, 12, 5, (5, 10, 12), (12,) * loop.LAST)),
        (long, (2, 1000, 2, (300, 600, 900, *late), late)),
    ):
        assert loop.schedule_of(config, contracts.check(config))[:-1] == expected
    kept = changed(long, {"training.keep": 3})  # 1000 / 512 is nearest to 2
    assert loop.schedule_of(kept, contracts.check(kept)).kept == (2, 44, 1000)


def test_an_impossible_training_is_refused():
    for values in ({"training.steps": 0}, {"training.schedule": "plateau"}):
        with refused("drawn afresh", kind=ConfigError):
            contracts.check(changed(STREAM, values))
