"""What only training does: normalisation by the batch, dropout, clipping, a rate that falls on a
plateau; and that all of it is resumed, masked and mapped over trials as the rest is."""

import functools
from dataclasses import dataclass

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from numpy.testing import assert_allclose

from compgen_jax.config import Config, TrainingConfig, changed
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.models.upsampling import ConvBatchNorm
from compgen_jax.runs import study
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.training import loop
from tests.interrupts import interrupted_after_a_save
from tests.training.steps import functions, trained, trial_of

TASK = Bump(grid=8, support=SupportConfig(low=3, high=4, sampling="every_cell"))
POINTS = np.float32([[1, 2], [6, 5]])


@dataclass(frozen=True)
class Normed(Model):
    """A dense layer, normalised by its batch, with dropout, and a linear one."""

    dropout: float = 0.0
    batched = True
    training_mode = True

    def make(self, shapes: Shapes):
        return NormedMLP(shapes.output.shape, self.dropout)


class NormedMLP(nn.Module):
    shape: tuple
    dropout: float

    @nn.compact
    def __call__(self, code, counts=None):
        mask = None if counts is None else jnp.broadcast_to(counts[:, None], (len(counts), 6))
        evaluating = counts is None
        # a bias here has no gradient but rounding, which Adam would make much of
        x = nn.Dense(6, use_bias=False)(code)
        norm = nn.BatchNorm(use_running_average=evaluating, momentum=0.9, name="norm")
        x = norm(x, mask=mask)
        x = nn.Dropout(self.dropout, deterministic=evaluating)(x)
        image = nn.Dense(np.prod(self.shape), name="image")(x)
        return image.reshape(*code.shape[:-1], *self.shape), name_layers([code, x])


def config(steps=10, model=None, **training):
    common = {"steps": steps, "evaluate_every": 4, "batch_size": 16, "seeds": (0, 1)}
    training = TrainingConfig(**common | training)
    return Config(task=TASK, model=model or Normed(), training=training)


def codes_of(task, points):
    examples = jax.jit(functools.partial(tasks.examples_at, task))
    return np.asarray(examples(jax.random.key(0), points).input)


def test_running_statistics_are_those_of_the_examples_that_count_and_no_parameters():
    """At a rate so small that parameters stay, over an epoch whose last batch is masked. They have
    no moments in the optimiser, and no weight decays them."""
    settings = config(steps=4, learning_rate=1e-12, weight_decay=0.0)
    trial, task = trial_of(settings), TASK.make()
    start = functions(settings).init(trial.key)
    kernel = np.asarray(start.params["params"]["Dense_0"]["kernel"])
    mean, var, sizes = np.zeros(6), np.ones(6), []
    for step in range(4):
        order = loop.stream(trial.key, "order")
        points, counts = task.next_batch(order, step, trial.dataset, 16)
        hidden = (np.float64(codes_of(task, points)) @ kernel)[np.asarray(counts)]
        mean, var = 0.9 * mean + 0.1 * hidden.mean(axis=0), 0.9 * var + 0.1 * hidden.var(axis=0)
        sizes.append(len(hidden))
    assert sizes == [16, 16, 16, 12]  # of 64 cells 4 are held out
    statistics = trained(settings)[0].params["batch_stats"]["norm"]
    assert_allclose(statistics["mean"], mean, atol=1e-5)
    assert_allclose(statistics["var"], var, atol=1e-5)
    assert set(start.params) == {"params", "batch_stats"}
    chex.assert_trees_all_equal_shapes(start.opt_state[0].mu, {"params": start.params["params"]})
    strong = config(steps=4, learning_rate=1e-12, weight_decay=1e6)
    plain, decayed = (trained(each, 1)[0].params for each in (settings, strong))
    chex.assert_trees_all_equal(plain["batch_stats"], decayed["batch_stats"])
    before, after = (np.float64(p["params"]["image"]["kernel"]) for p in (start.params, decayed))
    assert_allclose(after, before * (1 - 1e-6), rtol=3e-7)
    assert not np.array_equal(after, before)


def test_evaluation_uses_running_statistics_and_no_dropout():
    settings = config(model=Normed(dropout=0.2))
    params, network = trained(settings)[0].params, loop.Network(settings)
    code = codes_of(network.task, POINTS)
    images = jax.jit(network.decode)(params, code)
    norm, weights = jax.device_get((params["batch_stats"]["norm"], params["params"]))
    hidden = code @ weights["Dense_0"]["kernel"]
    hidden = (hidden - norm["mean"]) / np.sqrt(norm["var"] + 1e-5)
    hidden = hidden * weights["norm"]["scale"] + weights["norm"]["bias"]
    expected = hidden @ weights["image"]["kernel"] + weights["image"]["bias"]
    assert_allclose(np.reshape(images, (2, -1)), expected, atol=1e-4)


def test_a_run_with_statistics_is_saved_resumed_and_evaluated(tmp_path):
    """Interrupted after its first checkpoint; also with dropout."""
    noisy = config(model=Normed(dropout=0.2), schedule="plateau", clip=0.1)
    chex.assert_trees_all_equal(trained(noisy), trained(noisy, 5, 5))
    settings = config(steps=12, model=ConvBatchNorm(width=2), schedule="plateau", clip=1.0)
    whole = study.train(settings, tmp_path / "whole")
    with interrupted_after_a_save():
        study.train(settings, tmp_path / "run")
    assert study.train(settings, tmp_path / "run") == whole
    run = Run.load(tmp_path / "run")
    chex.assert_trees_all_equal(run.params, Run.load(tmp_path / "whole").params)
    module = settings.model.make(loop.shapes_of(run.task))
    of_second = jax.tree.map(lambda leaf: np.asarray(leaf)[1], run.params)
    images, _ = jax.jit(module.apply)(of_second, codes_of(run.task, POINTS))
    assert_allclose(run.predict(POINTS)[1], 1 - np.asarray(images), atol=1e-5)


@pytest.mark.parametrize(("clip", "share"), [(6.0, 1.0), (2.5, 0.5)])
def test_a_long_gradient_is_scaled_and_a_short_one_left(clip, share):
    hyper = {"training.learning_rate": 1.0, "training.weight_decay": 0.0}
    gradient = {"a": np.float32([3, 0]), "b": np.float32([[4]])}  # the norm is 5
    updater = loop.optimizer(hyper, TrainingConfig(clip=clip))
    start = updater.init(gradient)
    _, (_, (adam, *_)) = jax.jit(updater.update)(gradient, start, gradient, value=1.0)
    expected = jax.tree.map(lambda leaf: 0.1 * share * leaf, gradient)
    chex.assert_trees_all_close(adam.mu, expected, rtol=1e-6)


def rates_of(losses, per_epoch, rate=1e-3):
    """The rate of every step, read off updates of a constant gradient without decay."""
    hyper = {"training.learning_rate": rate, "training.weight_decay": 0.0}
    updater = loop.optimizer(hyper, TrainingConfig(schedule="plateau"), per_epoch)
    params, rates = {"params": jnp.zeros(1)}, []
    state = updater.init(params)
    gradient = {"params": jnp.ones(1)}
    update = jax.jit(lambda state, value: updater.update(gradient, state, params, value=value))
    for loss in losses:
        step, state = update(state, np.float32(loss))
        rates.append(-np.asarray(step["params"])[0])
    return np.array(rates)


def test_the_rate_halves_when_six_epochs_were_no_better():
    """Against torch's counting, written out: more than 5 bad epochs, judged by their mean loss."""
    losses = np.repeat([5.0, 4.0, *[4.0] * 13, 3.0, *[3.5] * 6], 3) + 0.3 * np.tile([-1, 0, 1], 22)
    best, bad, rate, expected = np.inf, 0, 1e-3, []
    for loss in losses.reshape(-1, 3).mean(axis=1):
        better = loss < best * (1 - 1e-4)
        best, bad = (loss, 0) if better else (best, bad + 1)
        if bad > 5:
            rate, bad = rate / 2, 0
        expected.append(rate)
    assert expected[-1] < 1e-3 / 4
    rates = rates_of(losses, 3)
    # an epoch's last step is the first at the new rate
    assert_allclose(rates[2::3], expected, rtol=1e-4)
    assert_allclose(rates[3::3], expected[:-1], rtol=1e-4)
    falling = rates_of(np.random.default_rng(0).uniform(1, 2, 400), 1)
    assert_allclose(falling[-1], 1e-6, rtol=1e-4)
    assert_allclose(rates_of(np.ones(20), 1, rate=1e-8), 1e-8, rtol=1e-4)


@pytest.mark.parametrize(("schedule", "count"), [("plateau", 2), ("constant", 1)])
def test_runs_with_epochs_of_other_lengths_share_no_program_along_a_plateau(schedule, count):
    settings = config(schedule=schedule)
    lengths = [changed(settings, {"task.support.samples": samples,
                                  "task.support.sampling": "with_replacement"})
               for samples in (100, 200)]  # fmt: skip
    assert len({study.group_key(other, other.task.make()) for other in lengths}) == count
