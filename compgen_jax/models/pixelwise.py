"""A decoder that all pixels share. It shows what weight sharing alone does for composition.

The authors' repository has it, the paper does not. A decoder with parameters for each pixel cannot
draw at pixels that training left blank, for any code; this one has none, unless it is asked to.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.models import model
from compgen_jax.models.conv import ConvTranspose
from compgen_jax.models.mlp import dense, dense_layer
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.models.places import check_width, position_code
from compgen_jax.settings import choice, number, require

# A megabyte stays in a core's cache; passes over more are bound by memory. A step of two models on
# the authors' settings takes 450 ms with all pixels at once and 190 ms by rows.
AT_ONCE = 2**18


@dataclass(frozen=True)
class Pixelwise(Model):
    """`PixelwiseDecoder`: `depth` hidden layers of `width` units. Three fields change one thing
    each: unless `shared`, every pixel reads the code by weights of its own; the pixels from row and
    column `apart[0]` to `apart[1]` share other weights for this than the rest; with a `kernel` of
    3, hidden layers also read the pixels beside (*pixelwise* is then wrong)."""

    depth: int = number(4, low=1, high=10)
    width: int = number(64, low=1)
    initial_weights: str = choice("torch", "torch", "flax")
    shared: bool = True
    apart: tuple = ()
    kernel: int = choice(1, 1, 3)

    batched: ClassVar[bool] = True

    def check(self, config):
        super().check(config)
        check_width(self.width, self.name)
        whole = all(type(edge) is int and edge >= 0 for edge in self.apart)
        valid = whole and len(self.apart) == 2 and self.apart[0] <= self.apart[1] and self.shared
        hint = "must be empty, or the first and the last row of a block, with model.shared"
        require(not self.apart or valid, "model.apart", self.apart, hint)

    def make(self, shapes: Shapes) -> nn.Module:
        grid = model.image_side(shapes, self.name)
        hint = f"must lie in an image of {grid} rows"
        require(max(self.apart, default=0) < grid, "model.apart", self.apart, hint)
        # pixels that can be drawn without the others
        alone = self.shared and not self.apart and self.kernel == 1
        at_once = AT_ONCE if jax.default_backend() == "cpu" and alone else 0
        how = self.initial_weights, self.shared, self.apart, self.kernel, shapes.lowering, at_once
        return PixelwiseDecoder(grid, self.width, self.depth, *how)


class PixelwiseDecoder(nn.Module):
    """Code -> image, one pixel at a time, by one MLP of the code and the pixel's position.

    A pixel's token is a linear map of the code, the same for all pixels if `shared`, plus the fixed
    `position_code`. `depth` dense layers of `width` units follow, each with a PReLU, and a linear
    layer to one number. The token image is recorded too. Leading axes of the code are carried
    through.

    Where only the image is used, it is drawn in parts of a few rows. The backward pass then
    computes all but the matrix products again.

    Attributes:
      grid: N.  width: hidden units, divisible by 4.  depth: at least 1.
      initial_weights: 'torch' or 'flax'.
      shared: whether the map of the code is the same for all pixels.
      apart: the first and last row, and column, of pixels that share another map; or empty.
      kernel: 1, or 3 for hidden layers that are convolutions.
      lowering: see `models.convolution`.
      at_once: how many units of one layer are held at once (at least a row's of all examples); 0
        for those of all pixels.
    """

    grid: int
    width: int
    depth: int
    initial_weights: str = "torch"
    shared: bool = True
    apart: tuple = ()
    kernel: int = 1
    lowering: str = "lax"
    at_once: int = 0

    @nn.compact
    def __call__(self, code, rows=None):
        """(..., E) -> image (..., N, N) and the activations by layer name, code first. With the
        position codes of some `rows` (R, N, width), only these rows (..., R, N)."""
        whole = jnp.asarray(position_code(self.grid, self.width))
        pixels = self.grid, self.grid
        maps = (2, 1) if self.apart else (1, 1) if self.shared else pixels
        token = dense(math.prod(maps) * self.width, "token", self.initial_weights, code)
        token = token.reshape(*code.shape[:-1], *maps, self.width)
        if self.apart:
            low, high = self.apart
            inside = np.zeros((*pixels, 1), bool)
            inside[low : high + 1, low : high + 1] = True
            inside = inside.reshape((1,) * (token.ndim - 3) + inside.shape)
            token = jnp.where(inside, token[..., 1:, :, :], token[..., :1, :, :])
        position = whole if rows is None else rows
        position = position.reshape((1,) * (token.ndim - 3) + position.shape)
        layers = [code, token + position]
        for index in range(1, self.depth + 1):
            name = f"hidden_{index}"
            if self.kernel > 1:
                how = self.kernel, 1, self.initial_weights, self.lowering
                x = ConvTranspose(self.width, *how, name=name)(layers[-1])
            else:
                layer = dense_layer(self.width, name, self.initial_weights, self.width)
                if index == 1:  # of each summand alone: cheaper than of each pixel of each example
                    x = layer(token) + position @ layer.variables["params"]["kernel"]
                else:
                    x = layer(x)
            x = nn.PReLU(negative_slope_init=0.25, name=f"prelu_{index}")(x)
            layers.append(x)
        image = dense(1, "image", self.initial_weights, x)[..., 0]
        parts = self._parts(x.size)
        if rows is None and parts > 1 and not self.is_initializing():
            alone = self.clone(parent=None)
            # products are kept: to multiply again takes a third more time
            draw = jax.checkpoint(
                lambda rows: alone.apply(self.variables, code, rows)[0],
                policy=jax.checkpoint_policies.dots_saveable,
            )
            drawn = jax.lax.map(draw, whole.reshape(parts, -1, *whole.shape[1:]))
            image = jnp.moveaxis(drawn, 0, -3).reshape(image.shape)
        return image, name_layers(layers)

    def _parts(self, units: int) -> int:
        """The least number of equal parts of rows with at most `at_once` of a layer's units."""
        fits = lambda parts: not self.at_once or units <= parts * self.at_once
        divisors = (parts for parts in range(1, self.grid + 1) if self.grid % parts == 0)
        return next((parts for parts in divisors if fits(parts)), self.grid)
