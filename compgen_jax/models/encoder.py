"""Convolutional encoders, from an image to its factors: that of the bump paper's authors (not in
the paper), and that of Montero et al. (2022), "Lost in latent space", NeurIPS."""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.initializers import add_bias, dense, kernel_and_bias
from compgen_jax.models.model import Model, Shapes, name_layers, require_widths
from compgen_jax.settings import number, require


@dataclass(frozen=True)
class Encoder(Model):
    """`ConvEncoder`: `depth` convolutions of `width`, 2 `width`, ... channels or, unless empty,
    of the numbers in `channels`, and a layer of `hidden` units. Kernels have `kernel` pixels a
    side. The supervised encoder of Montero et al. (2022) has kernel 4, channels (32, 32, 64, 64)
    and hidden 256."""

    depth: int = number(3, low=1, high=5)
    width: int = number(32, low=1)
    hidden: int = number(128, low=1)
    kernel: int = number(3, low=3, high=4)
    channels: tuple = ()

    batched: ClassVar[bool] = True

    def check(self, config):
        super().check(config)
        require_widths("channels", self.channels)

    def make(self, shapes: Shapes) -> nn.Module:
        needed = "needs one image (H, W) or (H, W, C) as input"
        height, width, *colours = self.array_shape(shapes.input, needed, (2, 3))
        (outputs,) = self.array_shape(shapes.output, "gives one vector", (1,))
        channels = self.channels or tuple(self.width * 2**k for k in range(self.depth))
        least = 2 ** len(channels)  # a kernel of 4 needs 2 pixels, one of 3 only 1
        hint = (
            f"halves the image {len(channels)} times, so that both sides must be at least {least}, "
            f"not {height} x {width}"
        )
        require(self.kernel == 3 or min(height, width) >= least, "model.kernel", 4, hint)
        return ConvEncoder(outputs, channels, bool(colours), self)


class HalvingConv(nn.Module):
    """Convolution of stride 2 and padding 1, with the parameters of `nn.Conv`, as one matrix
    product of windows (see `models.convolution`)."""

    features: int
    taps: int = 3

    @nn.compact
    def __call__(self, x):
        shape = (self.taps, self.taps, x.shape[-1], self.features)
        kernel, bias = kernel_and_bias(self, shape, math.prod(shape[:-1]))
        # what the taps of every output pixel read, tap by tap: (..., H', W', taps^2 I)
        height, width = (2 * ((side + 2 - self.taps) // 2) + 1 for side in x.shape[-3:-1])
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
        windows = [
            x[..., row : row + height : 2, column : column + width : 2, :]
            for row in range(self.taps)
            for column in range(self.taps)
        ]
        windows = jnp.concatenate(windows, axis=-1)
        return add_bias(jnp.tensordot(windows, kernel.reshape(-1, self.features), axes=1), bias)


class ConvEncoder(nn.Module):
    """Image -> vector: convolutions (stride 2, padding 1) and a layer of `hidden` units, each with
    a ReLU; then a linear layer.
    With channels (32, 64, 128) it is the network of the authors' encoder_exps/bump.py and
    scalar.py. Attributes: outputs, O; channels; colour, whether the image is (H, W, C).
    """

    outputs: int
    channels: tuple
    colour: bool
    settings: Encoder

    @nn.compact
    def __call__(self, image):
        """(..., H, W) or (..., H, W, C) -> (..., O) and the activations by layer name, the image
        first."""
        x, layers = image if self.colour else image[..., None], [image]
        for index, features in enumerate(self.channels, start=1):
            x = nn.relu(HalvingConv(features, self.settings.kernel, name=f"conv_{index}")(x))
            layers.append(x)
        x = x.reshape(*x.shape[:-3], -1)
        layers.append(nn.relu(dense(self.settings.hidden, "hidden", x)))
        return dense(self.outputs, "answer", layers[-1]), name_layers(layers)
