import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import config as configs
from compgen_jax.config import ConfigError, changed
from compgen_jax.runs import experiment
from compgen_jax.tasks import sampling
from compgen_jax.training import loop
from compgen_jax.training.task_group import shapes_of
from tests.trees import share_apart


def test_streams_of_one_key_differ():
    key = jax.random.key(0)
    names = ("data", "init", "order", "example", "test")
    drawn = {float(jax.random.uniform(loop.stream(key, name))) for name in names}
    assert len(drawn) == len(names)


def trial_of(config, key, hyper=None, capacity=0):
    """The trial that training makes of one seed."""
    task = config.task.make()

    def dataset(key):
        drawn = loop.dataset_of(task, key)
        return sampling.padded(drawn, capacity or sampling.capacity(drawn))

    return loop.Trial(key, hyper or loop.hyper_of(config), jax.jit(dataset)(key), np.int32(0))


@functools.cache
def functions(config, lowering="gemm"):
    """init(key), advance(trial, state, n_steps), predict and score, compiled once for all tests."""
    trainer = loop.make_trainer(config, lowering)
    return loop.Trainer(*map(jax.jit, trainer))


def test_one_step_of_adamw_equals_float64_numpy(tiny):
    """The first step, decay included and on biases too: the gradient's sign, bias-corrected."""
    trainer, key = functions(tiny), jax.random.key(3)
    state = trainer.init(key)
    after, losses = trainer.advance(trial_of(tiny, key), state, 1)
    rate = float(loop.hyper_of(tiny)["training.learning_rate"])
    moments = after.opt_state[0]
    for before, new, mu in zip(
        *(jax.tree.leaves(tree) for tree in (state.params, after.params, moments.mu)), strict=True
    ):
        before, gradient = np.asarray(before, np.float64), np.asarray(mu, np.float64) / 0.1
        step = gradient / (np.abs(gradient) + 1e-8) + 0.01 * before
        np.testing.assert_allclose(new, before - rate * step, atol=2e-6)
    assert int(after.step) == 1 and losses[0] > 0 and not losses[1:].any()


def test_gradient_of_the_batch_loss_against_differences(tiny):
    """The first moment holds the gradient: check it along a random direction."""
    trainer, key = functions(tiny), jax.random.key(1)
    state, trial = trainer.init(key), trial_of(tiny, key)
    after, _ = trainer.advance(trial, state, 1)
    gradient = jax.tree.map(lambda mu: np.asarray(mu) / 0.1, after.opt_state[0].mu)
    rng, params_before = np.random.default_rng(0), jax.device_get(state.params)
    direction = jax.tree.map(lambda leaf: np.float32(rng.normal(size=leaf.shape)), params_before)

    def loss_at(t):
        params = jax.tree.map(lambda p, d: p + np.float32(t) * d, params_before, direction)
        return float(trainer.advance(trial, state._replace(params=params), 1)[1][0])

    slope = sum(jax.tree.leaves(jax.tree.map(np.vdot, gradient, direction)))
    step = 2e-3
    assert (loss_at(step) - loss_at(-step)) / (2 * step) == pytest.approx(float(slope), rel=2e-2)


STREAM = {"task.name": "sprites", "task.side": 16, "task.counts.posX": 4,
          "training.steps": 12, "training.evaluate_every": 5}  # fmt: skip


@pytest.mark.parametrize("values", [{}, STREAM], ids=["epochs", "stream"])
def test_chunks_do_not_change_the_bits(tiny, values):
    key = jax.random.key(5)
    finals = []
    for chunk, pieces in ((50, [12]), (50, [1, 4, 7]), (5, [5, 5, 2])):
        config = changed(tiny, values | {"execution.chunk_steps": chunk})
        trainer = functions(config)
        state, history = trainer.init(key), []
        for n_steps in pieces:
            state, losses = trainer.advance(trial_of(config, key), state, n_steps)
            history.append(np.asarray(losses)[:n_steps])
        finals.append((state, np.concatenate(history)))
    chex.assert_trees_all_equal(*finals)


def test_vmapped_seeds_hypers_and_supports_equal_single_runs_with_one_trace(tiny):
    """Learning rate, decay, support and number of samples are traced: one compilation for all."""
    traces = []
    trainer = loop.make_trainer(tiny)

    def train(trial):
        traces.append(1)
        return trainer.advance(trial, trainer.init(trial.key), 12)

    trials = [
        trial_of(changed(tiny, values), jax.random.key(seed), capacity=60)
        for seed, values in (
            (0, {}),
            (1, {"training.learning_rate": 3e-3, "training.weight_decay": 0.0}),
            (1, {"training.weight_decay": 0.1, "task.support.samples": 33}),
            (1, {"task.support.region": "corner", "task.support.samples": 20}),
        )
    ]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *trials)
    together = jax.device_get(jax.jit(jax.vmap(train))(stacked))
    assert len(traces) == 1
    single = jax.jit(train)
    for index, trial in enumerate(trials):
        alone = single(trial)
        chosen = jax.tree.map(lambda x, i=index: x[i], together)
        # a tenth of one AdamW step of twelve
        assert share_apart(alone[0].params, chosen[0].params, atol=1e-4) < 0.01
        chex.assert_trees_all_close(alone[1], chosen[1], rtol=1e-3)
    assert len(traces) == 2


def test_fewer_samples_use_only_the_first_ones(tiny):
    """The loss of the first step is the mean over the examples that count; the others have no
    gradient, whatever they are."""
    trainer, key = functions(tiny), jax.random.key(2)
    state, whole = trainer.init(key), trial_of(tiny, key)
    errors = np.asarray(trainer.score(key, state.params, whole.dataset.points)["mse"], np.float64)
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
    trainer, key = functions(config), jax.random.key(0)
    state, weights = trainer.init(key), {"penalty.entropy": 0.03, "penalty.variance": 0.2}

    def first_step(share):
        hyper = {f"model.{name}": np.float32(share * value) for name, value in weights.items()}
        trial = trial_of(config, key, loop.hyper_of(config) | hyper)
        after, losses = trainer.advance(trial, state, 1)
        gradient = jax.tree.map(lambda mu: np.asarray(mu) / 0.1, after.opt_state[0].mu)
        return np.asarray(losses)[0], gradient

    penalty = lambda params: config.model.extra_loss(params, weights)
    expected = jax.jit(jax.value_and_grad(penalty))(state.params)
    found = jax.tree.map(np.subtract, first_step(1), first_step(0))
    assert float(expected[0]) > 0.1
    chex.assert_trees_all_close(found, expected, rtol=1e-3, atol=1e-5)


def test_predictions_and_scores_are_those_of_the_task(tiny):
    task, trainer, key = tiny.task.make(), functions(tiny), jax.random.key(2)
    module = tiny.model.make(shapes_of(task))
    params = trainer.init(key).params
    points = np.float32([[1, 6], [3.5, 2.25], [np.nan, 2]])
    predictions, truths = jax.device_get(trainer.predict(key, params, points))
    example_of, score = jax.jit(task.example), jax.jit(task.scores)
    apply = jax.jit(module.apply)
    for prediction, truth, point in zip(predictions, truths, points, strict=True):
        example = jax.device_get(example_of(key, point))
        np.testing.assert_allclose(truth, 1 - example.target, atol=1e-6)
        output = np.asarray(apply(params, example.input)[0])
        np.testing.assert_allclose(prediction, 1 - output, atol=1e-5)
    scores = jax.device_get(trainer.score(key, params, points))
    assert set(scores) == set(loop.tasks.score_names(task))
    for index in range(2):
        expected = score(predictions[index], truths[index], points[index])
        for name, value in expected.items():
            assert float(scores[name][index]) == pytest.approx(float(value), rel=1e-4)


# --- what shares a program -------------------------------------------------------------------

TRACED = {
    "support": {"task.support.region": "corner"},
    "side": {"task.support.side": 0.5},
    "samples": {"task.support.samples": 40},
    "sampling": {"task.support.sampling": "real"},
    "copies": {"task.stripes.copies": 2, "task.stripes.order": "shuffled"},
    "images": {"task.images": 50},
    "optimiser": {"training.learning_rate": 1e-2, "training.weight_decay": 0.5},
    "seeds and name": {"training.seeds": (4,), "name": "other"},
    "execution": {"execution.chunk_steps": 3},
    "keep": {"training.keep": 3},
}
FIXED = {
    "width": {"model.width": 5},
    "family": {"model.name": "mlp"},
    "grid": {"task.grid": 12},
    "code": {"task.code.name": "onehot"},
    "sigma": {"task.image.sigma": 2.0},
    "batch": {"training.batch_size": 16},
    "precision": {"training.precision": "bfloat16"},
}


def program(config):
    return loop.program(config, config.task.make())


@pytest.mark.parametrize("values", TRACED.values(), ids=TRACED)
def test_trials_that_differ_in_traced_fields_share_their_program(tiny, values):
    base = changed(tiny, {"training.steps": 20})
    other = changed(base, values)
    assert other != base and program(other) == program(base)
    schedules = {experiment.schedule(config, config.task.make()) for config in (base, other)}
    assert len(schedules) == 1


@pytest.mark.parametrize("values", FIXED.values(), ids=FIXED)
def test_trials_that_differ_in_any_other_field_do_not(tiny, values):
    base = changed(tiny, {"training.steps": 20})
    assert program(changed(base, values)) != program(base)


def test_supports_and_stripes_of_all_sizes_train_in_one_compilation(tiny):
    """As `TRACED` says: their data sets have the same shapes once padded."""
    chex.clear_trace_counter()
    base = changed(tiny, {"training.steps": 20})
    trainer = loop.make_trainer(base)

    @jax.jit
    @chex.assert_max_traces(n=1)
    def run(trial, n_steps):
        return trainer.advance(trial, trainer.init(trial.key), n_steps)[1]

    names = [name for name in TRACED if name not in ("execution", "keep", "seeds and name")]
    losses = [
        run(trial_of(changed(base, TRACED[name]), jax.random.key(0), capacity=200), 4)
        for name in names
    ]
    found = {tuple(np.asarray(each)[:4].tolist()) for each in losses}
    assert len(found) == len(names) and np.isfinite(list(found)).all()


def test_streams_of_other_supports_share_a_program_too(tiny):
    base = changed(tiny, STREAM)
    other = changed(base, {"task.held_out": "posX > .5"})
    assert program(base) == program(other)


# --- lengths ---------------------------------------------------------------------------------


def test_steps_of_epochs_and_of_streams(tiny):
    task = tiny.task.make()
    assert (loop.steps_per_epoch(tiny, task), loop.total_steps(tiny, task)) == (2, 12)
    assert loop.evaluation_interval(tiny, task) == 4
    config = changed(tiny, {"training.steps": 7})
    assert loop.total_steps(config, task) == 7 and loop.evaluation_interval(config, task) == 2
    config = changed(tiny, STREAM)
    task = config.task.make()
    assert (loop.steps_per_epoch(config, task), loop.total_steps(config, task)) == (0, 12)
    assert loop.evaluation_interval(config, task) == 5


def test_evaluations_are_closer_over_the_last_tenth(tiny):
    task = tiny.task.make()
    config = changed(tiny, {"training.steps": 1000, "training.evaluate_every": 300})
    assert loop.last_evaluations(config, task) == (920, 940, 960, 980, 1000)
    assert loop.evaluations(config, task) == (300, 600, 900, 920, 940, 960, 980, 1000)
    config = changed(config, {"training.steps": 57})
    assert loop.last_evaluations(config, task) == (53, 54, 55, 56, 57)
    assert loop.last_evaluations(tiny, task) == (12,) * loop.LAST
    assert loop.evaluations(tiny, task) == (4, 8, 12)


def test_parameters_are_kept_at_steps_in_equal_ratios_without_another_identity(tiny):
    task = tiny.task.make()
    config = changed(tiny, {"training.steps": 51200})
    assert loop.kept_steps(config, task) == tuple(100 * 2**k for k in range(10))
    assert loop.kept_steps(tiny, task) == (1, 2, 3, 6, 12)  # each step once
    for keep, expected in ((0, ()), (1, (51200,)), (3, (100, 2263, 51200))):
        other = changed(config, {"training.keep": keep})
        assert loop.kept_steps(other, task) == expected
        assert configs.fingerprint(other) == configs.fingerprint(config)
        assert loop.evaluations(other, task) == loop.evaluations(config, task)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task.grid": 10}, "must be divisible by 4, not 10"),
        ({"task.support.low": 6}, "low=6, high=5: holds out no cell"),
    ],
)
def test_an_impossible_training_is_refused_before_anything_is_compiled(tiny, values, message):
    config = changed(tiny, values)
    with jax.log_compiles(False), pytest.raises(ConfigError, match=message) as error:
        loop.check(config)
    assert "\n" not in str(error.value)


def test_hyper_parameters_are_named_as_their_fields(tiny):
    hyper = loop.hyper_of(tiny)
    assert set(hyper) == {"training.learning_rate", "training.weight_decay"}
    for name, value in hyper.items():
        assert value.dtype == jnp.float32
        assert float(value) == pytest.approx(configs.field_value(tiny, name))
