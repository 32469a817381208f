"""The convolutional encoder of the bump paper's authors, from an image to its factors (not in the
paper)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.initializers import add_bias, dense, kernel_and_bias
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import number


@dataclass(frozen=True)
class Encoder(Model):
    """`ConvEncoder`: `depth` convolutions of `width`, 2 `width`, ... channels, and a layer of
    `hidden` units."""

    depth: int = number(3, low=1, high=5)
    width: int = number(32, low=1)
    hidden: int = number(128, low=1)

    batched: ClassVar[bool] = True

    def make(self, shapes: Shapes) -> nn.Module:
        needed = "needs one image (H, W) or (H, W, C) as input"
        shape = self.array_shape(shapes.input, needed, (2, 3))
        (outputs,) = self.array_shape(shapes.output, "gives one vector", (1,))
        return ConvEncoder(outputs, len(shape) == 3, self)


class HalvingConv(nn.Module):
    """`nn.Conv` of kernel 3, stride 2 and padding 1, as one matrix product of windows."""

    features: int

    @nn.compact
    def __call__(self, x):
        shape = (3, 3, x.shape[-1], self.features)
        kernel, bias = kernel_and_bias(self, shape, math.prod(shape[:-1]))
        # what the taps of every output pixel read, tap by tap: (..., H', W', 9 I)
        height, width = x.shape[-3:-1]
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
        windows = [
            x[..., row : row + height : 2, column : column + width : 2, :]
            for row in range(3)
            for column in range(3)
        ]
        windows = jnp.concatenate(windows, axis=-1)
        return add_bias(jnp.tensordot(windows, kernel.reshape(-1, self.features), axes=1), bias)


class ConvEncoder(nn.Module):
    """Image -> vector: convolutions (stride 2, padding 1) and a layer of `hidden` units, each with
    a ReLU; then a linear layer, as in the authors' encoder_exps/bump.py and scalar.py."""

    outputs: int
    colour: bool
    settings: Encoder

    @nn.compact
    def __call__(self, image):
        """(..., H, W) or (..., H, W, C) -> (..., O) and the activations by layer name, the image
        first."""
        x, layers, how = image if self.colour else image[..., None], [image], self.settings
        for index in range(how.depth):
            x = nn.relu(HalvingConv(how.width * 2**index, name=f"conv_{index + 1}")(x))
            layers.append(x)
        layers.append(nn.relu(dense(how.hidden, "hidden", x.reshape(*x.shape[:-3], -1))))
        return dense(self.outputs, "answer", layers[-1]), name_layers(layers)
