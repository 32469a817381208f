"""A student that makes a network of a task's code, which answers the inputs.

After "Scale leads to compositional generalization" (arXiv 2507.07207): the one whose form is the
task family's own, for reference.
"""

from dataclasses import dataclass

import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.models.task_conditioned import task_shapes
from compgen_jax.settings import number


@dataclass(frozen=True)
class Hypernetwork(Model):
    """`Hyper`: its networks have one hidden layer of `width` ReLU units."""

    width: int = number(64, low=1)

    def make(self, shapes: Shapes) -> nn.Module:
        outputs, _ = task_shapes(shapes, self.name)
        return Hyper(outputs, self.width)


class Hyper(nn.Module):
    """LayerNorm(code) -> a dense layer -> the weights of a network of one hidden layer, each scaled
    by 1 / sqrt(its fan in)."""

    outputs: int
    width: int
    of_each_input = True

    @nn.compact
    def __call__(self, given):
        """(code (E,), inputs (S, I)) -> answers (S, O) and activations (S, D) by layer name."""
        code, inputs = (leaf.astype(jnp.float32) for leaf in given)
        code = nn.LayerNorm(name="norm")(code)
        sizes = (inputs.shape[1], self.width, self.outputs)
        hidden = nn.relu(self._layer(code, inputs, *sizes[:2], "hidden"))
        beside = jnp.concatenate([jnp.broadcast_to(code, (len(inputs), len(code))), inputs], axis=1)
        return self._layer(code, hidden, *sizes[1:], "answer"), name_layers([beside, hidden])

    def _layer(self, code, values, inputs: int, outputs: int, name: str):
        made = nn.Dense((inputs + 1) * outputs, name=name)(code).reshape(inputs + 1, outputs)
        return values @ (made[:-1] / inputs**0.5) + made[-1:]
