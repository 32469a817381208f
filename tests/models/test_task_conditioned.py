"""Students that are told of a task, against loops in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.models.model import Shapes
from compgen_jax.models.task_conditioned import Hypernetwork, TaskMLP, TaskTransformer

E, S, I, O = 5, 6, 4, 3  # noqa: E741  of the code, inputs, and answers
STUDENTS = [
    TaskMLP(depth=3, width=10),
    TaskTransformer(depth=2, width=16, heads=2),
    Hypernetwork(width=9),
]
named = pytest.mark.parametrize("student", STUDENTS, ids=lambda student: student.name)


def struct(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def shapes(code=E, samples=S, inputs=I, outputs=O):
    return Shapes((struct(code), struct(samples, inputs)), struct(samples, outputs))


def given(seed=0, count=None):
    lead, rng = () if count is None else (count,), np.random.default_rng(seed)
    return tuple(rng.normal(size=(*lead, *shape)).astype("f4") for shape in ((E,), (S, I)))


@functools.cache
def built(student):
    """The module and parameters, no bias or scale of which is left at its first value."""
    module, rng = student.make(shapes()), np.random.default_rng(1)
    params = jax.jit(module.init)(jax.random.key(1), given())
    move = lambda leaf: leaf + 0.3 * rng.normal(size=leaf.shape).astype("f4")
    return module, jax.tree.map(
        lambda leaf: move(np.asarray(leaf)) if leaf.ndim == 1 else np.asarray(leaf), params
    )


@functools.cache
def applied(student):
    """params, given -> answers and activations; compiled."""
    return jax.jit(built(student)[0].apply)


# --- the MLP ---------------------------------------------------------------------------------


# --- the transformer -------------------------------------------------------------------------


# --- the hypernetwork ------------------------------------------------------------------------


# --- all of them -----------------------------------------------------------------------------


@named
def test_what_an_answer_depends_on(student):
    """Of the transformer on its own input and earlier ones, of the others on its own alone; of all
    on the code."""
    module, params = built(student)
    by_given = jax.jit(jax.jacrev(lambda given: module.apply(params, given)[0]))
    by_code, by_inputs = by_given(given())
    depends = np.abs(by_inputs).max(axis=(1, 3)) > 0  # (answer, input)
    causal = isinstance(student, TaskTransformer)
    expected = np.tri(S, dtype=bool) if causal else np.eye(S, dtype=bool)
    np.testing.assert_array_equal(depends, expected)
    assert (np.abs(by_code).max(axis=(1, 2)) > 0).all()


@named
def test_codes_may_be_whole_numbers(student):
    module, params = built(student)
    whole, inputs = np.arange(E, dtype=np.int32), given()[1]
    found, expected = (applied(student)(params, (code, inputs))[0]
                       for code in (whole, whole.astype(np.float32)))  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-6)
