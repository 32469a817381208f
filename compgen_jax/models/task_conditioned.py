"""Students that are told of a task and answer its inputs, (code (E,), inputs (S, I)) -> answers
(S, O), as in "Scaling can lead to compositional generalization" (NeurIPS 2025).
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import number, require

SLOWEST = 10_000.0  # the longest wavelength of a rotation, over 2 pi positions


@dataclass(frozen=True)
class Student(Model):
    """What the three students share."""

    of_each_input: ClassVar[bool] = True

    def outputs(self, shapes: Shapes) -> int:
        """O, the length of an answer. Raises ConfigError for the shapes of another task."""
        ranks = [leaf.ndim for leaf in jax.tree.leaves((shapes.input, shapes.output))]
        fits = isinstance(shapes.output, jax.ShapeDtypeStruct) and ranks == [1, 2, 2]
        needed = "needs a task's code (E,) and inputs (S, I), and answers (S, O)"
        require(fits, "model.name", self.name, f"{needed}, not {shapes.input} and {shapes.output}")
        return shapes.output.shape[1]


def with_code(code, inputs):
    """(..., S, E + I): the code beside each input."""
    shape = (*inputs.shape[:-1], code.shape[-1])
    return jnp.concatenate([jnp.broadcast_to(code[..., None, :], shape), inputs], axis=-1)


# --- MLP -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskMLP(Student):
    """`TaskConditionedMLP`: `depth` hidden layers of `width` ReLU units."""

    depth: int = number(2, low=1, high=10)
    width: int = number(256, low=1)

    # one product over the rows of all tasks is a sixth faster than one for each
    batched: ClassVar[bool] = True

    def make(self, shapes: Shapes) -> nn.Module:
        return TaskConditionedMLP(self.outputs(shapes), self.width, self.depth)


class TaskConditionedMLP(nn.Module):
    """[code; x] -> `depth` dense layers of `width` ReLU units -> `outputs`, for every x alone.

    Initial weights are Flax's: truncated normal of variance 1 / fan in; biases are zero.
    """

    outputs: int
    width: int
    depth: int

    @nn.compact
    def __call__(self, code_and_inputs):
        """(code (E,), inputs (S, I)) -> answers (S, O) and activations (S, D) by layer name, code
        and input first; leading axes are carried through."""
        code, inputs = (leaf.astype(jnp.float32) for leaf in code_and_inputs)

        def over_inputs(rows):
            return rows.reshape(*inputs.shape[:-1], rows.shape[-1])

        hidden = nn.relu(FirstDense(self.width, name="hidden_1")(code, inputs))
        layers = [with_code(code, inputs), over_inputs(hidden)]
        for index in range(2, self.depth + 1):
            hidden = nn.relu(nn.Dense(self.width, name=f"hidden_{index}")(hidden))
            layers.append(over_inputs(hidden))
        return over_inputs(nn.Dense(self.outputs, name="answer")(hidden)), name_layers(layers)


class FirstDense(nn.Module):
    """A dense layer of [code; x] for the rows of all tasks. It multiplies the code, which all
    inputs of a task share, once."""

    features: int

    @nn.compact
    def __call__(self, code, inputs):
        length, size = code.shape[-1], code.shape[-1] + inputs.shape[-1]
        kernel = self.param("kernel", nn.initializers.lecun_normal(), (size, self.features))
        bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
        of_code = code.reshape(-1, length) @ kernel[:length] + bias[None]
        of_inputs = inputs.reshape(-1, inputs.shape[-1]) @ kernel[length:]
        return of_inputs + jnp.repeat(of_code, inputs.shape[-2], axis=0)


# --- transformer -----------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskTransformer(Student):
    """`TaskConditionedTransformer`: `depth` blocks of `width` channels, `heads` heads and 4
    `width` hidden units."""

    depth: int = number(2, low=1, high=24)
    width: int = number(64, low=2)
    heads: int = number(4, low=1)

    def check(self, config):
        super().check(config)
        hint = f"must be a multiple of twice config.model.heads={self.heads}"
        require(self.width % (2 * self.heads) == 0, "model.width", self.width, hint)

    def make(self, shapes: Shapes) -> nn.Module:
        return TaskConditionedTransformer(self.outputs(shapes), self)


class TaskConditionedTransformer(nn.Module):
    """The sequence [code, x_1, ..., x_S] -> an answer at every x; no position sees a later one.

    It normalises before every block, and queries and keys; positions are rotary (Su et al. 2021).
    """

    outputs: int
    settings: TaskTransformer

    @nn.compact
    def __call__(self, code_and_inputs):
        """(code (E,), inputs (S, I)) -> answers (S, O) and activations (S, D) by layer name: those
        at the inputs' positions, first what enters the blocks."""
        code, inputs = (leaf.astype(jnp.float32) for leaf in code_and_inputs)
        width, heads = self.settings.width, self.settings.heads
        tokens = xavier_dense(width, "embed_inputs", inputs)
        stream = jnp.concatenate([xavier_dense(width, "embed_code", code)[None], tokens])
        layers = [stream[1:]]
        for index in range(1, self.settings.depth + 1):
            stream = Block(heads, name=f"block_{index}")(stream)
            layers.append(stream[1:])
        answers = xavier_dense(self.outputs, "answer", normed("norm", stream[1:]))
        return answers, name_layers(layers)


def xavier_dense(features: int, name: str, x):
    return nn.Dense(features, kernel_init=nn.initializers.xavier_uniform(), name=name)(x)


def normed(name: str, x):
    return nn.LayerNorm(use_bias=False, name=name)(x)


class Block(nn.Module):
    """Causal attention, then two dense layers with GELU, each added to what came in."""

    heads: int

    @nn.compact
    def __call__(self, stream):
        length, width = stream.shape
        x = normed("norm_attention", stream)

        def of_heads(name):
            return xavier_dense(width, name, x).reshape(length, self.heads, width // self.heads)

        query = rotated(normed("norm_query", of_heads("query")))
        key = rotated(normed("norm_key", of_heads("key")))
        logits = jnp.einsum("qhd,khd->hqk", query, key) / (width // self.heads) ** 0.5
        later = jnp.triu(jnp.ones((length, length), bool), 1)
        weights = jax.nn.softmax(jnp.where(later[None], -jnp.inf, logits), axis=-1)
        mixed = jnp.einsum("hqk,khd->qhd", weights, of_heads("value")).reshape(length, width)
        stream = stream + xavier_dense(width, "mix", mixed)
        hidden = nn.gelu(xavier_dense(4 * width, "mlp_in", normed("norm_mlp", stream)))
        return stream + xavier_dense(width, "mlp_out", hidden)


def rotated(values_SxHxD):
    """Pairs of channels turned by an angle that grows with the position (Su et al. 2021)."""
    length, _, size = values_SxHxD.shape
    rates = SLOWEST ** (-jnp.arange(size // 2) / (size // 2))
    angle = (jnp.arange(length)[:, None] * rates[None])[:, None, :]
    first, second = jnp.split(values_SxHxD, 2, axis=-1)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


# --- hypernetwork ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Hypernetwork(Student):
    """`Hyper`: the networks it makes have one hidden layer of `width` ReLU units."""

    width: int = number(64, low=1)

    def make(self, shapes: Shapes) -> nn.Module:
        return Hyper(self.outputs(shapes), self.width)


class Hyper(nn.Module):
    """LayerNorm(code) -> a dense layer -> the weights of a network with one hidden layer, each
    scaled by 1 / sqrt(its fan in)."""

    outputs: int
    width: int

    @nn.compact
    def __call__(self, code_and_inputs):
        """(code (E,), inputs (S, I)) -> answers (S, O) and activations (S, D) by layer name."""
        code, inputs = (leaf.astype(jnp.float32) for leaf in code_and_inputs)
        code = nn.LayerNorm(name="norm")(code)

        def layer(values, features: int, name: str):
            length = values.shape[1]
            made = nn.Dense((length + 1) * features, name=name)(code).reshape(-1, features)
            return values @ (made[:-1] / length**0.5) + made[-1:]

        hidden = nn.relu(layer(inputs, self.width, "hidden"))
        answers = layer(hidden, self.outputs, "answer")
        return answers, name_layers([with_code(code, inputs), hidden])
