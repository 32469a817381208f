"""Conditional flow matching: a decoder that draws an image by taking noise out of it, in steps.

Lipman et al. (2023), ICLR, on straight paths: x_t = (1 - t) noise + t image. The network predicts
the image; sampling follows dx/dt = (image - x) / (1 - t).
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.blocks import HalvingConv
from compgen_jax.models.conv import Conv, ConvDecoder
from compgen_jax.models.model import Model
from compgen_jax.settings import number, require

TIMES = 8  # numbers that code the time


@dataclass(frozen=True)
class Flow(Model):
    """`FlowDecoder` with `width` channels and `depth` layers behind the first, as the decoder
    `conv`. It samples in `steps` steps of Euler's method, on which training does not depend."""

    depth: int = number(3, low=3, high=10)
    width: int = number(32, low=1)
    steps: int = number(20, low=1, high=1000)

    batched = True
    training_mode = True
    sees_target = True

    def check(self, config):
        super().check(config)
        loss, hint = getattr(config.task, "loss", ""), "says logits, and a flow says pixels"
        require(loss != "bernoulli", "task.loss", loss, hint)

    def make(self, shapes):
        return FlowDecoder(self.image_side(shapes, 4), self, shapes.lowering)


class FlowDecoder(nn.Module):
    """Code -> image, a deterministic sample: each initialisation draws the noise that its samples
    start from. In training every example has a uniform time and its own noise."""

    grid: int
    settings: Flow
    lowering: str

    @nn.compact
    def __call__(self, code, counts=None, target=None):
        """(..., E) -> image (..., N, N). In training, the image said at a random time of the path
        to `target` (B, N, N); else a sample, with the activations of its first step."""
        lead, shape, steps = code.shape[:-1], (self.grid, self.grid), self.settings.steps
        decoder = Conv(self.settings.depth, self.settings.width)
        denoise = Denoiser(self.grid, decoder, self.lowering, name="denoiser")

        noise = lambda key, shape: jax.random.normal(self.make_rng(key), shape)
        start = self.variable("noise", "start", noise, "params", shape).value
        if target is not None:
            time = jax.random.uniform(self.make_rng("dropout"), lead)
            mixed = time[..., None, None]
            noisy = (1 - mixed) * noise("dropout", target.shape) + mixed * target
            return denoise(noisy, time, code)

        def advance(denoise, x, time):
            image, _ = denoise(x, jnp.full(lead, time), code)
            return x + (image - x) / ((1 - time) * steps), None

        x = jnp.broadcast_to(start, (*lead, *shape))
        image, layers = denoise(x, jnp.zeros(lead), code)
        times = jnp.arange(1, steps) / steps
        scan = nn.scan(advance, variable_broadcast="params", split_rngs={"params": False})
        return scan(denoise, x + (image - x) / steps, times)[0], layers


class Denoiser(ConvDecoder):
    """Noisy image, time and code -> image: the decoder of the paper, which reads the noisy image at
    each of its three sizes."""

    @nn.compact
    def __call__(self, noisy, time, code):
        """(..., N, N), (...) and (..., E) -> (..., N, N)."""
        width, beside = self.settings.width, [noisy[..., None]]
        for index, features in enumerate((-(-width // 2), width), start=1):
            beside.insert(0, nn.relu(HalvingConv(features, name=f"noisy_{index}")(beside[0])))
        multiples = jnp.arange(TIMES, dtype=jnp.float32).reshape((1,) * time.ndim + (-1,))
        timed = jnp.concatenate([code, jnp.cos(jnp.pi * multiples * time[..., None])], axis=-1)
        image, layers = super().__call__(timed, beside=beside)
        return image, {**layers, "layer_00": code}
