"""A training run as pure functions of one trial: `make_trainer` has the step.

`trials` maps them over seeds and devices.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from compgen_jax import config as configs
from compgen_jax.config import Config, TrainingConfig, identity
from compgen_jax.models import model as models
from compgen_jax.models.convolution import cast_kernels, choose_lowering
from compgen_jax.models.model import Shapes
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Example, Task
from compgen_jax.training.trials import trials_side_by_side

LAST = 5  # evaluations over the last tenth of training: see `last_evaluations`
KEPT_SPAN = 512  # the last kept step over the first: see `kept_steps`
# On a plateau the rate is multiplied by `factor`, but not below the least one, at the `patience`-th
# epoch in a row whose mean loss is not below the best one by the relative `rtol`: the authors'
# numbers (Figure 9), whose PyTorch waits until more than 5 are over.
PLATEAU, LEAST_RATE = {"patience": 6, "factor": 0.5, "rtol": 1e-4}, 1e-6


class Trial(NamedTuple):
    """What distinguishes a trial from the others of its program; traced."""

    key: jax.Array
    hyper: dict  # the traced fields of training and model, by name
    dataset: Any  # what training may show: see `Task.dataset`
    task_index: jax.Array  # which of the program's tasks the trial has
    points: Any = None  # (P, F), where it is scored
    masks: Any = None  # {region: (P,) bool}
    nearest: Any = None  # (P, F), `Task.nearest` of the points, if the task has it


class TrainState(NamedTuple):
    params: Any
    opt_state: Any
    step: jax.Array  # optimiser steps taken


class Trainer(NamedTuple):
    """Pure functions of one trial.

    init(key, task_index) -> TrainState
    advance(trial, state, n_steps) -> (TrainState, losses (chunk_steps,), 0 beyond n_steps)
    predict(key, params, points_BxF) -> (predictions (B, ...), truths (B, ...), scores)
    score(key, params, points_BxF, task_index, nearest_BxF) -> the task's scores by name, (B,) each
    """

    init: Callable
    advance: Callable
    predict: Callable
    score: Callable


def hyper_of(config: Config) -> dict:
    """The traced numbers of training and model by dotted name."""
    names = [
        name
        for name in configs.traced_fields(config)
        if name.startswith(("training.", "model.")) and name != "training.seeds"
    ]
    return {name: jnp.float32(configs.field_value(config, name)) for name in names}


def steps_per_epoch(config: Config, task: Task) -> int:
    """Steps through the training set; 0 for points drawn afresh at each step."""
    return -(-task.examples // config.training.batch_size)


def total_steps(config: Config, task: Task) -> int:
    return config.training.steps or config.training.epochs * steps_per_epoch(config, task)


def evaluation_interval(config: Config, task: Task) -> int:
    """Steps between two evaluations."""
    every = config.training.evaluate_every
    return every if config.training.steps else every * steps_per_epoch(config, task)


def last_evaluations(config: Config, task: Task) -> tuple[int, ...]:
    """The steps of `LAST` evaluations, evenly over the last tenth of training; reported numbers are
    their medians."""
    total = total_steps(config, task)
    return tuple(total - total * k // (10 * LAST) for k in reversed(range(LAST)))


def evaluations(config: Config, task: Task) -> tuple[int, ...]:
    """The steps after which a run is evaluated and saved, ascending."""
    interval = evaluation_interval(config, task)
    regular = range(interval, total_steps(config, task), interval)
    return tuple(sorted({*regular, *last_evaluations(config, task)}))


def kept_steps(config: Config, task: Task) -> tuple[int, ...]:
    """The steps after which a run keeps its parameters: `training.keep` of them in equal ratios,
    from 1/512 of training to its end."""
    total, count = total_steps(config, task), config.training.keep
    shares = (KEPT_SPAN ** (-k / max(count - 1, 1)) for k in range(count))
    return tuple(sorted({round(total * share) for share in shares} - {0}))


def program(config: Config, task: Task) -> tuple:
    """What configs must share to train as one program: all but the traced fields, and the shapes of
    data."""
    traced = {f"{configs.ROOT}.{name}" for name in ("name", *configs.traced_fields(config))}
    fixed = {name: value for name, value in identity(config).items() if name not in traced}
    dataset = _dataset_shapes(task)
    if isinstance(dataset, sampling.Table):  # its length is free: tables are padded
        dataset = dataset._replace(points=dataset.points.shape[1:])
    if config.training.schedule == "plateau":  # counts epochs
        fixed["epoch"] = steps_per_epoch(config, task)
    if config.training.schedule == "cosine":
        fixed["total"] = total_steps(config, task)
    return (*sorted(fixed.items()), str(dataset))


def stream(key, name: str):
    """The key of one named use of randomness ('data', 'init', 'order'): no two share one."""
    return jax.random.fold_in(key, sampling.tag(name))


def optimizer(hyper: dict, training: TrainingConfig, per_epoch: int = 1, share=1.0):
    """AdamW with PyTorch's constants, at a `share` of the rate, clipped and scheduled as `training`
    says."""
    rate, strength = share * hyper["training.learning_rate"], hyper["training.weight_decay"]

    def is_matrix(params):
        return jax.tree.map(lambda p: p.ndim > 1, params)

    mask = is_matrix if training.decay == "matrices" else None
    adamw = optax.adamw(rate, b1=0.9, b2=0.999, eps=1e-8, weight_decay=strength, mask=mask)
    if not (training.clip or training.schedule == "plateau"):
        # without a chain, whose state would be another tree
        return optax.with_extra_args_support(adamw)
    clip = [optax.clip_by_global_norm(training.clip)] if training.clip else []
    plateau = []
    if training.schedule == "plateau":
        # a rate that begins below the least one stays
        least = jnp.minimum(1.0, LEAST_RATE / hyper["training.learning_rate"])
        how = PLATEAU | {"accumulation_size": per_epoch, "min_scale": least}
        plateau = [optax.contrib.reduce_on_plateau(**how)]
    return optax.chain(*clip, adamw, *plateau)


def dataset_of(task: Task, key):
    """What training shows to one seed."""
    return task.dataset(stream(key, "data"))


def capacity(task: Task) -> int:
    """The number of rows of a seed's data set, if that is a table, or 0."""
    return sampling.capacity(_dataset_shapes(task))


def _dataset_shapes(task: Task):
    return jax.eval_shape(task.dataset, jax.eval_shape(jax.random.key, 0))


def shapes_of(task: Task, lowering: str = "lax") -> Shapes:
    """What a model of the task is built from."""
    return Shapes(*tasks.shapes(task), lowering, task.parts)


class Network:
    """A task and its model as pure functions; a batch has a leading axis B. `task_index` is for
    `padding.PaddedNetwork`, which has the same functions for several tasks."""

    def __init__(self, config: Config, lowering: str = "lax", task: Task | None = None):
        self.task, self.model = task or config.task.make(), config.model
        self.shapes = shapes_of(self.task, lowering)
        self.module = self.model.make(self.shapes)

    def init(self, key, task_index=0):
        """The model's initial variables."""
        zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), self.shapes.input)
        return self.module.init(key, zeros)

    def examples(self, key, points, task_index=0) -> Example:
        """The examples of points (B, F), leaves (B, ...)."""
        return tasks.examples_at(self.task, key, points)

    def train(self, params, batch: Example, counts_B, task_index, key):
        """(outputs, variables) of a batch in training, of which the examples `counts_B` count."""
        return self.model.train_apply(self.module, params, batch, counts_B, key)

    def decode(self, params, inputs, task_index=0):
        """The outputs of inputs (B, ...), some at once."""
        decode = lambda example: self.module.apply(params, example)[0]
        return jax.lax.map(decode, inputs, batch_size=self.model.decode_batch)

    def losses(self, outputs, targets, task_index=0):
        """(B,): the task's losses."""
        return jax.vmap(self.task.loss)(outputs, targets)

    def scores(self, outputs, targets, points, task_index=0, nearest=None) -> dict:
        """The task's scores by name, (B,) each; see `Task.nearest`."""

        def of_example(output, target, *points):
            truth = tasks.truth(self.task, target)
            return self.task.scores(self.task.prediction(output), truth, *points)

        points = (points,) if nearest is None else (points, nearest)
        scores = jax.vmap(of_example)(outputs, targets, *points)
        return {name: values.astype(jnp.float32) for name, values in scores.items()}


def make_trainer(
    config: Config, lowering: str | None = None, trials: int = 0, network: Callable = Network
) -> Trainer:
    """The run of `config` for one of `trials` trials (by default, of its seeds); `lowering`
    overrides the choice by backend."""
    training = config.training
    if not lowering:
        backend, seeds = jax.default_backend(), trials or len(training.seeds)
        width = trials_side_by_side(seeds, config.execution.trials_per_device, backend)
        lowering = choose_lowering(backend, width, training.precision)
    net = network(config, lowering)
    task, steps = net.task, total_steps(config, net.task)
    updater = partial(optimizer, training=training, per_epoch=steps_per_epoch(config, task))

    def init(key, task_index=0) -> TrainState:
        params = net.init(stream(key, "init"), task_index)
        # the optimiser's state does not depend on the hyper-parameters
        state = updater(hyper_of(config)).init(models.trained(params))
        return TrainState(params, state, jnp.int32(0))

    def loss(trained, params, batch, counts_B, trial, key):
        """The batch's mean loss with penalties, and the variables as the batch left them."""
        params = {**params, **trained}
        kernels = cast_kernels(params, training.precision)

        def cast(leaf):
            is_real = jnp.issubdtype(leaf.dtype, jnp.floating)
            return leaf.astype(training.precision) if is_real else leaf

        inputs = jax.tree.map(cast, batch.input)
        outputs, variables = net.train(
            kernels, batch._replace(input=inputs), counts_B, trial.task_index, key
        )
        losses_B = net.losses(outputs, batch.target, trial.task_index)
        weights_B = counts_B.astype(jnp.float32)
        mean = jnp.sum(weights_B * losses_B) / jnp.sum(weights_B)
        of_model = {
            name.partition(".")[2]: value
            for name, value in trial.hyper.items()
            if name.startswith("model.")
        }
        extra = config.model.extra_loss(params, of_model)
        return mean if extra is None else mean + extra, {**variables, **trained}

    def take_step(trial, state: TrainState):
        """The state after one more step, and the loss before it."""
        points, counts_B = task.next_batch(
            stream(trial.key, "order"), state.step, trial.dataset, training.batch_size
        )
        key_of = lambda name: jax.random.fold_in(stream(trial.key, name), state.step)
        batch = net.examples(key_of("example"), points, trial.task_index)
        trained = models.trained(state.params)
        (value, params), gradient = jax.value_and_grad(loss, has_aux=True)(
            trained, state.params, batch, counts_B, trial, key_of("dropout")
        )
        is_cosine = training.schedule == "cosine"
        share = 0.5 * (1 + jnp.cos(jnp.pi * state.step / steps)) if is_cosine else 1.0
        updates, opt_state = updater(trial.hyper, share=share).update(
            gradient, state.opt_state, trained, value=value
        )
        params |= optax.apply_updates(trained, updates)
        return TrainState(params, opt_state, state.step + 1), value

    def advance(trial, state, n_steps):
        def one_step(index, carry):
            state, losses = carry
            state, value = take_step(trial, state)
            return state, losses.at[index].set(value)

        # a traced trip count: chunks of any length run the same compiled body, bit for bit
        losses = jnp.zeros(config.execution.chunk_steps)
        return jax.lax.fori_loop(0, n_steps, one_step, (state, losses))

    def decode(key, params, points, task_index):
        batch = net.examples(stream(key, "test"), points, task_index)
        return net.decode(params, batch.input, task_index), batch.target

    def predict(key, params, points):
        outputs, targets = decode(key, params, points, 0)
        scores = net.scores(outputs, targets, points, 0, None)
        truths = jax.vmap(partial(tasks.truth, task))(targets)
        return jax.vmap(task.prediction)(outputs), truths, scores

    def score(key, params, points, task_index=0, nearest=None):
        outputs, targets = decode(key, params, points, task_index)
        return net.scores(outputs, targets, points, task_index, nearest)

    return Trainer(init, advance, predict, score)


def template(config: Config):
    """Shapes of the states of all seeds of `config`, leading axis T; nothing is compiled."""
    keys = jax.eval_shape(jax.vmap(jax.random.key), jnp.array(config.training.seeds))
    return jax.eval_shape(jax.vmap(make_trainer(config).init), keys)
