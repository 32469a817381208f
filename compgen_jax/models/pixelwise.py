"""A decoder that all pixels share: what composition owes to weight sharing alone.

The authors' repository has it, the paper does not. A decoder with parameters of each pixel's own
cannot draw at pixels that training left blank, whatever its code; this one has none.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.models import model
from compgen_jax.models.mlp import dense
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import ConfigError, choice, number

LONGEST = 10_000.0  # the sinusoids' wavelengths are from 2 pi to nearly 2 pi times this, in pixels


def position_code(grid: int, width: int) -> np.ndarray:
    """(N, N, width), indexed [y, x]: [sin(w_i x); cos(w_i x); sin(w_i y); cos(w_i y)].

    w_i = 10000^(-4 i / width), i = 0..width/4 - 1 (Vaswani et al. 2017, section 3.5, for each
    axis); `width` is divisible by 4. Coordinates are the integers 0..N-1. (The authors take N
    numbers evenly spaced from 0 to N, which are not where the pixels of their targets are.)
    """
    frequencies = LONGEST ** (-np.arange(width // 4) / (width // 4))
    phases = np.arange(grid)[:, None] * frequencies
    axis = np.concatenate([np.sin(phases), np.cos(phases)], axis=-1)
    shape = (grid, grid, width // 2)
    along_x, along_y = np.broadcast_to(axis, shape), np.broadcast_to(axis[:, None], shape)
    return np.concatenate([along_x, along_y], axis=-1).astype(np.float32)


def check_width(width: int, name: str):
    """Raises ConfigError for channels that `position_code` cannot fill."""
    if width % 4:
        raise ConfigError(
            f"config.decoder.width={width}: must be divisible by 4 for {name} (its position code "
            "has a sine and a cosine for each axis)"
        )


@dataclass(frozen=True)
class Pixelwise(Model):
    """`PixelwiseDecoder`: `depth` hidden layers of `width` units."""

    depth: int = number(4, low=1, high=10)
    width: int = number(64, low=1)
    initial_weights: str = choice("torch", "torch", "flax")

    def check(self, config):
        super().check(config)
        check_width(self.width, self.name)

    def make(self, shapes: Shapes) -> nn.Module:
        model.code_length(shapes, self.name)
        grid = model.image_side(shapes, self.name)
        return PixelwiseDecoder(grid, self.width, self.depth, self.initial_weights)


class PixelwiseDecoder(nn.Module):
    """Code -> image, one pixel at a time, by one MLP of the code and the pixel's position.

    A pixel's token is a linear map of the code, the same for all pixels, plus the fixed
    `position_code`; `depth` dense layers of `width` units, each with a PReLU, and a linear layer
    to one number follow. The token image is recorded too. Leading axes of the code are carried
    through.

    Attributes:
      grid: N.  width: hidden units, divisible by 4.  depth: at least 1.
      initial_weights: 'torch' or 'flax'.
    """

    grid: int
    width: int
    depth: int
    initial_weights: str = "torch"

    batched: ClassVar[bool] = True

    @nn.compact
    def __call__(self, code):
        """(..., E) -> image (..., N, N) and the activations by layer name, code first."""
        x = dense(self.width, "token", self.initial_weights, code)[..., None, None, :]
        position = position_code(self.grid, self.width)
        x = x + jnp.asarray(position).reshape((1,) * (x.ndim - 3) + position.shape)
        layers = [code, x]
        for index in range(1, self.depth + 1):
            x = dense(self.width, f"hidden_{index}", self.initial_weights, x)
            x = nn.PReLU(negative_slope_init=0.25, name=f"prelu_{index}")(x)
            layers.append(x)
        return dense(1, "image", self.initial_weights, x)[..., 0], name_layers(layers)
