"""Flow matching: its path and its sampler in closed form, and what training leaves alone."""

import functools
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.models import flow
from compgen_jax.models.conv import Conv
from compgen_jax.models.flow import Denoiser, Flow
from compgen_jax.tasks.task import Example
from tests.models.oracles import of_image
from tests.trees import TWO_PROGRAMS

SETTINGS = Flow(width=3)
KEY, E, N = jax.random.key(3), 6, 8
CODES = np.random.default_rng(1).normal(size=(4, E)).astype("f4")


def build(**settings):
    return replace(SETTINGS, **settings).make(of_image(E, N))


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

    module, count, c = build(), 4000, 2.0
    own = module.init(KEY, CODES[0])
    drawn.clear()
    targets = np.full((count, N, N), c, "f4")
    codes = np.zeros((count, E), "f4")
    train = functools.partial(SETTINGS.train_apply, module, own, Example(codes, targets))
    said, kept = train(np.ones(count, bool), KEY)
    noisy, time = map(np.asarray, drawn[0])
    np.testing.assert_allclose(said, noisy, atol=1e-6)
    assert time.min() >= 0 and time.max() < 1 and abs(time.mean() - 0.5) < 0.02
    assert abs(noisy.mean() - c / 2) < 0.03
    assert abs(noisy.var() - (1 / 3 + c**2 / 12)) < 0.03
    noise = (noisy - time[:, None, None] * c) / (1 - time)[:, None, None]
    assert abs(np.corrcoef(noise[:, 0, 0], noise[:, 3, 5])[0, 1]) < 0.06
    assert abs(np.corrcoef(noise[:-1, 0, 0], noise[1:, 0, 0])[0, 1]) < 0.06
    chex.assert_trees_all_equal(kept["noise"], own["noise"])  # a sample's noise stays
    again = train(np.ones(count, bool), jax.random.key(4))[0]
    assert not np.allclose(again, said)
    # nor does training depend on the steps of a sample
    drawn.clear()
    SETTINGS.train_apply(build(steps=7), own, Example(codes, targets), np.ones(count, bool), KEY)
    np.testing.assert_array_equal(drawn[0][0], noisy)


def test_one_step_is_what_is_said_of_pure_noise():
    one, many = build(steps=1), build(steps=20)
    own = jax.jit(one.init)(KEY, CODES[0])
    chex.assert_trees_all_close(own, jax.jit(many.init)(KEY, CODES[0]), **TWO_PROGRAMS)
    images, layers = jax.jit(one.apply)(own, CODES)
    noise = jnp.broadcast_to(own["noise"]["start"], (4, N, N))
    params = {"params": own["params"]["denoiser"]}
    said, of_noise = jax.jit(Denoiser(N, Conv(3, 3), "lax").apply)(
        params, noise, jnp.zeros(4), CODES
    )
    np.testing.assert_allclose(images, said, atol=1e-6)
    sample, of_first = jax.jit(many.apply)(own, CODES)
    assert np.abs(sample - images).max() > 0.01
    chex.assert_trees_all_close((layers, of_first), (of_noise, of_noise), atol=1e-6)
