"""The sum, and the sum of products, of one image per factor: against float64 loops."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.models import model
from compgen_jax.models.model import Shapes
from compgen_jax.models.per_factor import Additive, Multiplicative

KEY = jax.random.key(0)
PARTS = (5, 3, 2)
KINDS = [Additive(depth=2, width=7), Multiplicative(depth=2, width=7, terms=3)]


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def build(settings, parts=PARTS, output=(4, 6)):
    return settings.make(Shapes(struct(sum(parts)), struct(*output), parts=parts))


def variables(module, parts=PARTS, seed=0):
    """Parameters in general position."""
    params = jax.eval_shape(module.init, KEY, jnp.zeros(sum(parts)))
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.float32(random.normal(size=leaf.shape) * 0.5), params)


def decode_directly(settings, params, code, parts):
    """Output, as a vector, and hidden layers in float64, factor by factor and entry by entry."""
    weights = jax.tree.map(np.float64, params["params"])
    hidden, maps, start = [[] for _ in range(settings.depth)], [], 0
    for factor, length in enumerate(parts, start=1):
        layers, h = weights[f"factor_{factor}"], np.float64(code[start : start + length])
        for index in range(1, settings.depth + 1):
            layer = layers[f"hidden_{index}"]
            h = np.maximum(h @ layer["kernel"] + layer["bias"], 0)
            hidden[index - 1] += list(h)
        last = layers["image" if isinstance(settings, Additive) else "maps"]
        maps.append(h @ last["kernel"] + last["bias"])
        start += length
    if isinstance(settings, Additive):
        return sum(maps), hidden
    output = weights["bias"].ravel().copy()
    for entry in range(len(output)):
        for k in range(settings.terms):
            output[entry] += np.prod([of_factor[k * len(output) + entry] for of_factor in maps])
    return output, hidden


@pytest.mark.parametrize("settings", [*KINDS, Multiplicative(depth=1, width=7, terms=1)])
@pytest.mark.parametrize(("parts", "output"), [(PARTS, (4, 6)), ((2, 1), ())])
def test_output_and_layers_equal_a_float64_loop(settings, parts, output):
    module = build(settings, parts, output)
    params = variables(module, parts)
    codes = jax.random.normal(KEY, (3, sum(parts)))
    found, activations = jax.jit(lambda p, c: model.apply(module, p, c))(params, codes)
    chex.assert_shape(found, (3, *output))
    np.testing.assert_array_equal(activations["layer_00"], codes)
    for b, code in enumerate(np.asarray(codes)):
        expected, hidden = decode_directly(settings, params, code, parts)
        np.testing.assert_allclose(found[b], expected.reshape(output), rtol=1e-4, atol=1e-4)
        for index, layer in enumerate(hidden, start=1):
            np.testing.assert_allclose(activations[f"layer_{index:02d}"][b], layer, atol=2e-5)


@pytest.mark.parametrize("settings", KINDS)
def test_gradient_agrees_with_float64_central_differences(settings):
    module, code = build(settings), jax.random.normal(KEY, (10,))
    params, direction = variables(module), variables(module, seed=1)
    target = np.asarray(jax.random.normal(KEY, (4, 6)))
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(target * module.apply(p, code)[0])))(params)
    found = sum(jax.tree.leaves(jax.tree.map(np.vdot, gradient, direction)))

    def directly(step):
        moved = jax.tree.map(lambda p, d: np.float64(p) + step * np.float64(d), params, direction)
        return np.sum(target.ravel() * decode_directly(settings, moved, code, PARTS)[0])

    expected = (directly(1e-6) - directly(-1e-6)) / 2e-6
    assert float(found) == pytest.approx(expected, rel=2e-4)


def test_initial_weights_count_the_part_that_each_network_reads():
    parts = (100, 25)
    for kind, last in ((Additive, "image"), (Multiplicative, "maps")):
        module = build(kind(depth=2, width=64), parts, (2, 2))
        torch_like = jax.jit(module.init)(KEY, jnp.zeros(125))["params"]
        for factor, fan_in in (("factor_1", 100), ("factor_2", 25)):
            for layer, fan in (("hidden_1", fan_in), ("hidden_2", 64), (last, 64)):
                bound = jnp.abs(torch_like[factor][layer]["kernel"]).max()
                assert 0.9 * fan**-0.5 < bound <= fan**-0.5
        module = build(kind(depth=2, width=64, initial_weights="flax"), parts, (2, 2))
        flax_like = jax.jit(module.init)(KEY, jnp.zeros(125))["params"]["factor_2"]
        assert not flax_like["hidden_1"]["bias"].any()
        assert float(flax_like[last]["kernel"].std()) == pytest.approx(64**-0.5, rel=0.1)


@pytest.mark.parametrize(("parts", "terms"), [((6, 6), 1), (PARTS, 3), ((2,) * 5, 2)])
def test_products_sum_to_one_at_the_start_but_for_the_kernels(parts, terms):
    """For any number of factors and terms, so that no factor's gradient vanishes."""
    module = build(Multiplicative(depth=1, width=32, terms=terms), parts, (4, 4))
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
        kernel = np.asarray(params["params"][f"factor_{factor}"]["maps"]["kernel"])
        assert len(np.unique(kernel)) > 0.99 * kernel.size  # terms differ
