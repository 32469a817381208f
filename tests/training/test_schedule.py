"""The rate along a cosine and the decay of matrices alone, against AdamW written out in float64."""

from dataclasses import dataclass, replace
from typing import ClassVar

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

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


def share_of(schedule, step):
    return 0.5 * (1 + np.cos(np.pi * step / STEPS)) if schedule == "cosine" else 1.0


class AdamW:
    """In float64; `decays` says whether a leaf does."""

    def __init__(self, leaves, decays):
        self.values = [np.array(leaf, np.float64) for leaf in leaves]
        self.first = [np.zeros_like(leaf) for leaf in self.values]
        self.second = [np.zeros_like(leaf) for leaf in self.values]
        self.decays, self.steps = decays, 0

    def step(self, gradients, rate, strength):
        self.steps += 1
        for k, gradient in enumerate(np.asarray(each, np.float64) for each in gradients):
            self.first[k] = 0.9 * self.first[k] + 0.1 * gradient
            self.second[k] = 0.999 * self.second[k] + 0.001 * gradient**2
            mean = self.first[k] / (1 - 0.9**self.steps)
            scale = np.sqrt(self.second[k] / (1 - 0.999**self.steps)) + 1e-8
            shrink = strength * self.values[k] if self.decays(self.values[k]) else 0.0
            self.values[k] = self.values[k] - rate * (mean / scale + shrink)


def decays(decay):
    return lambda leaf: decay == "all" or leaf.ndim >= 2


@pytest.mark.parametrize(("schedule", "decay"), [("constant", "all"), ("cosine", "matrices")])
def test_steps_equal_adamw_in_float64(schedule, decay):
    """Of parameters of every rank."""
    rng = np.random.default_rng(0)
    shapes = {"kernel": (3, 4), "bias": (4,), "filter": (2, 2, 3), "gain": ()}
    draw = lambda: {name: rng.normal(size=shape).astype("f4") for name, shape in shapes.items()}
    params, hyper = draw(), loop.hyper_of(TINY)

    @jax.jit
    def update(gradient, state, params, step):
        share = 0.5 * (1 + jnp.cos(jnp.pi * step / STEPS)) if schedule == "cosine" else 1.0
        updater = loop.optimizer(hyper, TrainingConfig(decay=decay), share=share)
        return updater.update(gradient, state, params)

    state = loop.optimizer(hyper, TrainingConfig(decay=decay)).init(params)
    exact = AdamW(jax.tree.leaves(params), decays(decay))
    for step in range(STEPS):
        gradient = draw()
        updates, state = update(gradient, state, params, step)
        params = optax.apply_updates(params, updates)
        exact.step(jax.tree.leaves(gradient), 0.03 * share_of(schedule, step), 0.4)
    for leaf, value in zip(jax.tree.leaves(params), exact.values, strict=True):
        np.testing.assert_allclose(leaf, value, rtol=1e-5, atol=1e-6)


class DroppedMLP(TaskConditionedMLP):
    """Drops a share of its outputs in training."""

    @nn.compact
    def __call__(self, given, counts=None):
        answers, activations = super().__call__(given)
        return nn.Dropout(0.3, deterministic=counts is None)(answers), activations


@dataclass(frozen=True)
class Dropped(TaskMLP):
    training_mode: ClassVar[bool] = True

    def make(self, shapes):
        return DroppedMLP(shapes.output.shape[-1], self.width, self.depth)


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
    leaves, tree = jax.tree.flatten(params)
    exact = AdamW(leaves, decays(decay))
    for step in range(STEPS):
        now = jax.tree.unflatten(tree, [np.float32(leaf) for leaf in exact.values])
        value, gradient = error(now, step)
        assert losses[step] == pytest.approx(float(value), rel=1e-4)
        exact.step(jax.tree.leaves(gradient), 0.03 * share_of(schedule, step), 0.4)
    for leaf, value in zip(jax.tree.leaves(state.params), exact.values, strict=True):
        np.testing.assert_allclose(leaf, value, rtol=1e-3, atol=1e-5)


def test_chunks_and_a_resumption_change_no_bit_of_a_cosine():
    chex.assert_trees_all_equal(trained(TINY), trained(TINY, 3, 1, 3))
