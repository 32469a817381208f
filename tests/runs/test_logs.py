"""What a training says: memory that runs out, curves for TensorBoard."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.runs import logs
from compgen_jax.runs.directory import RunError

SIDE = 2**28  # float32 of this side take 2**58 bytes, more than a process can address


def fail():
    raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nmore")


@pytest.mark.parametrize(
    "fill",
    [
        lambda: jax.block_until_ready(jnp.zeros((SIDE, SIDE))),
        lambda: np.zeros((SIDE, SIDE), np.float32),
        fail,
    ],
)
def test_memory_that_runs_out_is_one_line(fill):
    with pytest.raises(RunError, match="^out of memory: try less$"):
        with logs.memory_explained("try less"):
            fill()


def test_other_errors_are_left_alone():
    with pytest.raises(jax.errors.JaxRuntimeError, match="a bug"):
        with logs.memory_explained("try less"):
            raise jax.errors.JaxRuntimeError("INTERNAL: a bug")
