"""Students that are told of a task and answer its inputs: (code (E,), inputs (S, I)) -> (S, O).

The MLP of "Scale leads to compositional generalization" (arXiv 2507.07207), which is given the code
beside each input. Activations have a leading axis over the task's inputs.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import ConfigError, number


def task_shapes(shapes: Shapes, name: str) -> tuple[int, int]:
    """(O, E): lengths of an answer and of the code. Raises ConfigError for another task's shapes
    than those that are read here."""
    given, asked = jax.tree.leaves(shapes.input), shapes.output
    ranks = [leaf.ndim for leaf in given]
    if not isinstance(asked, jax.ShapeDtypeStruct) or ranks != [1, 2] or asked.ndim != 2:
        raise ConfigError(
            f"config.model.name={name!r}: needs a task's code (E,) and inputs (S, I), and "
            f"answers (S, O), not {shapes.input} and {asked}"
        )
    return asked.shape[1], given[0].shape[0]


@dataclass(frozen=True)
class TaskMLP(Model):
    """`TaskConditionedMLP`: `depth` hidden layers of `width` ReLU units."""

    depth: int = number(2, low=1, high=10)
    width: int = number(256, low=1)

    def make(self, shapes: Shapes) -> nn.Module:
        outputs, _ = task_shapes(shapes, self.name)
        return TaskConditionedMLP(outputs, self.width, self.depth)


class TaskConditionedMLP(nn.Module):
    """[code; x] -> `depth` dense layers of `width` ReLU units -> `outputs`, for every x alone.

    Weights as Flax draws them: normal of variance 1 / fan in, truncated; no bias at first.
    """

    outputs: int
    width: int
    depth: int
    of_each_input = True  # activations have a leading axis over the task's inputs
    batched = True  # products of rows of all tasks are a sixth faster than of each task's

    @nn.compact
    def __call__(self, given):
        """(code (E,), inputs (S, I)) -> answers (S, O) and activations (S, D) by layer name, code
        and input first; leading axes are carried through."""
        code, inputs = (leaf.astype(jnp.float32) for leaf in given)
        as_given = lambda rows: rows.reshape(*inputs.shape[:-1], rows.shape[-1])
        hidden = nn.relu(FirstDense(self.width, name="hidden_1")(code, inputs))
        layers = [_beside(code, inputs), as_given(hidden)]
        for index in range(2, self.depth + 1):
            hidden = nn.relu(nn.Dense(self.width, name=f"hidden_{index}")(hidden))
            layers.append(as_given(hidden))
        return as_given(nn.Dense(self.outputs, name="answer")(hidden)), name_layers(layers)


class FirstDense(nn.Module):
    """A dense layer of [code; x] for the rows of all tasks; the code, which all of a task's inputs
    share, is multiplied once."""

    features: int

    @nn.compact
    def __call__(self, code, inputs):
        told, size = code.shape[-1], code.shape[-1] + inputs.shape[-1]
        kernel = self.param("kernel", nn.initializers.lecun_normal(), (size, self.features))
        bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
        of_code = code.reshape(-1, told) @ kernel[:told] + bias[None]
        of_inputs = inputs.reshape(-1, inputs.shape[-1]) @ kernel[told:]
        return of_inputs + jnp.repeat(of_code, inputs.shape[-2], axis=0)


def _beside(code, inputs):
    """(..., S, E + I)"""
    shape = (*inputs.shape[:-1], code.shape[-1])
    return jnp.concatenate([jnp.broadcast_to(code[..., None, :], shape), inputs], axis=-1)
