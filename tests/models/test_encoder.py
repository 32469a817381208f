"""The convolution that halves an image, against Flax's; what an encoder refuses."""

from functools import partial

import chex
import jax
import numpy as np
import pytest
from flax import linen as nn

from compgen_jax.config import Config, ConfigError
from compgen_jax.models.encoder import Encoder, HalvingConv
from compgen_jax.models.model import Shapes
from tests.models.oracles import KEY, struct


def drawn(*shape, seed=0):
    return np.float32(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize(
    ("taps", "sides"), [(3, (8, 8)), (3, (5, 8)), (3, (1, 1)), (4, (8, 6)), (4, (5, 2))]
)
def test_a_layer_is_flax_own(taps, sides):
    """Its function and its gradients, with the same parameters."""
    x = drawn(2, *sides, 3)
    ours = HalvingConv(4, "torch", taps)
    flax = nn.Conv(4, (taps, taps), strides=2, padding=1)
    params = jax.jit(ours.init)(KEY, x)
    chex.assert_trees_all_equal_shapes(params, jax.eval_shape(flax.init, KEY, x))

    @partial(jax.jit, static_argnums=0)
    def outputs_and_gradients(layer, params, x):
        target = drawn(2, *((s + 4 - taps) // 2 for s in sides), 4, seed=1)
        outputs, pull = jax.vjp(layer.apply, params, x)
        return outputs, pull(target)

    chex.assert_trees_all_close(
        *(outputs_and_gradients(layer, params, x) for layer in (ours, flax)), atol=1e-4
    )


def test_images_too_small_to_halve_are_refused():
    settings = Encoder(kernel=4, channels=(2, 2, 2))
    with pytest.raises(ConfigError, match="both sides must be at least 8, not 7 x 9"):
        settings.make(Shapes(struct(7, 9), struct(2)))
    with pytest.raises(
        ConfigError, match=r"config\.model\.channels=\('a',\): must be positive int"
    ):
        Config(model=Encoder(channels=("a",)))
