"""What only training does: normalisation by the batch, dropout, clipping, a rate that falls on a
plateau; and that all of it is resumed, masked and mapped over trials as the rest is."""

import functools
from dataclasses import dataclass, replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax.config import Config, ConfigError, TrainingConfig
from compgen_jax.models import model as models
from compgen_jax.models.conv_batchnorm import ConvBatchNorm
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.runs import directory, experiment, results
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.sprites import Sprites
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.training import loop
from compgen_jax.training.task_group import shapes_of
from tests.interrupts import interrupted_after_a_save

TASK = Bump(grid=8, support=SupportConfig(low=3, high=4, sampling="every_cell"))
POINTS = np.float32([[1, 2], [6, 5]])
SEEN = 60  # 64 cells, of which 4 are held out: with batches of 16 the last one is masked


@dataclass(frozen=True)
class Normed(Model):
    """A dense layer, normalised by its batch, with dropout, and a linear one."""

    width: int = 6
    dropout: float = 0.0

    def make(self, shapes: Shapes):
        return NormedMLP(shapes.output.shape, self.width, self.dropout)


class NormedMLP(nn.Module):
    shape: tuple
    width: int
    dropout: float

    batched = True
    training_mode = True

    @nn.compact
    def __call__(self, code, counts=None):
        mask = None if counts is None else jnp.broadcast_to(counts[:, None], (len(counts), 6))
        evaluating = counts is None
        # a bias here has no gradient but rounding, which Adam would make much of
        x = nn.Dense(self.width, use_bias=False)(code)
        norm = nn.BatchNorm(use_running_average=evaluating, momentum=0.9, name="norm")
        x = norm(x, mask=mask)
        x = nn.Dropout(self.dropout, deterministic=evaluating)(x)
        image = nn.Dense(np.prod(self.shape), name="image")(x)
        return image.reshape(*code.shape[:-1], *self.shape), name_layers([code, x])


def config(steps=10, model=None, **training):
    return Config(
        task=TASK,
        model=model or Normed(),
        training=TrainingConfig(
            steps=steps, evaluate_every=4, batch_size=16, seeds=(0, 1), **training
        ),
    )


@functools.cache
def trial_of(settings, seed=0):
    key, dataset = jax.random.key(seed), functools.partial(loop.dataset_of, settings.task.make())
    return loop.Trial(key, loop.hyper_of(settings), jax.jit(dataset)(key), np.int32(0))


@functools.cache
def functions(settings):
    return loop.Trainer(*map(jax.jit, loop.make_trainer(settings)))


def trained(settings, seed=0, steps=None):
    trainer = functions(settings)
    steps = settings.training.steps if steps is None else steps
    return trainer.advance(trial_of(settings, seed), trainer.init(jax.random.key(seed)), steps)


def batches(settings, count):
    """The inputs of the first steps, and which of them count."""
    trial, task = trial_of(settings), settings.task.make()

    @jax.jit
    def batch(step):
        points, counts = task.next_batch(
            loop.stream(trial.key, "order"), step, trial.dataset, settings.training.batch_size
        )
        return tasks.examples_at(task, jax.random.key(0), points), counts

    return [jax.device_get(batch(step)) for step in range(count)]


def codes_of(task, points):
    examples = jax.jit(functools.partial(tasks.examples_at, task))
    return np.asarray(examples(jax.random.key(0), points).input)


def test_running_statistics_are_those_of_the_examples_that_count():
    """At a rate so small that parameters stay, after an epoch whose last batch is masked."""
    settings = config(steps=4, learning_rate=1e-12, weight_decay=0.0)
    start = functions(settings).init(jax.random.key(0)).params
    after, _ = trained(settings)
    mean, var = np.zeros(6), np.ones(6)
    sizes = []
    for batch, counts in batches(settings, 4):
        dense = jax.tree.map(np.asarray, start["params"]["Dense_0"])
        hidden = (np.float64(batch.input) @ dense["kernel"])[counts]
        mean, var = 0.9 * mean + 0.1 * hidden.mean(axis=0), 0.9 * var + 0.1 * hidden.var(axis=0)
        sizes.append(len(hidden))
    assert sizes == [16, 16, 16, SEEN - 48]
    statistics = after.params["batch_stats"]["norm"]
    np.testing.assert_allclose(statistics["mean"], mean, atol=1e-5)
    np.testing.assert_allclose(statistics["var"], var, atol=1e-5)


def test_statistics_are_no_parameters():
    """They have no moments in the optimiser, and no weight decays them."""
    settings = config(steps=4, learning_rate=1e-12, weight_decay=0.0)
    strong = replace(settings, training=replace(settings.training, weight_decay=1e6))
    state = functions(settings).init(jax.random.key(0))
    assert set(state.params) == {"params", "batch_stats"}
    chex.assert_trees_all_equal_shapes(state.opt_state[0].mu, {"params": state.params["params"]})
    plain, decayed = (trained(each, steps=1)[0].params for each in (settings, strong))
    chex.assert_trees_all_equal(plain["batch_stats"], decayed["batch_stats"])
    moved, start = (np.asarray(one["params"]["image"]["kernel"], np.float64) for one in
                    (decayed, state.params))  # fmt: skip
    np.testing.assert_allclose(moved, start * (1 - 1e-6), rtol=3e-7)
    assert not np.array_equal(moved, start)


def test_evaluation_uses_running_statistics_and_no_dropout():
    settings = config(model=Normed(dropout=0.2))
    state, _ = trained(settings)
    task = settings.task.make()
    module = settings.model.make(shapes_of(task))
    code = codes_of(task, POINTS)
    together, _ = jax.jit(functools.partial(models.apply, module))(state.params, code)
    apply = jax.jit(module.apply)
    for index, one in enumerate(code):
        alone, _ = apply(state.params, one)
        np.testing.assert_allclose(together[index], alone, atol=1e-6)
    norm = jax.tree.map(np.asarray, state.params["batch_stats"]["norm"])
    weights = jax.tree.map(np.asarray, state.params["params"])
    hidden = code @ weights["Dense_0"]["kernel"]
    hidden = (hidden - norm["mean"]) / np.sqrt(norm["var"] + 1e-5)
    hidden = hidden * weights["norm"]["scale"] + weights["norm"]["bias"]
    image = hidden @ weights["image"]["kernel"] + weights["image"]["bias"]
    np.testing.assert_allclose(np.reshape(together, (2, -1)), image, atol=1e-4)


class KeyedMLP(nn.Module):
    """Writes down the key of every step that it is trained for."""

    shape: tuple

    batched = True
    training_mode = True

    @nn.compact
    def __call__(self, code, counts=None):
        seen = self.variable("batch_stats", "keys", jnp.zeros, (10, 2), jnp.uint32)
        step = self.variable("batch_stats", "step", jnp.zeros, (), jnp.int32)
        if counts is not None:
            key = jax.random.key_data(self.make_rng("dropout"))
            seen.value = seen.value.at[step.value].set(key)
            step.value = step.value + 1
        image = nn.Dense(np.prod(self.shape))(code)
        return image.reshape(*code.shape[:-1], *self.shape), name_layers([code])


@dataclass(frozen=True)
class Keyed(Model):
    def make(self, shapes: Shapes):
        return KeyedMLP(shapes.output.shape)


def test_dropout_has_a_key_of_each_step_and_seed_also_after_a_resume():
    settings = config(model=Keyed())
    keys = lambda state: np.asarray(state.params["batch_stats"]["keys"])
    drawn = np.concatenate([keys(trained(settings, seed)[0]) for seed in (0, 1)])
    assert len(np.unique(drawn, axis=0)) == 20
    half, _ = trained(settings, steps=4)
    again, _ = functions(settings).advance(trial_of(settings), half, 6)
    np.testing.assert_array_equal(keys(again), drawn[:10])


def test_trials_side_by_side_are_each_what_they_are_alone():
    settings = config(model=Normed(dropout=0.2))
    trainer = functions(settings)

    @jax.jit
    def advance(*trials):
        trials = jax.tree.map(lambda *leaves: jnp.stack(leaves), *trials)
        states = jax.vmap(trainer.init)(trials.key)
        return jax.vmap(trainer.advance, (0, 0, None))(trials, states, 10)

    both, _ = jax.device_get(advance(*(trial_of(settings, seed) for seed in (0, 1))))
    for seed in (0, 1):
        alone, _ = trained(settings, seed)
        chex.assert_trees_all_close(
            jax.tree.map(lambda leaf, seed=seed: leaf[seed], both.params), alone.params, atol=1e-5
        )


def test_a_resumed_run_ends_with_the_same_bits():
    settings = config(model=Normed(dropout=0.2), schedule="plateau", clip=0.1)
    whole, _ = trained(settings)
    half, _ = trained(settings, steps=5)
    again, _ = functions(settings).advance(trial_of(settings), half, 5)
    chex.assert_trees_all_equal(whole.params, again.params)
    chex.assert_trees_all_equal(whole.opt_state, again.opt_state)


def test_a_run_with_statistics_is_saved_resumed_and_evaluated(tmp_path):
    """Interrupted after its first checkpoint, of a network that the whole run had as well."""
    settings = config(steps=12, model=ConvBatchNorm(width=2), schedule="plateau", clip=1.0)
    whole = experiment.train(settings, tmp_path / "whole", progress=False)
    with interrupted_after_a_save():
        experiment.train(settings, tmp_path / "run", progress=False)
    assert directory.last_checkpoint(tmp_path / "run").name == "4"
    assert experiment.train(settings, tmp_path / "run", progress=False) == whole
    runs = [results.load(tmp_path / name) for name in ("whole", "run")]
    chex.assert_trees_all_equal(runs[0].params, runs[1].params)
    statistics = runs[0].params["batch_stats"]["norm_1"]["mean"]
    assert statistics.shape == (2, 2) and np.abs(statistics).max() > 0
    predictions = runs[0].predict(POINTS)
    module = settings.model.make(shapes_of(runs[0].task))
    of_second = jax.tree.map(lambda leaf: np.asarray(leaf)[1], runs[0].params)
    images, _ = jax.jit(module.apply)(of_second, codes_of(runs[0].task, POINTS))
    np.testing.assert_allclose(predictions[1], 1 - np.asarray(images), atol=1e-5)


def test_a_long_gradient_is_scaled_and_a_short_one_left():
    hyper = {"training.learning_rate": 1.0, "training.weight_decay": 0.0}
    params = {"params": {"a": np.zeros(2, np.float32), "b": np.zeros((1, 1), np.float32)}}
    gradient = {"params": {"a": np.float32([3, 0]), "b": np.float32([[4]])}}

    def moments(clip):
        updater = loop.optimizer(hyper, TrainingConfig(clip=clip))
        update = lambda: updater.update(gradient, updater.init(params), params, value=1.0)
        _, state = jax.device_get(jax.jit(update)())
        return [leaf for leaf in jax.tree.leaves(state) if leaf.dtype == np.float32]

    plain, loose, tight = moments(0.0), moments(6.0), moments(2.5)
    chex.assert_trees_all_close(plain, loose)
    np.testing.assert_allclose(tight[0], plain[0] / 2, rtol=1e-6)  # the norm is 5


def rates_of(losses, per_epoch, rate=1e-3):
    """The rate of every step, read off updates of a constant gradient without decay."""
    hyper = {"training.learning_rate": rate, "training.weight_decay": 0.0}
    updater = loop.optimizer(hyper, TrainingConfig(schedule="plateau"), per_epoch)
    params = {"params": jnp.zeros(1)}
    state, rates = updater.init(params), []
    update = jax.jit(lambda state, value: updater.update(
        {"params": jnp.ones(1)}, state, params, value=value))  # fmt: skip
    for loss in losses:
        step, state = update(state, np.float32(loss))
        rates.append(-np.asarray(step["params"])[0])
    return np.array(rates)


def test_the_rate_halves_when_six_epochs_were_no_better():
    """Against torch's counting, written out: more than 5 bad epochs, judged by their mean loss."""
    rng = np.random.default_rng(0)
    losses = np.repeat([5.0, 4.0, *[4.0] * 13, 3.0, *[3.5] * 6], 3) + 0.3 * np.tile([-1, 0, 1], 22)
    epochs = losses.reshape(-1, 3).mean(axis=1)
    best, bad, rate, expected = np.inf, 0, 1e-3, []
    for loss in epochs:
        better = loss < best * (1 - 1e-4)
        best, bad = (loss, 0) if better else (best, bad + 1)
        if bad > 5:
            rate, bad = rate / 2, 0
        expected.append(rate)
    assert expected[-1] < 1e-3 / 4
    rates = rates_of(losses, 3)
    # an epoch's last step is the first at the new rate
    np.testing.assert_allclose(rates[2::3], expected, rtol=1e-4)
    np.testing.assert_allclose(rates[3::3], expected[:-1], rtol=1e-4)
    falling = rates_of(rng.uniform(1, 2, 400), 1)
    np.testing.assert_allclose(falling[-1], 1e-6, rtol=1e-4)
    np.testing.assert_allclose(rates_of(np.ones(20), 1, rate=1e-8), 1e-8, rtol=1e-4)


def test_runs_with_epochs_of_other_lengths_share_no_program():
    turned = lambda gap: Rotation(side=8, angles=24, samples=200, gap=GapConfig(high=gap))
    schedules = [
        experiment.schedule(
            replace(config(schedule=schedule), task=turned(gap)), turned(gap).make()
        )
        for schedule in ("plateau", "constant")
        for gap in (200.0, 300.0)
    ]
    assert schedules[0] != schedules[1] and schedules[2] == schedules[3]


def test_points_that_are_drawn_afresh_have_no_plateau():
    bad = replace(config(schedule="plateau"), task=Sprites())
    with pytest.raises(ConfigError, match="config.training.schedule='plateau'.*drawn afresh"):
        loop.check(bad)
