"""Students that are told of a task and answer its inputs, (code (E,), inputs (S, I)) -> answers
(S, O), as in "Scaling can lead to compositional generalization" (NeurIPS 2025).
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.blocks import add_bias
from compgen_jax.models.model import Model, name_layers
from compgen_jax.settings import number, require

SLOWEST = 10_000.0  # the longest wavelength of a rotation, over 2 pi positions


@dataclass(frozen=True)
class Student(Model):
    """Each of three has a `network`, made of O, the length of an answer, and these settings."""

    network = None
    of_each_input = True

    def make(self, shapes):
        ranks = [leaf.ndim for leaf in jax.tree.leaves((shapes.input, shapes.output))]
        fits = isinstance(shapes.output, jax.ShapeDtypeStruct) and ranks == [1, 2, 2]
        needed = "needs a task's code (E,) and inputs (S, I), and answers (S, O)"
        require(fits, "model.name", self.name, f"{needed}, not {shapes.input} and {shapes.output}")
        return self.network(shapes.output.shape[1], self)


class Network(nn.Module):
    outputs: int
    settings: Student


def with_code(code, inputs):
    """(..., S, E + I): the code beside each input."""
    shape = (*inputs.shape[:-1], code.shape[-1])
    return jnp.concatenate([jnp.broadcast_to(code[..., None, :], shape), inputs], axis=-1)


# --- MLP -------------------------------------------------------------------------------------


class TaskConditionedMLP(Network):
    """[code; x] -> `depth` dense layers of `width` ReLU units -> `outputs`, for every x alone."""

    @nn.compact
    def __call__(self, code_and_inputs):
        """(code (E,), inputs (S, I)) -> answers (S, O); leading axes are carried through."""
        code, inputs = (leaf.astype(jnp.float32) for leaf in code_and_inputs)
        width, depth = self.settings.width, self.settings.depth
        first = FirstDense(width, name="hidden_1")(code, inputs)
        layers = [with_code(code, inputs), nn.relu(first)]
        for index in range(2, depth + 1):
            layers.append(nn.relu(nn.Dense(width, name=f"hidden_{index}")(layers[-1])))
        return nn.Dense(self.outputs, name="answer")(layers[-1]), name_layers(layers)


class FirstDense(nn.Module):
    """A dense layer of [code; x], which multiplies the code, that all inputs of a task share,
    once."""

    features: int

    @nn.compact
    def __call__(self, code, inputs):
        length, size = code.shape[-1], code.shape[-1] + inputs.shape[-1]
        kernel = self.param("kernel", nn.initializers.lecun_normal(), (size, self.features))
        bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
        of_code = add_bias(code @ kernel[:length], bias)
        return inputs @ kernel[length:] + of_code[..., None, :]


@dataclass(frozen=True)
class TaskMLP(Student):
    """`TaskConditionedMLP`: `depth` hidden layers of `width` ReLU units."""

    depth: int = number(2, low=1, high=10)
    width: int = number(256, low=1)

    network = TaskConditionedMLP
    # one product over the rows of all tasks is a sixth faster than one for each
    batched = True


# --- transformer -----------------------------------------------------------------------------

Dense = partial(nn.Dense, kernel_init=nn.initializers.xavier_uniform())
Norm = partial(nn.LayerNorm, use_bias=False)


class TaskConditionedTransformer(Network):
    """The sequence [code, x_1, ..., x_S] -> an answer at every x; no position sees a later one.

    It normalises before every block, and queries and keys; positions are rotary (Su et al. 2021).
    """

    @nn.compact
    def __call__(self, code_and_inputs):
        """(code (E,), inputs (S, I)) -> answers (S, O); activations are those at the inputs'
        positions."""
        code, inputs = (leaf.astype(jnp.float32) for leaf in code_and_inputs)
        how = self.settings
        tokens = Dense(how.width, name="embed_inputs")(inputs)
        stream = jnp.concatenate([Dense(how.width, name="embed_code")(code)[None], tokens])
        layers = [stream[1:]]
        for index in range(1, how.depth + 1):
            stream = Block(how.heads, name=f"block_{index}")(stream)
            layers.append(stream[1:])
        answers = Dense(self.outputs, name="answer")(Norm(name="norm")(stream[1:]))
        return answers, name_layers(layers)


class Block(nn.Module):
    """Causal attention, then two dense layers with GELU, each added to what came in."""

    heads: int

    @nn.compact
    def __call__(self, stream):
        length, width = stream.shape
        x, size = Norm(name="norm_attention")(stream), width // self.heads
        query, key, value = (
            Dense(width, name=name)(x).reshape(length, self.heads, size)
            for name in ("query", "key", "value")
        )
        query, key = rotated(Norm(name="norm_query")(query)), rotated(Norm(name="norm_key")(key))
        logits = jnp.einsum("qhd,khd->hqk", query, key) / size**0.5
        later = jnp.triu(jnp.ones((length, length), bool), 1)
        weights = jax.nn.softmax(jnp.where(later[None], -jnp.inf, logits), axis=-1)
        mixed = jnp.einsum("hqk,khd->qhd", weights, value).reshape(length, width)
        stream = stream + Dense(width, name="mix")(mixed)
        hidden = nn.gelu(Dense(4 * width, name="mlp_in")(Norm(name="norm_mlp")(stream)))
        return stream + Dense(width, name="mlp_out")(hidden)


def rotated(values_SxHxD):
    """Pairs of channels turned by an angle that grows with the position (Su et al. 2021)."""
    length, _, size = values_SxHxD.shape
    rates = SLOWEST ** (-jnp.arange(size // 2) / (size // 2))
    angle = (jnp.arange(length)[:, None] * rates[None])[:, None, :]
    first, second = jnp.split(values_SxHxD, 2, axis=-1)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


@dataclass(frozen=True)
class TaskTransformer(Student):
    """`TaskConditionedTransformer`: `depth` blocks of `width` channels, `heads` heads and 4
    `width` hidden units."""

    depth: int = number(2, low=1, high=24)
    width: int = number(64, low=2)
    heads: int = number(4, low=1)

    network = TaskConditionedTransformer

    def make(self, shapes):
        self.check_width(2 * self.heads)
        return super().make(shapes)


# --- hypernetwork ----------------------------------------------------------------------------


class Hyper(Network):
    """LayerNorm(code) -> a dense layer -> the weights of a network with one hidden layer, each
    scaled by 1 / sqrt(its fan in)."""

    @nn.compact
    def __call__(self, code_and_inputs):
        """(code (E,), inputs (S, I)) -> answers (S, O)."""
        code, inputs = (leaf.astype(jnp.float32) for leaf in code_and_inputs)
        code = nn.LayerNorm(name="norm")(code)

        def layer(values, features: int, name: str):
            length = values.shape[1]
            made = nn.Dense((length + 1) * features, name=name)(code).reshape(-1, features)
            return values @ (made[:-1] / length**0.5) + made[-1:]

        hidden = nn.relu(layer(inputs, self.settings.width, "hidden"))
        answers = layer(hidden, self.outputs, "answer")
        return answers, name_layers([with_code(code, inputs), hidden])


@dataclass(frozen=True)
class Hypernetwork(Student):
    """`Hyper`: the networks it makes have one hidden layer of `width` ReLU units."""

    width: int = number(64, low=1)

    network = Hyper
