"""The authors' transformer of pixels: one token for each, told apart only by fixed positions.

Shape letters: N grid side, S = N^2 tokens, D channels, H heads, C = D/H channels of a head.
"""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.blocks import dense, position_code
from compgen_jax.models.model import Model, name_layers
from compgen_jax.settings import number


@dataclass(frozen=True)
class Transformer(Model):
    """`PixelTransformer`: `depth` blocks of `width` channels (a multiple of 4 and of `heads`), with
    `hidden` ReLU units; `dropout` acts where `Block` says."""

    depth: int = number(2, low=1, high=24)
    width: int = number(128, low=4)
    heads: int = number(4, low=1)
    hidden: int = number(2048, low=1)
    dropout: float = number(0.1, low=0, high=0.99)

    batched = True
    training_mode = True
    decode_batch = 8  # weights of attention are large: (H, S, S) for each example

    def make(self, shapes):
        self.check_width(math.lcm(4, self.heads))
        return PixelTransformer(self.image_side(shapes), self)


class PixelTransformer(nn.Module):
    """Code -> image by attention among pixels: a token is a linear map of the code plus
    `position_code`."""

    grid: int
    settings: Transformer

    @nn.compact
    def __call__(self, code, counts=None):
        """(..., E) -> image (..., N, N). In training `counts` is not None, and the key "dropout"
        draws what is dropped."""
        how, width = self.settings, self.settings.width
        rate = 0.0 if counts is None else how.dropout
        pixels = (*code.shape[:-1], self.grid, self.grid)
        position = position_code(self.grid, width).reshape(-1, width)
        x = dense(width, "token", code)[..., None, :]
        x = x + position.reshape((1,) * (x.ndim - 2) + position.shape)
        layers = [code, x.reshape(*pixels, width)]
        for index in range(1, how.depth + 1):
            x = Block(how.heads, how.hidden, rate, name=f"block_{index}")(x)
            layers.append(x.reshape(*pixels, width))
        return dense(1, "image", x).reshape(pixels), name_layers(layers)


class Block(nn.Module):
    """`torch.nn.TransformerEncoderLayer`, normalised after each sum (Vaswani et al. 2017); drops
    attention's weights, its output, the ReLU's output and the layers' output at `rate`."""

    heads: int
    hidden: int
    rate: float

    @nn.compact
    def __call__(self, x):
        """(..., S, D) -> (..., S, D)."""
        width = x.shape[-1]

        def drop(values):
            return dropped(self.make_rng("dropout"), values, self.rate) if self.rate else values

        # one layer, as in PyTorch: Glorot's law then counts all 3 D outputs
        parts = nn.Dense(3 * width, kernel_init=nn.initializers.xavier_uniform(), name="read")(x)
        split = parts.reshape(*x.shape[:-1], 3, self.heads, width // self.heads)
        key = self.make_rng("dropout") if self.rate else None
        mixed = attention(*jnp.moveaxis(split, -3, 0), key, self.rate).reshape(x.shape)
        attended = dense(width, "mix", mixed, bias_init=nn.initializers.zeros_init())
        x = nn.LayerNorm(epsilon=1e-5, name="norm_attention")(x + drop(attended))
        hidden = drop(nn.relu(dense(self.hidden, "hidden", x)))
        out = dense(width, "out", hidden)
        return nn.LayerNorm(epsilon=1e-5, name="norm_hidden")(x + drop(out))


def attention(query, key, value, dropout_key, rate: float):
    """softmax(query key^T / sqrt C) value, each (..., S, H, C), with weights dropped at `rate`;
    example by example, with weights computed again in the backward pass, for memory."""

    @partial(jax.checkpoint, prevent_cse=False)
    def attend(query, key, value, dropout_key):
        logits = jnp.einsum("qhc,khc->hqk", query, key) / query.shape[-1] ** 0.5
        weights = jax.nn.softmax(logits, axis=-1)
        if rate:
            weights = dropped(dropout_key, weights, rate)
        return jnp.einsum("hqk,khc->qhc", weights, value)

    examples = [values.reshape(-1, *values.shape[-3:]) for values in (query, key, value)]
    keys = jax.random.split(dropout_key, len(examples[0])) if rate else None
    return jax.lax.map(lambda example: attend(*example), (*examples, keys)).reshape(query.shape)


def dropped(key, values, rate: float):
    """The values, each set to 0 with probability `rate` (to 2^-16) and else divided by 1 -
    `rate`."""
    size, below = values.size, round(rate * 2**16)
    # two draws from each random number: drawing numbers takes most of the time
    numbers = jax.random.bits(key, ((size + 1) // 2,))
    draws = jax.lax.bitcast_convert_type(numbers, jnp.uint16).reshape(-1)[:size]
    return jnp.where(draws.reshape(values.shape) >= below, values / (1 - below / 2**16), 0)
