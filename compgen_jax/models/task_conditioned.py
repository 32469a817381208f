"""Students: models that are told of a task and answer its inputs, (code (E,), inputs (S, I)) ->
answers (S, O).

They follow "Scaling can lead to compositional generalization" (NeurIPS 2025). `TaskMLP` is given
the code beside each input. `TaskTransformer` reads the code and then the inputs. `Hypernetwork`
makes a network from the code; it has the form of the teachers, for reference. Activations have a
leading axis over the task's inputs.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import number, require

SLOWEST = 10_000.0  # the longest wavelength of a rotation, over 2 pi positions
XAVIER = nn.initializers.xavier_uniform()


def outputs_of(shapes: Shapes, name: str) -> int:
    """O, the length of an answer. Raises ConfigError for the shapes of another kind of task."""
    given, asked = jax.tree.leaves(shapes.input), shapes.output
    ranks = [leaf.ndim for leaf in given]
    right = isinstance(asked, jax.ShapeDtypeStruct) and ranks == [1, 2] and asked.ndim == 2
    needed = "needs a task's code (E,) and inputs (S, I), and answers (S, O)"
    require(right, "model.name", name, f"{needed}, not {shapes.input} and {asked}")
    return asked.shape[1]


def _as_floats(given):
    return (leaf.astype(jnp.float32) for leaf in given)


def _beside(code, inputs):
    """(..., S, E + I): the code beside each input."""
    shape = (*inputs.shape[:-1], code.shape[-1])
    return jnp.concatenate([jnp.broadcast_to(code[..., None, :], shape), inputs], axis=-1)


# --- MLP -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskMLP(Model):
    """`TaskConditionedMLP`: `depth` hidden layers of `width` ReLU units."""

    depth: int = number(2, low=1, high=10)
    width: int = number(256, low=1)

    of_each_input: ClassVar[bool] = True
    # one product over the rows of all tasks is a sixth faster than one for each
    batched: ClassVar[bool] = True

    def make(self, shapes: Shapes) -> nn.Module:
        return TaskConditionedMLP(outputs_of(shapes, self.name), self.width, self.depth)


class TaskConditionedMLP(nn.Module):
    """[code; x] -> `depth` dense layers of `width` ReLU units -> `outputs`, for every x alone.

    Initial weights are Flax's: truncated normal of variance 1 / fan in; biases are zero.
    """

    outputs: int
    width: int
    depth: int

    @nn.compact
    def __call__(self, given):
        """(code (E,), inputs (S, I)) -> answers (S, O) and activations (S, D) by layer name, code
        and input first; leading axes are carried through."""
        code, inputs = _as_floats(given)
        as_given = lambda rows: rows.reshape(*inputs.shape[:-1], rows.shape[-1])
        hidden = nn.relu(FirstDense(self.width, name="hidden_1")(code, inputs))
        layers = [_beside(code, inputs), as_given(hidden)]
        for index in range(2, self.depth + 1):
            hidden = nn.relu(nn.Dense(self.width, name=f"hidden_{index}")(hidden))
            layers.append(as_given(hidden))
        return as_given(nn.Dense(self.outputs, name="answer")(hidden)), name_layers(layers)


class FirstDense(nn.Module):
    """A dense layer of [code; x] for the rows of all tasks. It multiplies the code, which all
    inputs of a task share, once."""

    features: int

    @nn.compact
    def __call__(self, code, inputs):
        told, size = code.shape[-1], code.shape[-1] + inputs.shape[-1]
        kernel = self.param("kernel", nn.initializers.lecun_normal(), (size, self.features))
        bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
        of_code = code.reshape(-1, told) @ kernel[:told] + bias[None]
        of_inputs = inputs.reshape(-1, inputs.shape[-1]) @ kernel[told:]
        return of_inputs + jnp.repeat(of_code, inputs.shape[-2], axis=0)


# --- transformer -----------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskTransformer(Model):
    """`TaskConditionedTransformer`: `depth` blocks of `width` channels, `heads` heads and 4
    `width` hidden units."""

    depth: int = number(2, low=1, high=24)
    width: int = number(64, low=2)
    heads: int = number(4, low=1)

    of_each_input: ClassVar[bool] = True

    def check(self, config):
        super().check(config)
        hint = f"must be a multiple of twice config.model.heads={self.heads}"
        require(self.width % (2 * self.heads) == 0, "model.width", self.width, hint)

    def make(self, shapes: Shapes) -> nn.Module:
        return TaskConditionedTransformer(outputs_of(shapes, self.name), self)


class TaskConditionedTransformer(nn.Module):
    """The sequence [code, x_1, ..., x_S] -> an answer at every x; no position sees a later one.

    It normalises before every block, and queries and keys; positions are rotary (Su et al. 2021).
    """

    outputs: int
    settings: TaskTransformer

    @nn.compact
    def __call__(self, given):
        """(code (E,), inputs (S, I)) -> answers (S, O) and activations (S, D) by layer name: those
        at the inputs' positions, first what enters the blocks."""
        code, inputs = _as_floats(given)
        width, heads = self.settings.width, self.settings.heads
        tokens = nn.Dense(width, kernel_init=XAVIER, name="embed_inputs")(inputs)
        first = nn.Dense(width, kernel_init=XAVIER, name="embed_code")(code)
        stream = jnp.concatenate([first[None], tokens])
        layers = [stream[1:]]
        for index in range(1, self.settings.depth + 1):
            stream = Block(width, heads, name=f"block_{index}")(stream)
            layers.append(stream[1:])
        last = nn.LayerNorm(use_bias=False, name="norm")(stream[1:])
        return nn.Dense(self.outputs, kernel_init=XAVIER, name="answer")(last), name_layers(layers)


class Block(nn.Module):
    """Causal attention, then two dense layers with GELU, each added to what came in."""

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
    """Pairs of channels turned by an angle that grows with the position: a product of two depends
    on the distance between their positions alone."""
    length, _, size = values_SxHxD.shape
    rates = SLOWEST ** (-jnp.arange(size // 2) / (size // 2))
    angle = (jnp.arange(length)[:, None] * rates[None])[:, None, :]
    first, second = jnp.split(values_SxHxD, 2, axis=-1)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


# --- hypernetwork ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Hypernetwork(Model):
    """`Hyper`: the networks it makes have one hidden layer of `width` ReLU units."""

    width: int = number(64, low=1)

    of_each_input: ClassVar[bool] = True

    def make(self, shapes: Shapes) -> nn.Module:
        return Hyper(outputs_of(shapes, self.name), self.width)


class Hyper(nn.Module):
    """LayerNorm(code) -> a dense layer -> the weights of a network with one hidden layer, each
    scaled by 1 / sqrt(its fan in)."""

    outputs: int
    width: int

    @nn.compact
    def __call__(self, given):
        """(code (E,), inputs (S, I)) -> answers (S, O) and activations (S, D) by layer name."""
        code, inputs = _as_floats(given)
        code = nn.LayerNorm(name="norm")(code)
        sizes = (inputs.shape[1], self.width, self.outputs)
        hidden = nn.relu(self._layer(code, inputs, *sizes[:2], "hidden"))
        answers = self._layer(code, hidden, *sizes[1:], "answer")
        return answers, name_layers([_beside(code, inputs), hidden])

    def _layer(self, code, values, inputs: int, outputs: int, name: str):
        made = nn.Dense((inputs + 1) * outputs, name=name)(code).reshape(inputs + 1, outputs)
        return values @ (made[:-1] / inputs**0.5) + made[-1:]
