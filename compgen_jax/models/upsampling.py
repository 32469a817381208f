"""Decoders that double a small map until it has the size of the image: those of Montero et al.
(2021, ICLR), by the names of their code, and the one of rotated digits."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from flax import linen as nn

from compgen_jax.models.blocks import ConvTranspose, dense
from compgen_jax.models.model import Model, name_layers
from compgen_jax.settings import choice, number, require


class Layout(NamedTuple):
    """units of the dense layers before the map; channels of the map and of each layer behind it,
    which doubles the side."""

    units: tuple
    channels: tuple


LAYOUTS = {
    "small": Layout((256,), (32, 32, 32)),  # Burgess', doubled once less: for sides from 16
    "kim": Layout((256,), (64, 64, 32, 32)),
}


@dataclass(frozen=True)
class Upsampling(Model):
    """`UpsamplingDecoder` of a named layout. `dense` and `channels`, unless empty, replace the
    layout's numbers; see `Layout`."""

    layout: str = choice("small", *LAYOUTS)
    dense: tuple = ()
    channels: tuple = ()

    convolutional = True
    batched = True

    def make(self, shapes):
        widths = *self.dense, *self.channels
        positive = all(type(width) is int and width > 0 for width in widths)
        require(positive, "model.dense and .channels", widths, "must be positive integers")
        shape, layout = self.image_shape(shapes), LAYOUTS[self.layout]
        units, channels = self.dense or layout.units, self.channels or layout.channels
        height, width = shape[:2]
        multiple = 2 ** len(channels)
        hint = (
            f"doubles its map {len(channels)} times, so that both sides of the image must be "
            f"divisible by {multiple}, not {height} x {width}; config.model.channels has a "
            "number for each time"
        )
        require(height % multiple == width % multiple == 0, "model.name", self.name, hint)
        return UpsamplingDecoder(shape, units, channels, shapes.lowering)


class UpsamplingDecoder(nn.Module):
    """Code -> image: dense layers, the last of which gives a map, and transposed convolutions that
    double its side. Attributes: shape, (H, W) or (H, W, C); units and channels, see `Layout`."""

    shape: tuple
    units: tuple
    channels: tuple
    lowering: str

    @nn.compact
    def __call__(self, code):
        """(..., E) -> image (..., H, W) or (..., H, W, C)."""
        double = partial(ConvTranspose, kernel_size=4, stride=2, lowering=self.lowering)
        layers = [code]
        for index, width in enumerate(self.units, start=1):
            layers.append(nn.relu(dense(width, f"dense_{index}", layers[-1])))
        height, width = (side >> len(self.channels) for side in self.shape[:2])
        first, *others = self.channels
        x = nn.relu(dense(height * width * first, "map", layers[-1]))
        layers.append(x.reshape(*code.shape[:-1], height, width, first))
        for index, features in enumerate(others, start=1):
            layers.append(nn.relu(double(features, name=f"hidden_{index}")(layers[-1])))
        image = double((*self.shape, 1)[2], name="image")(layers[-1])
        return image.reshape(*code.shape[:-1], *self.shape), name_layers(layers)


@dataclass(frozen=True)
class ConvBatchNorm(Model):
    """`ConvBatchNormDecoder`: `width` channels (an even number), and half as many in its last
    hidden layer."""

    width: int = number(128, low=2)

    convolutional = True
    batched = True
    training_mode = True

    def make(self, shapes):
        self.check_width(2)
        return ConvBatchNormDecoder(self.image_side(shapes, 4), self.width, shapes.lowering)


class ConvBatchNormDecoder(nn.Module):
    """The authors' decoder of a rotated digit (Fig 9): code -> image with values between 0 and 1.

    A linear layer gives an N/4 x N/4 image; two transposed convolutions (kernel 4, stride 2), each
    with BatchNorm and ReLU; a convolution (kernel 3) and a sigmoid. Batches move the running
    statistics by a tenth, as in PyTorch, whose running variance is the unbiased one, n/(n-1) times
    this one.
    """

    grid: int
    width: int
    lowering: str

    @nn.compact
    def __call__(self, code, counts=None):
        """(..., E) -> image (..., N, N). In training the codes are (B, E), `counts` (B,) bool says
        which of them the statistics are over, and `mutable` must have "batch_stats"."""
        side = self.grid // 4
        x = dense(side * side * self.width, "dense", code, "fan_in")
        x = x.reshape(*code.shape[:-1], side, side, self.width)
        layers = [code, x]
        for index, features in enumerate((self.width, self.width // 2), start=1):
            name = f"hidden_{index}"
            x = ConvTranspose(features, 4, 2, self.lowering, "fan_in", name=name)(x)
            # the mean of squares minus the squared mean would lose digits where the mean is large
            normalise = nn.BatchNorm(
                use_running_average=counts is None,
                momentum=0.9,
                epsilon=1e-5,
                use_fast_variance=False,
                name=f"norm_{index}",
            )
            mask = None if counts is None else counts.reshape(-1, *[1] * (x.ndim - 1))
            x = nn.relu(normalise(x, mask=mask))
            layers.append(x)
        image = ConvTranspose(1, 3, 1, self.lowering, "fan_out", name="image")(x)
        return nn.sigmoid(image)[..., 0], name_layers(layers)
