"""Strict settings for every test, and two virtual CPU devices for the pmap path."""

import dataclasses
import os

import chex
import jax
import pytest

from compgen_jax.config import (
    CodeConfig,
    Config,
    DecoderConfig,
    SupportConfig,
    TaskConfig,
    TrainingConfig,
)

chex.set_n_cpu_devices(2)
jax.config.update("jax_numpy_rank_promotion", "raise")
os.environ["COMPGEN_JAX_CACHE"] = "off"  # the command lines' programs are not kept in a user's home


@pytest.fixture(scope="session")
def tiny() -> Config:
    """A run of a second: grid 8, 4 channels, 12 steps for 2 seeds."""
    return Config(
        name="tiny",
        task=TaskConfig(
            grid=8,
            code=CodeConfig(name="bump"),
            support=SupportConfig(region="donut", low=3, high=5, samples=60),
        ),
        decoder=DecoderConfig(name="conv", depth=2, width=4),
        training=TrainingConfig(epochs=6, batch_size=32, seeds=(0, 7), evaluate_every=2),
    )


@pytest.fixture
def replace_in():
    """replace_in(config, 'task.support.low', 4): the config with one field changed."""

    def change(node, path, value):
        name, _, rest = path.partition(".")
        inner = change(getattr(node, name), rest, value) if rest else value
        return dataclasses.replace(node, **{name: inner})

    return change
