"""The decoder that all pixels share, against a loop over pixels."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.models.pixelwise import Pixelwise, position_code
from tests.models.shapes import of_image

KEY = jax.random.key(0)


def build(grid=8, width=12, depth=2):
    return Pixelwise(width=width, depth=depth).make(of_image(2 * grid, grid))


def variables(decoder, code_length, seed=0):
    """Parameters in general position, biases and slopes too."""
    params = jax.eval_shape(decoder.init, KEY, jnp.zeros(code_length))
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.float32(random.normal(size=leaf.shape) * 0.3), params)


def test_a_larger_grid_extends_the_image():
    """Pixels do not see each other: the grid only says at how many of them the MLP is read."""
    code = jax.random.normal(KEY, (5,))
    params = variables(build(grid=8), 5)
    small, large = (jax.jit(build(grid=grid).apply)(params, code)[0] for grid in (8, 12))
    np.testing.assert_allclose(small, large[:8, :8], atol=1e-6)


def test_position_code_is_the_sinusoids_of_each_axis():
    code = position_code(6, 8)
    chex.assert_shape(code, (6, 6, 8))
    for y in range(6):
        for x in range(6):
            expected = [
                wave(rate * place) for place in (x, y) for wave in (math.sin, math.cos)
                for rate in (1, 0.01)  # 10000^0 and 10000^-1/2
            ]  # fmt: skip
            np.testing.assert_allclose(code[y, x], expected, atol=1e-6)


def decode_directly(params, code, grid, width, depth):
    """Image and layers in float64, pixel by pixel."""
    weights = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params["params"])
    dense = lambda name, h: h @ weights[name]["kernel"] + weights[name]["bias"]
    position = position_code(grid, width)
    image, layers = np.zeros((grid, grid)), np.zeros((depth + 1, grid, grid, width))
    for y in range(grid):
        for x in range(grid):
            h = layers[0, y, x] = dense("token", np.asarray(code)) + position[y, x]
            for index in range(1, depth + 1):
                h = dense(f"hidden_{index}", h)
                h = np.where(h > 0, h, weights[f"prelu_{index}"]["negative_slope"] * h)
                layers[index, y, x] = h
            image[y, x] = dense("image", h)[0]
    return image, layers


def test_image_and_layers_equal_a_float64_loop_over_pixels():
    decoder = build(depth=3)
    code = jax.random.normal(KEY, (5,))
    params = variables(decoder, 5)
    image, activations = jax.jit(decoder.apply)(params, code)
    expected, layers = decode_directly(params, code, 8, 12, 3)
    np.testing.assert_allclose(image, expected, atol=1e-5)
    assert list(activations) == [f"layer_{index:02d}" for index in range(5)]
    np.testing.assert_array_equal(activations["layer_00"], code)
    for index, layer in enumerate(layers, start=1):
        np.testing.assert_allclose(activations[f"layer_{index:02d}"], layer, atol=1e-5)


def test_gradient_agrees_with_float64_central_differences():
    """Along a random direction of all parameters, through the independent loop."""
    decoder = build(depth=1)
    params, direction = variables(decoder, 5), variables(decoder, 5, seed=1)
    target = jax.random.normal(KEY, (8, 8))
    code = jax.random.normal(KEY, (5,))
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(target * decoder.apply(p, code)[0])))(params)
    products = jax.tree.map(np.vdot, gradient, direction)

    def directly(step):
        moved = jax.tree.map(lambda p, d: np.float64(p) + step * np.float64(d), params, direction)
        return np.sum(np.asarray(target) * decode_directly(moved, code, 8, 12, 1)[0])

    expected = (directly(1e-6) - directly(-1e-6)) / 2e-6
    assert float(sum(jax.tree.leaves(products))) == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize(("units", "parts"), [(400, 2), (1, 8)])
def test_an_image_drawn_in_parts_and_its_gradient_are_those_of_the_whole(units, parts):
    """8 x 8 pixels of 12 units; a part has a row at least."""
    whole, decoder = build(), build().clone(at_once=units)
    code, target = jax.random.normal(KEY, (5,)), jax.random.normal(KEY, (8, 8))
    params = variables(whole, 5)
    assert decoder._parts(8 * 8 * 12) == parts
    drawn, expected = jax.jit(decoder.apply)(params, code), jax.jit(whole.apply)(params, code)
    chex.assert_trees_all_close(drawn, expected, atol=1e-5)

    def loss(params, code, module):
        return jnp.sum(target * module.apply(params, code)[0])

    gradient = jax.jit(jax.grad(loss, argnums=(0, 1)), static_argnums=2)
    chex.assert_trees_all_close(
        gradient(params, code, decoder), gradient(params, code, whole), rtol=1e-4, atol=1e-5
    )
    tangents = jax.jit(jax.jacfwd(lambda code: decoder.apply(params, code)))(code)
    chex.assert_trees_all_close(
        tangents, jax.jit(jax.jacfwd(lambda code: whole.apply(params, code)))(code), atol=1e-5
    )


def test_parts_divide_the_image_whatever_its_batch():
    """12 rows in 1, 2, 3, 4, 6 or 12 parts; models under vmap and batches draw the same images."""
    decoder = build(grid=12).clone(at_once=5 * 12 * 12 * 12 // 3)
    parts = [decoder._parts(n * 12 * 12 * 12) for n in (1, 2, 5, 6, 9, 20, 99)]
    assert parts == [1, 2, 3, 4, 6, 12, 12]
    assert build(grid=12).clone(at_once=0)._parts(10**9) == 1
    codes = jax.random.normal(KEY, (5, 24))
    stacked = jax.tree.map(
        lambda *leaves: np.stack(leaves), *(variables(decoder, 24, s) for s in (0, 1))
    )
    draw = lambda module: jax.jit(jax.vmap(lambda p: module.apply(p, codes)[0]))(stacked)
    np.testing.assert_allclose(draw(decoder), draw(build(grid=12)), atol=1e-5)
