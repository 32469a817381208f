"""What only training does: normalisation by the batch, dropout, clipping, a rate that falls on a
plateau; and that all of it is resumed, masked and mapped over trials as the rest is."""

from dataclasses import dataclass, replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax.config import Config, ConfigError, TrainingConfig
from compgen_jax.models import model as models
from compgen_jax.models.mlp import MLP
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.runs import experiment
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.training import loop

TASK = Bump(grid=8, support=SupportConfig(low=3, high=4, sampling="every_cell"))
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


def config(steps=10, decoder=None, **training):
    return Config(
        task=TASK,
        decoder=decoder or Normed(),
        training=TrainingConfig(
            steps=steps, evaluate_every=4, batch_size=16, seeds=(0, 1), **training
        ),
    )


def trial_of(settings, seed=0):
    key = jax.random.key(seed)
    task = settings.task.make()
    return loop.Trial(key, loop.hyper_of(settings), loop.source_of(task, key), jnp.int32(0))


def trained(settings, seed=0, steps=None):
    trainer = loop.make_trainer(settings)
    state = trainer.init(jax.random.key(seed))
    steps = settings.training.steps if steps is None else steps
    return jax.jit(trainer.advance)(trial_of(settings, seed), state, steps)


def batches(settings, count):
    """The inputs of the first steps, and which of them count."""
    trial, task = trial_of(settings), settings.task.make()
    for step in range(count):
        points, counts = task.draw(
            loop.stream(trial.key, "order"), step, trial.source, settings.training.batch_size
        )
        yield loop.examples_at(task, jax.random.key(0), points), np.asarray(counts)


def test_running_statistics_are_those_of_the_examples_that_count():
    """At a rate so small that parameters stay, after an epoch whose last batch is masked."""
    settings = config(steps=4, learning_rate=1e-12, weight_decay=0.0)
    start = loop.make_trainer(settings).init(jax.random.key(0)).params
    found, _ = trained(settings)
    mean, var = np.zeros(6), np.ones(6)
    sizes = []
    for batch, counts in batches(settings, 4):
        dense = jax.tree.map(np.asarray, start["params"]["Dense_0"])
        hidden = (np.asarray(batch.input, np.float64) @ dense["kernel"])[counts]
        mean, var = 0.9 * mean + 0.1 * hidden.mean(axis=0), 0.9 * var + 0.1 * hidden.var(axis=0)
        sizes.append(len(hidden))
    assert sizes == [16, 16, 16, SEEN - 48]
    statistics = found.params["batch_stats"]["norm"]
    np.testing.assert_allclose(statistics["mean"], mean, atol=1e-5)
    np.testing.assert_allclose(statistics["var"], var, atol=1e-5)


def test_statistics_are_no_parameters():
    """They have no moments in the optimiser, and no weight decays them."""
    settings = config(steps=1, learning_rate=1e-12, weight_decay=0.9)
    state = loop.make_trainer(settings).init(jax.random.key(0))
    assert set(state.params) == {"params", "batch_stats"}
    chex.assert_trees_all_equal_shapes(state.opt_state[0].mu, {"params": state.params["params"]})
    strong = replace(settings, training=replace(settings.training, weight_decay=1e6))
    first, second = trained(settings)[0], trained(strong)[0]
    chex.assert_trees_all_equal(first.params["batch_stats"], second.params["batch_stats"])
    kernel = lambda state: np.abs(state.params["params"]["image"]["kernel"]).max()
    assert kernel(second) < 1 - 1e-8 and not np.allclose(first.params["params"]["image"]["kernel"],
                                                         second.params["params"]["image"]["kernel"],
                                                         atol=0, rtol=1e-7)  # fmt: skip


def test_evaluation_uses_running_statistics_and_no_dropout():
    settings = config(decoder=Normed(dropout=0.5))
    state, _ = trained(settings)
    task = settings.task.make()
    module = settings.decoder.make(loop.shapes_of(task))
    points = jnp.asarray([[1.0, 2.0], [6.0, 5.0]])
    code = loop.examples_at(task, jax.random.key(0), points).input
    together, _ = models.apply(module, state.params, code)
    for index, one in enumerate(code):
        alone, _ = module.apply(state.params, one)
        np.testing.assert_allclose(together[index], alone, atol=1e-6)
    norm = jax.tree.map(np.asarray, state.params["batch_stats"]["norm"])
    weights = jax.tree.map(np.asarray, state.params["params"])
    hidden = np.asarray(code) @ weights["Dense_0"]["kernel"]
    hidden = (hidden - norm["mean"]) / np.sqrt(norm["var"] + 1e-5)
    hidden = hidden * weights["norm"]["scale"] + weights["norm"]["bias"]
    image = hidden @ weights["image"]["kernel"] + weights["image"]["bias"]
    np.testing.assert_allclose(np.reshape(together, (2, -1)), image, atol=1e-4)


def test_dropout_has_a_key_of_each_step_and_seed():
    settings = config(decoder=Normed(dropout=0.5), learning_rate=1e-12, weight_decay=0.0)
    plain = config(learning_rate=1e-12, weight_decay=0.0)
    losses = [np.asarray(trained(one, seed)[1][:8])
              for one in (settings, plain) for seed in (0, 0, 1)]  # fmt: skip
    np.testing.assert_array_equal(losses[0], losses[1])
    assert (np.abs(losses[0] - losses[3]) > 1e-6).all()
    # with neither parameters nor examples changing, only the masks do: epochs are of 4 steps
    one_batch = replace(settings, training=replace(settings.training, batch_size=64, steps=6))
    varied = np.asarray(trained(one_batch)[1][:6])
    assert len(np.unique(varied.round(6))) == 6


def test_trials_side_by_side_are_each_what_they_are_alone():
    settings = config(decoder=Normed(dropout=0.2))
    trainer = loop.make_trainer(settings)
    keys = jnp.stack([jax.random.key(0), jax.random.key(1)])
    trials = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(lambda s: trial_of(settings, s),
                                                                  (0, 1)))  # fmt: skip
    states = jax.vmap(trainer.init)(keys)
    both, _ = jax.jit(jax.vmap(trainer.advance, (0, 0, None)))(trials, states, 10)
    for seed in (0, 1):
        alone, _ = trained(settings, seed)
        chex.assert_trees_all_close(
            jax.tree.map(lambda leaf, seed=seed: leaf[seed], both.params), alone.params, atol=1e-5
        )


def test_a_resumed_run_ends_with_the_same_bits():
    settings = config(decoder=Normed(dropout=0.2), schedule="plateau", clip=0.1)
    whole, _ = trained(settings)
    half, _ = trained(settings, steps=5)
    trainer = loop.make_trainer(settings)
    again, _ = jax.jit(trainer.advance)(trial_of(settings), half, 5)
    chex.assert_trees_all_equal(whole.params, again.params)
    chex.assert_trees_all_equal(whole.opt_state, again.opt_state)


def test_a_run_of_a_normalised_network_is_saved_and_evaluated(tmp_path):
    summary = experiment.train(config(decoder=MLP(depth=1, width=4), schedule="plateau", clip=1.0),
                               tmp_path / "run", progress=False)  # fmt: skip
    assert np.isfinite(summary["mean"]["id.mse"]["value"])


def test_a_long_gradient_is_scaled_and_a_short_one_left():
    hyper = {"training.learning_rate": 1.0, "training.weight_decay": 0.0}
    params = {"params": {"a": jnp.zeros(2), "b": jnp.zeros((1, 1))}}
    gradient = {"params": {"a": jnp.array([3.0, 0.0]), "b": jnp.array([[4.0]])}}

    def moments(clip):
        updater = loop.optimizer(hyper, TrainingConfig(clip=clip))
        _, state = updater.update(gradient, updater.init(params), params, value=1.0)
        return [
            leaf for leaf in jax.tree.leaves(state) if getattr(leaf, "dtype", None) == jnp.float32
        ]

    plain, loose, tight = moments(0.0), moments(6.0), moments(2.5)
    chex.assert_trees_all_close(plain, loose)
    np.testing.assert_allclose(tight[0], plain[0] / 2, rtol=1e-6)  # the norm is 5


def rates(losses, per_epoch, rate=1e-3):
    """The rate of every step, read off updates of a constant gradient without decay."""
    hyper = {"training.learning_rate": rate, "training.weight_decay": 0.0}
    updater = loop.optimizer(hyper, TrainingConfig(schedule="plateau"), per_epoch)
    params = {"params": jnp.zeros(1)}
    state, found = updater.init(params), []
    update = jax.jit(lambda state, value: updater.update(
        {"params": jnp.ones(1)}, state, params, value=value))  # fmt: skip
    for loss in losses:
        step, state = update(state, jnp.float32(loss))
        found.append(-float(step["params"][0]))
    return np.array(found)


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
    found = rates(losses, 3)
    # an epoch's last step is the first at the new rate
    np.testing.assert_allclose(found[2::3], expected, rtol=1e-4)
    np.testing.assert_allclose(found[3::3], expected[:-1], rtol=1e-4)
    assert rates(rng.uniform(1, 2, 400), 1).min() >= 1e-6 * (1 - 1e-4)


def test_points_that_are_drawn_afresh_have_no_plateau():
    stream = replace(
        TASK, support=replace(TASK.support, fresh="cells", sampling="with_replacement")
    )
    bad = replace(config(schedule="plateau"), task=stream)
    with pytest.raises(ConfigError, match="config.training.schedule='plateau'.*drawn afresh"):
        loop.check(bad)
