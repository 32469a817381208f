"""A decoder that all pixels share, in the authors' repository, not in the paper: what weight
sharing alone does."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.models.blocks import ConvTranspose, dense, position_code, prelu
from compgen_jax.models.model import Model, name_layers
from compgen_jax.settings import choice, number, require

# A megabyte stays in a core's cache; passes over more are bound by memory. A step of two models on
# the authors' settings takes 450 ms with all pixels at once and 190 ms by rows.
AT_ONCE = 2**18


@dataclass(frozen=True)
class Pixelwise(Model):
    """`PixelwiseDecoder`: `depth` hidden layers of `width` units. Unless `shared`, every pixel
    reads the code by weights of its own. The pixels from row and column `apart[0]` to `apart[1]`
    share other weights than the rest. With a `kernel` of 3, hidden layers also read the pixels
    beside."""

    depth: int = number(4, low=1, high=10)
    width: int = number(64, low=1)
    shared: bool = True
    apart: tuple = ()
    kernel: int = choice(1, 1, 3)

    batched = True

    def make(self, shapes):
        self.check_width(4)
        grid, apart = self.image_side(shapes), self.apart
        hint = f"must be empty, or a block's first and last row of {grid}, with model.shared"
        is_block = self.shared and len(apart) == 2 and {*apart} <= {*range(grid)}
        require(not apart or (is_block and apart[0] <= apart[1]), "model.apart", apart, hint)
        # pixels that can be drawn without the others
        alone = self.shared and not apart and self.kernel == 1
        at_once = AT_ONCE if jax.default_backend() == "cpu" and alone else 0
        return PixelwiseDecoder(grid, self, shapes.lowering, at_once)


class PixelwiseDecoder(nn.Module):
    """Code -> image, one pixel at a time, by one MLP with PReLU of a token: a linear map of the
    code plus `position_code`. Where only the image is used, it is drawn in parts of rows, with at
    most `at_once` units of one layer (0: all)."""

    grid: int
    settings: Pixelwise
    lowering: str
    at_once: int = 0

    @nn.compact
    def __call__(self, code, rows=None):
        """(..., E) -> image (..., N, N). With the position codes of some `rows` (R, N, width), only
        these rows (..., R, N)."""
        how, width = self.settings, self.settings.width
        whole = position_code(self.grid, width)
        maps = (2, 1) if how.apart else (1, 1) if how.shared else (self.grid, self.grid)
        token = dense(math.prod(maps) * width, "token", code)
        token = token.reshape(*code.shape[:-1], *maps, width)
        lead = (1,) * (token.ndim - 3)
        if how.apart:
            low, high = how.apart
            inside = np.zeros((*lead, self.grid, self.grid, 1), bool)
            inside[..., low : high + 1, low : high + 1, :] = True
            token = jnp.where(inside, token[..., 1:, :, :], token[..., :1, :, :])
        position = whole if rows is None else rows
        position = position.reshape(lead + position.shape)
        layers = [code, token + position]
        for index in range(1, how.depth + 1):
            name, x = f"hidden_{index}", layers[-1]
            if how.kernel > 1:
                x = ConvTranspose(width, how.kernel, 1, self.lowering, name=name)(x)
            elif index > 1:
                x = dense(width, name, x)
            else:  # of each summand alone: cheaper than of each pixel of each example
                x = dense(width, name, token)
                x += position @ self.variables["params"][name]["kernel"]
            layers.append(prelu(index, x))
        image = dense(1, "image", layers[-1])[..., 0]
        # the least number of equal parts of rows with at most `at_once` of a layer's units
        least = math.ceil(layers[-1].size / self.at_once) if self.at_once else 1
        parts = next((n for n in range(least, self.grid) if self.grid % n == 0), self.grid)
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
