"""What all models share, family by family, and the paper's two: convolutions and MLP."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax.config import Config, ConfigError, TrainingConfig, changed
from compgen_jax.models import model
from compgen_jax.models.conv import Conv, RenderCode
from compgen_jax.models.conv_batchnorm import ConvBatchNorm
from compgen_jax.models.encoder import Encoder
from compgen_jax.models.flow import Flow
from compgen_jax.models.lowrank import LowRank
from compgen_jax.models.mlp import MLP
from compgen_jax.models.model import Shapes
from compgen_jax.models.per_factor import Additive, Multiplicative
from compgen_jax.models.pixelwise import Pixelwise
from compgen_jax.models.task_conditioned import Hypernetwork, TaskMLP, TaskTransformer
from compgen_jax.models.transformer import Transformer
from compgen_jax.models.upsampling import Upsampling
from tests.models.shapes import of_image

KEY = jax.random.key(0)


def struct(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def of_task(code, samples=4, inputs=3, outputs=2):
    return Shapes((struct(code), struct(samples, inputs)), struct(samples, outputs))


IMAGE = of_image(16, 8)._replace(parts=(8, 8))
COLOUR = Shapes(struct(6), struct(4, 6, 3), parts=(3, 2, 1))
STUDENT = of_task(5)
FAMILIES = [
    (Conv(depth=3, width=5), IMAGE),
    (MLP(depth=3, width=5), IMAGE),
    (LowRank(depth=2, width=3), IMAGE),
    (LowRank(depth=1, width=2, rank=3, vectors="orthonormal"), IMAGE),
    (Pixelwise(depth=2, width=8), IMAGE),
    (Transformer(depth=1, width=8, heads=2, hidden=6), IMAGE),
    (ConvBatchNorm(width=4), IMAGE),
    (Flow(width=3, steps=3), IMAGE),
    (MLP(depth=1, width=5, activation="tanh"), COLOUR),
    (LowRank(depth=1, width=2, dilations=(2,)), COLOUR),
    (Additive(depth=2, width=5), COLOUR),
    (Multiplicative(depth=1, width=5), COLOUR),
    (Additive(depth=2, width=5), IMAGE),
    (Multiplicative(depth=1, width=5), IMAGE),
    (Upsampling(dense=(5,), channels=(4,)), COLOUR),
    (Upsampling(channels=(4,), batch_norm=True), IMAGE),
    (Encoder(depth=2, width=3, hidden=6), Shapes(struct(9, 9), struct(5))),
    (Encoder(kernel=4, channels=(3, 2), hidden=6), Shapes(struct(9, 8, 3), struct(5))),
    (TaskMLP(depth=2, width=6), STUDENT),
    (TaskTransformer(depth=1, width=8, heads=2), STUDENT),
    (Hypernetwork(width=6), STUDENT),
]


def variables(module, shapes, seed=0):
    """Parameters in general position; variances are positive."""
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes.input)
    random = np.random.default_rng(seed)

    def draw(path, leaf):
        values = random.normal(size=leaf.shape) * 0.4
        return np.float32(values**2 + 0.2 if path[-1].key == "var" else values)

    return jax.tree_util.tree_map_with_path(draw, jax.eval_shape(module.init, KEY, zeros))


@pytest.mark.parametrize(("settings", "shapes"), FAMILIES, ids=lambda each: "")
def test_a_batch_equals_one_by_one_and_models_under_vmap_equal_themselves(settings, shapes):
    module, random = settings.make(shapes), np.random.default_rng(2)
    batch = jax.tree.map(
        lambda s: random.normal(size=(4, *s.shape)).astype(np.float32), shapes.input
    )
    compiled = jax.jit(lambda params, inputs: model.apply(module, params, inputs))
    apply = lambda *given: jax.device_get(compiled(*given))
    params = [variables(module, shapes, seed) for seed in (0, 1)]
    batched = [apply(each, batch) for each in params]
    chex.assert_shape(batched[0][0], (4, *shapes.output.shape))
    names = list(batched[0][1])
    assert names == sorted(names) == [f"layer_{index:02d}" for index in range(len(names))]
    one = jax.jit(module.apply)
    single = [one(params[0], jax.tree.map(lambda leaf, k=k: leaf[k], batch)) for k in range(4)]
    stack = lambda *leaves: np.stack(leaves)
    chex.assert_trees_all_close(batched[0], jax.tree.map(stack, *single), atol=2e-5)
    together = jax.vmap(compiled, (0, None))
    if getattr(module, "batched", False):  # leading axes are carried through
        batch = jax.tree.map(lambda leaf: leaf.reshape(2, 2, *leaf.shape[1:]), batch)
        together = jax.vmap(module.apply, (0, None))
    found = jax.tree.map(
        lambda leaf, like: leaf.reshape(2, *like.shape),
        jax.device_get(jax.jit(together)(jax.tree.map(stack, *params), batch)), batched[0],
    )  # fmt: skip
    chex.assert_trees_all_close(found, jax.tree.map(stack, *batched), atol=5e-5)


@pytest.mark.parametrize(
    ("settings", "shapes", "count"),
    [
        (Conv(depth=2), of_image(56, 28), 307_457),
        (Conv(depth=10), of_image(56, 28), 602_881),
        (Conv(depth=6), of_image(2, 28), 285_825),
        (MLP(depth=2, width=256), of_image(56, 28), 281_872),
        (MLP(depth=7, width=128), of_image(2, 28), 200_592),
        (Pixelwise(depth=2, width=256), of_image(56, 28), 146_435),
        (Pixelwise(depth=4, width=256), of_image(56, 28), 278_021),
        (LowRank(depth=2, width=2), of_image(64, 32), 133_218),
        # 2 factors x 32 tokens x 3 terms x (1 + 32 + 32)
        (LowRank(depth=2, width=2, rank=3), of_image(64, 32), 2 * 32 * 3 * 65 + 98),
        (ConvBatchNorm(), of_image(2, 28), 413_185),
        (ConvBatchNorm(), of_image(1, 28), 406_913),
        (Encoder(), Shapes(struct(28, 28), struct(56)), 362_168),
        (Encoder(), Shapes(struct(28, 28), struct(2)), 355_202),
        (  # 4 x 4 kernels to 4 x 4 x 64, and dense layers
            Encoder(kernel=4, channels=(32, 32, 64, 64), hidden=256),
            Shapes(struct(64, 64, 3), struct(6)),
            1_568 + 16_416 + 32_832 + 65_600 + 262_400 + 1_542,
        ),
        (TaskMLP(depth=2, width=128), of_task(16, 16, 16, 16), 22_800),
        (TaskMLP(depth=4, width=1024), of_task(16, 16, 16, 16), 3_198_992),
        (TaskMLP(depth=4, width=1024), of_task(1600, 16, 16, 16), 4_821_008),  # fewshot
        (Hypernetwork(width=1024), of_task(16, 16, 16, 16), 574_768),
        # theirs has 3,161,104: no biases of a block's dense layers (2,304 each), no last scale
        (
            TaskTransformer(depth=4, width=256, heads=4),
            of_task(16, 16, 16, 16),
            3_161_104 + 4 * 2_304 + 256,
        ),
    ],
)
def test_parameter_counts_are_the_papers_and_the_authors(settings, shapes, count):
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape), shapes.input)
    params = jax.eval_shape(settings.make(shapes).init, KEY, zeros)
    assert model.size(params["params"]) == count


VECTOR, SQUARE, TREE = struct(16), struct(8, 8), {"a": struct(16)}
OF_GREY_IMAGES = [Conv(), Pixelwise(), Transformer(), ConvBatchNorm(), Flow()]
OF_IMAGES = [*OF_GREY_IMAGES, LowRank()]
STUDENTS = [TaskMLP(), TaskTransformer(), Hypernetwork()]
OF_FACTORS = [Additive(), Multiplicative()]
NOT_AN_IMAGE = r"needs one image \(H, W\) or \(H, W, C\) as input, not"
PARTS = "needs a code with a part for each of two or more factors, not 16"
WRONG = [
    *[(each, Shapes(struct(4, 4), SQUARE), "needs a vector as input, not Shape")
      for each in OF_IMAGES + OF_FACTORS],
    *[(each, Shapes(TREE, SQUARE), "needs a vector as input, not {'a'") for each in OF_IMAGES],
    *[(each, Shapes(VECTOR, struct(8)), "draws one image, not ShapeDtype") for each in OF_IMAGES],
    *[(each, Shapes(VECTOR, (SQUARE,)), "draws one image, not") for each in OF_IMAGES],
    *[(each, Shapes(VECTOR, struct(8, 12)), "draws square images, not 8 x 12")
      for each in OF_IMAGES],
    *[(each, of_image(20, 10), "must be divisible by 4, not 10") for each in (Conv(),
      ConvBatchNorm(), Flow())],
    *[(each, of_image(16, 8)._replace(parts=parts), PARTS) for each in OF_FACTORS
      for parts in ((), (16,), (8, 7))],
    (Additive(), Shapes(VECTOR, {"a": struct(3)}, parts=(8, 8)), "gives one array, not {'a': "),
    (MLP(), Shapes(struct(3), {"a": struct(2)}), "gives one array, not {'a': "),
    (LowRank(), of_image(24, 8), "its input has 16 numbers, not 24"),  # a third factor
    (Upsampling(), Shapes(SQUARE, SQUARE), "needs a vector as input, not Shape"),
    (Upsampling(), Shapes(VECTOR, struct(8)), "draws one image, not ShapeDtype"),
    (Upsampling(), of_image(16, 12), "divisible by 8, not 12 x 12"),
    (Encoder(), Shapes(VECTOR, struct(5)), NOT_AN_IMAGE),
    (Encoder(), Shapes({"a": SQUARE}, struct(5)), NOT_AN_IMAGE),
    *[(each, Shapes(VECTOR, struct(8, 8, 3)), "draws one image, not ShapeDtype")
      for each in OF_GREY_IMAGES],
    (Encoder(), Shapes(SQUARE, SQUARE), "gives one vector, not ShapeDtypeStruct"),
    *[(each, shapes, "needs a task's code .* and inputs .* and answers") for each in STUDENTS
      for shapes in (
          Shapes(struct(5), struct(3)),
          Shapes((struct(6, 4), struct(5)), struct(6, 3)),
          Shapes((struct(5), struct(6, 4)), struct(6)),
          Shapes((struct(5), struct(6, 4)), {"a": struct(6, 3)}),
      )],
]  # fmt: skip


def test_shapes_that_do_not_fit_are_refused_in_one_line():
    for settings, shapes, message in WRONG:
        with pytest.raises(ConfigError, match=message) as error:
            settings.make(shapes)
        text = str(error.value)
        assert f"config.model.name={settings.name!r}: " in text and "\n" not in text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Pixelwise(width=18), r"config\.model\.width=18: must be divisible by 4"),
        (Transformer(width=6, heads=2), r"config\.model\.width=6: must be divisible by 4"),
        (Transformer(width=8, heads=3), r"config\.model\.width=8: must be a multiple of .*heads=3"),
        (Transformer(dropout=1.0), r"config\.model\.dropout=1\.0: must be at least 0 and at most"),
        (Transformer(depth=25), r"config\.model\.depth=25: must be at least 1 and at most 24"),
        (ConvBatchNorm(width=7), r"config\.model\.width=7: must be even for"),
        (TaskTransformer(width=12, heads=4), r"config\.model\.width=12: must be a multiple of"),
        (LowRank(), r"config\.task\.code\.name='bump': must be 'onehot' for lowrank"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_one_line(settings, message):
    with pytest.raises(ConfigError, match=message) as error:
        Config(model=settings)
    assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match=r"config\.model\.rank=9: must be at most the grid's"):
        LowRank(rank=9).make(of_image(16, 8))


def test_bfloat16_is_for_models_with_convolutions(tiny):
    half = TrainingConfig(precision="bfloat16")
    for settings in (MLP(), Pixelwise(), Additive(), Encoder()):
        with pytest.raises(ConfigError, match="precision='bfloat16': is for convolutions, which"):
            Config(model=settings, training=half)
    for settings in (Conv(depth=2), LowRank()):
        task = changed(tiny, {"task.code.name": "onehot"}).task
        assert Config(task=task, model=settings, training=half).model == settings


# --- the convolutions ------------------------------------------------------------------------


@functools.cache
def conv(lowering="gemm", depth=3):
    return Conv(width=5, depth=depth).make(of_image(6, 8, lowering))


def test_layers_of_convolutions_have_their_sides():
    decoder = Conv(width=3, depth=4).make(of_image(24, 12))
    code = np.ones(24, np.float32)
    image, activations = jax.device_get(jax.jit(decoder.init_with_output)(KEY, code)[0])
    chex.assert_shape(image, (12, 12))
    np.testing.assert_array_equal(activations["layer_00"], np.ones(24))
    for layer, side in zip(list(activations.values())[1:], (3, 6, 12, 12, 12), strict=True):
        chex.assert_shape(layer, (side, side, 3))
        assert (layer >= 0).all()


def test_forward_mode_goes_through_every_layer():
    """The tangent through the whole decoder agrees with central differences."""
    code, tangent = jax.random.normal(KEY, (2, 6))
    params = jax.jit(conv().init)(KEY, code)
    evaluate = jax.jit(lambda t: conv().apply(params, code + t * tangent))
    (_, layers), (image_tangent, layer_tangents) = jax.jvp(evaluate, (0.0,), (1.0,))
    step = 1e-2
    (above, _), (below, _) = evaluate(step), evaluate(-step)
    np.testing.assert_allclose(image_tangent, (above - below) / (2 * step), atol=2e-3)
    assert layer_tangents.keys() == layers.keys()
    assert all(np.any(np.asarray(leaf)) for leaf in layer_tangents.values())


def test_render_code_is_flax_conv_transpose_of_a_point():
    code = jax.random.normal(KEY, (5, 6))
    ours, flax = RenderCode(4, 3, "flax"), nn.ConvTranspose(4, (3, 3), padding="VALID")
    params = jax.jit(ours.init)(KEY, code)
    found, expected = (jax.jit(layer.apply) for layer in (ours, flax))
    code = np.asarray(code)
    np.testing.assert_allclose(
        found(params, code), expected(params, code[:, None, None, :]), atol=1e-5
    )


def test_initial_weights_follow_torch_bounds_or_flax_variance():

    def init(settings):
        module = settings.make(of_image(56, 28))
        return jax.device_get(jax.jit(module.init)(KEY, np.zeros(56, np.float32)))

    torch_like = init(Conv(depth=3))["params"]
    fans = {"render": 64 * 49, "hidden_1": 64 * 16, "hidden_3": 64 * 9, "image": 9}
    for name, fan_in in fans.items():
        for leaf in torch_like[name].values():  # kernel and bias share the bound
            assert np.abs(leaf).max() <= fan_in**-0.5
        kernel = torch_like[name]["kernel"]
        assert float(kernel.std()) == pytest.approx((3 * fan_in) ** -0.5, rel=0.1)
    flax_like = init(Conv(depth=3, initial_weights="flax"))["params"]
    assert not any(layer["bias"].any() for layer in flax_like.values())
    assert float(flax_like["render"]["kernel"].std()) == pytest.approx((56 * 49) ** -0.5, rel=0.05)
    mlp = init(MLP(width=32, depth=2))["params"]["hidden_1"]
    assert np.abs(mlp["bias"]).max() <= 56**-0.5 and mlp["bias"].any()


def test_same_function_as_torch():
    """The whole decoder against PyTorch's own layers with the same parameters."""
    torch = pytest.importorskip("torch")
    code = np.asarray(jax.random.normal(KEY, (2, 6)))
    params = jax.jit(conv().init)(KEY, code)["params"]
    x = torch.tensor(code)[:, :, None, None]
    for name, stride, padding in (
        ("render", 1, 0), ("hidden_1", 2, 1), ("hidden_2", 2, 1), ("hidden_3", 1, 1),
        ("image", 1, 1),
    ):  # fmt: skip
        # Flax's kernel (k, k, in, out) is torch's (in, out, k, k), flipped in space
        kernel = np.asarray(params[name]["kernel"])[::-1, ::-1].transpose(2, 3, 0, 1)
        x = torch.nn.functional.conv_transpose2d(
            x, torch.tensor(kernel.copy()), torch.tensor(np.asarray(params[name]["bias"])),
            stride=stride, padding=padding,
        )  # fmt: skip
        x = x if name == "image" else torch.relu(x)
    image, _ = jax.jit(conv().apply)({"params": params}, code)
    np.testing.assert_allclose(image, x[:, 0].numpy(), atol=1e-5)


def test_parts_of_unequal_lengths_are_padded_each_at_its_end():
    """A code of 8 + 3 + 1 numbers in the decoder of codes of 12 + 5 + 1."""
    parts, parts_like, settings = (8, 3, 1), (12, 5, 1), Conv(depth=2, width=3)
    small, large = settings.make(of_image(12, 8)), settings.make(of_image(18, 12))
    params = jax.device_get(jax.jit(small.init)(KEY, np.zeros(12, np.float32)))
    params = jax.tree.map(lambda leaf: leaf + np.float32(0.1), params)
    like = jax.eval_shape(large.init, KEY, struct(18))
    padded = jax.device_get(settings.pad_params(params, like, parts, parts_like))
    chex.assert_trees_all_equal_shapes(padded, like)
    kernel, own = padded["params"]["render"]["kernel"], params["params"]["render"]["kernel"]
    for start, start_like, length in ((0, 0, 8), (8, 12, 3), (11, 17, 1)):
        np.testing.assert_array_equal(
            kernel[1:, 1:, start_like : start_like + length], own[:, :, start : start + length]
        )
    assert not kernel[:1].any() and not kernel[:, :1].any()
    assert not kernel[:, :, 8:12].any() and not kernel[:, :, 15:17].any()
    code = np.float32(np.random.default_rng(0).normal(size=12))
    wide = np.insert(code, [8] * 4 + [11] * 2, 0)
    image = np.asarray(jax.jit(large.apply)(padded, wide, np.int32(8))[0])
    np.testing.assert_allclose(image[:8, :8], jax.jit(small.apply)(params, code)[0], atol=1e-5)
    assert not image[8:].any() and not image[:, 8:].any()


# --- the MLP ---------------------------------------------------------------------------------

INPUTS = {"image": struct(3, 4), "label": struct(2, dtype=jnp.int32), "scalar": struct()}


@pytest.mark.parametrize(("inputs", "output"), [(struct(2, 5), ()), (INPUTS, (2, 3, 4))])
def test_an_mlp_maps_any_input_to_any_array(inputs, output):
    module = MLP(depth=2, width=6).make(Shapes(inputs, struct(*output)))
    generator = np.random.default_rng(0)
    batch = jax.tree.map(
        lambda s: (generator.normal(size=(3, *s.shape)) * 4).astype(s.dtype), inputs
    )
    one = jax.tree.map(lambda leaf: leaf[1], batch)
    params = jax.jit(module.init)(KEY, one)
    found, activations = jax.jit(lambda p, x: model.apply(module, p, x))(params, batch)
    chex.assert_shape(found, (3, *output))
    weights = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params["params"])
    h = np.concatenate([np.ravel(leaf).astype(float) for leaf in jax.tree.leaves(one)])
    np.testing.assert_allclose(activations["layer_00"][1], h, rtol=1e-6)
    for name in ("hidden_1", "hidden_2"):
        h = np.maximum(h @ weights[name]["kernel"] + weights[name]["bias"], 0)
    np.testing.assert_allclose(activations["layer_02"][1], h, atol=1e-5)
    expected = h @ weights["image"]["kernel"] + weights["image"]["bias"]
    np.testing.assert_allclose(found[1], expected.reshape(output), atol=1e-5)


def test_entries_of_a_pytree():
    assert model.size(INPUTS) == 12 + 2 + 1 and model.size(struct(3, 4)) == 12
    np.testing.assert_array_equal(
        model.vector({"b": np.ones((2, 2)), "a": np.int32(3)}), [3, 1, 1, 1, 1]
    )
