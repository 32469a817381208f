import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax import models
from compgen_jax.config import DecoderConfig
from compgen_jax.models.conv import RenderCode

KEY = jax.random.key(0)


def build(name, grid, width, depth, lowering="gemm", initial_weights="torch"):
    config = DecoderConfig(name=name, width=width, depth=depth, initial_weights=initial_weights)
    return models.build(config, grid, lowering)


@pytest.mark.parametrize(
    ("name", "code_length", "width", "depth", "count"),
    [
        ("conv", 56, 64, 2, 307_457),
        ("conv", 56, 64, 4, 381_313),
        ("conv", 56, 64, 10, 602_881),
        ("conv", 2, 64, 6, 285_825),
        ("mlp", 56, 256, 2, 281_872),
        ("mlp", 56, 256, 3, 347_664),
        ("mlp", 2, 128, 7, 200_592),
    ],
)
def test_parameter_counts_are_the_papers(name, code_length, width, depth, count):
    decoder = build(name, 28, width, depth)
    params = jax.eval_shape(decoder.init, KEY, jnp.zeros(code_length))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == count


@pytest.mark.parametrize(("grid", "depth"), [(8, 2), (12, 3), (16, 5)])
def test_conv_layers_are_named_in_order_with_their_shapes(grid, depth):
    decoder = build("conv", grid, 3, depth)
    code = jnp.arange(2.0 * grid)
    params = decoder.init(KEY, code)
    image, activations = decoder.apply(params, code)
    chex.assert_shape(image, (grid, grid))
    assert list(activations) == sorted(activations) and len(activations) == depth + 2
    np.testing.assert_array_equal(activations["layer_00"], code)
    sides = [grid // 4, grid // 2, grid] + [grid] * (depth - 2)
    for index, side in enumerate(sides, start=1):
        layer = activations[f"layer_{index:02d}"]
        chex.assert_shape(layer, (side, side, 3))
        assert (layer >= 0).all()


def test_ten_layers_stay_in_order_through_jit():
    decoder = build("mlp", 8, 4, 10)
    params = decoder.init(KEY, jnp.zeros(2))
    _, activations = jax.jit(decoder.apply)(params, jnp.zeros(2))
    assert list(activations) == [f"layer_{index:02d}" for index in range(11)]


@pytest.mark.parametrize("name", ["conv", "mlp"])
def test_a_batch_equals_one_by_one(name):
    decoder = build(name, 8, 5, 3)
    codes = jax.random.normal(KEY, (2, 3, 16))
    params = decoder.init(KEY, codes[0, 0])
    batched, activations = decoder.apply(params, codes)
    single, layers = jax.vmap(jax.vmap(lambda code: decoder.apply(params, code)))(codes)
    chex.assert_trees_all_close((batched, activations), (single, layers), atol=1e-5)


def test_decoders_agree_whatever_the_lowering():
    code = jax.random.normal(KEY, (4, 16))
    params = build("conv", 8, 6, 4).init(KEY, code)
    images = [
        build("conv", 8, 6, 4, name).apply(params, code)[0] for name in ("lax", "gemm", "winograd")
    ]
    chex.assert_trees_all_close(images[0], images[1], images[2], atol=1e-5)


def test_forward_mode_goes_through_every_layer():
    """jacfwd through the whole decoder agrees with central differences."""
    decoder = build("conv", 8, 4, 3, "gemm")
    code = jax.random.normal(KEY, (6,))
    params = decoder.init(KEY, code)
    tangent = jax.random.normal(jax.random.key(1), (6,))
    evaluate = lambda t: decoder.apply(params, code + t * tangent)
    (_, layers), (image_tangent, layer_tangents) = jax.jvp(evaluate, (0.0,), (1.0,))
    step = 1e-2
    (above, _), (below, _) = evaluate(step), evaluate(-step)
    np.testing.assert_allclose(image_tangent, (above - below) / (2 * step), atol=2e-3)
    assert layer_tangents.keys() == layers.keys()
    assert all(jnp.any(leaf != 0) for leaf in layer_tangents.values())


def test_render_code_is_flax_conv_transpose_of_a_point():
    code = jax.random.normal(KEY, (5, 6))
    ours, flax = RenderCode(4, 3, "flax"), nn.ConvTranspose(4, (3, 3), padding="VALID")
    params = ours.init(KEY, code)
    np.testing.assert_allclose(
        ours.apply(params, code), flax.apply(params, code[:, None, None, :]), atol=1e-5
    )


def test_initial_weights_follow_torch_bounds_or_flax_variance():
    code = jnp.zeros(56)
    torch_like = build("conv", 28, 64, 3).init(KEY, code)["params"]
    for name, fan_in in {
        "render": 64 * 49,
        "hidden_1": 64 * 16,
        "hidden_3": 64 * 9,
        "image": 9,
    }.items():
        for leaf in torch_like[name].values():  # kernel and bias share the bound
            assert float(jnp.abs(leaf).max()) <= fan_in**-0.5
        kernel = torch_like[name]["kernel"]
        assert float(kernel.std()) == pytest.approx((3 * fan_in) ** -0.5, rel=0.1)
    flax_like = build("conv", 28, 64, 3, initial_weights="flax").init(KEY, code)["params"]
    assert not any(layer["bias"].any() for layer in flax_like.values())
    assert float(flax_like["render"]["kernel"].std()) == pytest.approx((56 * 49) ** -0.5, rel=0.05)
    mlp = build("mlp", 8, 32, 2).init(KEY, code)["params"]["hidden_1"]
    assert float(jnp.abs(mlp["bias"]).max()) <= 56**-0.5 and mlp["bias"].any()


def test_same_function_as_torch():
    """The whole decoder against PyTorch's own layers with the same parameters."""
    torch = pytest.importorskip("torch")
    decoder = build("conv", 8, 5, 3)
    code = np.asarray(jax.random.normal(KEY, (2, 7)))
    params = decoder.init(KEY, code)["params"]
    settings = {
        "render": (1, 0),
        "hidden_1": (2, 1),
        "hidden_2": (2, 1),
        "hidden_3": (1, 1),
        "image": (1, 1),
    }
    x = torch.tensor(code)[:, :, None, None]
    for name, (stride, padding) in settings.items():
        # Flax's kernel (k, k, in, out) is torch's (in, out, k, k), flipped in space
        kernel = np.asarray(params[name]["kernel"])[::-1, ::-1].transpose(2, 3, 0, 1)
        x = torch.nn.functional.conv_transpose2d(
            x, torch.tensor(kernel.copy()), torch.tensor(np.asarray(params[name]["bias"])),
            stride=stride, padding=padding,
        )  # fmt: skip
        x = x if name == "image" else torch.relu(x)
    image, _ = decoder.apply({"params": params}, code)
    np.testing.assert_allclose(image, x[:, 0].numpy(), atol=1e-5)
