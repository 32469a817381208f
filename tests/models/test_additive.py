"""The sum of one image per factor, against its definition."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError, TrainingConfig
from compgen_jax.models import model
from compgen_jax.models.additive import Additive
from compgen_jax.models.model import Shapes
from tests.models.shapes import of_image

KEY = jax.random.key(0)
PARTS = (5, 3, 2)


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def build(parts=PARTS, output=(4, 6), **settings):
    settings = {"depth": 2, "width": 7} | settings
    return Additive(**settings).make(Shapes(struct(sum(parts)), struct(*output), parts=parts))


def variables(module, parts=PARTS, seed=0):
    """Parameters in general position."""
    params = jax.eval_shape(module.init, KEY, jnp.zeros(sum(parts)))
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.float32(random.normal(size=leaf.shape) * 0.5), params)


def decode_directly(params, code, parts, depth):
    """Output and hidden layers, in float64, unit by unit and factor by factor."""
    output, hidden, start = 0.0, [[] for _ in range(depth)], 0
    for factor, length in enumerate(parts, start=1):
        layers = params["params"][f"factor_{factor}"]
        h = [float(number) for number in code[start : start + length]]
        for index in range(1, depth + 1):
            weights = jax.tree.map(np.float64, layers[f"hidden_{index}"])
            columns = zip(weights["kernel"].T, weights["bias"], strict=True)
            h = [max(np.dot(h, column) + bias, 0.0) for column, bias in columns]
            hidden[index - 1] += h
        weights = jax.tree.map(np.float64, layers["image"])
        output = output + np.array(h) @ weights["kernel"] + weights["bias"]
        start += length
    return output, hidden


@pytest.mark.parametrize(("parts", "output"), [(PARTS, (4, 6)), ((3, 3), (5,)), ((2, 1), ())])
def test_output_and_layers_equal_a_float64_loop_over_factors(parts, output):
    module = build(parts, output, depth=3)
    params = variables(module, parts)
    codes = jax.random.normal(KEY, (3, sum(parts)))
    found, activations = jax.jit(lambda p, c: model.apply(module, p, c))(params, codes)
    chex.assert_shape(found, (3, *output))
    assert list(activations) == [f"layer_{index:02d}" for index in range(4)]
    np.testing.assert_array_equal(activations["layer_00"], codes)
    for b, code in enumerate(np.asarray(codes)):
        expected, hidden = decode_directly(params, code, parts, 3)
        np.testing.assert_allclose(found[b], expected.reshape(output), atol=2e-5)
        for index, layer in enumerate(hidden, start=1):
            np.testing.assert_allclose(activations[f"layer_{index:02d}"][b], layer, atol=2e-5)


def test_no_two_factors_interact():
    """Of two factors, f(a, b) - f(a, d) - f(c, b) + f(c, d) is zero, and so is every mixed
    derivative, though neither factor's own is."""
    module = build((4, 3))
    params = variables(module, (4, 3))
    image = jax.jit(lambda code: module.apply(params, code)[0])
    x, y = jax.random.normal(KEY, (2, 4)), jax.random.normal(jax.random.key(1), (2, 3))
    corner = lambda i, j: image(jnp.concatenate([x[i], y[j]]))
    interaction = corner(0, 0) - corner(0, 1) - corner(1, 0) + corner(1, 1)
    np.testing.assert_allclose(interaction, 0, atol=1e-5)
    slopes = [
        jax.jacfwd(image)(jnp.concatenate([x[0], y[j]]))[..., :4] for j in range(2)
    ]  # of the first part, at two values of the second
    np.testing.assert_allclose(slopes[0], slopes[1], atol=1e-6)
    assert jnp.abs(slopes[0]).max() > 0.1
    assert jnp.abs(corner(0, 0) - corner(0, 1)).max() > 0.1


def test_gradient_agrees_with_float64_central_differences():
    module, code = build(), jax.random.normal(KEY, (10,))
    params, direction = variables(module), variables(module, seed=1)
    target = np.asarray(jax.random.normal(KEY, (4, 6)))
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(target * module.apply(p, code)[0])))(params)
    found = sum(jax.tree.leaves(jax.tree.map(np.vdot, gradient, direction)))

    def directly(step):
        moved = jax.tree.map(lambda p, d: np.float64(p) + step * np.float64(d), params, direction)
        return np.sum(target.ravel() * decode_directly(moved, np.asarray(code), PARTS, 2)[0])

    expected = (directly(1e-6) - directly(-1e-6)) / 2e-6
    assert float(found) == pytest.approx(expected, rel=2e-4)


def test_models_under_vmap_equal_themselves():
    module, codes = build(), jax.random.normal(KEY, (4, 10))
    several = [variables(module, seed=seed) for seed in range(2)]
    stack = lambda *leaves: jnp.stack(leaves)
    apply = jax.jit(lambda params: model.apply(module, params, codes))
    together = jax.jit(jax.vmap(apply))(jax.tree.map(stack, *several))
    alone = [apply(params) for params in several]
    chex.assert_trees_all_close(together, jax.tree.map(stack, *alone), atol=1e-5)


def test_initial_weights_are_of_the_part_that_each_network_reads():
    torch_like = jax.jit(build((100, 25), width=64).init)(KEY, jnp.zeros(125))["params"]
    for factor, fan_in in (("factor_1", 100), ("factor_2", 25)):
        for leaf in torch_like[factor]["hidden_1"].values():
            assert 0.9 * fan_in**-0.5 < jnp.abs(leaf).max() <= fan_in**-0.5
    flax_like = build((100, 25), initial_weights="flax")
    flax_like = jax.jit(flax_like.init)(KEY, jnp.zeros(125))["params"]
    assert not any(layer["bias"].any() for f in flax_like.values() for layer in f.values())


@pytest.mark.parametrize("parts", [(), (16,), (8, 7)])
def test_a_code_without_a_part_for_each_of_two_factors_is_refused(parts):
    message = "name='additive': needs a code with a part for each of two or more factors, not 16"
    with pytest.raises(ConfigError, match=message) as error:
        Additive().make(of_image(16, 8)._replace(parts=parts))
    assert "\n" not in str(error.value)


def test_other_inputs_and_outputs_are_refused():
    with pytest.raises(ConfigError, match="name='additive': needs a vector as input"):
        Additive().make(Shapes(struct(4, 4), struct(3), parts=(2, 2)))
    with pytest.raises(ConfigError, match="name='additive': gives one array, not {'a': "):
        Additive().make(Shapes(struct(4), {"a": struct(3)}, parts=(2, 2)))


def test_products_in_bfloat16_are_for_convolutions():
    with pytest.raises(ConfigError, match="precision='bfloat16': is for convolutions"):
        Config(model=Additive(), training=TrainingConfig(precision="bfloat16"))
