import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax.config import Config, ConfigError, changed
from compgen_jax.models import model
from compgen_jax.models.conv import Conv, RenderCode, pad_params
from compgen_jax.models.lowrank import LowRank
from compgen_jax.models.mlp import MLP
from compgen_jax.models.model import Shapes
from compgen_jax.models.pixelwise import Pixelwise
from tests.models.shapes import of_image

KEY = jax.random.key(0)


def build(name, grid, width, depth, lowering="gemm", initial_weights="torch", length=0):
    kind = {"conv": Conv, "mlp": MLP}[name]
    settings = kind(width=width, depth=depth, initial_weights=initial_weights)
    return settings.make(of_image(length or 2 * grid, grid, lowering))


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


FAMILIES = [Conv(depth=3, width=5), MLP(depth=3, width=5), LowRank(depth=2, width=3),
            Pixelwise(depth=2, width=8)]  # fmt: skip


@pytest.mark.parametrize("settings", FAMILIES, ids=lambda settings: settings.name)
def test_a_batch_equals_one_by_one(settings):
    """Also where the module carries leading axes through, which `apply` then gives it."""
    module = settings.make(of_image(16, 8))
    codes = jax.random.normal(KEY, (5, 16))
    params = module.init(KEY, codes[0])
    batched, activations = jax.jit(lambda p, c: model.apply(module, p, c))(params, codes)
    chex.assert_shape(batched, (5, 8, 8))
    single = [module.apply(params, code) for code in codes]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *single)
    chex.assert_trees_all_close((batched, activations), stacked, atol=1e-5)
    if getattr(module, "batched", False):
        shaped, _ = module.apply(params, codes[:4].reshape(2, 2, 16))
        np.testing.assert_allclose(shaped.reshape(4, 8, 8), batched[:4], atol=1e-5)


def test_decoders_agree_whatever_the_lowering():
    code = jax.random.normal(KEY, (4, 16))
    params = build("conv", 8, 6, 4).init(KEY, code)
    images = [
        build("conv", 8, 6, 4, name).apply(params, code)[0] for name in ("lax", "gemm", "winograd")
    ]
    chex.assert_trees_all_close(images[0], images[1], images[2], atol=1e-5)


def test_forward_mode_goes_through_every_layer():
    """jacfwd through the whole decoder agrees with central differences."""
    decoder = build("conv", 8, 4, 3, "gemm", length=6)
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


# --- any input and output --------------------------------------------------------------------


def struct(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


INPUTS = {"image": struct(3, 4), "label": struct(2, dtype=jnp.int32), "scalar": struct()}


@pytest.mark.parametrize("output", [(), (5,), (2, 3, 4)])
@pytest.mark.parametrize(
    "inputs", [struct(7), struct(2, 5), INPUTS], ids=["vector", "matrix", "all"]
)
def test_an_mlp_maps_any_input_to_any_array(inputs, output):
    module = MLP(depth=2, width=6).make(Shapes(inputs, struct(*output)))
    generator = np.random.default_rng(0)
    batch = jax.tree.map(
        lambda s: jnp.asarray(generator.normal(size=(3, *s.shape)) * 4).astype(s.dtype), inputs
    )
    one = jax.tree.map(lambda leaf: leaf[1], batch)
    params = module.init(KEY, one)
    found, activations = model.apply(module, params, batch)
    chex.assert_shape(found, (3, *output))
    weights = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params["params"])
    h = np.concatenate([np.ravel(leaf).astype(float) for leaf in jax.tree.leaves(one)])
    np.testing.assert_allclose(activations["layer_00"][1], h, rtol=1e-6)
    for name in ("hidden_1", "hidden_2"):
        h = np.maximum(h @ weights[name]["kernel"] + weights[name]["bias"], 0)
    np.testing.assert_allclose(activations["layer_02"][1], h, atol=1e-5)
    expected = h @ weights["image"]["kernel"] + weights["image"]["bias"]
    np.testing.assert_allclose(found[1], expected.reshape(output), atol=1e-5)


def test_an_mlp_gives_one_array():
    with pytest.raises(ConfigError, match="name='mlp': gives one array, not {'a': ") as error:
        MLP().make(Shapes(struct(3), {"a": struct(2)}))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("settings", [FAMILIES[0], *FAMILIES[2:]], ids=lambda s: s.name)
@pytest.mark.parametrize(
    ("inputs", "output", "message"),
    [
        (struct(4, 4), struct(8, 8), "needs a vector as input, not ShapeDtypeStruct"),
        ({"a": struct(16)}, struct(8, 8), "needs a vector as input, not {'a'"),
        (struct(16), struct(8), "draws one image, not ShapeDtypeStruct"),
        (struct(16), struct(8, 8, 3), "draws one image, not"),
        (struct(16), (struct(8, 8),), "draws one image, not"),
        (struct(16), struct(8, 12), "draws square images, not 8 x 12"),
    ],
)
def test_decoders_of_images_refuse_other_shapes_in_one_line(settings, inputs, output, message):
    with pytest.raises(ConfigError, match=message) as error:
        settings.make(Shapes(inputs, output))
    assert f"config.model.name={settings.name!r}: " in str(error.value)
    assert "\n" not in str(error.value)


def test_conv_doubles_its_side_twice():
    with pytest.raises(ConfigError, match="must be divisible by 4, not 10"):
        Conv().make(of_image(20, 10))
    Pixelwise().make(of_image(20, 10))


def test_parts_of_unequal_lengths_are_padded_each_at_its_end():
    """A code of 8 + 3 + 1 numbers in the decoder of codes of 12 + 5 + 1."""
    parts, parts_like, settings = (8, 3, 1), (12, 5, 1), Conv(depth=2, width=3)
    small, large = settings.make(of_image(12, 8)), settings.make(of_image(18, 12))
    params = jax.tree.map(lambda leaf: leaf + 0.1, small.init(KEY, jnp.zeros(12)))
    like = jax.eval_shape(large.init, KEY, struct(18))
    padded = settings.pad_params(params, like, parts, parts_like)
    chex.assert_trees_all_equal_shapes(padded, like)
    chex.assert_trees_all_equal(padded, pad_params(params, like, parts, parts_like))
    kernel, own = padded["params"]["render"]["kernel"], params["params"]["render"]["kernel"]
    for start, start_like, length in ((0, 0, 8), (8, 12, 3), (11, 17, 1)):
        np.testing.assert_array_equal(
            kernel[1:, 1:, start_like : start_like + length], own[:, :, start : start + length]
        )
    assert not kernel[:1].any() and not kernel[:, :1].any()
    assert not kernel[:, :, 8:12].any() and not kernel[:, :, 15:17].any()
    code = jax.random.normal(KEY, (12,))
    wide = jnp.concatenate([code[:8], jnp.zeros(4), code[8:11], jnp.zeros(2), code[11:]])
    image, _ = large.apply(padded, wide, jnp.int32(8))
    np.testing.assert_allclose(image[:8, :8], small.apply(params, code)[0], atol=1e-5)
    assert not image[8:].any() and not image[:, 8:].any()


def test_precision_is_for_models_with_convolutions(tiny):
    for name, message in (("mlp", "config.model.name='mlp' has not"),
                          ("pixelwise", "config.model.name='pixelwise' has not")):  # fmt: skip
        with pytest.raises(ConfigError, match=message):
            changed(tiny, {"model.name": name, "training.precision": "bfloat16"})
    for settings in (Conv(depth=2), LowRank()):
        task = changed(tiny, {"task.code.name": "onehot"}).task
        config = Config(task=task, model=settings)
        assert changed(config, {"training.precision": "bfloat16"}).model == settings


def test_numbers_of_a_pytree_of_shapes():
    assert model.size(INPUTS) == 12 + 2 + 1 and model.size(struct(3, 4)) == 12
    np.testing.assert_array_equal(
        model.vector({"b": np.ones((2, 2)), "a": np.int32(3)}), [3, 1, 1, 1, 1]
    )
