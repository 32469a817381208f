"""Decoders of dense layers: the paper's MLP (Table 1, appendix F.3), for any input and output, and
those that add (Lachapelle et al. 2023, NeurIPS) or multiply (Wiedemer et al. 2023, NeurIPS) a
network for each factor."""

import math
from dataclasses import dataclass
from functools import partial, reduce
from operator import mul

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.blocks import dense
from compgen_jax.models.model import Model, name_layers, split
from compgen_jax.settings import number


@dataclass(frozen=True)
class MLP(Model):
    """`MLPDecoder`: `depth` hidden layers of `width` units."""

    depth: int = number(4, low=1, high=10)
    width: int = number(64, low=1)

    def make(self, shapes):
        shape = self.array_shape(shapes.output, "gives one array")
        return MLPDecoder(shape, self.width, self.depth)


class MLPDecoder(nn.Module):
    """Input -> output: `depth` dense layers of `width` ReLU units, then a linear layer, named
    `last`; its biases are `bias` at first, unless None."""

    shape: tuple
    width: int
    depth: int
    last: str = "image"
    bias: float | None = None

    @nn.compact
    def __call__(self, inputs):
        """One input, a pytree of arrays -> output (*shape); the first layer is the input as a
        vector."""
        leaves = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(inputs)]
        layers = [jnp.concatenate(leaves)]
        for index in range(1, self.depth + 1):
            layers.append(nn.relu(dense(self.width, f"hidden_{index}", layers[-1])))
        bias_init = None if self.bias is None else nn.initializers.constant(self.bias)
        output = dense(math.prod(self.shape), self.last, layers[-1], bias_init=bias_init)
        return output.reshape(self.shape), name_layers(layers)


@dataclass(frozen=True)
class Additive(Model):
    """`PerFactorDecoder` without `terms`: `depth` hidden layers of `width` units for each
    factor."""

    depth: int = number(2, low=1, high=10)
    width: int = number(128, low=1)

    terms = 0

    def make(self, shapes):
        return PerFactorDecoder(shapes.output.shape, self.factor_parts(shapes), self)


@dataclass(frozen=True)
class Multiplicative(Additive):
    """`PerFactorDecoder`: a sum of `terms` products of networks as in `additive`."""

    terms: int = number(2, low=1, high=1000)


class PerFactorDecoder(nn.Module):
    """Code -> sum over the factors f of M_f(part f of the code) or, with K = `terms`, bias + sum_k
    prod_f M_fk(part f of the code), entry by entry. M_f is an `MLPDecoder` of its own; layers are
    recorded side by side."""

    shape: tuple
    parts: tuple
    settings: Additive

    @nn.compact
    def __call__(self, code):
        """One code (E,) -> output (*shape)."""
        how = self.settings
        network = partial(MLPDecoder, shape=self.shape, width=how.width, depth=how.depth)
        if how.terms:
            # A factor's gradient is a product of the other factors' maps. Near zero it would
            # vanish, the more so with more factors. Maps start near a constant whose K products
            # sum to 1 for any number of factors: so a factor that has learnt nothing leaves the
            # others alone.
            start, shape = how.terms ** (-1 / len(self.parts)), (how.terms, *self.shape)
            network = partial(network, last="maps", bias=start, shape=shape)
        maps, activations = [], []
        for f, part in enumerate(split(code, self.parts), start=1):
            output, layers = network(name=f"factor_{f}")(part)
            maps.append(output)
            activations.append(layers)
        layers = jax.tree.map(lambda *layers: jnp.concatenate(layers, axis=-1), *activations)
        if not how.terms:
            return sum(maps), layers
        bias = self.param("bias", nn.initializers.zeros_init(), self.shape)
        return bias + jnp.sum(reduce(mul, maps), axis=0), layers
