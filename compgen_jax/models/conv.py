"""The paper's transposed-convolution decoder (section 3.1, Table 1)."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.models.blocks import (
    ConvTranspose,
    add_bias,
    kernel_and_bias,
    position_code,
    prelu,
)
from compgen_jax.models.convolution import product
from compgen_jax.models.model import Model, name_layers
from compgen_jax.settings import choice, number


class RenderCode(nn.Module):
    """Transposed convolution of a code (..., E), as a 1 x 1 image, to (..., side, side, features),
    with VALID padding; if `broadcast`, all pixels share one kernel."""

    features: int
    side: int
    broadcast: bool

    @nn.compact
    def __call__(self, code):
        side = 1 if self.broadcast else self.side
        shape = (side, side, code.shape[-1], self.features)
        kernel, bias = kernel_and_bias(self, shape, self.features * side**2)
        image = add_bias(product(code, kernel[::-1, ::-1].transpose(2, 0, 1, 3)), bias)
        return jnp.broadcast_to(image, (*code.shape[:-1], self.side, self.side, self.features))


@dataclass(frozen=True)
class Conv(Model):
    """`ConvDecoder`: a layer of `width` channels that renders the code at a quarter of the image's
    side, and `depth` more. With `broadcast`, all pixels of the first share weights (Watters et al.
    2019). Two fields tell a pixel where it is: with `coordinates`, each later layer reads two more
    channels; `sines` adds `blocks.position_code` to the first. Unless it `mixes`, no activation
    mixes the factors before this is read. `doublings` layers double the image's side, which must be
    divisible by 4 all the same."""

    depth: int = number(4, low=2, high=10)
    width: int = number(64, low=1)
    coordinates: bool = False
    broadcast: bool = False
    sines: bool = False
    mixes: bool = True
    activation: str = choice("relu", "relu", "prelu")
    doublings: int = choice(2, 0, 1, 2)

    convolutional = True
    batched = True
    pads = True

    def make(self, shapes):
        if self.sines:
            self.check_width(4)
        return ConvDecoder(self.image_side(shapes, 4), self, shapes.lowering)

    def pad_params(self, params, like, parts, parts_like):
        """Only the first layer's kernel (side, side, E, C) depends on the grid: its rows and
        columns are flipped, so they are kept at the end."""
        layers = params["params"]
        render, kernel = layers["render"], layers["render"]["kernel"]
        starts = np.cumsum([0, *parts_like[:-1]])
        units = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, parts, strict=True)])
        zeros, side = jnp.zeros(like["params"]["render"]["kernel"].shape), len(kernel)
        kernel = zeros.at[-side:, -side:, units].set(kernel)
        return {"params": {**layers, "render": {**render, "kernel": kernel}}}


class ConvDecoder(nn.Module):
    """Code -> image, CNN(E, width, depth) of the paper: a layer renders the code, hidden ones
    double the side or keep it, a linear one gives the image."""

    grid: int
    settings: Conv
    lowering: str

    @nn.compact
    def __call__(self, code, grid=None, beside=()):
        """(..., E) -> image (..., N, N).

        grid: (traced, divisible by 4) of a smaller decoder, whose code and parameters are padded
          (`Conv.pad_params`): every layer and the image are zero beyond that grid.
        beside: maps that the first hidden layers read too, in their order.
        """
        how = self.settings

        def within(x):
            """x where row and column are within the grid, and 0 elsewhere."""
            if grid is None:
                return x
            inside = jnp.arange(x.shape[-2]) < grid * x.shape[-2] // self.grid
            inside = inside[:, None, None] & inside[None, :, None]
            return jnp.where(jnp.broadcast_to(inside, x.shape), x, 0.0)

        def active(index, x):
            return within(nn.relu(x) if how.activation == "relu" else prelu(index, x))

        def conv(features, kernel_size, stride, name, x):
            if how.coordinates:
                # a pixel's x and its y, which rise from -1 to 1 over the grid
                side = (self.grid if grid is None else grid) * x.shape[-2] // self.grid
                along = 2 * jnp.arange(x.shape[-2]) / (side - 1) - 1
                xy = jnp.stack(jnp.meshgrid(along, along), axis=-1)
                xy = jnp.broadcast_to(xy, (*x.shape[:-1], 2))
                x = within(jnp.concatenate([x, xy], axis=-1))
            return ConvTranspose(features, kernel_size, stride, self.lowering, name=name)(x)

        side = self.grid // 2**how.doublings
        x = RenderCode(how.width, side, how.broadcast, name="render")(code)
        x = active(0, x) if how.mixes else within(x)
        if how.sines:
            x = within(x + jnp.broadcast_to(position_code(side, how.width), x.shape))
        layers = [code, x]
        for index in range(1, how.depth + 1):
            if index <= len(beside):
                x = jnp.concatenate([x, beside[index - 1]], axis=-1)
            kernel_size, stride = (4, 2) if index <= how.doublings else (3, 1)
            x = active(index, conv(how.width, kernel_size, stride, f"hidden_{index}", x))
            layers.append(x)
        return within(conv(1, 3, 1, "image", x))[..., 0], name_layers(layers)
