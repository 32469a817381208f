"""A sum of products of one image per factor.

A bump is one such product, of a stripe in x and one in y; one minus a bump is that and a constant
image. A sum of images (`models.additive`) is the case in which each product depends on one factor
alone. Wiedemer et al. (2023), "Compositional generalization from first principles", NeurIPS, say
when a network whose way to combine its parts is known must compose.
"""

import math
from dataclasses import dataclass
from functools import reduce
from operator import mul

import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models import initializers
from compgen_jax.models.additive import join_layers, parts_of_factors, split
from compgen_jax.models.mlp import dense
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import choice, number


@dataclass(frozen=True)
class Multiplicative(Model):
    """`MultiplicativeDecoder`: a sum of `terms` products; each factor has a network of `depth`
    hidden layers of `width` units, with initial weights as PyTorch's or Flax's defaults
    (`models.initializers`)."""

    depth: int = number(2, low=1, high=10)
    width: int = number(128, low=1)
    terms: int = number(2, low=1, high=1000)
    initial_weights: str = choice("torch", "torch", "flax")

    def make(self, shapes: Shapes) -> nn.Module:
        parts = parts_of_factors(shapes, self.name)
        return MultiplicativeDecoder(
            shapes.output.shape, parts, self.width, self.depth, self.terms, self.initial_weights
        )


class Maps(nn.Module):
    """Part of a code -> K arrays, by `depth` dense layers of `width` ReLU units and a linear one,
    whose bias is `start` at first.

    Returns (K, *shape) and the activations by layer name, the part first.
    """

    terms: int
    shape: tuple
    width: int
    depth: int
    initial_weights: str
    start: float

    @nn.compact
    def __call__(self, part):
        layers = [part]
        for index in range(1, self.depth + 1):
            x = dense(self.width, f"hidden_{index}", self.initial_weights, layers[-1])
            layers.append(nn.relu(x))
        # A factor's gradient is the product of the other factors' maps: near zero it would vanish,
        # the more so the more factors there are. Maps start near one constant instead, of which K
        # products sum to 1 whatever F: a factor that has learnt nothing leaves the others alone.
        init = initializers.for_dense(self.initial_weights, self.width)
        maps = nn.Dense(
            self.terms * math.prod(self.shape),
            kernel_init=init.kernel,
            bias_init=nn.initializers.constant(self.start),
            name="maps",
        )(layers[-1])
        return maps.reshape(self.terms, *self.shape), name_layers(layers)


class MultiplicativeDecoder(nn.Module):
    """Code -> bias + sum_k prod_f M_fk(part f of the code), entry by entry.

    M_f, with K outputs of the output's shape, is a network of factor f's own (`Maps`); the bias is
    an array of that shape, the same for all codes and zero at first. Recorded are the code and the
    hidden layers, each with the factors' units side by side.

    Attributes:
      shape: of the output.  parts: lengths of the code's parts.  width, depth: of the hidden
      layers of one factor.  terms: K.  initial_weights: 'torch' or 'flax'.
    """

    shape: tuple
    parts: tuple
    width: int
    depth: int
    terms: int
    initial_weights: str = "torch"

    @nn.compact
    def __call__(self, code):
        """One code (E,) -> output (*shape) and the activations by layer name, code first."""
        start = self.terms ** (-1 / len(self.parts))
        settings = self.terms, self.shape, self.width, self.depth, self.initial_weights, start
        maps, layers = zip(
            *(
                Maps(*settings, name=f"factor_{f}")(part)
                for f, part in enumerate(split(code, self.parts), start=1)
            ),
            strict=True,
        )
        bias = self.param("bias", nn.initializers.zeros_init(), self.shape)
        return bias + jnp.sum(reduce(mul, maps), axis=0), join_layers(layers)
