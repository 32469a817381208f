"""Conditional flow matching: a decoder that draws an image by taking noise out of it, in steps.

Lipman et al. (2023), "Flow matching for generative modeling", ICLR, on straight paths: at the time
t the image is x_t = (1 - t) noise + t image, t from 0 to 1. The network says the image from x_t, t
and the code; sampling follows dx/dt = (image said - x) / (1 - t). Where the code tells the whole
image, the best answer at every t is that of a decoder of the code alone. So what differs OOD is for
the noise that training shows.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.conv import Conv, rendered, twice_doubled_side
from compgen_jax.models.encoder import HalvingConv
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import number, require

TIMES = 8  # numbers that code the time


@dataclass(frozen=True)
class Flow(Model):
    """`FlowDecoder` with `width` channels and `depth` layers behind the first, as the decoder
    `conv`. It samples in `steps` steps of Euler's method; 1 is the prediction at t = 0. Training
    does not depend on them."""

    depth: int = number(3, low=3, high=10)
    width: int = number(32, low=1)
    steps: int = number(20, low=1, high=1000)

    batched: ClassVar[bool] = True
    training_mode: ClassVar[bool] = True
    sees_target: ClassVar[bool] = True

    def check(self, config):
        super().check(config)
        loss, hint = getattr(config.task, "loss", ""), "says logits, and a flow says pixels"
        require(loss != "bernoulli", "task.loss", loss, hint)

    def make(self, shapes: Shapes) -> nn.Module:
        grid = twice_doubled_side(shapes, self.name)
        return FlowDecoder(grid, self, shapes.lowering)


class FlowDecoder(nn.Module):
    """Code -> image, a deterministic sample: each initialisation draws the noise that all of its
    samples start from.

    In training every example has a time, uniform from 0 to 1, and noise of its own.

    Attributes:
      grid: N, divisible by 4.  settings: of the `Denoiser`, and `steps` of a sample.
      lowering: see `models.convolution`.
    """

    grid: int
    settings: Flow
    lowering: str = "lax"

    @nn.compact
    def __call__(self, code, counts=None, target=None):
        """(..., E) -> image (..., N, N) and the activations by layer name, code first. In training,
        the image said at a random time of the path to `target` (B, N, N); else a sample, and the
        activations are those of its first step."""
        lead, shape, how = code.shape[:-1], (self.grid, self.grid), self.settings
        decoder = Conv(how.depth, how.width)
        said = Denoiser(self.grid, decoder, self.lowering, name="denoiser")
        start = self.variable("noise", "start", lambda: self._normal("params", shape)).value
        if target is not None:
            time = jax.random.uniform(self.make_rng("dropout"), lead)
            mixed = time[..., None, None]
            return said((1 - mixed) * self._normal("dropout", target.shape) + mixed * target,
                        time, code)  # fmt: skip
        step = lambda image, x, time: x + (image - x) / ((1 - time) * how.steps)
        x = jnp.broadcast_to(start, (*lead, *shape))
        image, layers = said(x, jnp.zeros(lead), code)

        def advance(said, x, time):
            return step(said(x, jnp.full(lead, time), code)[0], x, time), None

        scan = nn.scan(advance, variable_broadcast="params", split_rngs={"params": False})
        times = jnp.arange(1, how.steps) / how.steps
        return scan(said, step(image, x, 0.0), times)[0], layers

    def _normal(self, key: str, shape):
        return jax.random.normal(self.make_rng(key), shape)


class Denoiser(nn.Module):
    """Noisy image, time and code -> image: the paper's decoder (`conv.ConvDecoder`), which reads
    the noisy image at each of its three sizes.

    Two convolutions with ReLUs halve the noisy image's side, to C/2 (rounded up) and to C channels.
    These maps, and the image, stand beside those of the decoder as the input of its next layer.
    """

    grid: int
    settings: Conv
    lowering: str = "lax"

    @nn.compact
    def __call__(self, noisy, time, code):
        """(..., N, N), (...) and (..., E) -> (..., N, N) and the activations by layer name."""
        beside = [noisy[..., None]]
        width = self.settings.width
        for index, features in enumerate((-(-width // 2), width), start=1):
            conv = HalvingConv(features, "torch", name=f"noisy_{index}")
            beside.append(nn.relu(conv(beside[-1])))
        frequencies = jnp.arange(TIMES, dtype=jnp.float32).reshape((1,) * time.ndim + (-1,))
        timed = jnp.concatenate([code, jnp.cos(jnp.pi * frequencies * time[..., None])], axis=-1)
        image, layers = rendered(self, timed, beside)
        return image, name_layers([code, *layers])
