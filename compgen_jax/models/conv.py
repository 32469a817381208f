"""The paper's transposed-convolution decoder (section 3.1, Table 1)."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models import model
from compgen_jax.models.convolution import conv_transpose, product
from compgen_jax.models.initializers import add_bias, kernel_and_bias
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.models.places import check_width, position_code, with_coordinates
from compgen_jax.settings import choice, number, require


class ConvTranspose(nn.Module):
    """Transposed convolution with the parameters of `nn.ConvTranspose` ('SAME' padding). PyTorch
    calls `fan_out` what is 'kaiming_fan_in' here (`models.initializers`)."""

    features: int
    kernel_size: int
    stride: int
    initial_weights: str
    lowering: str

    @nn.compact
    def __call__(self, x):
        shape = (self.kernel_size, self.kernel_size, x.shape[-1], self.features)
        kernel, bias = kernel_and_bias(self, shape, self.features * self.kernel_size**2)
        y = conv_transpose(x, kernel, stride=self.stride, lowering=self.lowering)
        return add_bias(y, bias)


class RenderCode(nn.Module):
    """Transposed convolution of a code, as a 1 x 1 image, to a whole image.

    (..., E) -> (..., side, side, features). Each output pixel reads the code alone, so it is one
    matrix product. As in `nn.ConvTranspose` with 'VALID' padding, output (i, j) uses the kernel at
    (side-1-i, side-1-j). If `broadcast`, all pixels share one kernel, and are alike.
    """

    features: int
    side: int
    initial_weights: str
    broadcast: bool = False

    @nn.compact
    def __call__(self, code):
        side = 1 if self.broadcast else self.side
        shape = (side, side, code.shape[-1], self.features)
        kernel, bias = kernel_and_bias(self, shape, self.features * side**2)
        image = add_bias(product(code, kernel[::-1, ::-1].transpose(2, 0, 1, 3)), bias)
        return jnp.broadcast_to(image, (*code.shape[:-1], self.side, self.side, self.features))


def rendered(module, code, beside=(), within=lambda x: x, located=lambda x: x):
    """A code (..., E) -> image (..., N, N) and the layers before it, by layers of the calling
    module: those of `ConvDecoder`, of its `grid`, `settings` and `lowering`.

    `beside` (a list) has maps that stand beside the input of the first hidden layers, the first
    layer's last. `within` is applied to every layer and to the image, `located` to the input of
    every transposed convolution.
    """
    settings, weights = module.settings, module.settings.initial_weights
    width, side = settings.width, module.grid // 2**settings.doublings

    def active(x, index):
        if settings.activation == "relu":
            return within(nn.relu(x))
        return within(nn.PReLU(negative_slope_init=0.25, name=f"prelu_{index}")(x))

    x = RenderCode(width, side, weights, settings.broadcast, name="render")(code)
    x = active(x, 0) if settings.mixes else within(x)
    if settings.sines:
        place = position_code(side, width)
        x = within(x + place.reshape((1,) * (x.ndim - 3) + place.shape))
    layers, how = [x], (weights, module.lowering)
    for index in range(1, settings.depth + 1):
        x = jnp.concatenate([x, beside.pop()], axis=-1) if beside else x
        kernel_size, stride = (4, 2) if index <= settings.doublings else (3, 1)
        hidden = ConvTranspose(width, kernel_size, stride, *how, name=f"hidden_{index}")
        x = active(hidden(located(x)), index)
        layers.append(x)
    return within(ConvTranspose(1, 3, 1, *how, name="image")(located(x)))[..., 0], layers


def twice_doubled_side(shapes: Shapes, name: str) -> int:
    """N of one square image (N, N) that is decoded from a vector. Raises ConfigError for other
    shapes, and for an N that is not divisible by 4."""
    grid = model.image_side(shapes, name)
    hint = f"doubles the side of its image twice, so that it must be divisible by 4, not {grid}"
    require(grid % 4 == 0, "model.name", name, hint)
    return grid


@dataclass(frozen=True)
class Conv(Model):
    """`ConvDecoder`: a layer of `width` channels that renders the code at a quarter of the image's
    side, and `depth` more behind it; initial weights as PyTorch's or Flax's defaults
    (`models.initializers`). With `broadcast`, the first layer has one set of weights for all pixels
    (Watters et al. 2019, "Spatial Broadcast Decoder"). Two fields tell a pixel where it is, which
    otherwise only the image's border would: with `coordinates`, each of the `depth` layers and the
    last one read two more channels; with `sines`, `places.position_code` is added to the first
    layer. Unless it `mixes`, no activation mixes the factors before this is read. `doublings` of
    the layers double the side of the image; with 0 the first one has the image's side, which must
    be divisible by 4 all the same."""

    depth: int = number(4, low=2, high=10)
    width: int = number(64, low=1)
    initial_weights: str = choice("torch", "torch", "flax")
    coordinates: bool = False
    broadcast: bool = False
    sines: bool = False
    mixes: bool = True
    activation: str = choice("relu", "relu", "prelu")
    doublings: int = choice(2, 0, 1, 2)

    convolutional: ClassVar[bool] = True
    pads: ClassVar[bool] = True
    batched: ClassVar[bool] = True

    def make(self, shapes: Shapes) -> nn.Module:
        if self.sines:
            check_width(self.width, self.name)
        return ConvDecoder(twice_doubled_side(shapes, self.name), self, shapes.lowering)

    def pad_params(self, params, like, parts, parts_like):
        """Pads the parameters of a `ConvDecoder` to a larger grid, whose shapes `like` has.

        Only the first layer's kernel (side, side, E, C) depends on the grid. Its flipped rows and
        columns are kept at their end. Each factor's part of the code, of lengths `parts`, is kept
        at the beginning of the larger grid's part, of lengths `parts_like`.
        """
        kernel, wanted = (tree["params"]["render"]["kernel"] for tree in (params, like))
        beyond = wanted.shape[0] - kernel.shape[0]
        blocks = []
        for part, length in zip(model.split(kernel, parts, axis=2), parts_like, strict=True):
            pads = [(beyond, 0), (beyond, 0), (0, length - part.shape[2]), (0, 0)]
            blocks.append(jnp.pad(part, pads))
        render = {**params["params"]["render"], "kernel": jnp.concatenate(blocks, axis=2)}
        return {"params": {**params["params"], "render": render}}


class ConvDecoder(nn.Module):
    """Code -> image by transposed convolutions: CNN(E, width, depth) of the paper.

    With two doublings the first layer, recorded after its place is added, renders the code at
    N/4 x N/4. `depth` hidden layers follow: the first two double the side (kernel 4, stride 2), the
    others keep it (kernel 3). Each of these depth + 1 layers ends in the activation (the first only
    if the decoder `mixes`) and is recorded. A last, linear layer (kernel 3) gives the image.
    Leading axes of the code are carried through.

    Given a smaller `grid` (traced, divisible by 4), it is the decoder of that grid, whose code and
    parameters are padded (`Conv.pad_params`): every layer and the image are zero beyond the grid.

    Attributes:
      grid: N, divisible by 4.  lowering: see `models.convolution`.
      settings: see `Conv`; C is `width`. The channels of `coordinates` (Liu et al. 2018,
        "CoordConv") are not recorded. The first layer renders N / 2^doublings.
    """

    grid: int
    settings: Conv
    lowering: str = "lax"

    @nn.compact
    def __call__(self, code, grid=None):
        """(..., E) -> image (..., N, N) and the activations by layer name, code first."""

        def within(x):
            return x if grid is None else _mask(x, grid * x.shape[-2] // self.grid)

        def located(x):
            if not self.settings.coordinates:
                return x
            side = (self.grid if grid is None else grid) * x.shape[-2] // self.grid
            return within(with_coordinates(x, side))

        image, layers = rendered(self, code, within=within, located=located)
        return image, name_layers([code, *layers])


def _mask(x, side):
    """x (..., H, W, C) where row and column are below `side`, and 0 elsewhere."""
    inside_H, inside_W = (jnp.arange(length) < side for length in x.shape[-3:-1])
    inside = inside_H[:, None, None] & inside_W[None, :, None]
    return jnp.where(inside.reshape((1,) * (x.ndim - 3) + inside.shape), x, 0.0)
