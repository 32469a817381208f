"""Training steps of one seed, compiled once for all tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.tasks import sampling
from compgen_jax.training import loop


@functools.cache
def functions(config, lowering="gemm"):
    """init(key), advance(trial, state, n_steps), predict and score."""
    return loop.Trainer(*map(jax.jit, loop.make_trainer(config, lowering)))


def trial_of(config, seed=0, capacity=0, **hyper):
    """The trial that training makes of one seed."""
    task, key = config.task.make(), jax.random.key(seed)

    def dataset(key):
        drawn = loop.dataset_of(task, key)
        return sampling.padded(drawn, capacity or sampling.capacity(drawn))

    return loop.Trial(key, loop.hyper_of(config) | hyper, jax.jit(dataset)(key), jnp.int32(0))


def trained(config, *parts, seed=0):
    """The state after steps in parts (by default all at once), and the loss of each step."""
    trainer, trial, losses = functions(config), trial_of(config, seed), []
    state = trainer.init(trial.key)
    for count in parts or (config.training.steps,):
        state, taken = trainer.advance(trial, state, count)
        losses.append(np.asarray(taken)[:count])
    return state, np.concatenate(losses)


def gradient_of(state):
    """After one step AdamW's first moment is a tenth of the gradient."""
    return jax.tree.map(lambda moment: np.asarray(moment) / 0.1, state.opt_state[0].mu)
