"""The whole training run as pure functions of a seed's key and of traced hyper-parameters."""

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from compgen_jax import models
from compgen_jax.config import Config, identity
from compgen_jax.models import lowrank
from compgen_jax.models.conv import pad_params
from compgen_jax.models.convolution import cast_kernels, choose_lowering
from compgen_jax.tasks import dataset
from compgen_jax.tasks.encodings import code_length
from compgen_jax.training import padding
from compgen_jax.training.losses import embedding_penalty, pixel_loss
from compgen_jax.training.trials import trials_side_by_side

DECODE_BATCH = 128  # points decoded at once: bounds the memory of an evaluation


class Hyper(NamedTuple):
    """Traced scalars: trials that differ only in these share one compilation."""

    learning_rate: jax.Array
    weight_decay: jax.Array
    n_samples: jax.Array  # the first so many of the training set are used
    entropy: jax.Array  # coefficients of the penalties on embeddings
    variance: jax.Array


class Trial(NamedTuple):
    """All that tells a trial from another of its program; traced."""

    key: jax.Array
    hyper: Hyper
    factors: jax.Array  # (capacity, 2): the training set, see `dataset.training_factors`
    which: jax.Array  # of the trainer's grids is the trial's


class TrainState(NamedTuple):
    params: Any
    opt_state: Any
    step: jax.Array  # optimiser steps taken


class Trainer(NamedTuple):
    """Pure functions for one trial; `jit`, `vmap` and `pmap` them.

    init(key, which) -> TrainState
    advance(trial, state, n_steps) -> (TrainState, losses (chunk_steps,)): takes n_steps (traced,
        at most chunk_steps) steps; the losses beyond n_steps are 0.
    draw(params, factors_Bx2, which) -> (images_BxHxW, targets_BxHxW), zero beyond the grid
    """

    init: Callable
    advance: Callable
    draw: Callable


def hyper_of(config: Config) -> Hyper:
    return Hyper(
        learning_rate=jnp.float32(config.training.learning_rate),
        weight_decay=jnp.float32(config.training.weight_decay),
        n_samples=jnp.int32(dataset.size(config.task)),
        entropy=jnp.float32(config.training.penalty.entropy),
        variance=jnp.float32(config.training.penalty.variance),
    )


def steps_per_epoch(config: Config) -> int:
    return -(-dataset.size(config.task) // config.training.batch_size)


def total_steps(config: Config) -> int:
    return config.training.steps or config.training.epochs * steps_per_epoch(config)


def evaluation_interval(config: Config) -> int:
    """Steps between two evaluations."""
    every = config.training.evaluate_every
    return every if config.training.steps else every * steps_per_epoch(config)


# what may differ between the trials of one program: the fields of `Hyper`, and the seeds
TRACED = (
    "name",
    "training.seeds",
    "training.learning_rate",
    "training.weight_decay",
    "training.penalty.entropy",
    "training.penalty.variance",
    "task.support.samples",
)


def program(config: Config) -> tuple:
    """What configs must share to train as one program: all but the traced fields."""
    fixed = {
        name: value
        for name, value in identity(config).items()
        if name.partition(".")[2] not in TRACED
    }
    return (*sorted(fixed.items()), total_steps(config), evaluation_interval(config))


def stream(key, name: str):
    """The key of one named use of randomness ('data', 'init', 'order'): no two share one."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def optimizer(hyper: Hyper):
    """AdamW with PyTorch's constants, decaying biases too, as the paper's code does."""
    return optax.adamw(
        hyper.learning_rate, b1=0.9, b2=0.999, eps=1e-8, weight_decay=hyper.weight_decay
    )


def batch_indices(key, step, n_samples, batch_size: int, capacity: int):
    """Which examples step `step` sees: (indices_B, mask_B of those that count).

    Each epoch goes through the first `n_samples` (traced) of `capacity` examples once, in an
    order of its own; its last batch may be partly masked.
    """
    epoch, batch = jnp.divmod(step, -(-n_samples // batch_size))
    shuffle = jax.random.uniform(jax.random.fold_in(key, epoch), (capacity,))
    order = jnp.argsort(jnp.where(jnp.arange(capacity) < n_samples, shuffle, jnp.inf))
    position_B = batch * batch_size + jnp.arange(batch_size)
    return order[jnp.minimum(position_B, capacity - 1)], position_B < n_samples


def make_trial(config: Config, key, hyper: Hyper | None = None) -> Trial:
    """One seed's trial of `config`, with its hyper-parameters unless others are given."""
    factors = dataset.training_factors(stream(key, "data"), config.task)
    return Trial(key, hyper or hyper_of(config), factors, jnp.int32(0))


def make_trainer(
    config: Config, lowering: str | None = None, trials: int = 0, grids: tuple = ()
) -> Trainer:
    """The run of `config` for one of `trials` trials (by default, as many as it has seeds).

    Of a trial's examples the first `hyper.n_samples` are used. With several `grids` instead of the
    config's one, trials of all of them share the program, padded to the largest
    (`training.padding`). `lowering` overrides the choice by backend.
    """
    grids = grids or (config.task.grid,)
    size, batch_size = max(grids), config.training.batch_size
    tasks = [padding.at_grid(config.task, grid) for grid in grids]
    backend = jax.default_backend()
    count, precision = trials or len(config.training.seeds), config.training.precision
    width = trials_side_by_side(count, config.execution.trials_per_device, backend)
    lowering = lowering or choose_lowering(backend=backend, trials=width, precision=precision)
    decoder = models.build(config.decoder, size, lowering)

    def init_at(task):
        def init_params(key):
            alone = models.build(config.decoder, task.grid, lowering)
            params = alone.init(key, jnp.zeros(code_length(task.grid, task.code)))
            return params if task.grid == size else pad_params(params, padded_shapes)

        return init_params

    padded_shapes = jax.eval_shape(
        decoder.init, jax.random.key(0), jnp.zeros(code_length(size, config.task.code))
    )

    def init(key, which=0) -> TrainState:
        params = padding.by_grid(which, [init_at(task) for task in tasks], stream(key, "init"))
        # the optimiser's state does not depend on the hyper-parameters
        opt_state = optimizer(hyper_of(config)).init(params)
        return TrainState(params, opt_state, jnp.int32(0))

    def render(factors, which) -> dataset.Dataset:
        functions = [partial(padding.render, task=task, size=size) for task in tasks]
        return padding.by_grid(which, functions, factors)

    def decode(params, codes, which):
        if len(grids) == 1:
            return decoder.apply(params, codes)[0]
        return decoder.apply(params, codes, jnp.array(grids)[which])[0]

    def loss(params, batch, trial):
        kernels = cast_kernels(params, precision)
        images = decode(kernels, batch.codes.astype(precision), trial.which)
        error = pixel_loss(images, batch.targets, batch.weights)
        if len(grids) > 1:  # the mean over the trial's own pixels
            error *= jnp.square(size / jnp.array(grids)[trial.which])
        if config.decoder.name != "lowrank":
            return error
        factors = lowrank.embeddings(params, config.decoder.vectors)
        hyper, penalty = trial.hyper, config.training.penalty
        return error + embedding_penalty(factors, hyper.entropy, hyper.variance, penalty)

    def advance(trial, state, n_steps):
        capacity, hyper = len(trial.factors), trial.hyper

        def one_step(index, carry):
            state, losses = carry
            chosen_B, counts_B = batch_indices(
                stream(trial.key, "order"), state.step, hyper.n_samples, batch_size, capacity
            )
            batch = render(trial.factors[chosen_B], trial.which)
            batch = batch._replace(weights=batch.weights * counts_B)
            value, gradient = jax.value_and_grad(loss)(state.params, batch, trial)
            updates, opt_state = optimizer(hyper).update(gradient, state.opt_state, state.params)
            params = optax.apply_updates(state.params, updates)
            return TrainState(params, opt_state, state.step + 1), losses.at[index].set(value)

        # a traced trip count: chunks of any length run the same compiled body, bit for bit
        losses = jnp.zeros(config.execution.chunk_steps)
        return jax.lax.fori_loop(0, n_steps, one_step, (state, losses))

    def draw(params, factors, which=0):
        data = render(factors, which)
        one = lambda code: decode(params, code, which)
        return jax.lax.map(one, data.codes, batch_size=DECODE_BATCH), data.targets

    return Trainer(init, advance, draw)


def template(config: Config):
    """Shapes of the states of all seeds of `config`, leading axis T; nothing is compiled."""
    keys = jax.eval_shape(jax.vmap(jax.random.key), jnp.array(config.training.seeds))
    return jax.eval_shape(jax.vmap(make_trainer(config).init), keys)


def make_train(config: Config, lowering: str | None = None) -> Callable:
    """train(key, hyper) -> (TrainState, losses_S): the whole run, pure, for one seed."""
    trainer = make_trainer(config, lowering)
    chunk, steps = config.execution.chunk_steps, total_steps(config)

    def train(key, hyper):
        trial = make_trial(config, key, hyper)

        def run_chunk(state, index):
            n_steps = jnp.minimum(chunk, steps - index * chunk)
            return trainer.advance(trial, state, n_steps)

        state, losses = jax.lax.scan(run_chunk, trainer.init(key), jnp.arange(-(-steps // chunk)))
        return state, losses.reshape(-1)[:steps]

    return train
