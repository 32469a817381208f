"""Flow matching: its path in closed form, and what training leaves alone."""

import chex
import jax
import numpy as np
from flax import linen as nn

from compgen_jax.models import flow
from compgen_jax.models.flow import Flow
from compgen_jax.tasks.task import Example
from tests.models.oracles import of_image

KEY, CODE, SIDE = jax.random.key(3), 6, 8


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
    own = module.init(KEY, np.zeros(CODE, "f4"))
    drawn.clear()
    targets = np.full((count, SIDE, SIDE), c, "f4")
    codes = np.zeros((count, CODE), "f4")

    def train(module, key):
        counts = np.ones(count, bool)
        return settings.train_apply(module, own, Example(codes, targets), counts, key)

    said, kept = train(module, KEY)
    noisy, time = map(np.asarray, drawn[0])
    np.testing.assert_allclose(said, noisy, atol=1e-6)
    assert time.min() >= 0 and time.max() < 1 and abs(time.mean() - 0.5) < 0.02
    assert abs(noisy.mean() - c / 2) < 0.03
    assert abs(noisy.var() - (1 / 3 + c**2 / 12)) < 0.03
    noise = (noisy - time[:, None, None] * c) / (1 - time)[:, None, None]
    correlations = np.corrcoef([noise[1:, 0, 0], noise[1:, 3, 5], noise[:-1, 0, 0]])
    assert np.abs(correlations - np.eye(3)).max() < 0.06
    chex.assert_trees_all_equal(kept["noise"], own["noise"])  # a sample's noise stays
    again = train(module, jax.random.key(4))[0]
    assert not np.allclose(again, said)
    # nor does training depend on the steps of a sample
    drawn.clear()
    train(Flow(steps=7).make(of_image(CODE, SIDE)), KEY)
    np.testing.assert_array_equal(drawn[0][0], noisy)
