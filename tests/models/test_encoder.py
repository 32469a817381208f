"""The convolutional encoder, against loops, Flax and PyTorch."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax.config import Config, ConfigError
from compgen_jax.models.encoder import Encoder, HalvingConv
from compgen_jax.models.model import Shapes

KEY = jax.random.key(0)


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def build(side=9, **settings):
    settings = {"depth": 2, "width": 3, "hidden": 6} | settings
    return Encoder(**settings).make(Shapes(struct(side, side), struct(5)))


def drawn(*shape, seed=0):
    return np.float32(np.random.default_rng(seed).normal(size=shape))


def variables(module, side=9, seed=0):
    """Parameters in general position."""
    params = jax.eval_shape(module.init, KEY, jnp.zeros((side, side)))
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: np.float32(random.normal(size=leaf.shape) * 0.3), params)


def convolve_directly(x, kernel, bias):
    """Kernel 3, stride 2, padding 1, tap by tap: x (H, W, I) -> (ceil(H / 2), ceil(W / 2), O)."""
    height, width, _ = x.shape
    y = np.zeros((-(-height // 2), -(-width // 2), len(bias))) + bias
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for n in range(3):
                for m in range(3):
                    row, column = 2 * i + n - 1, 2 * j + m - 1
                    if 0 <= row < height and 0 <= column < width:
                        y[i, j] += x[row, column] @ kernel[n, m]
    return y


def encode_directly(params, image, depth):
    """Answer and layers behind the image, in float64."""
    weights = jax.tree.map(np.float64, params["params"])
    x, layers = np.float64(image)[..., None], []
    for index in range(1, depth + 1):
        layer = weights[f"conv_{index}"]
        x = np.maximum(convolve_directly(x, layer["kernel"], layer["bias"]), 0)
        layers.append(x)
    x = np.maximum(x.ravel() @ weights["hidden"]["kernel"] + weights["hidden"]["bias"], 0)
    layers.append(x)
    return x @ weights["answer"]["kernel"] + weights["answer"]["bias"], layers


@pytest.mark.parametrize(("side", "depth"), [(9, 2), (8, 5)])
def test_answer_and_layers_equal_a_float64_loop(side, depth):
    module = build(side, depth=depth)
    params = variables(module, side)
    image = drawn(side, side)
    answer, activations = jax.jit(module.apply)(params, image)
    chex.assert_shape(answer, (5,))
    expected, layers = encode_directly(params, image, depth)
    np.testing.assert_allclose(answer, expected, atol=1e-4)
    assert list(activations) == [f"layer_{index:02d}" for index in range(depth + 2)]
    np.testing.assert_array_equal(activations["layer_00"], image)
    for index, layer in enumerate(layers, start=1):
        np.testing.assert_allclose(activations[f"layer_{index:02d}"], layer, atol=1e-4)
    channels = [activations[f"layer_{index:02d}"].shape[-1] for index in range(1, depth + 1)]
    assert channels == [3 * 2**k for k in range(depth)]


@pytest.mark.parametrize(
    ("taps", "sides"), [(3, (8, 8)), (3, (5, 8)), (3, (1, 1)), (4, (8, 6)), (4, (5, 2))]
)
def test_a_layer_is_flax_own(taps, sides):
    """Its function and its gradients, with the same parameters."""
    x = drawn(2, *sides, 3)
    ours = HalvingConv(4, "torch", taps)
    flax = nn.Conv(4, (taps, taps), strides=2, padding=1)
    params = jax.jit(ours.init)(KEY, x)
    chex.assert_trees_all_equal_shapes(params, jax.eval_shape(flax.init, KEY, x))

    @partial(jax.jit, static_argnums=0)
    def outputs_and_gradients(layer, params, x):
        target = drawn(2, *((s + 4 - taps) // 2 for s in sides), 4, seed=1)
        outputs, pull = jax.vjp(layer.apply, params, x)
        return outputs, pull(target)

    chex.assert_trees_all_close(
        *(outputs_and_gradients(layer, params, x) for layer in (ours, flax)), atol=1e-4
    )


def test_same_function_as_torch():
    torch = pytest.importorskip("torch")
    module = build(12, depth=3)
    images = drawn(2, 12, 12)
    params = jax.jit(module.init)(KEY, images[0])["params"]
    x = torch.tensor(images)[:, None]
    for index in (1, 2, 3):
        layer = jax.tree.map(np.array, params[f"conv_{index}"])
        kernel = torch.tensor(layer["kernel"].transpose(3, 2, 0, 1).copy())  # (out, in, k, k)
        x = torch.nn.functional.conv2d(x, kernel, torch.tensor(layer["bias"]), 2, 1)
        x = torch.relu(x)
    hidden, answer = (
        jax.tree.map(lambda leaf: torch.tensor(np.array(leaf)), params[name])
        for name in ("hidden", "answer")
    )
    flat = x.permute(0, 2, 3, 1).reshape(2, -1)  # channels last, as the kernel's rows are
    x = torch.relu(flat @ hidden["kernel"] + hidden["bias"])
    expected = x @ answer["kernel"] + answer["bias"]
    np.testing.assert_allclose(
        jax.jit(module.apply)({"params": params}, images)[0], expected, atol=1e-5
    )


def test_initial_weights_follow_torch_bounds_or_flax_variance():
    module = Encoder(width=32).make(Shapes(struct(28, 28), struct(56)))
    params = jax.device_get(jax.jit(module.init)(KEY, drawn(28, 28)))["params"]
    fans = {"conv_1": 9, "conv_2": 9 * 32, "conv_3": 9 * 64, "hidden": 2048, "answer": 128}
    for name, fan_in in fans.items():
        for leaf in params[name].values():  # kernel and bias share the bound
            assert 0.85 * fan_in**-0.5 < np.abs(leaf).max() <= fan_in**-0.5
        assert float(params[name]["kernel"].std()) == pytest.approx((3 * fan_in) ** -0.5, rel=0.1)
    module = Encoder(initial_weights="flax").make(Shapes(struct(28, 28), struct(56)))
    params = jax.device_get(jax.jit(module.init)(KEY, drawn(28, 28)))["params"]
    assert not any(layer["bias"].any() for layer in params.values())
    for name, fan_in in fans.items():
        assert float(params[name]["kernel"].std()) == pytest.approx(fan_in**-0.5, rel=0.1)


def test_forward_mode_agrees_with_float64_central_differences():
    module = build()
    params = variables(module)
    image, tangent = (drawn(9, 9, seed=seed) for seed in range(2))
    answer = jax.jit(lambda image: module.apply(params, image)[0])
    _, found = jax.jvp(answer, (image,), (tangent,))
    moved = lambda step: np.float64(image) + step * np.float64(tangent)
    above, below = (encode_directly(params, moved(step), 2)[0] for step in (1e-6, -1e-6))
    np.testing.assert_allclose(found, (above - below) / 2e-6, rtol=1e-3, atol=1e-4)


def test_the_encoder_of_colours_is_that_of_the_definition():
    """Montero et al. (2022): kernel 4, padding 1, channels of every convolution; by windows."""
    settings = Encoder(kernel=4, channels=(3, 5), hidden=6)
    module = settings.make(Shapes(struct(8, 12, 3), struct(2)))
    image = drawn(8, 12, 3)
    random = np.random.default_rng(0)
    params = jax.tree.map(
        lambda leaf: np.float32(random.normal(size=leaf.shape) * 0.3),
        jax.eval_shape(module.init, KEY, image),
    )
    answer, activations = jax.jit(module.apply)(params, image)
    weights, x = jax.tree.map(np.float64, params["params"]), np.float64(image)
    for index in (1, 2):
        layer, padded = weights[f"conv_{index}"], np.pad(x, [(1, 1), (1, 1), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (4, 4), (0, 1))[::2, ::2]
        x = np.einsum("hwcij,ijco->hwo", windows, layer["kernel"]) + layer["bias"]
        x = np.maximum(x, 0)
        np.testing.assert_allclose(activations[f"layer_{index:02d}"], x, atol=1e-5)
    x = np.maximum(x.ravel() @ weights["hidden"]["kernel"] + weights["hidden"]["bias"], 0)
    expected = x @ weights["answer"]["kernel"] + weights["answer"]["bias"]
    np.testing.assert_allclose(answer, expected, atol=1e-5)


def test_images_too_small_to_halve_are_refused():
    settings = Encoder(kernel=4, channels=(2, 2, 2))
    with pytest.raises(ConfigError, match="both sides must be at least 8, not 7 x 9"):
        settings.make(Shapes(struct(7, 9), struct(2)))
    with pytest.raises(
        ConfigError, match=r"config\.model\.channels=\('a',\): must be positive int"
    ):
        Config(model=Encoder(channels=("a",)))
