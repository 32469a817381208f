"""The authors' decoder of a rotated digit (Fig 9): transposed convolutions, normalised over the
batch."""

from dataclasses import dataclass
from typing import ClassVar

from flax import linen as nn

from compgen_jax.models.conv import ConvTranspose
from compgen_jax.models.initializers import dense
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import number, require


@dataclass(frozen=True)
class ConvBatchNorm(Model):
    """`ConvBatchNormDecoder`: `width` channels (an even number) in its first layers, and half as
    many in its last hidden layer."""

    width: int = number(128, low=2)

    convolutional: ClassVar[bool] = True
    batched: ClassVar[bool] = True
    training_mode: ClassVar[bool] = True

    def check(self, config):
        super().check(config)
        hint = f"must be even for {self.name} (its last hidden layer has half as many channels)"
        require(self.width % 2 == 0, "model.width", self.width, hint)

    def make(self, shapes: Shapes) -> nn.Module:
        return ConvBatchNormDecoder(self.image_side(shapes, 4), self.width, shapes.lowering)


class ConvBatchNormDecoder(nn.Module):
    """Code -> image with values between 0 and 1.

    A linear layer gives an N/4 x N/4 image of C channels; two transposed convolutions (kernel 4,
    stride 2, to C and C/2 channels), each with BatchNorm and ReLU; a convolution (kernel 3) and a
    sigmoid. Batches move the running statistics by a tenth, as in PyTorch, whose running variance
    is the unbiased one, n/(n-1) times this one.
    """

    grid: int
    width: int
    lowering: str

    @nn.compact
    def __call__(self, code, counts=None):
        """(..., E) -> image (..., N, N) and the activations by layer name: the code, the linear
        layer and the two ReLU layers.

        In training the codes are (B, E), `counts` (B,) bool says which of them the statistics are
        over, and `mutable` must have "batch_stats".
        """
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
