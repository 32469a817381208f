"""Modules of Flax NNX as models."""

from collections.abc import Callable
from functools import partial

import jax
from flax import linen as nn
from flax import nnx

from compgen_jax.models.model import Model
from compgen_jax.settings import demand


class NNXModel(Model):
    """Settings of a family of NNX modules. A subclass needs only `make_nnx(shapes, rngs)`, which
    gives an `nnx.Module` that maps one example's input to (output, activations by layer name).
    Training raises ConfigError for variables other than `nnx.Param`."""

    def make(self, shapes):
        return FromNNX(partial(self.make_nnx, shapes))


class FromNNX(nn.Module):
    """The NNX module that `make` gives for its `nnx.Rngs`, as a Linen module."""

    make: Callable

    @nn.compact
    def __call__(self, inputs):
        graph, params, others = nnx.split(nnx.eval_shape(self._new), nnx.Param, ...)
        hint = "an NNX model may have nnx.Param alone, no dropout and no statistics"
        demand(not jax.tree.leaves(others), hint)
        paths, tree = jax.tree_util.tree_flatten_with_path(params)
        names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]

        def init(key):
            leaves = jax.tree.leaves(nnx.state(self._new(key), nnx.Param))
            return dict(zip(names, leaves, strict=True))

        values = self.param("nnx", init)
        params = jax.tree.unflatten(tree, [values[name] for name in names])
        return nnx.merge(graph, params)(inputs)

    def _new(self, key=0):
        return self.make(nnx.Rngs(key))
