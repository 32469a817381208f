"""What some decoders do in training: one normalises over the batch, one mixes images with noise,
and one draws an image in parts."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax.models import flow
from compgen_jax.models.flow import Flow
from compgen_jax.models.pixelwise import Pixelwise
from compgen_jax.models.upsampling import ConvBatchNorm
from compgen_jax.tasks.task import Example
from tests.models.oracles import KEY, check_slope, decode, of_image, variables

COUNTS = np.array([True, True, False, True, False])
CODES = np.random.default_rng(1).normal(size=(len(COUNTS), 3)).astype("f4")
FLOW_KEY, CODE, SIDE = jax.random.key(3), 6, 8


def test_training_is_that_of_the_definition():
    """Images, running moments, and gradients through the statistics, along a random direction;
    statistics are those of the examples that count."""
    settings, shapes = ConvBatchNorm(width=6), of_image(3, 8, "gemm")
    module = settings.make(shapes)
    own, batch = variables(module, shapes), Example(CODES, None)
    train = jax.jit(lambda own: settings.train_apply(module, own, batch, COUNTS, KEY))
    images, kept = train(own)
    moments = {}
    expected, _ = decode(settings, own, CODES, shapes, counts=COUNTS, moments=moments)
    np.testing.assert_allclose(images, expected, atol=5e-5)
    chex.assert_trees_all_equal(kept["params"], own["params"])
    assert set(moments) == set(kept["batch_stats"])
    for name, (mean, var) in moments.items():
        old, new = own["batch_stats"][name], kept["batch_stats"][name]
        np.testing.assert_allclose(new["mean"], 0.9 * old["mean"] + 0.1 * mean, atol=1e-5)
        np.testing.assert_allclose(new["var"], 0.9 * old["var"] + 0.1 * var, rtol=1e-4)
    weights = np.random.default_rng(4).normal(size=expected.shape).astype("f4")
    weights[~COUNTS] = 0
    value = lambda params: jnp.sum(weights * train({**own, "params": params})[0])
    gradient = jax.jit(jax.grad(value))(own["params"])

    def expected_value(params):
        oracle = decode(
            settings, {**own, "params": params}, CODES, shapes, counts=COUNTS, moments={}
        )
        return np.sum(weights * oracle[0])

    check_slope(
        gradient, expected_value, own["params"], variables(module, shapes, 5)["params"], 1e-5
    )


def test_parameters_and_moments_stay_float32_under_x64():
    with jax.enable_x64(True):
        shapes = of_image(3, 8, "winograd")
        settings = ConvBatchNorm(width=8)
        module, batch = settings.make(shapes), Example(CODES, None)
        own = module.init(KEY, CODES)
        _, kept = jax.jit(lambda own: settings.train_apply(module, own, batch, COUNTS, KEY))(own)
    assert {leaf.dtype for leaf in jax.tree.leaves([own, kept])} == {jnp.dtype("float32")}


def test_training_mixes_noise_and_target_at_times_from_0_to_1(monkeypatch):
    """x_t = (1 - t) noise + t c has mean c/2 and variance 1/3 + c^2/12; times and noise are drawn
    for each example."""
    drawn = []

    class Kept(nn.Module):
        @nn.compact
        def __call__(self, noisy, time, code):
            self.param("unused", nn.initializers.zeros, ())
            drawn.append((noisy, time))
            return noisy, {"layer_00": code}

    monkeypatch.setattr(flow, "Denoiser", lambda *_, name: Kept(name=name))

    settings, count, c = Flow(), 4000, 2.0
    module = settings.make(of_image(CODE, SIDE))
    own = module.init(FLOW_KEY, np.zeros(CODE, "f4"))
    drawn.clear()
    batch = Example(np.zeros((count, CODE), "f4"), np.full((count, SIDE, SIDE), c, "f4"))
    train = lambda module, key: settings.train_apply(module, own, batch, np.ones(count, bool), key)

    said, kept = train(module, FLOW_KEY)
    noisy, time = map(np.asarray, drawn[0])
    np.testing.assert_allclose(said, noisy, atol=1e-6)
    assert time.min() >= 0 and time.max() < 1 and abs(time.mean() - 0.5) < 0.02
    assert abs(noisy.mean() - c / 2) < 0.03
    assert abs(noisy.var() - (1 / 3 + c**2 / 12)) < 0.03
    noise = (noisy - time[:, None, None] * c) / (1 - time)[:, None, None]
    correlations = np.corrcoef([noise[1:, 0, 0], noise[1:, 3, 5], noise[:-1, 0, 0]])
    assert np.abs(correlations - np.eye(3)).max() < 0.06
    chex.assert_trees_all_equal(kept["noise"], own["noise"])  # a sample's noise stays
    assert not np.allclose(train(module, jax.random.key(4))[0], said)
    # nor does training depend on the steps of a sample
    drawn.clear()
    train(Flow(steps=7).make(of_image(CODE, SIDE)), FLOW_KEY)
    np.testing.assert_array_equal(drawn[0][0], noisy)


@pytest.mark.parametrize("units", [400, 1])
def test_an_image_drawn_in_parts_and_its_gradient_are_those_of_the_whole(units):
    """8 x 8 pixels of 12 units, in 2 parts, and by rows."""
    whole = Pixelwise(width=12, depth=2).make(of_image(16, 8))
    decoder = whole.clone(at_once=units)
    code, target = jax.random.normal(KEY, (5,)), jax.random.normal(KEY, (8, 8))
    params = variables(whole, of_image(5, 8))

    def loss(params, code, module):
        image, layers = module.apply(params, code)
        return jnp.sum(target * image), (image, layers)

    run = jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True), static_argnums=2)
    chex.assert_trees_all_close(
        run(params, code, decoder), run(params, code, whole), rtol=1e-4, atol=1e-5
    )
    tangents = jax.jit(
        jax.jacfwd(lambda code, module: module.apply(params, code)), static_argnums=1
    )
    chex.assert_trees_all_close(tangents(code, decoder), tangents(code, whole), atol=1e-5)
