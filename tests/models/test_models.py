"""What all models share, family by family: one function for batches and models under vmap, that of
its definition, its gradients, its parameters, and what it refuses."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError, TrainingConfig
from compgen_jax.models import model
from compgen_jax.models.conv import Conv
from compgen_jax.models.encoder import Encoder
from compgen_jax.models.flow import Flow
from compgen_jax.models.lowrank import LowRank, PenaltyConfig
from compgen_jax.models.mlp import MLP, Additive, Multiplicative
from compgen_jax.models.model import Shapes
from compgen_jax.models.pixelwise import Pixelwise
from compgen_jax.models.task_conditioned import Hypernetwork, TaskMLP, TaskTransformer
from compgen_jax.models.transformer import Transformer
from compgen_jax.models.upsampling import ConvBatchNorm, Upsampling
from compgen_jax.settings import FAMILIES as REGISTERED
from compgen_jax.tasks.sprites import Sprites
from tests.command import refused
from tests.models.oracles import KEY, check_slope, decode, draw_inputs, of_image, struct, variables


def of_task(code, samples=4, inputs=3, outputs=2, dtype=jnp.float32):
    return Shapes((struct(code, dtype=dtype), struct(samples, inputs)), struct(samples, outputs))


IMAGE = of_image(16, 8)._replace(parts=(8, 8))
COLOUR = Shapes(struct(6), struct(4, 6, 3), parts=(3, 2, 1))
STUDENT = of_task(5)
TREE_INPUT = {"image": struct(3, 4), "label": struct(2, dtype=jnp.int32), "scalar": struct()}
FAMILIES = [
    (Conv(depth=3, width=5), IMAGE),
    (Conv(depth=3, width=4, coordinates=True, broadcast=True), IMAGE),
    (Conv(depth=3, width=4, mixes=False, doublings=0), IMAGE),
    (Conv(depth=3, width=4, broadcast=True, sines=True, activation="prelu", doublings=1), IMAGE),
    (MLP(depth=3, width=5), IMAGE),
    (MLP(depth=2, width=6), Shapes(TREE_INPUT, struct(2, 3, 4))),
    (MLP(depth=2, width=6), Shapes(struct(2, 5), struct())),
    (LowRank(depth=2, width=3), IMAGE),
    (Pixelwise(depth=2, width=8), IMAGE),
    (Pixelwise(depth=2, width=4, shared=False, kernel=3), IMAGE),
    (Pixelwise(depth=2, width=4, apart=(1, 3)), IMAGE),
    (Transformer(depth=2, width=8, heads=2, hidden=6), of_image(6, 4)),
    (ConvBatchNorm(width=4), IMAGE),
    (Flow(width=3, steps=3), IMAGE),
    (LowRank(depth=2, width=2, dilations=(1, 2)), COLOUR),
    (Multiplicative(depth=1, width=5, terms=3), COLOUR),
    (Additive(depth=2, width=5), IMAGE),
    (Upsampling(dense=(7, 6), channels=(4, 5)), Shapes(struct(3), struct(8, 12, 3))),
    (Upsampling(dense=(5,), channels=(4,)), IMAGE),
    (Encoder(depth=2, width=3, hidden=6), Shapes(struct(9, 9), struct(5))),
    (Encoder(depth=1, width=2, hidden=6), Shapes(struct(9, 8, 3), struct(5))),
    (TaskMLP(depth=3, width=6), STUDENT),
    (TaskTransformer(depth=2, width=16, heads=2), STUDENT),
    (Hypernetwork(width=6), STUDENT),
    (TaskTransformer(depth=1, width=8, heads=2), of_task(5, dtype=jnp.int32)),
]
of_families = pytest.mark.parametrize(("settings", "shapes"), FAMILIES, ids=lambda each: "")


def test_every_family_is_here():
    assert {settings.name for settings, _ in FAMILIES} == {*REGISTERED["model"]}


@of_families
def test_output_layers_and_gradients_are_those_of_the_definition(settings, shapes):
    """Gradients along a random direction of all parameters, by differences in float64."""
    module, inputs = settings.make(shapes), draw_inputs(shapes)
    own, direction = (variables(module, shapes, seed) for seed in (0, 1))
    target = np.random.default_rng(3).normal(size=shapes.output.shape).astype("f4")

    @jax.jit
    def run(params):
        output, layers = module.apply({**own, "params": params}, inputs)
        return jnp.sum(target * output), (output, layers)

    (_, (output, layers)), gradient = jax.jit(jax.value_and_grad(run, has_aux=True))(own["params"])
    expected, expected_layers = decode(settings, own, inputs, shapes)
    scale = 2e-5 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(output, expected, atol=scale, rtol=1e-4)
    behind = list(layers.values())[-len(expected_layers) :]
    assert len(layers) - len(expected_layers) in (0, 1)
    for layer, one in zip(behind, expected_layers, strict=True):
        np.testing.assert_allclose(layer, one, atol=3e-5, rtol=1e-4)

    def value(params):
        return np.sum(target * decode(settings, {**own, "params": params}, inputs, shapes)[0])

    check_slope(gradient, value, own["params"], direction["params"])


@of_families
def test_a_batch_equals_one_by_one_and_models_under_vmap_equal_themselves(settings, shapes):
    module, batch = settings.make(shapes), draw_inputs(shapes, 4)
    compiled = jax.jit(lambda params, inputs: settings.apply(module, params, inputs))
    params = [variables(module, shapes, seed) for seed in (0, 1)]
    batched = [jax.device_get(compiled(each, batch)) for each in params]
    chex.assert_shape(batched[0][0], (4, *shapes.output.shape))
    names = list(batched[0][1])
    assert names == sorted(names) == [f"layer_{index:02d}" for index in range(len(names))]
    one = jax.jit(module.apply)
    single = [one(params[0], jax.tree.map(lambda leaf, k=k: leaf[k], batch)) for k in range(4)]
    stack = lambda *leaves: np.stack(leaves)
    chex.assert_trees_all_close(batched[0], jax.tree.map(stack, *single), atol=2e-5)
    together = jax.vmap(compiled, (0, None))
    if settings.batched:  # leading axes are carried through
        batch = jax.tree.map(lambda leaf: leaf.reshape(2, 2, *leaf.shape[1:]), batch)
        together = jax.vmap(module.apply, (0, None))
    expected = jax.tree.map(stack, *batched)
    found = jax.jit(together)(jax.tree.map(stack, *params), batch)
    found = jax.tree.map(lambda leaf, like: leaf.reshape(like.shape), found, expected)
    chex.assert_trees_all_close(found, expected, atol=5e-5)


@pytest.mark.parametrize(
    ("settings", "shapes", "count"),
    [
        (Conv(depth=10), of_image(56, 28), 602_881),
        (MLP(depth=2, width=256), of_image(56, 28), 281_872),
        (LowRank(depth=2, width=2), of_image(64, 32)._replace(parts=(32, 32)), 133_218),
        (ConvBatchNorm(), of_image(2, 28), 413_185),
        (Encoder(), Shapes(struct(28, 28), struct(56)), 362_168),
        (Upsampling(channels=(32,) * 4), of_image(5, 64), 182_881),
        (Transformer(depth=2), of_image(56, 4), 1_193_473),
        (TaskMLP(depth=4, width=1024), of_task(16, 16, 16, 16), 3_198_992),
        (Hypernetwork(width=1024), of_task(16, 16, 16, 16), 574_768),
        # theirs has 3,161,104: no biases of a block's dense layers (2,304 each), no last scale
        (TaskTransformer(4, 256, 4), of_task(16, 16, 16, 16), 3_161_104 + 4 * 2_304 + 256),
    ],
)
def test_parameter_counts_are_the_papers_and_the_authors(settings, shapes, count):
    params = jax.eval_shape(settings.make(shapes).init, KEY, shapes.input)
    assert model.size(params["params"]) == count


VECTOR, SQUARE, TREE = struct(16), struct(8, 8), {"a": struct(16)}
OF_IMAGES = [Conv(), Pixelwise(), Transformer(), ConvBatchNorm(), Flow()]
STUDENTS = [TaskMLP(), TaskTransformer(), Hypernetwork()]
OF_FACTORS = [Additive(), Multiplicative()]
NOT_AN_IMAGE = r"needs one image \(H, W\) or \(H, W, C\) as input, not"
PARTS = "needs a code with a part for each of two or more factors, not 16"
WRONG = [
    *[(each, Shapes(struct(4, 4), SQUARE), "needs a vector as input, not Shape")
      for each in [*OF_IMAGES, LowRank(), *OF_FACTORS]],
    *[(each, Shapes(VECTOR, struct(8, 12)), "draws square images of a side divisible by ., not 8")
      for each in OF_IMAGES],
    *[(each, Shapes(VECTOR, struct(8, 8, 3)), "draws one image, not ShapeDtype")
      for each in OF_IMAGES],
    *[(Pixelwise(apart=apart), of_image(20, 8), "must be empty, or a block's first and last row")
      for apart in ((3, 8), (3, 2), (3,))],
    (Pixelwise(width=18), IMAGE, "model.width=18: must be divisible by 4"),
    (Transformer(width=8, heads=3), IMAGE, "model.width=8: must be divisible by 12"),
    (ConvBatchNorm(width=7), IMAGE, "model.width=7: must be divisible by 2"),
    (Upsampling(channels=("a",)), IMAGE, "must be positive integers"),
    *[(each, of_image(20, 10), "divisible by 4, not 10") for each in (Conv(), ConvBatchNorm(),
      Flow())],
    *[(each, of_image(16, 8)._replace(parts=(8, 7)), PARTS) for each in [LowRank(), *OF_FACTORS]],
    *[(LowRank(penalty=PenaltyConfig(axes=axes)), IMAGE, "a factor, each once, from 0 to 1")
      for axes in ((("posX", "rows"),), ((0, "rows"), (0, "none")), ((2, "rows"),))],
    *[(LowRank(depth=2, dilations=dilations), IMAGE, "must divide 8 and 8, one for each of the 2")
      for dilations in ((1, 2, 4), (1, 3), (1, "a"))],
    (MLP(), Shapes(struct(3), TREE), "gives one array, not {'a': "),
    (Upsampling(), of_image(16, 12), "divisible by 8, not 12 x 12"),
    (Encoder(), Shapes(VECTOR, struct(5)), NOT_AN_IMAGE),
    (Encoder(), Shapes(SQUARE, SQUARE), "gives one vector, not ShapeDtypeStruct"),
    *[(each, Shapes(struct(5), struct(3)), "needs a task's code .* and inputs .* and answers")
      for each in STUDENTS]
]  # fmt: skip


REFUSED = [
    ({"model": LowRank()}, "task.code=['bump']: must be 'onehot' for lowrank"),
    ({"model": Upsampling(layout="big")}, "model.layout='big': must be one of small, kim"),
    ({"task": Sprites(loss="bernoulli"), "model": Flow(), "training": TrainingConfig(steps=1)},
     "task.loss='bernoulli': says logits"),
    ({"model": MLP(), "training": TrainingConfig(precision="bfloat16")},
     "precision='bfloat16': is for convolutions, which")
]  # fmt: skip


def test_what_does_not_fit_is_refused_in_one_line():
    for settings, shapes, message in WRONG:
        with pytest.raises(ConfigError, match=message) as error:
            settings.make(shapes)
        assert "config.model." in str(error.value) and "\n" not in str(error.value)
    for groups, message in REFUSED:
        with refused("config.", message, kind=ConfigError):
            Config(**groups)


@pytest.mark.parametrize(("parts", "terms"), [((6, 6), 1), ((5, 3, 2), 3)])
def test_products_of_factors_sum_to_one_at_the_start_but_for_the_kernels(parts, terms):
    """So that no factor's gradient vanishes."""
    shapes = Shapes(struct(sum(parts)), struct(4, 4), parts=parts)
    module, code = Multiplicative(width=32, terms=terms).make(shapes), draw_inputs(shapes)
    params = jax.jit(module.init)(KEY, code)["params"]
    bare = jax.tree_util.tree_map_with_path(
        lambda path, leaf: 0 * leaf if path[-1].key == "kernel" else leaf, params
    )
    image = lambda params: module.apply({"params": params}, code)[0]
    assert not params["bias"].any()
    np.testing.assert_allclose(jax.jit(image)(bare), 1, rtol=1e-5)
    gradient = jax.jit(jax.grad(lambda params: jnp.sum(image(params))))(params)
    share = terms ** (1 / len(parts) - 1)  # the product of the others' constants
    for factor in range(1, len(parts) + 1):
        found = gradient[f"factor_{factor}"]["maps"]["bias"]
        assert float(found.mean()) == pytest.approx(share, rel=0.5)


PER_FACTOR = Shapes(struct(125), struct(2, 2), parts=(100, 25))
FANS = {"factor_1.hidden_1": 100, "factor_2.hidden_1": 25, "factor_2.hidden_2": 64}
GREY = Shapes(struct(28, 28), struct(56))
PIXELS = Transformer(depth=1, width=64, hidden=256), of_image(16, 4)
ENCODER_FANS = {"conv_1": 9, "conv_2": 9 * 32, "conv_3": 9 * 64, "hidden": 2048, "answer": 128}
CONV_FANS = {"render": 64 * 49, "hidden_1": 64 * 16, "hidden_3": 64 * 9}
LAWS = [
    (Conv(depth=3), of_image(56, 28), "torch", CONV_FANS | {"image": 9}),
    (MLP(width=32, depth=2), of_image(56, 28), "torch", {"hidden_1": 56, "hidden_2": 32}),
    (Encoder(), GREY, "torch", ENCODER_FANS),
    # PyTorch's fan_out of a transposed convolution's kernel (in, out, k, k) is in x k x k
    (ConvBatchNorm(width=64), of_image(2, 16), "kaiming",
     {"dense": 2, "hidden_1": 16 * 64, "hidden_2": 16 * 64, "image": 9}),
    (Additive(depth=2, width=64), PER_FACTOR, "torch", FANS | {"factor_2.image": 64}),
    (Multiplicative(depth=2, width=64), PER_FACTOR, "torch", FANS),
    (*PIXELS, "torch", {"token": 16, "block_1.hidden": 64, "block_1.out": 256, "image": 64}),
    # Glorot's bound counts the 64 inputs and all outputs of queries, keys and values
    (*PIXELS, "no bias", {"block_1.read": (64 + 192) / 6, "block_1.mix": 64}),
    (TaskMLP(width=1000), of_task(5, 6, 4, 3), "flax",
     {"hidden_1": 9, "hidden_2": 1000, "answer": 1000})
]  # fmt: skip


@pytest.mark.parametrize(("settings", "shapes", "law", "fans"), LAWS, ids=lambda each: "")
def test_initial_weights_follow_their_law(settings, shapes, law, fans):
    """torch: uniform within 1/sqrt(fan in), biases too unless there are none; flax: of variance
    1/fan in; kaiming: normal of variance 2/fan in."""
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape), shapes.input)
    params = jax.device_get(jax.jit(settings.make(shapes).init)(KEY, zeros))["params"]
    for name, fan in fans.items():
        layer = functools.reduce(lambda tree, key: tree[key], name.split("."), params)
        kernel, bias = layer["kernel"], layer["bias"]
        std = {"flax": fan**-0.5, "kaiming": (2 / fan) ** 0.5}.get(law, (3 * fan) ** -0.5)
        assert float(kernel.std()) == pytest.approx(std, rel=0.15 if kernel.size < 999 else 0.06)
        assert bias.any() == (law == "torch")
        if law in ("torch", "no bias"):
            assert 0.8 * fan**-0.5 < np.abs(kernel).max() <= fan**-0.5
            assert np.abs(bias).max() <= fan**-0.5
        if law == "kaiming":  # not cut off at two deviations
            assert np.abs(kernel).max() > 2.4 * kernel.std() or kernel.size < 999
