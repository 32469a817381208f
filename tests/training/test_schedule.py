"""The rate along a cosine and the decay of matrices alone, against AdamW written out in float64."""

from dataclasses import dataclass, replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from jax.flatten_util import ravel_pytree

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.models.task_conditioned import TaskConditionedMLP, TaskMLP
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.modules import Modules
from compgen_jax.training import loop
from tests.training.steps import functions, trained

STEPS = 7
KEY = jax.random.key(2)
TINY = Config(
    task=Modules(modules=4, most=2, inputs=4, hidden=6, outputs=3, samples=4, tests=8),
    model=TaskMLP(depth=1, width=8),
    training=TrainingConfig(
        steps=STEPS, batch_size=8, seeds=(0,), learning_rate=0.03, weight_decay=0.4,
        schedule="cosine", decay="matrices",
    ),
)  # fmt: skip


@pytest.mark.parametrize("decay", ["all", "matrices"])
def test_decay_shrinks_all_leaves_or_those_of_two_axes_or_more(decay):
    params = {"kernel": np.ones((3, 4)), "bias": np.ones(4), "filter": np.ones((2, 2, 3)),
              "gain": np.ones(())}  # fmt: skip
    updater = loop.optimizer(loop.hyper_of(TINY), TrainingConfig(decay=decay), share=0.5)
    zeros = jax.tree.map(np.zeros_like, params)
    updates, _ = jax.jit(updater.update)(zeros, updater.init(params), params)
    for name, update in updates.items():
        shrinks = decay == "all" or name in ("kernel", "filter")
        np.testing.assert_allclose(update, -0.5 * 0.03 * 0.4 * shrinks, rtol=1e-6)


class DroppedMLP(TaskConditionedMLP):
    """Drops a share of its outputs in training."""

    @nn.compact
    def __call__(self, given, counts=None):
        answers, activations = super().__call__(given)
        return nn.Dropout(0.3, deterministic=counts is None)(answers), activations


@dataclass(frozen=True)
class Dropped(TaskMLP):
    training_mode = True
    network = DroppedMLP


@pytest.mark.parametrize(
    ("schedule", "decay", "model"),
    [("cosine", "matrices", TINY.model), ("constant", "all", Dropped(depth=1, width=8))],
    ids=["cosine", "dropout"],
)
def test_training_takes_these_steps_from_the_keys_of_its_seed(schedule, decay, model):
    """Gradients of the mean squared error over the tasks that each step draws; dropout has a key of
    its own for each step."""
    training = replace(TINY.training, schedule=schedule, decay=decay)
    config = replace(TINY, training=training, model=model)
    state, losses = trained(config, seed=2)
    task = config.task.make()
    module = config.model.make(loop.shapes_of(task))

    @jax.jit
    @jax.value_and_grad
    def error(params, step):
        points, counts = task.next_batch(loop.stream(KEY, "order"), step, task.dataset(KEY), 8)
        key_of = lambda name: jax.random.fold_in(loop.stream(KEY, name), step)
        inputs, targets = tasks.examples_at(task, key_of("example"), points)
        if isinstance(model, Dropped):
            answers, _ = module.apply(params, inputs, counts, rngs={"dropout": key_of("dropout")})
        else:
            answers = jax.vmap(lambda given: module.apply(params, given)[0])(inputs)
        return jnp.mean(jnp.square(answers - targets))

    params = functions(config).init(KEY).params
    values, unravel = ravel_pytree(params)
    decays = lambda leaf: jnp.full(leaf.shape, decay == "all" or leaf.ndim > 1)
    values, decayed = np.float64(values), np.asarray(ravel_pytree(jax.tree.map(decays, params))[0])
    first = second = 0.0
    for step in range(STEPS):
        value, gradient = error(unravel(np.float32(values)), step)
        assert losses[step] == pytest.approx(float(value), rel=1e-4)
        gradient = np.float64(ravel_pytree(gradient)[0])
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        mean, square = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
        rate = 0.03 * (0.5 * (1 + np.cos(np.pi * step / STEPS)) if schedule == "cosine" else 1)
        values -= rate * (mean / (np.sqrt(square) + 1e-8) + 0.4 * decayed * values)
    np.testing.assert_allclose(ravel_pytree(state.params)[0], values, rtol=1e-3, atol=1e-5)


def test_chunks_and_a_resumption_change_no_bit_of_a_cosine():
    chex.assert_trees_all_equal(trained(TINY), trained(TINY, 3, 1, 3))
