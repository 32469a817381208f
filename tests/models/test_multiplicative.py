"""The sum of products of one image per factor, against its definition."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from compgen_jax.config import ConfigError
from compgen_jax.models import model
from compgen_jax.models.model import Shapes
from compgen_jax.models.multiplicative import Multiplicative
from tests.models.shapes import of_image

KEY = jax.random.key(0)
PARTS = (5, 3, 2)


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def build(parts=PARTS, output=(4, 6), **settings):
    settings = {"depth": 2, "width": 7, "terms": 3} | settings
    return Multiplicative(**settings).make(Shapes(struct(sum(parts)), struct(*output), parts=parts))


def variables(module, parts=PARTS, seed=0):
    """Parameters in general position."""
    params = jax.eval_shape(module.init, KEY, jnp.zeros(sum(parts)))
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.float32(random.normal(size=leaf.shape) * 0.5), params)


def decode_directly(params, code, parts, depth, terms):
    """Output, as a vector, and hidden layers in float64, entry by entry."""
    weights = jax.tree.map(np.float64, params["params"])
    bias, hidden, maps, start = weights["bias"].ravel(), [[] for _ in range(depth)], [], 0
    for factor, length in enumerate(parts, start=1):
        layers, h = weights[f"factor_{factor}"], np.float64(code[start : start + length])
        for index in range(1, depth + 1):
            layer = layers[f"hidden_{index}"]
            h = np.maximum(h @ layer["kernel"] + layer["bias"], 0)
            hidden[index - 1] += list(h)
        maps.append(h @ layers["maps"]["kernel"] + layers["maps"]["bias"])
        start += length
    output = np.array(bias)
    for entry in range(bias.size):
        for k in range(terms):
            output[entry] += np.prod([of_factor[k * bias.size + entry] for of_factor in maps])
    return output, hidden


@pytest.mark.parametrize("terms", [1, 3])
@pytest.mark.parametrize(("parts", "output"), [(PARTS, (4, 6)), ((3, 3), (5,)), ((2, 1), ())])
def test_output_and_layers_equal_a_float64_loop_over_entries(parts, output, terms):
    module = build(parts, output, terms=terms)
    params = variables(module, parts)
    codes = jax.random.normal(KEY, (3, sum(parts)))
    found, activations = jax.jit(lambda p, c: model.apply(module, p, c))(params, codes)
    chex.assert_shape(found, (3, *output))
    assert list(activations) == ["layer_00", "layer_01", "layer_02"]
    np.testing.assert_array_equal(activations["layer_00"], codes)
    for b, code in enumerate(np.asarray(codes)):
        expected, hidden = decode_directly(params, code, parts, 2, terms)
        np.testing.assert_allclose(found[b], expected.reshape(output), rtol=1e-4, atol=1e-4)
        for index, layer in enumerate(hidden, start=1):
            np.testing.assert_allclose(activations[f"layer_{index:02d}"][b], layer, atol=2e-5)


@pytest.mark.parametrize("terms", [1, 2])
def test_an_entry_of_two_factors_has_rank_terms(terms):
    """Over the values of both factors, without the bias."""
    module = build((4, 3), (2,), terms=terms)
    params = variables(module, (4, 3))
    x, y = jax.random.normal(KEY, (6, 4)), jax.random.normal(jax.random.key(1), (6, 3))
    codes = jnp.concatenate([jnp.repeat(x, 6, axis=0), jnp.tile(y, (6, 1))], axis=1)
    outputs = np.asarray(jax.jit(lambda c: model.apply(module, params, c)[0])(codes))
    table = (outputs - np.asarray(params["params"]["bias"])).reshape(6, 6, 2)
    for entry in range(2):
        values = np.linalg.svd(table[..., entry], compute_uv=False)
        assert values[terms - 1] > 1e-2 * values[0] and values[terms] < 1e-5 * values[0]


@pytest.mark.parametrize(("parts", "terms"), [((6, 6), 1), ((6, 6), 4), (PARTS, 3), ((2,) * 5, 2)])
def test_products_sum_to_one_at_the_start_but_for_the_kernels(parts, terms):
    """Whatever the number of factors and terms, and no factor's gradient vanishes."""
    module = build(parts, (4, 4), terms=terms, width=32)
    params = jax.jit(module.init)(KEY, jnp.zeros(sum(parts)))
    assert not params["params"]["bias"].any()
    bare = jax.tree_util.tree_map_with_path(
        lambda path, leaf: 0 * leaf if path[-1].key == "kernel" else leaf, params
    )
    code = jax.random.normal(KEY, (sum(parts),))
    image = lambda p: module.apply(p, code)[0]
    np.testing.assert_allclose(jax.jit(image)(bare), 1, rtol=1e-5)
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(image(p))))(params)["params"]
    share = terms ** (1 / len(parts) - 1)  # the product of the others' constants
    for factor in range(1, len(parts) + 1):
        found = gradient[f"factor_{factor}"]["maps"]["bias"]
        assert float(found.mean()) == pytest.approx(share, rel=0.5)


def test_terms_differ_at_the_start():
    module = build((6, 6), (4, 4), terms=2)
    kernels = jax.jit(module.init)(KEY, jnp.zeros(12))["params"]["factor_1"]["maps"]["kernel"]
    first, second = kernels.reshape(7, 2, 16).transpose(1, 0, 2)
    assert jnp.abs(first - second).max() > 0.1


def test_initial_kernels_follow_the_law_of_initial_weights():
    torch_like = jax.jit(build((100, 25), width=64).init)(KEY, jnp.zeros(125))["params"]["factor_2"]
    for layer, fan_in in (("hidden_1", 25), ("hidden_2", 64), ("maps", 64)):
        bound = jnp.abs(torch_like[layer]["kernel"]).max()
        assert 0.95 * fan_in**-0.5 < bound <= fan_in**-0.5
    flax_like = build((100, 25), width=64, initial_weights="flax")
    flax_like = jax.jit(flax_like.init)(KEY, jnp.zeros(125))["params"]["factor_2"]
    assert not flax_like["hidden_1"]["bias"].any()
    assert float(flax_like["maps"]["kernel"].std()) == pytest.approx(64**-0.5, rel=0.1)


def test_gradient_agrees_with_float64_central_differences():
    module, code = build(), jax.random.normal(KEY, (10,))
    params, direction = variables(module), variables(module, seed=1)
    target = np.asarray(jax.random.normal(KEY, (4, 6)))
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(target * module.apply(p, code)[0])))(params)
    found = sum(jax.tree.leaves(jax.tree.map(np.vdot, gradient, direction)))

    def directly(step):
        moved = jax.tree.map(lambda p, d: np.float64(p) + step * np.float64(d), params, direction)
        return np.sum(target.ravel() * decode_directly(moved, np.asarray(code), PARTS, 2, 3)[0])

    expected = (directly(1e-6) - directly(-1e-6)) / 2e-6
    assert float(found) == pytest.approx(expected, rel=2e-4)


def test_models_under_vmap_equal_themselves():
    module, codes = build(), jax.random.normal(KEY, (4, 10))
    several = [variables(module, seed=seed) for seed in range(2)]
    stack = lambda *leaves: jnp.stack(leaves)
    apply = jax.jit(lambda params: model.apply(module, params, codes))
    together = jax.jit(jax.vmap(apply))(jax.tree.map(stack, *several))
    alone = [apply(params) for params in several]
    chex.assert_trees_all_close(together, jax.tree.map(stack, *alone), atol=1e-4, rtol=1e-4)


def test_one_term_learns_a_product_and_says_it_where_it_was_not_shown():
    """Of a table of numbers, rank 1 with entries 1 to 2, a quarter is held out; a constant is off
    by the table's variance there."""
    rows, columns = np.linspace(1, 1.4, 4), np.linspace(1, 1.5, 4)
    table = jnp.float32(np.outer(rows, columns))
    module = build((4, 4), (), terms=1, width=16, depth=1)
    first, second = (jnp.ravel(each) for each in jnp.meshgrid(*[jnp.arange(4)] * 2, indexing="ij"))
    codes = jnp.concatenate([jnp.eye(4)[first], jnp.eye(4)[second]], axis=1)
    held_out = (first >= 2) & (second >= 2)
    errors = lambda params: jnp.square(model.apply(module, params, codes)[0] - table.ravel())
    loss = lambda params: jnp.mean(errors(params), where=~held_out)
    optimiser = optax.adam(1e-2)

    def step(carry, _):
        params, state = carry
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimiser.update(gradient, state)
        return (optax.apply_updates(params, updates), state), value

    params = jax.jit(module.init)(KEY, codes[0])
    (params, _), losses = jax.jit(
        lambda carry: jax.lax.scan(step, carry, length=300)
    )((params, optimiser.init(params)))  # fmt: skip
    assert losses[-1] < 1e-4 < losses[0]
    found = np.asarray(jax.jit(errors)(params))[held_out].mean()
    assert found < 0.2 * np.var(np.asarray(table.ravel())[held_out])


@pytest.mark.parametrize("parts", [(), (16,), (8, 7)])
def test_a_code_without_a_part_for_each_of_two_factors_is_refused(parts):
    message = "name='multiplicative': needs a code with a part for each of two or more factors"
    with pytest.raises(ConfigError, match=message) as error:
        Multiplicative().make(of_image(16, 8)._replace(parts=parts))
    assert "\n" not in str(error.value)
