"""The paper's MLP decoder (Table 1, appendix F.3), for any input and output."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models import model
from compgen_jax.models.initializers import for_dense
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import choice, number

ACTIVATIONS = {"relu": nn.relu, "tanh": jnp.tanh}


def dense(features: int, name: str, initial_weights: str, x):
    """A linear layer of the calling module, applied to x."""
    return dense_layer(features, name, initial_weights, x.shape[-1])(x)


def dense_layer(features: int, name: str, initial_weights: str, fan_in: int, bias=None) -> nn.Dense:
    """The layer of `dense`. Its biases are `bias` at first, if that is given."""
    of_kernel, of_bias = for_dense(initial_weights, fan_in)
    if bias is not None:
        of_bias = nn.initializers.constant(bias)
    return nn.Dense(features, kernel_init=of_kernel, bias_init=of_bias, name=name)


@dataclass(frozen=True)
class MLP(Model):
    """`MLPDecoder`: `depth` hidden layers of `width` units; initial weights as PyTorch's or Flax's
    defaults (`models.initializers`). Montero et al. (2021) have depth 3, width 1200 and tanh."""

    depth: int = number(4, low=1, high=10)
    width: int = number(64, low=1)
    initial_weights: str = choice("torch", "torch", "flax")
    activation: str = choice("relu", *ACTIVATIONS)

    def make(self, shapes: Shapes) -> nn.Module:
        shape = model.output_shape(shapes, self.name)
        return MLPDecoder(shape, self.width, self.depth, self.initial_weights, self.activation)


class MLPDecoder(nn.Module):
    """Input -> output: `depth` dense layers of `width` units, then a linear layer.

    Attributes:
      shape: of the output.  width, depth: of the hidden layers.  initial_weights: 'torch' or
      'flax'.  activation: 'relu' or 'tanh'.  last: the linear layer's name.  bias: what its biases
      are at first, unless None.
    """

    shape: tuple
    width: int
    depth: int
    initial_weights: str = "torch"
    activation: str = "relu"
    last: str = "image"
    bias: float | None = None

    @nn.compact
    def __call__(self, inputs):
        """One input, a pytree of arrays -> output (*shape) and the activations by layer name; the
        input comes first, as a vector."""
        layers = [model.vector(inputs)]
        for index in range(1, self.depth + 1):
            x = dense(self.width, f"hidden_{index}", self.initial_weights, layers[-1])
            layers.append(ACTIVATIONS[self.activation](x))
        fan_in, how = layers[-1].shape[-1], self.initial_weights
        linear = dense_layer(math.prod(self.shape), self.last, how, fan_in, self.bias)
        return linear(layers[-1]).reshape(self.shape), name_layers(layers)
