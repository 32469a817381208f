"""What a training says: memory that runs out, curves for TensorBoard."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.runs import logs
from tests.command import refused

SIDE = 2**28  # float32 of this side take 2**58 bytes, more than a process can address


@pytest.mark.parametrize(
    "fill",
    [
        lambda: jax.block_until_ready(jnp.zeros((SIDE, SIDE))),
        lambda: np.zeros((SIDE, SIDE), np.float32),
    ],
)
def test_memory_that_runs_out_is_one_line(fill):
    with refused("out of memory: try less"), logs.memory_explained("try less"):
        fill()


def test_other_errors_are_left_alone():
    with pytest.raises(jax.errors.JaxRuntimeError, match="a bug"):
        with logs.memory_explained("try less"):
            raise jax.errors.JaxRuntimeError("INTERNAL: a bug")
