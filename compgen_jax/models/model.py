"""What a model is: a family of settings whose `make` gives a Flax module for ONE example.

The module maps an input to (output, activations by layer name), the input first among these.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.models.convolution import choose_lowering
from compgen_jax.settings import Family, require


class Shapes(NamedTuple):
    """What a model is built from.

    input, output: pytrees of `jax.ShapeDtypeStruct`, of one example.
    lowering: of its convolutions (`models.convolution`).
    parts: lengths of the input's parts, if it is one code per factor.
    """

    input: Any
    output: Any
    lowering: str = "lax"
    parts: tuple = ()

    @property
    def in_forward_mode(self) -> "Shapes":
        """With the lowering that is fastest in forward mode."""
        lowering = choose_lowering(jax.default_backend(), trials=1, forward_mode=True)
        return self._replace(lowering=lowering)


@dataclass(frozen=True)
class Model(Family):
    """Settings of a family of models. A user's own subclass needs only `make(shapes: Shapes)`,
    which gives the Flax module, and raises ConfigError for shapes that do not fit.

    convolutional: whether it can train in bfloat16.
    batched: whether the module carries leading axes through. Otherwise training maps it over a
      batch, which differentiates a hand-written derivative example by example.
    decode_batch: how many examples are evaluated at once.
    training_mode: whether a (batched) module does something else in training, such as dropout. Its
      second argument then says which examples count, (B,) bool; it has a key 'dropout', and may
      write to 'batch_stats'.
    sees_target: whether the third argument of such a module is the targets of the batch.
    of_each_input: whether activations have a leading axis over the inputs of one example.
    pads: whether trials of different grids can share a program (`training.padding`). The module's
      call then takes the grid too, and `pad_params(params, like, parts, parts_like)` pads
      parameters to the shapes `like` of a larger grid; `parts` are those of the code.
    """

    convolutional = False
    batched = False
    decode_batch = 128
    training_mode = False
    sees_target = False
    of_each_input = False
    pads = False

    def extra_loss(self, params, hyper: dict):
        """A scalar to add to the loss, or None. `hyper` has the traced fields of these settings by
        dotted name."""
        return None

    def apply(self, module, variables, inputs):
        """(outputs, activations) of a batch of inputs, leaves (B, ...)."""
        if self.batched:
            return module.apply(variables, inputs)
        return jax.vmap(lambda example: module.apply(variables, example))(inputs)

    def train_apply(self, module, variables, batch, counts_B, key):
        """(outputs, variables) in training of a batch (`Example`), of which `counts_B` (bool)
        count."""
        if not self.training_mode:
            return self.apply(module, variables, batch.input)[0], variables
        target = (batch.target,) if self.sees_target else ()
        (outputs, _), written = module.apply(
            variables,
            batch.input,
            counts_B,
            *target,
            rngs={"dropout": key},
            mutable=["batch_stats"],
        )
        return outputs, {**variables, **written}

    def check(self, config):
        precision = config.training.precision
        hint = f"is for convolutions, which config.model.name={self.name!r} has not"
        fits = precision == "float32" or self.convolutional
        require(fits, "training.precision", precision, hint)

    def check_width(self, divisor: int):
        """Raises ConfigError for a `width` that is no multiple."""
        hint = f"must be divisible by {divisor} for {self.name}"
        require(self.width % divisor == 0, "model.width", self.width, hint)

    def array_shape(self, array, what: str, ranks=()):
        """The shape of an input or output that is one array, of one of the `ranks`. Raises
        ConfigError; `what` says what the model needs."""
        fits = isinstance(array, jax.ShapeDtypeStruct) and (not ranks or array.ndim in ranks)
        require(fits, "model.name", self.name, f"{what}, not {array}")
        return array.shape

    def image_shape(self, shapes: Shapes, ranks=(2, 3)):
        """(H, W) or (H, W, C) of one image that is decoded from a vector. Raises ConfigError."""
        self.array_shape(shapes.input, "needs a vector as input", (1,))
        return self.array_shape(shapes.output, "draws one image", ranks)

    def image_side(self, shapes: Shapes, multiple: int = 1) -> int:
        """The same for a square image (N, N): its N, a multiple."""
        height, width = self.image_shape(shapes, (2,))
        hint = f"draws square images of a side divisible by {multiple}, not {height} x {width}"
        require(height == width and height % multiple == 0, "model.name", self.name, hint)
        return height

    def factor_parts(self, shapes: Shapes):
        """Lengths of the parts of a code, one for each of two or more factors. Raises
        ConfigError."""
        (length,) = self.array_shape(shapes.input, "needs a vector as input", (1,))
        self.array_shape(shapes.output, "gives one array")
        parts = tuple(shapes.parts)
        hint = f"needs a code with a part for each of two or more factors, not {length} numbers in"
        fits = len(parts) > 1 and sum(parts) == length
        require(fits, "model.name", self.name, f"{hint} parts {parts}")
        return parts


def trained(variables) -> dict:
    """Those of a module's variables that a gradient reaches."""
    return {name: variables[name] for name in ("params",) if name in variables}


def size(shapes) -> int:
    """The number of entries in a pytree of shapes."""
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


def split(code, parts):
    """The parts of a code (..., E), one for each factor."""
    return jnp.split(code, np.cumsum(parts)[:-1].tolist(), axis=-1)


def name_layers(layers) -> dict:
    """{'layer_00': input, 'layer_01': first hidden layer, ...}, in the order of sorted keys."""
    return {f"layer_{index:02d}": layer for index, layer in enumerate(layers)}
