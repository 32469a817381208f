"""The convolutional encoder of the bump paper's authors, from an image to its factors (not in the
paper)."""

from dataclasses import dataclass

from flax import linen as nn

from compgen_jax.models.blocks import HalvingConv, dense
from compgen_jax.models.model import Model, name_layers
from compgen_jax.settings import number


@dataclass(frozen=True)
class Encoder(Model):
    """`ConvEncoder`: `depth` convolutions of `width`, 2 `width`, ... channels, and a layer of
    `hidden` units."""

    depth: int = number(3, low=1, high=5)
    width: int = number(32, low=1)
    hidden: int = number(128, low=1)

    batched = True

    def make(self, shapes):
        needed = "needs one image (H, W) or (H, W, C) as input"
        shape = self.array_shape(shapes.input, needed, (2, 3))
        (outputs,) = self.array_shape(shapes.output, "gives one vector", (1,))
        return ConvEncoder(outputs, len(shape) == 3, self)


class ConvEncoder(nn.Module):
    """Image -> vector: convolutions and a layer of `hidden` units, each with a ReLU; then a linear
    layer, as in the authors' encoder_exps/bump.py."""

    outputs: int
    colour: bool
    settings: Encoder

    @nn.compact
    def __call__(self, image):
        """(..., H, W) or (..., H, W, C) -> (..., O)."""
        x, layers, how = image if self.colour else image[..., None], [image], self.settings
        for index in range(how.depth):
            x = nn.relu(HalvingConv(how.width * 2**index, name=f"conv_{index + 1}")(x))
            layers.append(x)
        layers.append(nn.relu(dense(how.hidden, "hidden", x.reshape(*x.shape[:-3], -1))))
        return dense(self.outputs, "answer", layers[-1]), name_layers(layers)
