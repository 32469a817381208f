"""Decoders that double a small map: against float64 loops, PyTorch and the authors' counts."""

import jax
import jax.numpy as jnp
import pytest

from compgen_jax.config import Config, ConfigError
from compgen_jax.models.model import Shapes
from compgen_jax.models.upsampling import LAYOUTS, Upsampling

KEY = jax.random.key(0)
E, BATCH = 3, 5


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def build(settings, shape, length=E, lowering="lax"):
    return settings.make(Shapes(struct(length), struct(*shape), lowering))


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
