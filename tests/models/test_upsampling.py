"""Decoders that double a small map: against float64 loops, PyTorch and the authors' counts."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError
from compgen_jax.models import model
from compgen_jax.models.convolution import LOWERINGS
from compgen_jax.models.mlp import MLP
from compgen_jax.models.model import Shapes
from compgen_jax.models.upsampling import LAYOUTS, Upsampling
from compgen_jax.tasks.task import Example
from tests.models.test_convolution import directly

KEY = jax.random.key(0)
E, BATCH = 3, 5
COUNTS = np.array([True, True, False, True, False])
CODES = np.random.default_rng(1).normal(size=(BATCH, E)).astype("f4")
PLAIN = Upsampling(dense=(7, 6), channels=(4, 5))
NORMED = Upsampling(dense=(7,), channels=(4, 5), batch_norm=True, activation="tanh")
BOTH = pytest.mark.parametrize(("settings", "shape"), [(PLAIN, (8, 12, 3)), (NORMED, (8, 12))])


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def build(settings, shape, length=E, lowering="lax"):
    return settings.make(Shapes(struct(length), struct(*shape), lowering))


@functools.cache
def variables(settings, shape, seed=0):
    """In general position, running statistics and biases too; variances are positive."""
    random = np.random.default_rng(seed)

    def draw(path, leaf):
        values = random.normal(size=leaf.shape) * 0.5
        return jnp.float32(values**2 + 0.2 if path[-1].key == "var" else values)

    like = jax.eval_shape(build(settings, shape).init, KEY, jnp.zeros(E))
    return jax.tree_util.tree_map_with_path(draw, like)


def decode_directly(settings, shape, variables, codes, counts=None):
    """(images, layers, moments of each norm) in float64; moments of the examples that count, or
    the running ones."""
    exact = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), variables)
    params, layers, moments = exact["params"], [np.asarray(codes, np.float64)], []

    def finish(x):
        x = np.tanh(x) if settings.activation == "tanh" else np.maximum(x, 0)
        if settings.batch_norm:
            name = f"norm_{len(layers)}"
            running, norm = exact["batch_stats"][name], params[name]
            mean, var = running["mean"], running["var"]
            if counts is not None:
                each = x[counts].reshape(-1, x.shape[-1])
                mean, var = each.mean(0), ((each - each.mean(0)) ** 2).mean(0)
            moments.append((name, mean, var))
            x = (x - mean) / np.sqrt(var + 1e-5) * norm["scale"] + norm["bias"]
        layers.append(x)

    def linear(name):
        finish(layers[-1] @ params[name]["kernel"] + params[name]["bias"])

    for index in range(1, len(settings.dense) + 1):
        linear(f"dense_{index}")
    linear("map")
    layers[-1] = layers[-1].reshape(len(codes), 2, 3, settings.channels[0])
    finish(directly(layers[-1], params["hidden_1"]["kernel"], 2) + params["hidden_1"]["bias"])
    image = directly(layers[-1], params["image"]["kernel"], 2) + params["image"]["bias"]
    return image.reshape(len(codes), *shape), layers, moments


@BOTH
def test_images_and_layers_are_those_of_the_definition(settings, shape):
    evaluate = jax.jit(functools.partial(model.apply, build(settings, shape)))
    images, layers = evaluate(variables(settings, shape), CODES)
    expected, expected_layers, _ = decode_directly(
        settings, shape, variables(settings, shape), CODES
    )
    assert images.shape == (BATCH, *shape) and expected.std() > 0.1
    np.testing.assert_allclose(images, expected, atol=2e-5)
    for found, one in zip(layers.values(), expected_layers, strict=True):
        np.testing.assert_allclose(found, one, atol=2e-5)


def test_batch_norm_is_over_the_examples_that_count_and_behind_the_activation():
    shape, own = (8, 12), variables(NORMED, (8, 12))
    module = build(NORMED, shape)
    assert module.training_mode and not build(PLAIN, shape).training_mode
    train = jax.jit(lambda codes: model.train_apply(module, own, Example(codes, None), COUNTS, KEY))
    images, kept = train(CODES)
    expected, _, moments = decode_directly(NORMED, shape, own, CODES, COUNTS)
    np.testing.assert_allclose(images, expected, atol=5e-5)
    assert [name for name, *_ in moments] == list(kept["batch_stats"])
    for name, mean, var in moments:
        old, new = (tree["batch_stats"][name] for tree in (own, kept))
        np.testing.assert_allclose(new["mean"], 0.9 * old["mean"] + 0.1 * mean, atol=1e-5)
        np.testing.assert_allclose(new["var"], 0.9 * old["var"] + 0.1 * var, rtol=1e-4)
    others = np.where(COUNTS[:, None], CODES, np.float32(50))
    chex.assert_trees_all_equal(kept, train(others)[1])


@BOTH
def test_same_network_as_torch(settings, shape):
    torch = pytest.importorskip("torch")
    own = variables(settings, shape)
    params = own["params"]
    tensor = lambda array: torch.tensor(np.array(array))
    activation = torch.tanh if settings.activation == "tanh" else torch.relu

    def finish(x, index):
        x = activation(x)
        if not settings.batch_norm:
            return x
        running, norm = own["batch_stats"][f"norm_{index}"], params[f"norm_{index}"]
        rows = map(tensor, (running["mean"], running["var"], norm["scale"], norm["bias"]))
        return torch.nn.functional.batch_norm(x, *rows)

    def transposed(x, name):  # Flax's kernel (k, k, in, out) is torch's (in, out, k, k), flipped
        kernel = tensor(params[name]["kernel"]).flip(0, 1).permute(2, 3, 0, 1)
        bias = tensor(params[name]["bias"])
        return torch.nn.functional.conv_transpose2d(x, kernel, bias, stride=2, padding=1)

    x = torch.tensor(CODES)
    names = [*(f"dense_{index + 1}" for index in range(len(settings.dense))), "map"]
    for index, name in enumerate(names, start=1):
        x = x @ tensor(params[name]["kernel"]) + tensor(params[name]["bias"])
        x = finish(x, index)
    x = x.reshape(BATCH, 2, 3, settings.channels[0]).permute(0, 3, 1, 2)
    x = transposed(finish(transposed(x, "hidden_1"), len(names) + 1), "image")
    images = model.apply(build(settings, shape), own, CODES)[0]
    expected = x.permute(0, 2, 3, 1).numpy().reshape(BATCH, *shape)
    np.testing.assert_allclose(images, expected, atol=2e-5)


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_gradients_are_those_of_differences_in_float64(lowering):
    """Along a random direction of all parameters."""
    shape = (8, 12, 3)
    own, direction = variables(PLAIN, shape), variables(PLAIN, shape, 5)
    weights = np.random.default_rng(3).normal(size=(BATCH, *shape)).astype("f4")
    module = build(PLAIN, shape, lowering=lowering)
    value = lambda own: jnp.sum(weights * model.apply(module, own, CODES)[0])
    found = jax.tree.map(np.vdot, jax.jit(jax.grad(value))(own), direction)

    def moved(step):
        to = jax.tree.map(lambda a, d: np.float64(a) + step * np.float64(d), own, direction)
        return np.sum(weights * decode_directly(PLAIN, shape, to, CODES)[0])

    expected = (moved(1e-6) - moved(-1e-6)) / 2e-6
    assert float(sum(jax.tree.leaves(found))) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("settings", "length", "shape", "count"),
    [  # sums by hand; in millions the authors' are 0.18, 0.38, 2.0, 7.81 and 17.6
        (Upsampling(layout="burgess"), 5, (64, 64), 182_881),
        (Upsampling(layout="kim"), 5, (64, 64), 380_033),
        (Upsampling(layout="deep"), 5, (64, 64), 2_005_153),
        (MLP(depth=3, width=1200, activation="tanh"), 5, (64, 64), 7_808_896),
        (MLP(depth=3, width=1200, activation="tanh"), 6, (64, 64, 3), 17_648_688),
        # the first three layers of burgess and two of its transposed ones
        (Upsampling(), 5, (32, 32), 1_536 + 131_584 + 2 * 16_416 + 513),
    ],
)
def test_parameter_counts_are_the_authors(settings, length, shape, count):
    params = jax.eval_shape(build(settings, shape, length).init, KEY, jnp.zeros(length))
    assert model.size(params["params"]) == count


def test_each_layout_draws_every_side_that_it_can_double_to():
    for side in (16, 24, 32, 48, 64):
        for name, layout in LAYOUTS.items():
            settings, doublings = Upsampling(layout=name), len(layout.channels)
            if side % 2**doublings:
                with pytest.raises(ConfigError, match=f"divisible by 16, not {side} x {side};"):
                    build(settings, (side, side))
                continue
            module = build(settings, (side, side, 3))
            image, layers = jax.eval_shape(
                lambda module=module: module.init_with_output(KEY, jnp.zeros(E))[0]
            )
            assert image.shape == (side, side, 3)
            sides = [layer.shape[0] for layer in layers.values() if layer.ndim == 3]
            assert sides == [side >> k for k in range(doublings, 0, -1)]


def test_what_does_not_fit_is_refused_in_one_line():
    for settings, message in [
        (Upsampling(channels=(8, 0)), r"config\.model\.channels=\(8, 0\): must be positive int"),
        (Upsampling(dense=(2.5,)), r"config\.model\.dense=\(2\.5,\): must be positive integers"),
        (Upsampling(layout="big"), r"config\.model\.layout='big': must be one of small, burgess"),
        (Upsampling(activation="elu"), r"activation='elu': must be one of relu, tanh"),
    ]:
        with pytest.raises(ConfigError, match=message) as error:
            Config(model=settings)
        assert "\n" not in str(error.value)


def test_an_mlp_of_tanh_units_is_that_of_the_definition():
    module = build(MLP(depth=2, width=6, activation="tanh"), (4, 5))
    params = jax.tree.map(
        lambda leaf: jnp.float32(np.random.default_rng(leaf.size).normal(size=leaf.shape)),
        jax.eval_shape(module.init, KEY, jnp.zeros(E)),
    )
    image, layers = module.apply(params, CODES[0])
    x, weights = np.float64(CODES[0]), jax.tree.map(np.float64, params["params"])
    for index in (1, 2):
        x = np.tanh(x @ weights[f"hidden_{index}"]["kernel"] + weights[f"hidden_{index}"]["bias"])
        np.testing.assert_allclose(layers[f"layer_{index:02d}"], x, atol=1e-5)
    expected = x @ weights["image"]["kernel"] + weights["image"]["bias"]
    np.testing.assert_allclose(image, expected.reshape(4, 5), atol=1e-5)
