"""The paper's MLP decoder (Table 1, appendix F.3), for any input and output."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.initializers import dense
from compgen_jax.models.model import Model, Shapes, name_layers, vector
from compgen_jax.settings import choice, number

ACTIVATIONS = {"relu": nn.relu, "tanh": jnp.tanh}


@dataclass(frozen=True)
class MLP(Model):
    """`MLPDecoder`: `depth` hidden layers of `width` units. Montero et al. (2021) have depth 3,
    width 1200 and tanh."""

    depth: int = number(4, low=1, high=10)
    width: int = number(64, low=1)
    activation: str = choice("relu", *ACTIVATIONS)

    def make(self, shapes: Shapes) -> nn.Module:
        shape = self.array_shape(shapes.output, "gives one array")
        return MLPDecoder(shape, self.width, self.depth, self.activation)


class MLPDecoder(nn.Module):
    """Input -> output: `depth` dense layers of `width` units, then a linear layer.

    Attributes: shape, of the output; last, the linear layer's name; bias, what its biases are at
    first, unless None.
    """

    shape: tuple
    width: int
    depth: int
    activation: str = "relu"
    last: str = "image"
    bias: float | None = None

    @nn.compact
    def __call__(self, inputs):
        """One input, a pytree of arrays -> output (*shape) and the activations by layer name; the
        input comes first, as a vector."""
        layers = [vector(inputs)]
        for index in range(1, self.depth + 1):
            x = dense(self.width, f"hidden_{index}", layers[-1])
            layers.append(ACTIVATIONS[self.activation](x))
        bias_init = None if self.bias is None else nn.initializers.constant(self.bias)
        output = dense(math.prod(self.shape), self.last, layers[-1], bias_init=bias_init)
        return output.reshape(self.shape), name_layers(layers)
