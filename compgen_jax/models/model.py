"""What a model is: a family of settings whose `make` gives a Flax module for ONE example.

The module maps an input to (output, activations by layer name). Training maps it over a batch,
unless it has an attribute `batched` that is True and says that leading axes are carried through: a
convolution with a hand-written derivative would otherwise be differentiated example by example. An
attribute `decode_batch` says how many examples are evaluated at once, where memory bounds them.

One that does something else in training (dropout, normalisation by the batch) is `batched` and has
an attribute `training_mode` that is True: training calls it with which examples count, (B,) bool,
as a second argument, with a stream 'dropout', and keeps what it writes to 'batch_stats'. Without
them it is the function that is evaluated, of any leading axes.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from compgen_jax.settings import ConfigError, Family


class Shapes(NamedTuple):
    """What a model is built from: `jax.ShapeDtypeStruct`s of one example's input and output
    (pytrees), the lowering of its convolutions, if it has any (`models.convolution`), and the
    lengths of the parts of an input that is one code per factor (`tasks.task.Task.parts`)."""

    input: Any
    output: Any
    lowering: str = "lax"
    parts: tuple = ()


@dataclass(frozen=True)
class Model(Family):
    """Settings of a family of models. A user's own subclass needs `make` alone."""

    convolutional: ClassVar[bool] = False  # can train in bfloat16
    # trials of different grids can share a program: see `training.padding`. Needs a method
    # pad_params(params, like, parts, parts_like), and a module whose call takes the grid too
    pads: ClassVar[bool] = False

    def make(self, shapes: Shapes):
        """The Flax module. Raises ConfigError for shapes that it does not serve."""
        raise NotImplementedError

    def extra_loss(self, params, hyper: dict):
        """A scalar to add to the loss, or None. `hyper` has the traced fields of these settings by
        their dotted names."""
        return None

    def check(self, config):
        precision = config.training.precision
        if precision != "float32" and not self.convolutional:
            raise ConfigError(
                f"config.training.precision={precision!r}: is for convolutions, which "
                f"config.model.name={self.name!r} has not"
            )


def apply(module, params, inputs):
    """(outputs, activations) of a batch of inputs, leaves (B, ...)."""
    if getattr(module, "batched", False):
        return module.apply(params, inputs)
    return jax.vmap(lambda one: module.apply(params, one))(inputs)


def train_apply(module, variables, inputs, counts_B, key):
    """(outputs, variables) of a batch in training, of which the examples `counts_B` (bool) count:
    what a module keeps beside its parameters is as the batch left it."""
    if not getattr(module, "training_mode", False):
        return apply(module, variables, inputs)[0], variables
    (outputs, _), kept = module.apply(
        variables, inputs, counts_B, rngs={"dropout": key}, mutable=["batch_stats"]
    )
    return outputs, {**variables, **kept}


def trained(variables) -> dict:
    """Of a module's variables those that a gradient reaches."""
    return {name: variables[name] for name in ("params",) if name in variables}


def vector(tree):
    """All arrays of one example's pytree as one float32 vector."""
    leaves = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(tree)]
    return leaves[0] if len(leaves) == 1 else jnp.concatenate(leaves)


def size(shapes) -> int:
    """Numbers in a pytree of shapes."""
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


def code_length(shapes: Shapes, name: str) -> int:
    """E of an input that is one vector. Raises ConfigError for another."""
    if not isinstance(shapes.input, jax.ShapeDtypeStruct) or len(shapes.input.shape) != 1:
        raise ConfigError(
            f"config.model.name={name!r}: needs a vector as input, not {shapes.input}"
        )
    return shapes.input.shape[0]


def image_side(shapes: Shapes, name: str) -> int:
    """N of an output that is one square image (N, N). Raises ConfigError for another."""
    output = shapes.output
    if not isinstance(output, jax.ShapeDtypeStruct) or len(output.shape) != 2:
        raise ConfigError(f"config.model.name={name!r}: draws one image, not {output}")
    if output.shape[0] != output.shape[1]:
        raise ConfigError(
            f"config.model.name={name!r}: draws square images, not {output.shape[0]} x "
            f"{output.shape[1]}"
        )
    return output.shape[0]


def name_layers(layers) -> dict:
    """{'layer_00': input, 'layer_01': first hidden layer, ...}: sorted by name is in order, as
    JAX sorts the keys of a dict."""
    return {f"layer_{index:02d}": layer for index, layer in enumerate(layers)}
