"""The whole training run as pure functions of a seed's key and of traced hyper-parameters."""

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from compgen_jax import decoders
from compgen_jax.config import Config, identity
from compgen_jax.decoders import lowrank
from compgen_jax.decoders.convolution import choose_lowering
from compgen_jax.tasks import dataset
from compgen_jax.tasks.encodings import code_length
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


class TrainState(NamedTuple):
    params: Any
    opt_state: Any
    step: jax.Array  # optimiser steps taken


class Trainer(NamedTuple):
    """Pure functions for one trial; `jit`, `vmap` and `pmap` them.

    init(key) -> TrainState
    advance(key, hyper, state, n_steps) -> (TrainState, losses (chunk_steps,)): takes n_steps
        (traced, at most chunk_steps) steps; the losses beyond n_steps are 0.
    decode(params, codes_BxE) -> images_BxHxW
    """

    init: Callable
    advance: Callable
    decode: Callable


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


def make_trainer(config: Config, lowering: str | None = None, trials: int = 0) -> Trainer:
    """The run of `config` for one of `trials` trials (by default, as many as it has seeds).

    The data set is as large as the config's, of which `hyper.n_samples` examples are used.
    `lowering` overrides the choice by backend.
    """
    task, batch_size = config.task, config.training.batch_size
    capacity = dataset.size(task)
    backend = jax.default_backend()
    lowering = lowering or choose_lowering(
        backend=backend,
        trials=trials_side_by_side(
            trials or len(config.training.seeds), config.execution.trials_per_device, backend
        ),
    )
    decoder = decoders.build(config.decoder, task.grid, lowering)

    def init(key) -> TrainState:
        params = decoder.init(stream(key, "init"), jnp.zeros(code_length(task.grid, task.code)))
        # the optimiser's state does not depend on the hyper-parameters
        opt_state = optimizer(hyper_of(config)).init(params)
        return TrainState(params, opt_state, jnp.int32(0))

    def loss(params, batch, hyper):
        images, _ = decoder.apply(params, batch.codes)
        error = pixel_loss(images, batch.targets, batch.weights)
        if config.decoder.name != "lowrank":
            return error
        factors = lowrank.embeddings(params, config.decoder.vectors)
        penalty = config.training.penalty
        return error + embedding_penalty(factors, hyper.entropy, hyper.variance, penalty)

    def advance(key, hyper, state, n_steps):
        data = dataset.training_set(stream(key, "data"), task)

        def one_step(index, carry):
            state, losses = carry
            chosen_B, counts_B = batch_indices(
                stream(key, "order"), state.step, hyper.n_samples, batch_size, capacity
            )
            batch = jax.tree.map(lambda array: array[chosen_B], data)
            batch = batch._replace(weights=batch.weights * counts_B)
            value, gradient = jax.value_and_grad(loss)(state.params, batch, hyper)
            updates, opt_state = optimizer(hyper).update(gradient, state.opt_state, state.params)
            params = optax.apply_updates(state.params, updates)
            return TrainState(params, opt_state, state.step + 1), losses.at[index].set(value)

        # a traced trip count: chunks of any length run the same compiled body, bit for bit
        losses = jnp.zeros(config.execution.chunk_steps)
        return jax.lax.fori_loop(0, n_steps, one_step, (state, losses))

    def decode(params, codes):
        return jax.lax.map(
            lambda code: decoder.apply(params, code)[0], codes, batch_size=DECODE_BATCH
        )

    return Trainer(init, advance, decode)


def template(config: Config):
    """Shapes of the states of all seeds of `config`, leading axis T; nothing is compiled."""
    keys = jax.eval_shape(jax.vmap(jax.random.key), jnp.array(config.training.seeds))
    return jax.eval_shape(jax.vmap(make_trainer(config).init), keys)


def make_train(config: Config, lowering: str | None = None) -> Callable:
    """train(key, hyper) -> (TrainState, losses_S): the whole run, pure, for one seed."""
    trainer = make_trainer(config, lowering)
    chunk, steps = config.execution.chunk_steps, total_steps(config)

    def train(key, hyper):
        def run_chunk(state, index):
            n_steps = jnp.minimum(chunk, steps - index * chunk)
            return trainer.advance(key, hyper, state, n_steps)

        state, losses = jax.lax.scan(run_chunk, trainer.init(key), jnp.arange(-(-steps // chunk)))
        return state, losses.reshape(-1)[:steps]

    return train
