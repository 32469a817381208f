"""The decoder normalised over the batch, against float64 loops, PyTorch and closed forms."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.models import model
from compgen_jax.models.conv_batchnorm import ConvBatchNorm
from compgen_jax.models.convolution import cast_kernels
from compgen_jax.tasks.task import Example
from tests.models.shapes import of_image

KEY = jax.random.key(0)
E, N, WIDTH, BATCH = 3, 8, 6, 5
COUNTS = np.array([True, True, False, True, False])
CODES = np.random.default_rng(1).normal(size=(BATCH, E)).astype("f4")


def build(lowering="lax"):
    return ConvBatchNorm(width=WIDTH).make(of_image(E, N, lowering))


def variables(seed=0):
    """In general position, running statistics and biases too; variances are positive."""
    shapes = jax.eval_shape(build().init, KEY, jnp.zeros(E))
    random = np.random.default_rng(seed)

    def draw(path, leaf):
        values = random.normal(size=leaf.shape) * 0.5
        return jnp.float32(values**2 + 0.2 if path[-1].key == "var" else values)

    return jax.tree_util.tree_map_with_path(draw, shapes)


@functools.cache
def compiled(lowering="lax"):
    """(evaluation, training) of a batch."""
    module = build(lowering)
    train = lambda v, codes, counts: model.train_apply(module, v, Example(codes, None), counts, KEY)
    return jax.jit(functools.partial(model.apply, module)), jax.jit(train)


def transposed(x, layer, stride):
    """Each input pixel adds the flipped kernel to the output, of which one pixel of the border is
    cut off."""
    kernel = layer["kernel"][::-1, ::-1]
    side, taps = x.shape[1], len(kernel)
    out = np.zeros((len(x), *(2 * [stride * (side - 1) + taps]), kernel.shape[-1]))
    for i in range(side):
        for j in range(side):
            for a in range(taps):
                for b in range(taps):
                    out[:, stride * i + a, stride * j + b] += x[:, i, j] @ kernel[a, b]
    return out[:, 1:-1, 1:-1] + layer["bias"]


def decode_directly(variables, codes, counts=None):
    """(images, layers, moments of each norm) in float64; moments of the examples that count, or
    the running ones."""
    exact = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), variables)
    params, running = exact["params"], exact["batch_stats"]
    codes = np.asarray(codes, np.float64)
    x = codes @ params["dense"]["kernel"] + params["dense"]["bias"]
    x = x.reshape(len(codes), N // 4, N // 4, WIDTH)
    layers, moments = [codes, x], []
    for index in (1, 2):
        x = transposed(x, params[f"hidden_{index}"], 2)
        pixels = None if counts is None else x[counts].reshape(-1, x.shape[-1])
        own = running[f"norm_{index}"]
        mean, var = (own["mean"], own["var"]) if counts is None else (
            pixels.mean(0), ((pixels - pixels.mean(0)) ** 2).mean(0)
        )  # fmt: skip
        moments.append((mean, var))
        norm = params[f"norm_{index}"]
        x = np.maximum((x - mean) / np.sqrt(var + 1e-5) * norm["scale"] + norm["bias"], 0)
        layers.append(x)
    return 1 / (1 + np.exp(-transposed(x, params["image"], 1)[..., 0])), layers, moments


def test_evaluation_is_that_of_the_definition():
    images, layers = compiled()[0](variables(), CODES)
    expected, expected_layers, _ = decode_directly(variables(), CODES)
    np.testing.assert_allclose(images, expected, atol=1e-5)
    assert 0.05 < expected.std() and ((0 < expected) & (expected < 1)).all()
    assert list(layers) == ["layer_00", "layer_01", "layer_02", "layer_03"]
    for found, one in zip(layers.values(), expected_layers, strict=True):
        np.testing.assert_allclose(found, one, atol=2e-5)


def test_training_is_that_of_the_definition():
    images, kept = compiled()[1](variables(), CODES, COUNTS)
    expected, _, moments = decode_directly(variables(), CODES, COUNTS)
    np.testing.assert_allclose(images, expected, atol=2e-5)
    chex.assert_trees_all_equal(kept["params"], variables()["params"])
    before = variables()["batch_stats"]
    for index, (mean, var) in enumerate(moments, start=1):
        old, new = (tree[f"norm_{index}"] for tree in (before, kept["batch_stats"]))
        np.testing.assert_allclose(new["mean"], 0.9 * old["mean"] + 0.1 * mean, atol=1e-5)
        np.testing.assert_allclose(new["var"], 0.9 * old["var"] + 0.1 * var, rtol=1e-5)


def test_examples_that_do_not_count_change_nothing():
    others = np.where(COUNTS[:, None], CODES, np.float32(50))
    (images, kept), (images_too, kept_too) = (
        compiled()[1](variables(), codes, COUNTS) for codes in (CODES, others)
    )
    chex.assert_trees_all_equal(kept, kept_too)
    np.testing.assert_array_equal(images[COUNTS], images_too[COUNTS])
    alone, kept_alone = compiled()[1](variables(), CODES[COUNTS], np.ones(3, bool))
    np.testing.assert_allclose(alone, images[COUNTS], atol=1e-5)
    chex.assert_trees_all_close(kept_alone, kept, rtol=1e-5, atol=1e-6)
    _, kept_all = compiled()[1](variables(), CODES, np.ones(BATCH, bool))
    norm = kept_all["batch_stats"]["norm_1"]["mean"]
    assert jnp.abs(norm - kept["batch_stats"]["norm_1"]["mean"]).max() > 1e-3


def test_same_network_as_torch():
    torch = pytest.importorskip("torch")
    parts = torch.nn.Linear(E, N // 4 * N // 4 * WIDTH), torch.nn.Sequential(
        torch.nn.ConvTranspose2d(WIDTH, WIDTH, 4, 2, 1), torch.nn.BatchNorm2d(WIDTH),
        torch.nn.ReLU(), torch.nn.ConvTranspose2d(WIDTH, WIDTH // 2, 4, 2, 1),
        torch.nn.BatchNorm2d(WIDTH // 2), torch.nn.ReLU(),
        torch.nn.Conv2d(WIDTH // 2, 1, 3, padding=1), torch.nn.Sigmoid(),
    )  # fmt: skip
    ours = variables()
    put = lambda tensor, array: tensor.data.copy_(torch.tensor(np.array(array)))
    linear, layers = parts
    own = ours["params"]
    put(linear.weight, own["dense"]["kernel"].T)
    put(linear.bias, own["dense"]["bias"])
    for layer, name in ((layers[0], "hidden_1"), (layers[3], "hidden_2")):
        put(layer.weight, own[name]["kernel"][::-1, ::-1].transpose(2, 3, 0, 1))
        put(layer.bias, own[name]["bias"])
    put(layers[6].weight, own["image"]["kernel"].transpose(3, 2, 0, 1))
    put(layers[6].bias, own["image"]["bias"])
    norms = {"norm_1": layers[1], "norm_2": layers[4]}
    for name, norm in norms.items():
        put(norm.weight, own[name]["scale"])
        put(norm.bias, own[name]["bias"])
        put(norm.running_mean, ours["batch_stats"][name]["mean"])
        put(norm.running_var, ours["batch_stats"][name]["var"])

    def decode(codes):
        x = linear(torch.tensor(codes)).reshape(-1, N // 4, N // 4, WIDTH)
        with torch.no_grad():
            return layers(x.permute(0, 3, 1, 2))[:, 0].numpy()

    layers.eval()
    np.testing.assert_allclose(compiled()[0](ours, CODES)[0], decode(CODES), atol=1e-5)
    layers.train()
    images, kept = compiled()[1](ours, CODES[COUNTS], np.ones(3, bool))
    np.testing.assert_allclose(images, decode(CODES[COUNTS]), atol=2e-5)
    for index, (name, norm) in enumerate(norms.items(), start=1):
        found, old = kept["batch_stats"][name], ours["batch_stats"][name]["var"]
        np.testing.assert_allclose(found["mean"], norm.running_mean, atol=1e-5)
        pixels = 3 * (N // 4 * 2**index) ** 2
        unbiased = (found["var"] - 0.9 * old) * pixels / (pixels - 1)
        np.testing.assert_allclose(0.9 * old + unbiased, norm.running_var, rtol=1e-5)


def test_gradients_are_those_of_differences_in_float64():
    """Through the statistics too: along a random direction of each layer's parameters."""
    own, random = variables(), np.random.default_rng(4)
    weights = random.normal(size=(BATCH, N, N)) * COUNTS[:, None, None]
    exact = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), own["params"])

    def value(params):
        images, _ = compiled("gemm")[1]({**own, "params": params}, CODES, COUNTS)
        return jnp.sum(weights.astype("f4") * images)

    def moved(layer, direction, step):
        to = jax.tree.map(lambda leaf, by: leaf + step * by, exact[layer], direction)
        params = {**exact, layer: to}
        return np.sum(weights * decode_directly({**own, "params": params}, CODES, COUNTS)[0])

    gradient = jax.grad(value)(own["params"])
    for layer, parameters in exact.items():
        direction = jax.tree.map(lambda leaf: random.normal(size=leaf.shape), parameters)
        expected = (moved(layer, direction, 1e-5) - moved(layer, direction, -1e-5)) / 2e-5
        slopes = jax.tree.map(lambda g, by: np.sum(np.asarray(g) * by), gradient[layer], direction)
        assert abs(expected) > 0.1
        np.testing.assert_allclose(sum(jax.tree.leaves(slopes)), expected, rtol=2e-3, atol=2e-3)


def test_bfloat16_is_for_the_products_alone():
    own = variables()
    rounded = cast_kernels(own, jnp.bfloat16)
    images, kept = compiled("gemm")[1](rounded, CODES.astype(jnp.bfloat16), COUNTS)
    exact, kept_exact = compiled("gemm")[1](own, CODES, COUNTS)
    assert images.dtype == jnp.float32
    assert {leaf.dtype for leaf in jax.tree.leaves(kept["batch_stats"])} == {jnp.dtype("float32")}
    np.testing.assert_allclose(images[COUNTS], exact[COUNTS], atol=0.05)
    chex.assert_trees_all_close(kept["batch_stats"], kept_exact["batch_stats"], atol=0.02)
    assert ConvBatchNorm.convolutional


def test_initial_weights_are_normal_with_the_authors_variances():
    """PyTorch's fan_out of a transposed convolution's kernel (in, out, k, k) is in x k x k."""
    width = 64
    module = ConvBatchNorm(width=width).make(of_image(2, 16))
    params = jax.jit(module.init)(KEY, jnp.zeros(2))["params"]
    fans = {"dense": 2, "hidden_1": 16 * width, "hidden_2": 16 * width, "image": 9}
    for name, fan in fans.items():
        kernel = np.asarray(params[name]["kernel"])
        assert kernel.std() == pytest.approx((2 / fan) ** 0.5, rel=0.06)
        assert np.abs(kernel).max() > 2.4 * kernel.std()  # not cut off at two deviations
        assert not params[name]["bias"].any()
    for name in ("norm_1", "norm_2"):
        assert (params[name]["scale"] == 1).all() and not params[name]["bias"].any()
