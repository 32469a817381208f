"""Memory that really runs out, and every way in which that is reported."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.runs import out_of_memory
from compgen_jax.runs.directory import RunError

ADVICE = "say --config.training.batch_size=32"
SIDE = 2**28  # float32 of this side take 2**58 bytes, more than a process can address


@pytest.mark.parametrize(
    "fill",
    [
        lambda: jax.block_until_ready(jnp.zeros((SIDE, SIDE))),
        lambda: np.zeros((SIDE, SIDE), np.float32),
    ],
)
def test_what_really_runs_out_is_said_in_one_line(fill):
    with pytest.raises(RunError) as caught, out_of_memory.explained(ADVICE):
        fill()
    line = str(caught.value)
    assert re.fullmatch(r"out of memory( \(asked for \S+ GiB\))?: " + re.escape(ADVICE), line)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            jax.errors.JaxRuntimeError(
                "RESOURCE_EXHAUSTED: Out of memory allocating 28910428832 bytes.\nmore"
            ),
            "out of memory (asked for 26.9 GiB): try less",
        ),
        (
            jax.errors.JaxRuntimeError(
                "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 51.20GiB."
            ),
            "out of memory (asked for 51.2 GiB): try less",
        ),
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Used 20.5G of 15.5G hbm."),
            "out of memory: try less",
        ),
        (
            MemoryError("Unable to allocate 512. MiB for an array with shape (1,)"),
            "out of memory (asked for 0.5 GiB): try less",
        ),
        (MemoryError(), "out of memory: try less"),
    ],
)
def test_the_size_is_named_where_the_error_names_it(error, expected):
    with pytest.raises(RunError) as caught, out_of_memory.explained("try less"):
        raise error
    assert str(caught.value) == expected and caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [jax.errors.JaxRuntimeError("INTERNAL: a bug"), RuntimeError("RESOURCE_EXHAUSTED"), OSError(5)],
)
def test_other_errors_are_left_alone(error):
    with pytest.raises(type(error)) as caught, out_of_memory.explained("try less"):
        raise error
    assert caught.value is error


def test_what_succeeds_is_left_alone():
    with out_of_memory.explained("try less"):
        found = jnp.arange(3).sum()
    assert found == 3
