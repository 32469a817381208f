"""Decoders that combine one network per factor in a known way: a sum, or a sum of products.

Lachapelle et al. (2023), "Additive decoders for latent variables identification and
Cartesian-product extrapolation", NeurIPS; Wiedemer et al. (2023), "Compositional generalization
from first principles", NeurIPS.
"""

from dataclasses import dataclass
from functools import partial, reduce
from operator import mul

import jax
import jax.numpy as jnp
from flax import linen as nn

from compgen_jax.models.mlp import MLPDecoder
from compgen_jax.models.model import Model, Shapes, split
from compgen_jax.settings import number, require


def parts_of_factors(model: Model, shapes: Shapes) -> tuple[int, ...]:
    """Lengths of the code's parts, one for each factor. Raises ConfigError for an input without two
    or more, and an output that is not one array."""
    length, parts = model.code_length(shapes), shapes.parts
    needed = "needs a code with a part for each of two or more factors"
    fits = len(parts) > 1 and sum(parts) == length
    require(fits, "model.name", model.name, f"{needed}, not {length} numbers in parts {parts}")
    model.array_shape(shapes.output, "gives one array")
    return tuple(parts)


@dataclass(frozen=True)
class Additive(Model):
    """`AdditiveDecoder`: `depth` hidden layers of `width` units for each factor."""

    depth: int = number(2, low=1, high=10)
    width: int = number(128, low=1)

    def make(self, shapes: Shapes) -> nn.Module:
        return AdditiveDecoder(shapes.output.shape, parts_of_factors(self, shapes), self)


class AdditiveDecoder(nn.Module):
    """Code -> sum over the factors f of MLP_f(part f of the code), each with its own parameters and
    output bias; layers are recorded side by side."""

    shape: tuple
    parts: tuple
    settings: Model

    @nn.compact
    def __call__(self, code):
        """One code (E,) -> output (*shape) and the activations by layer name, code first."""
        outputs, layers = self.of_each_factor(self.shape, code)
        return sum(outputs), layers

    def of_each_factor(self, shape, code, **last) -> tuple:
        """The outputs of an `MLPDecoder` for each factor, and their activations side by side."""
        network = partial(MLPDecoder, shape, self.settings.width, self.settings.depth, **last)
        outputs, activations = [], []
        for f, part in enumerate(split(code, self.parts), start=1):
            output, layers = network(name=f"factor_{f}")(part)
            outputs.append(output)
            activations.append(layers)
        join = lambda *layers: jnp.concatenate(layers, axis=-1)
        return outputs, jax.tree.map(join, *activations)


@dataclass(frozen=True)
class Multiplicative(Model):
    """`MultiplicativeDecoder`: a sum of `terms` products. Each factor has a network of `depth`
    hidden layers of `width` units."""

    depth: int = number(2, low=1, high=10)
    width: int = number(128, low=1)
    terms: int = number(2, low=1, high=1000)

    def make(self, shapes: Shapes) -> nn.Module:
        return MultiplicativeDecoder(shapes.output.shape, parts_of_factors(self, shapes), self)


class MultiplicativeDecoder(AdditiveDecoder):
    """Code -> bias + sum_k prod_f M_fk(part f of the code), entry by entry: M_f is an `MLPDecoder`
    with K = `terms` arrays as output; the bias is an array too."""

    @nn.compact
    def __call__(self, code):
        """One code (E,) -> output (*shape) and the activations by layer name, code first."""
        # A factor's gradient is a product of the other factors' maps. Near zero it would vanish,
        # the more so with more factors. Maps start near a constant whose K products sum to 1 for
        # any number of factors: so a factor that has learnt nothing leaves the others alone.
        terms = self.settings.terms
        start = terms ** (-1 / len(self.parts))
        maps, layers = self.of_each_factor((terms, *self.shape), code, last="maps", bias=start)
        bias = self.param("bias", nn.initializers.zeros_init(), self.shape)
        return bias + jnp.sum(reduce(mul, maps), axis=0), layers
