"""The paper's transposed-convolution decoder (section 3.1, Table 1)."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.convolution import conv_transpose, product
from compgen_jax.models.initializers import add_bias, kernel_and_bias, prelu
from compgen_jax.models.model import Model, Shapes, name_layers, split
from compgen_jax.models.places import check_width, position_code, with_coordinates
from compgen_jax.settings import choice, number


class ConvTranspose(nn.Module):
    """`nn.ConvTranspose` with SAME padding, by a `lowering`."""

    features: int
    kernel_size: int
    stride: int
    lowering: str
    law: str = "torch"

    @nn.compact
    def __call__(self, x):
        shape = (self.kernel_size, self.kernel_size, x.shape[-1], self.features)
        kernel, bias = kernel_and_bias(self, shape, self.features * self.kernel_size**2, self.law)
        return add_bias(conv_transpose(x, kernel, self.stride, self.lowering), bias)


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
    side, and `depth` more behind it. With `broadcast`, the first layer has one set of weights for
    all pixels (Watters et al. 2019, "Spatial Broadcast Decoder"). Two fields tell a pixel where it
    is, which otherwise only the image's border would: with `coordinates` (Liu et al. 2018,
    "CoordConv"), each of the `depth` layers and the last one read two more channels; with `sines`,
    `places.position_code` is added to the first layer. Unless it `mixes`, no activation mixes the
    factors before this is read. `doublings` of the layers double the side of the image; with 0 the
    first one has the image's side, which must be divisible by 4 all the same."""

    depth: int = number(4, low=2, high=10)
    width: int = number(64, low=1)
    coordinates: bool = False
    broadcast: bool = False
    sines: bool = False
    mixes: bool = True
    activation: str = choice("relu", "relu", "prelu")
    doublings: int = choice(2, 0, 1, 2)

    convolutional: ClassVar[bool] = True
    batched: ClassVar[bool] = True
    pads: ClassVar[bool] = True

    def make(self, shapes: Shapes) -> nn.Module:
        if self.sines:
            check_width(self.width, self.name)
        return ConvDecoder(self.image_side(shapes, 4), self, shapes.lowering)

    def pad_params(self, params, like, parts, parts_like):
        """Only the first layer's kernel (side, side, E, C) depends on the grid: its rows and
        columns are flipped, so they are kept at the end."""
        layers = params["params"]
        kernel = layers["render"]["kernel"]
        beyond = like["params"]["render"]["kernel"].shape[0] - kernel.shape[0]
        blocks = []
        for part, length in zip(split(kernel, parts, axis=2), parts_like, strict=True):
            pads = [(beyond, 0), (beyond, 0), (0, length - part.shape[2]), (0, 0)]
            blocks.append(jnp.pad(part, pads))
        render = {**layers["render"], "kernel": jnp.concatenate(blocks, axis=2)}
        return {"params": {**layers, "render": render}}


class ConvDecoder(nn.Module):
    """Code -> image by transposed convolutions, CNN(E, width, depth) of the paper: a layer renders
    the code, hidden layers double the side or keep it, a linear one gives the image."""

    grid: int
    settings: Conv
    lowering: str

    @nn.compact
    def __call__(self, code, grid=None, beside=()):
        """(..., E) -> image (..., N, N) and the activations by layer name, code first.

        grid: (traced, divisible by 4) of a smaller decoder, whose code and parameters are padded
          (`Conv.pad_params`): every layer and the image are zero beyond that grid.
        beside: maps that the first hidden layers read too, in their order.
        """
        how = self.settings

        def within(x):
            """x where row and column are within the grid, and 0 elsewhere."""
            if grid is None:
                return x
            side = grid * x.shape[-2] // self.grid
            inside_H, inside_W = (jnp.arange(length) < side for length in x.shape[-3:-1])
            inside = inside_H[:, None, None] & inside_W[None, :, None]
            return jnp.where(inside.reshape((1,) * (x.ndim - 3) + inside.shape), x, 0.0)

        def active(index, x):
            return within(nn.relu(x) if how.activation == "relu" else prelu(index, x))

        def conv(features, kernel_size, stride, name, x):
            if how.coordinates:
                side = (self.grid if grid is None else grid) * x.shape[-2] // self.grid
                x = within(with_coordinates(x, side))
            return ConvTranspose(features, kernel_size, stride, self.lowering, name=name)(x)

        side = self.grid // 2**how.doublings
        x = RenderCode(how.width, side, how.broadcast, name="render")(code)
        x = active(0, x) if how.mixes else within(x)
        if how.sines:
            position = position_code(side, how.width)
            x = within(x + position.reshape((1,) * (x.ndim - 3) + position.shape))
        layers = [code, x]
        for index in range(1, how.depth + 1):
            if index <= len(beside):
                x = jnp.concatenate([x, beside[index - 1]], axis=-1)
            kernel_size, stride = (4, 2) if index <= how.doublings else (3, 1)
            x = active(index, conv(how.width, kernel_size, stride, f"hidden_{index}", x))
            layers.append(x)
        return within(conv(1, 3, 1, "image", x))[..., 0], name_layers(layers)
