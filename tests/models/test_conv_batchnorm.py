"""Decoders that normalise over the batch: training, against float64 loops."""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.models.upsampling import ConvBatchNorm
from compgen_jax.tasks.task import Example
from tests.models.oracles import KEY, decode, exact, of_image, slope, variables

COUNTS = np.array([True, True, False, True, False])
CODES = np.random.default_rng(1).normal(size=(len(COUNTS), 3)).astype("f4")


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
    gradient = exact(jax.jit(jax.grad(value))(own["params"]))
    direction = exact(variables(module, shapes, 5)["params"])

    def expected_value(params):
        oracle = decode(
            settings, {**own, "params": params}, CODES, shapes, counts=COUNTS, moments={}
        )
        return np.sum(weights * oracle[0])

    slopes = jax.tree.leaves(jax.tree.map(np.vdot, gradient, direction))
    difference = slope(expected_value, own["params"], direction, 1e-5)
    np.testing.assert_allclose(sum(slopes), difference, rtol=2e-3, atol=2e-3)


def test_parameters_and_moments_stay_float32_under_x64():
    with jax.enable_x64(True):
        shapes = of_image(3, 8, "winograd")
        settings = ConvBatchNorm(width=8)
        module, batch = settings.make(shapes), Example(CODES, None)
        own = module.init(KEY, CODES)
        _, kept = jax.jit(lambda own: settings.train_apply(module, own, batch, COUNTS, KEY))(own)
    assert {leaf.dtype for leaf in jax.tree.leaves([own, kept])} == {jnp.dtype("float32")}
