"""A decoder-only transformer that reads a task's code and then its inputs.

After "Scale leads to compositional generalization" (arXiv 2507.07207): normalisation before every
block and of queries and keys, rotary positions (Su et al. 2021), causal attention.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.models.task_conditioned import task_shapes
from compgen_jax.settings import ConfigError, number

SLOWEST = 10_000.0  # the longest wavelength of a rotation, over 2 pi positions


@dataclass(frozen=True)
class TaskTransformer(Model):
    """`TaskConditionedTransformer`: `depth` blocks of `width` channels, `heads` heads and 4
    `width` hidden units."""

    depth: int = number(2, low=1, high=24)
    width: int = number(64, low=2)
    heads: int = number(4, low=1)

    def check(self, config):
        super().check(config)
        if self.width % (2 * self.heads):
            raise ConfigError(
                f"config.model.width={self.width}: must be a multiple of twice "
                f"config.model.heads={self.heads}"
            )

    def make(self, shapes: Shapes) -> nn.Module:
        outputs, _ = task_shapes(shapes, self.name)
        return TaskConditionedTransformer(outputs, self.width, self.depth, self.heads)


class TaskConditionedTransformer(nn.Module):
    """The sequence [code, x_1, ..., x_S] -> an answer at every x; no position sees a later one."""

    outputs: int
    width: int
    depth: int
    heads: int
    of_each_input = True

    @nn.compact
    def __call__(self, given):
        """(code (E,), inputs (S, I)) -> answers (S, O) and activations (S, D) by layer name, those
        of the inputs' positions; the first is what enters the blocks."""
        code, inputs = (leaf.astype(jnp.float32) for leaf in given)
        tokens = nn.Dense(self.width, kernel_init=XAVIER, name="embed_inputs")(inputs)
        first = nn.Dense(self.width, kernel_init=XAVIER, name="embed_code")(code)
        stream = jnp.concatenate([first[None], tokens])
        layers = [stream[1:]]
        for index in range(1, self.depth + 1):
            stream = Block(self.width, self.heads, name=f"block_{index}")(stream)
            layers.append(stream[1:])
        last = nn.LayerNorm(use_bias=False, name="norm")(stream[1:])
        return nn.Dense(self.outputs, kernel_init=XAVIER, name="answer")(last), name_layers(layers)


XAVIER = nn.initializers.xavier_uniform()


class Block(nn.Module):
    """Attention, then two dense layers with GELU, each added to what came in."""

    width: int
    heads: int

    @nn.compact
    def __call__(self, stream):
        normed = nn.LayerNorm(use_bias=False, name="norm_attention")(stream)
        stream = stream + self._attend(normed)
        normed = nn.LayerNorm(use_bias=False, name="norm_mlp")(stream)
        hidden = nn.gelu(nn.Dense(4 * self.width, kernel_init=XAVIER, name="mlp_in")(normed))
        return stream + nn.Dense(self.width, kernel_init=XAVIER, name="mlp_out")(hidden)

    def _attend(self, values):
        length, size = len(values), self.width // self.heads
        split = lambda name: nn.Dense(self.width, kernel_init=XAVIER, name=name)(values).reshape(
            length, self.heads, size
        )
        query = rotated(nn.LayerNorm(use_bias=False, name="norm_query")(split("query")))
        key = rotated(nn.LayerNorm(use_bias=False, name="norm_key")(split("key")))
        logits = jnp.einsum("qhd,khd->hqk", query, key) / size**0.5
        later = jnp.triu(jnp.ones((length, length), bool), 1)
        weights = jax.nn.softmax(jnp.where(later[None], -jnp.inf, logits), axis=-1)
        mixed = jnp.einsum("hqk,khd->qhd", weights, split("value"))
        return nn.Dense(self.width, kernel_init=XAVIER, name="mix")(mixed.reshape(length, -1))


def rotated(values_SxHxD):
    """Pairs of channels turned by an angle that grows with the position, so that a product of two
    depends on how far apart they are."""
    length, _, size = values_SxHxD.shape
    rates = SLOWEST ** (-jnp.arange(size // 2) / (size // 2))
    angle = (jnp.arange(length)[:, None] * rates[None])[:, None, :]
    first, second = jnp.split(values_SxHxD, 2, axis=-1)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)
