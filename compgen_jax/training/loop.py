"""A training run as pure functions of one trial: `make_trainer` has the step.

`trials` maps them over seeds and devices.
"""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from compgen_jax import config as configs
from compgen_jax.config import Config, TrainingConfig, identity
from compgen_jax.models import model as models
from compgen_jax.models.convolution import choose_lowering
from compgen_jax.models.model import Shapes
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Example, Task
from compgen_jax.training.trials import trials_side_by_side

LAST = 5  # evaluations over the last tenth of training
KEPT_SPAN = 512  # the last kept step over the first
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
    predict(key, params, points_BxF, task_index, nearest_BxF) -> (predictions (B, ...),
        truths (B, ...), the task's scores by name, (B,) each); see `Task.nearest`
    """

    init: Callable
    advance: Callable
    predict: Callable


class Schedule(NamedTuple):
    """The steps of a run.

    per_epoch: 0 for points drawn afresh at each step.  averaged: whose mean loss is reported.
    evaluations: when a run is evaluated and saved, ascending.  late: `LAST` of them over the last
    tenth of training, with repeats; reported numbers are their medians.  kept: when parameters are
    kept, in equal ratios.
    """

    per_epoch: int
    total: int
    averaged: int
    evaluations: tuple[int, ...]
    late: tuple[int, ...]
    kept: tuple[int, ...]


def schedule_of(config: Config, task: Task) -> Schedule:
    """When a run evaluates, saves and stops."""
    training = config.training
    per_epoch = -(-task.examples // training.batch_size)
    total, interval = training.steps, training.evaluate_every
    if not total:
        total, interval = training.epochs * per_epoch, interval * per_epoch
    late = tuple(total - total * k // (10 * LAST) for k in reversed(range(LAST)))
    evaluations = {*range(interval, total, interval), *late}
    shares = (KEPT_SPAN ** (-k / max(training.keep - 1, 1)) for k in range(training.keep))
    kept = {round(total * share) for share in shares} - {0}
    steps = tuple(sorted(evaluations)), late, tuple(sorted(kept))
    return Schedule(per_epoch, total, per_epoch or interval, *steps)


def hyper_of(config: Config) -> dict:
    """The traced numbers of training and model by dotted name."""
    return {
        name: jnp.float32(attrgetter(name)(config))
        for name in configs.traced_fields(config)
        if name.startswith(("training.", "model.")) and name != "training.seeds"
    }


def program(config: Config, task: Task) -> tuple:
    """What configs must share to train as one program: all but traced fields, and data's shapes."""
    traced = {f"{configs.ROOT}.{name}" for name in ("name", *configs.traced_fields(config))}
    fixed = {name: value for name, value in identity(config).items() if name not in traced}
    dataset = jax.eval_shape(task.dataset, jax.eval_shape(jax.random.key, 0))
    if isinstance(dataset, sampling.Table):  # its length is free: tables are padded
        dataset = dataset._replace(points=dataset.points.shape[1:])
    if config.training.schedule == "plateau":  # counts epochs
        fixed["epoch"] = schedule_of(config, task).per_epoch
    if config.training.schedule == "cosine":
        fixed["total"] = schedule_of(config, task).total
    return (*sorted(fixed.items()), str(dataset))


def stream(key, name: str):
    """The key of one named use of randomness ('data', 'init', 'order'): no two share one."""
    return jax.random.fold_in(key, sampling.tag(name))


def optimizer(hyper: dict, training: TrainingConfig, per_epoch: int = 1, share=1.0):
    """AdamW with PyTorch's constants, at a `share` of the rate, clipped and scheduled as `training`
    says."""
    rate, strength = share * hyper["training.learning_rate"], hyper["training.weight_decay"]
    mask = None
    if training.decay == "matrices":
        mask = partial(jax.tree.map, lambda leaf: leaf.ndim > 1)
    adamw = optax.adamw(rate, b1=0.9, b2=0.999, eps=1e-8, weight_decay=strength, mask=mask)
    parts = [adamw]
    if training.clip:
        parts.insert(0, optax.clip_by_global_norm(training.clip))
    if training.schedule == "plateau":
        # a rate that begins below the least one stays
        least = jnp.minimum(1.0, LEAST_RATE / hyper["training.learning_rate"])
        how = PLATEAU | {"accumulation_size": per_epoch, "min_scale": least}
        parts.append(optax.contrib.reduce_on_plateau(**how))
    if len(parts) == 1:  # no chain, whose state would be another tree
        return optax.with_extra_args_support(adamw)
    return optax.chain(*parts)


def dataset_of(task: Task, key):
    """What training shows to one seed."""
    return task.dataset(stream(key, "data"))


def capacity(task: Task) -> int:
    """The number of rows of a seed's data set, if that is a table, or 0."""
    key = jax.eval_shape(jax.random.key, 0)
    return sampling.capacity(jax.eval_shape(task.dataset, key))


def shapes_of(task: Task, lowering: str = "lax") -> Shapes:
    """What a model of the task is built from."""
    return Shapes(*tasks.shapes(task), lowering, task.parts)


class Network:
    """A task and its model as pure functions; a batch has a leading axis B. `task_index` is for
    `padding.PaddedNetwork`."""

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
        decode = lambda example: self.apply(params, example, task_index)
        return jax.lax.map(decode, inputs, batch_size=self.model.decode_batch)

    def apply(self, params, inputs, task_index):
        """The outputs of inputs of any leading axes, all at once."""
        return self.module.apply(params, inputs)[0]

    def losses(self, outputs, targets, task_index=0):
        """(B,): the task's losses."""
        return jax.vmap(self.task.loss)(outputs, targets)

    def scores(self, outputs, targets, points, task_index=0, nearest=None) -> dict:
        """The task's scores by name, (B,) each; see `Task.nearest`."""

        def of_example(output, target, *points):
            truth = tasks.truth(self.task, target)
            scores = self.task.scores(self.task.prediction(output), truth, *points)
            return {name: value.astype(jnp.float32) for name, value in scores.items()}

        points = (points,) if nearest is None else (points, nearest)
        return jax.vmap(of_example)(outputs, targets, *points)


def make_trainer(
    config: Config, lowering: str | None = None, trials: int = 0, network: Callable = Network
) -> Trainer:
    """The run of `config` for one of `trials` trials, by default of its seeds."""
    training = config.training
    if not lowering:
        count, per_device = trials or len(training.seeds), config.execution.trials_per_device
        width = trials_side_by_side(count, per_device)
        lowering = choose_lowering(jax.default_backend(), width, training.precision)
    net = network(config, lowering)
    task, schedule = net.task, schedule_of(config, net.task)
    updater = partial(optimizer, training=training, per_epoch=schedule.per_epoch)

    def init(key, task_index=0) -> TrainState:
        params = net.init(stream(key, "init"), task_index)
        # the optimiser's state does not depend on the hyper-parameters
        state = updater(hyper_of(config)).init(models.trained(params))
        return TrainState(params, state, jnp.int32(0))

    def loss(trained, params, batch, counts_B, trial, key):
        """The batch's mean loss with penalties, and the variables as the batch left them."""
        params = {**params, **trained}

        def cast(path, leaf, only_kernels=False):
            # biases stay: XLA:CPU sums their gradients wrongly in bfloat16
            stays = only_kernels and path[-1].key != "kernel"
            is_real = jnp.issubdtype(leaf.dtype, jnp.floating)
            return leaf.astype(training.precision) if is_real and not stays else leaf

        cast_all = jax.tree_util.tree_map_with_path
        kernels = cast_all(partial(cast, only_kernels=True), params)
        inputs = cast_all(cast, batch.input)
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
        share = 0.5 * (1 + jnp.cos(jnp.pi * state.step / schedule.total)) if is_cosine else 1.0
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

    def predict(key, params, points, task_index=0, nearest=None):
        batch = net.examples(stream(key, "test"), points, task_index)
        outputs = net.decode(params, batch.input, task_index)
        truths = jax.vmap(partial(tasks.truth, task))(batch.target)
        scores = net.scores(outputs, batch.target, points, task_index, nearest)
        return jax.vmap(task.prediction)(outputs), truths, scores

    return Trainer(init, advance, predict)


def template(config: Config):
    """Shapes of the states of all seeds of `config`, leading axis T; nothing is compiled."""
    keys = jax.eval_shape(jax.vmap(jax.random.key), jnp.array(config.training.seeds))
    return jax.eval_shape(jax.vmap(make_trainer(config).init), keys)
