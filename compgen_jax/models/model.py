"""What a model is: a family of settings whose `make` gives a Flax module for ONE example.

The module maps an input to (output, activations by layer name). It may have these attributes:

  batched        True if it carries leading axes through. Otherwise training maps it over a batch,
                 which would differentiate a hand-written derivative example by example.
  decode_batch   how many examples are evaluated at once, if memory bounds them.
  training_mode  True if it does something else in training (dropout, normalisation by the batch).
                 Such a module is `batched`. In training its second argument says which examples
                 count, (B,) bool; it has a key 'dropout', and may write to 'batch_stats'. Called
                 without them, it is the function that is evaluated.
  sees_target    True if training shows it the targets too, as a third argument.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.settings import Family, require


class Shapes(NamedTuple):
    """What a model is built from.

    input, output: pytrees of `jax.ShapeDtypeStruct`, of one example.
    lowering: of its convolutions, if it has any (`models.convolution`).
    parts: lengths of the input's parts, if it is one code per factor (`tasks.task.Task.parts`).
    """

    input: Any
    output: Any
    lowering: str = "lax"
    parts: tuple = ()


@dataclass(frozen=True)
class Model(Family):
    """Settings of a family of models. A user's own subclass needs only `make`.

    `convolutional` says that it can train in bfloat16. `pads` says that trials of different grids
    can share a program (`training.padding`): the family then has a method pad_params(params, like,
    parts, parts_like), and its module's call takes the grid too.
    """

    convolutional: ClassVar[bool] = False
    pads: ClassVar[bool] = False

    def make(self, shapes: Shapes):
        """The Flax module. Raises ConfigError for shapes that do not fit."""
        raise NotImplementedError

    def extra_loss(self, params, hyper: dict):
        """A scalar to add to the loss, or None. `hyper` has the traced fields of these settings by
        dotted name."""
        return None

    def check(self, config):
        precision = config.training.precision
        if precision != "float32" and not self.convolutional:
            hint = f"is for convolutions, which config.model.name={self.name!r} has not"
            require(False, "training.precision", precision, hint)


def apply(module, params, inputs):
    """(outputs, activations) of a batch of inputs, leaves (B, ...)."""
    if getattr(module, "batched", False):
        return module.apply(params, inputs)
    return jax.vmap(lambda one: module.apply(params, one))(inputs)


def train_apply(module, variables, batch, counts_B, key):
    """(outputs, variables) of a batch (`tasks.task.Example`) in training, of which the examples
    `counts_B` (bool) count. The variables hold what the batch wrote beside the parameters."""
    if not getattr(module, "training_mode", False):
        return apply(module, variables, batch.input)[0], variables
    target = (batch.target,) if getattr(module, "sees_target", False) else ()
    (outputs, _), kept = module.apply(
        variables, batch.input, counts_B, *target, rngs={"dropout": key}, mutable=["batch_stats"]
    )
    return outputs, {**variables, **kept}


def trained(variables) -> dict:
    """Those of a module's variables that a gradient reaches."""
    return {name: variables[name] for name in ("params",) if name in variables}


def vector(tree):
    """All arrays of one example's pytree as one float32 vector."""
    leaves = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(tree)]
    return leaves[0] if len(leaves) == 1 else jnp.concatenate(leaves)


def size(shapes) -> int:
    """The number of entries in a pytree of shapes."""
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


def code_length(shapes: Shapes, name: str) -> int:
    """E of an input that is one vector. Raises ConfigError for another input."""
    given = shapes.input
    is_vector = isinstance(given, jax.ShapeDtypeStruct) and given.ndim == 1
    require(is_vector, "model.name", name, f"needs a vector as input, not {given}")
    return given.shape[0]


def split(code, parts, axis: int = -1):
    """The parts of a code (..., E), one for each factor, or of an array with such an axis."""
    return jnp.split(code, np.cumsum(parts)[:-1].tolist(), axis)


def output_shape(shapes: Shapes, name: str) -> tuple[int, ...]:
    """The shape of an output that is one array. Raises ConfigError for another output."""
    is_array = isinstance(shapes.output, jax.ShapeDtypeStruct)
    require(is_array, "model.name", name, f"gives one array, not {shapes.output}")
    return shapes.output.shape


def image_shape(shapes: Shapes, name: str) -> tuple[int, ...]:
    """(H, W) or (H, W, C) of an output that is one image. Raises ConfigError for another output."""
    shape = output_shape(shapes, name)
    require(len(shape) in (2, 3), "model.name", name, f"draws one image, not {shapes.output}")
    return shape


def image_side(shapes: Shapes, name: str) -> int:
    """N of an output that is one square image (N, N). Raises ConfigError for another output."""
    output = shapes.output
    is_image = isinstance(output, jax.ShapeDtypeStruct) and output.ndim == 2
    require(is_image, "model.name", name, f"draws one image, not {output}")
    height, width = output.shape
    require(height == width, "model.name", name, f"draws square images, not {height} x {width}")
    return height


def name_layers(layers) -> dict:
    """{'layer_00': input, 'layer_01': first hidden layer, ...}. JAX sorts the keys of a dict, which
    keeps this order."""
    return {f"layer_{index:02d}": layer for index, layer in enumerate(layers)}
