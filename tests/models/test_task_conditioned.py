"""Students that are told of a task, against loops in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.models import task_conditioned
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


def exact(params):
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)["params"]


def dense(layer, values):
    """One vector, sum by sum."""
    kernel = layer["kernel"]
    return np.array([sum(values[i] * kernel[i, j] for i in range(len(values))) + layer["bias"][j]
                     for j in range(kernel.shape[1])])  # fmt: skip


def normed(layer, values):
    apart = values - values.mean()
    scaled = apart / np.sqrt(np.mean(apart**2) + 1e-6) * layer["scale"]
    return scaled + layer.get("bias", 0.0)


# --- the MLP ---------------------------------------------------------------------------------


def test_the_mlp_is_a_dense_network_of_code_and_input():
    _, params = built(STUDENTS[0])
    answers, activations = applied(STUDENTS[0])(params, given())
    code, inputs = (np.asarray(leaf, np.float64) for leaf in given())
    weights = exact(params)
    assert list(activations) == ["layer_00", "layer_01", "layer_02", "layer_03"]
    for s in range(S):
        values = np.concatenate([code, inputs[s]])
        np.testing.assert_allclose(activations["layer_00"][s], values, rtol=1e-6)
        for index in (1, 2, 3):
            values = np.maximum(dense(weights[f"hidden_{index}"], values), 0)
            np.testing.assert_allclose(activations[f"layer_0{index}"][s], values, atol=1e-5)
        np.testing.assert_allclose(answers[s], dense(weights["answer"], values), atol=1e-5)
    assert answers.shape == (S, O) and activations["layer_03"].shape == (S, 10)


def test_first_weights_of_the_mlp_count_code_and_input_together():
    """As one dense layer of [code; x] would draw them: variance 1 / (E + I), no bias."""
    module = TaskMLP(width=1000).make(shapes())
    params = jax.jit(module.init)(jax.random.key(0), given())["params"]
    for name, fan_in in (("hidden_1", E + I), ("hidden_2", 1000), ("answer", 1000)):
        kernel = np.asarray(params[name]["kernel"])
        assert kernel.shape[0] == fan_in and not params[name]["bias"].any()
        assert np.var(kernel) * fan_in == pytest.approx(1, rel=0.05)
    halves = np.split(np.asarray(params["hidden_1"]["kernel"]), [E])
    assert halves[0].var() == pytest.approx(halves[1].var(), rel=0.1)


# --- the transformer -------------------------------------------------------------------------


def turned(values, position):
    """Pairs of channels as complex numbers, turned by position x 10000 ** (-pair / pairs)."""
    half = len(values) // 2
    pairs = values[:half] + 1j * values[half:]
    pairs = pairs * np.exp(1j * position * 10_000.0 ** (-np.arange(half) / half))
    return np.concatenate([pairs.real, pairs.imag])


def attended(weights, normed_stream, heads):
    """(L, D) what causal attention adds, before it is mixed, head by head."""
    length, width = normed_stream.shape
    size = width // heads
    query, key, value = (
        np.array([dense(weights[name], each) for each in normed_stream]).reshape(-1, heads, size)
        for name in ("query", "key", "value")
    )
    mixed = np.zeros((length, heads, size))
    for head in range(heads):
        for now in range(length):
            q = turned(normed(weights["norm_query"], query[now, head]), now)
            logits = [q @ turned(normed(weights["norm_key"], key[then, head]), then) / size**0.5
                      for then in range(now + 1)]  # fmt: skip
            share = np.exp(logits) / np.exp(logits).sum()
            mixed[now, head] = sum(w * value[then, head] for then, w in enumerate(share))
    return mixed.reshape(length, width)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def test_the_transformer_against_loops():
    _, params = built(STUDENTS[1])
    answers, activations = applied(STUDENTS[1])(params, given())
    code, inputs = (np.asarray(leaf, np.float64) for leaf in given())
    weights = exact(params)
    stream = np.array(
        [dense(weights["embed_code"], code)] + [dense(weights["embed_inputs"], x) for x in inputs]
    )
    np.testing.assert_allclose(activations["layer_00"], stream[1:], atol=1e-5)
    for index in (1, 2):
        own = weights[f"block_{index}"]
        read = np.array([normed(own["norm_attention"], each) for each in stream])
        stream = stream + np.array([dense(own["mix"], x) for x in attended(own, read, 2)])
        for at, each in enumerate(stream.copy()):
            hidden = gelu(dense(own["mlp_in"], normed(own["norm_mlp"], each)))
            stream[at] = each + dense(own["mlp_out"], hidden)
        np.testing.assert_allclose(activations[f"layer_0{index}"], stream[1:], atol=2e-5)
    expected = [dense(weights["answer"], normed(weights["norm"], each)) for each in stream[1:]]
    np.testing.assert_allclose(answers, expected, atol=2e-5)
    assert list(activations) == ["layer_00", "layer_01", "layer_02"]


def test_a_turn_keeps_lengths_and_products_depend_on_the_distance_alone():
    one = np.random.default_rng(0).normal(size=(2, 1, 3, 8)).astype("f4")
    query, key = np.tile(one, (1, 20, 1, 1))
    turned_query, turned_key = map(jax.jit(task_conditioned.rotated), (query, key))
    np.testing.assert_array_equal(turned_query[0], query[0])
    np.testing.assert_allclose(
        np.linalg.norm(turned_query, axis=-1), np.linalg.norm(query, axis=-1), rtol=1e-5
    )
    for head in range(3):
        logits = np.asarray(turned_query[:, head]) @ np.asarray(turned_key[:, head]).T
        for apart in range(-19, 20):
            diagonal = np.diagonal(logits, apart)
            np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-4)
        assert np.ptp(logits[0]) > 0.1
        by_hand = [turned(np.asarray(query[0, head], np.float64), now) for now in range(20)]
        np.testing.assert_allclose(turned_query[:, head], by_hand, atol=1e-5)


def test_attention_is_that_of_torch():
    torch = pytest.importorskip("torch")
    block = task_conditioned.Block(width=16, heads=2)
    stream = np.random.default_rng(3).normal(size=(7, 16)).astype("f4")
    found, params = jax.jit(block.init_with_output)(jax.random.key(4), stream)
    own = jax.tree.map(lambda leaf: torch.tensor(np.asarray(leaf)), params["params"])
    linear = lambda name, x: x @ own[name]["kernel"] + own[name]["bias"]
    norm = lambda name, x: torch.nn.functional.layer_norm(
        x, x.shape[-1:], own[name]["scale"], eps=1e-6
    )
    x = torch.tensor(stream)
    read = norm("norm_attention", x)
    heads = lambda name: linear(name, read).reshape(7, 2, 8)
    turn = lambda values: torch.tensor(np.asarray(task_conditioned.rotated(values.numpy())))
    query, key = (turn(norm(f"norm_{name}", heads(name))) for name in ("query", "key"))
    mixed = torch.nn.functional.scaled_dot_product_attention(
        *(each.swapaxes(0, 1) for each in (query, key, heads("value"))), is_causal=True
    )
    after = x + linear("mix", mixed.swapaxes(0, 1).reshape(7, 16))
    hidden = torch.nn.functional.gelu(linear("mlp_in", norm("norm_mlp", after)), approximate="tanh")
    np.testing.assert_allclose(found, after + linear("mlp_out", hidden), atol=2e-5)


# --- the hypernetwork ------------------------------------------------------------------------


def test_the_hypernetwork_is_a_network_whose_weights_are_of_the_code():
    _, params = built(STUDENTS[2])
    answers, activations = applied(STUDENTS[2])(params, given())
    code, inputs = (np.asarray(leaf, np.float64) for leaf in given())
    weights = exact(params)
    read, width = normed(weights["norm"], code), 9
    made = dense(weights["hidden"], read).reshape(I + 1, width)
    last = dense(weights["answer"], read).reshape(width + 1, O)
    assert list(activations) == ["layer_00", "layer_01"]
    for s in range(S):
        hidden = np.zeros(width)
        for h in range(width):
            total = sum(inputs[s, i] * made[i, h] for i in range(I)) / I**0.5 + made[I, h]
            hidden[h] = max(total, 0)
        expected = [sum(hidden[h] * last[h, o] for h in range(width)) / width**0.5 + last[width, o]
                    for o in range(O)]  # fmt: skip
        np.testing.assert_allclose(answers[s], expected, atol=2e-5)
        np.testing.assert_allclose(activations["layer_01"][s], hidden, atol=2e-5)
        np.testing.assert_allclose(activations["layer_00"][s][E:], inputs[s], rtol=1e-6)


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


def test_a_later_input_moves_no_bit_of_an_earlier_answer():
    _, params = built(STUDENTS[1])
    code, inputs = given()
    changed = np.where(np.arange(S)[:, None] < 3, inputs, np.float32(7))
    before, after = (applied(STUDENTS[1])(params, (code, x))[0] for x in (inputs, changed))
    np.testing.assert_array_equal(before[:3], after[:3])
    assert (before[3:] != after[3:]).any(axis=1).all()


@named
def test_gradients_reach_every_parameter_and_codes_may_be_whole_numbers(student):
    module, params = built(student)
    target = np.random.default_rng(8).normal(size=(S, O)).astype("f4")
    error = lambda params: jnp.mean(jnp.square(module.apply(params, given())[0] - target))
    for leaf in jax.tree.leaves(jax.jit(jax.grad(error))(params)):
        assert np.isfinite(leaf).all() and leaf.any()
    whole, inputs = np.arange(E, dtype=np.int32), given()[1]
    found, expected = (applied(student)(params, (code, inputs))[0]
                       for code in (whole, whole.astype(np.float32)))  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-6)
