"""Memory that really runs out, and every way in which that is reported."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.runs import out_of_memory
from compgen_jax.runs.directory import RunError

SIDE = 2**28  # float32 of this side take 2**58 bytes, more than a process can address
EXHAUSTED = "RESOURCE_EXHAUSTED: Out of memory"


def fail():
    raise jax.errors.JaxRuntimeError(f"{EXHAUSTED} allocating 28910428832 bytes.\nmore")


@pytest.mark.parametrize(
    ("fill", "size"),
    [
        (lambda: jax.block_until_ready(jnp.zeros((SIDE, SIDE))), r"( \(asked for \S+ GiB\))?"),
        (lambda: np.zeros((SIDE, SIDE), np.float32), ""),  # petabytes are not named
        (fail, r" \(asked for 26.9 GiB\)"),
    ],
)
def test_what_runs_out_is_one_line_with_the_size_where_the_error_names_it(fill, size):
    with pytest.raises(RunError) as caught, out_of_memory.explained("try less"):
        fill()
    assert re.fullmatch(f"out of memory{size}: try less", str(caught.value))


def test_other_errors_are_left_alone():
    with pytest.raises(jax.errors.JaxRuntimeError, match="a bug"):
        with out_of_memory.explained("try less"):
            raise jax.errors.JaxRuntimeError("INTERNAL: a bug")
