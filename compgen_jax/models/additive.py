"""A sum of one image per factor: the simplest decoder of which composition is known.

Lachapelle et al. (2023), "Additive decoders for latent variables identification and
Cartesian-product extrapolation", NeurIPS: what such a decoder says at any combination of values
follows from what it says where each value was seen.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.models import model
from compgen_jax.models.mlp import MLPDecoder
from compgen_jax.models.model import Model, Shapes, name_layers
from compgen_jax.settings import ConfigError, choice, number


def parts_of_factors(shapes: Shapes, name: str) -> tuple[int, ...]:
    """Lengths of the code's parts, one for each factor. Raises ConfigError for an input that is no
    code of two factors or more, and for an output that is not one array."""
    length = model.code_length(shapes, name)
    if len(shapes.parts) < 2 or sum(shapes.parts) != length:
        raise ConfigError(
            f"config.model.name={name!r}: needs a code with a part for each of two or more "
            f"factors, not {length} numbers in parts {shapes.parts}"
        )
    if not isinstance(shapes.output, jax.ShapeDtypeStruct):
        raise ConfigError(f"config.model.name={name!r}: gives one array, not {shapes.output}")
    return tuple(shapes.parts)


def split(code, parts):
    """The parts of a code (..., E), one for each factor."""
    return jnp.split(code, np.cumsum(parts)[:-1].tolist(), axis=-1)


def join_layers(layers_of_factors) -> dict:
    """Activations by layer name of several networks, side by side in each layer."""
    return name_layers(
        jnp.concatenate(same, axis=-1)
        for same in zip(*(each.values() for each in layers_of_factors), strict=True)
    )


@dataclass(frozen=True)
class Additive(Model):
    """`AdditiveDecoder`: `depth` hidden layers of `width` units for each factor; initial weights as
    PyTorch's or Flax's defaults (`models.initializers`)."""

    depth: int = number(2, low=1, high=10)
    width: int = number(128, low=1)
    initial_weights: str = choice("torch", "torch", "flax")

    def make(self, shapes: Shapes) -> nn.Module:
        parts = parts_of_factors(shapes, self.name)
        return AdditiveDecoder(
            shapes.output.shape, parts, self.width, self.depth, self.initial_weights
        )


class AdditiveDecoder(nn.Module):
    """Code -> sum over the factors f of MLP_f(part f of the code).

    Each factor's `MLPDecoder` has parameters of its own, an output bias too. Recorded are the code
    and the hidden layers, each with the factors' units side by side.

    Attributes:
      shape: of the output.  parts: lengths of the code's parts.  width, depth: of the hidden
      layers of one factor.  initial_weights: 'torch' or 'flax'.
    """

    shape: tuple
    parts: tuple
    width: int
    depth: int
    initial_weights: str = "torch"

    @nn.compact
    def __call__(self, code):
        """One code (E,) -> output (*shape) and the activations by layer name, code first."""
        outputs, layers = zip(
            *(
                MLPDecoder(
                    self.shape, self.width, self.depth, self.initial_weights, name=f"factor_{f}"
                )(part)
                for f, part in enumerate(split(code, self.parts), start=1)
            ),
            strict=True,
        )
        return sum(outputs), join_layers(layers)
