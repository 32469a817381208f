"""Decoders that double a small map until it has the size of the image.

Montero et al. (2021), "The role of disentanglement in generalisation", ICLR. Layouts have the names
of the authors' code.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from flax import linen as nn

from compgen_jax.models.conv import ConvTranspose
from compgen_jax.models.initializers import dense
from compgen_jax.models.mlp import ACTIVATIONS
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import choice, require


class Layout(NamedTuple):
    """units of the dense layers before the map; channels of the map and of each layer behind it,
    which doubles the side."""

    units: tuple
    channels: tuple


LAYOUTS = {
    "small": Layout((256,), (32, 32, 32)),  # burgess, doubled once less: for sides from 16
    "burgess": Layout((256,), (32, 32, 32, 32)),
    "kim": Layout((256,), (64, 64, 32, 32)),
    "deep": Layout((512, 512, 1024), (64, 64, 64, 32)),
}


@dataclass(frozen=True)
class Upsampling(Model):
    """`UpsamplingDecoder` of a named layout. `dense` and `channels`, unless empty, replace the
    layout's numbers; see `Layout`."""

    layout: str = choice("small", *LAYOUTS)
    dense: tuple = ()
    channels: tuple = ()
    activation: str = choice("relu", *ACTIVATIONS)

    convolutional: ClassVar[bool] = True
    batched: ClassVar[bool] = True

    def check(self, config):
        super().check(config)
        for field, widths in (("dense", self.dense), ("channels", self.channels)):
            positive = all(type(width) is int and width > 0 for width in widths)
            require(positive, f"model.{field}", widths, "must be positive integers, as in (64, 32)")

    def make(self, shapes: Shapes) -> nn.Module:
        self.code_length(shapes)
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
        return UpsamplingDecoder(shape, units, channels, self, shapes.lowering)


class UpsamplingDecoder(nn.Module):
    """Code -> image: dense layers, the last of which gives a map, and transposed convolutions
    (kernel 4, stride 2) that double its side.

    Attributes: shape, (H, W) or (H, W, C) of the image; units and channels, see `Layout`.
    """

    shape: tuple
    units: tuple
    channels: tuple
    settings: Upsampling
    lowering: str

    @nn.compact
    def __call__(self, code):
        """(..., E) -> image (..., H, W) or (..., H, W, C) and the activations by layer name, code
        first."""
        lead, active = code.shape[:-1], ACTIVATIONS[self.settings.activation]

        def double(features, name, x):
            return ConvTranspose(features, 4, 2, self.lowering, name=name)(x)

        layers = [code]
        for index, width in enumerate(self.units, start=1):
            layers.append(active(dense(width, f"dense_{index}", layers[-1])))
        height, width = (side >> len(self.channels) for side in self.shape[:2])
        first, *others = self.channels
        x = active(dense(height * width * first, "map", layers[-1]))
        layers.append(x.reshape(*lead, height, width, first))
        for index, features in enumerate(others, start=1):
            layers.append(active(double(features, f"hidden_{index}", layers[-1])))
        image = double((*self.shape, 1)[2], "image", layers[-1])
        return image.reshape(*lead, *self.shape), name_layers(layers)
