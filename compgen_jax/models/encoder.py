"""The authors' convolutional encoder, from an image to its factors (not in the paper)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models import initializers
from compgen_jax.models.mlp import dense
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import ConfigError, choice, number

TAPS, STRIDE = 3, 2  # of every convolution; the padding is 1


@dataclass(frozen=True)
class Encoder(Model):
    """`ConvEncoder`: `depth` convolutions of `width`, 2 `width`, ... channels, and a layer of
    `hidden` units; initial weights as PyTorch's or Flax's defaults (`models.initializers`)."""

    depth: int = number(3, low=1, high=5)
    width: int = number(32, low=1)
    hidden: int = number(128, low=1)
    initial_weights: str = choice("torch", "torch", "flax")

    def make(self, shapes: Shapes) -> nn.Module:
        given, asked = shapes.input, shapes.output
        if not isinstance(given, jax.ShapeDtypeStruct) or given.ndim != 2:
            raise ConfigError(
                f"config.model.name={self.name!r}: needs one image (H, W) as input, not {given}"
            )
        if not isinstance(asked, jax.ShapeDtypeStruct) or asked.ndim != 1:
            raise ConfigError(f"config.model.name={self.name!r}: gives one vector, not {asked}")
        return ConvEncoder(
            asked.shape[0], self.width, self.depth, self.hidden, self.initial_weights
        )


class HalvingConv(nn.Module):
    """Convolution of kernel 3, stride 2 and padding 1, with the parameters of `nn.Conv`.

    (..., H, W, I) -> (..., ceil(H / 2), ceil(W / 2), features). It is one matrix product of
    windows, as XLA:CPU is slow at a convolution's gradients inside a loop (`models.convolution`).
    """

    features: int
    initial_weights: str

    @nn.compact
    def __call__(self, x):
        shape = (TAPS, TAPS, x.shape[-1], self.features)
        init = initializers.for_dense(self.initial_weights, math.prod(shape[:-1]))
        kernel = self.param("kernel", init.kernel, shape)
        bias = self.param("bias", init.bias, shape[-1:])
        # what the taps of every output pixel read, tap by tap: (..., H', W', 9 I)
        height, width = (STRIDE * ((side - 1) // STRIDE) + 1 for side in x.shape[-3:-1])
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
        windows = [
            x[..., row : row + height : STRIDE, column : column + width : STRIDE, :]
            for row in range(TAPS)
            for column in range(TAPS)
        ]
        windows = jnp.concatenate(windows, axis=-1)
        y = jnp.tensordot(windows, kernel.reshape(-1, self.features), axes=1)
        return y + bias.reshape((1,) * (y.ndim - 1) + (-1,))


class ConvEncoder(nn.Module):
    """Image -> vector: `depth` convolutions (kernel 3, stride 2, padding 1) of `width`, 2 `width`,
    ... channels and a layer of `hidden` units, each with a ReLU; then a linear layer.

    For images of side 28 it is the network of the authors' encoder_exps/bump.py (56 outputs:
    362,168 parameters) and scalar.py (2 outputs: 355,202). Leading axes of the image are carried
    through.

    Attributes:
      outputs: O.  width: channels of the first convolution.  depth: at least 1.  hidden: units.
      initial_weights: 'torch' or 'flax'.
    """

    outputs: int
    width: int
    depth: int
    hidden: int
    initial_weights: str = "torch"

    batched: ClassVar[bool] = True

    @nn.compact
    def __call__(self, image):
        """(..., H, W) -> (..., O) and the activations by layer name, the image first."""
        x, layers = image[..., None], [image]
        for index in range(1, self.depth + 1):
            features = self.width * 2 ** (index - 1)
            x = nn.relu(HalvingConv(features, self.initial_weights, name=f"conv_{index}")(x))
            layers.append(x)
        x = nn.relu(
            dense(self.hidden, "hidden", self.initial_weights, x.reshape(*x.shape[:-3], -1))
        )
        layers.append(x)
        return dense(self.outputs, "answer", self.initial_weights, x), name_layers(layers)
