"""All metrics of layers, for any function from a point to activations: Flax, Equinox, plain JAX."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import geometry, kernels, layers, registry


def measure(
    activations_of: Callable,
    axes: Sequence,
    held_out: Callable,
    true_outputs_Bx=None,
    differentiable: bool = True,
) -> dict[str, dict]:
    """{layer: {number: value}} of a network over a grid of the factors' values.

    Args:
      activations_of: point (F,) float32 -> pytree of arrays, each a layer that is named by its
        place in the tree.
      axes: of each factor, its values; the first varies fastest over the cells.
      held_out: points (B, F) -> (B,) bool, NumPy: which cells the network was not shown.
      true_outputs: (B, ...) what it should say at the cells, for the agreement of kernels, which
        is NaN without them.
      differentiable: whether it has a derivative in all factors, forward mode; without one, numbers
        of geometry are NaN.

    Raises ValueError if nothing is held out or all is, for fewer than 2 values of a factor, and
    for activations that are not finite.
    """
    sizes = tuple(len(axis) for axis in axes)
    if min(sizes, default=0) < 2:
        raise ValueError(f"axes must have 2 values or more each, not {sizes}")
    points = grids.points(axes)
    held_out_B = np.asarray(held_out(points), bool)
    if held_out_B.shape != (len(points),) or held_out_B.all() or not held_out_B.any():
        raise ValueError(f"held_out must be true of some of the {len(points)} cells and not of all")
    true_kernel = None
    if true_outputs_Bx is not None:
        true = np.asarray(true_outputs_Bx, np.float64).reshape(len(points), -1)
        true_kernel = kernels.cosine(kernels.gram(true))

    def by_name(point):
        leaves = jax.tree_util.tree_leaves_with_path(activations_of(point))
        name = partial(jax.tree_util.keystr, simple=True, separator=".")
        return {name(path): jnp.ravel(leaf) for path, leaf in leaves}

    mapped = jax.jit(partial(jax.lax.map, by_name, batch_size=128))
    features = jax.device_get(mapped(jnp.asarray(points)))
    for name, activations in features.items():
        kernels.check_finite(name, activations)
    tensors, contrasts = {}, {}
    if differentiable:
        of_jacobians = jax.jit(partial(geometry.tensors_and_contrasts, by_name))
        tensors, contrasts = jax.device_get(of_jacobians(jnp.asarray(points)))
    border = grids.border(layers.BORDER, sizes)
    of_layers = [metric for metric in registry.metrics_of("grid") if not metric.of_output]
    return {
        name: registry.numbers(
            of_layers,
            layers.Layer(
                activations,
                points,
                held_out_B,
                sizes,
                border,
                true_kernel=true_kernel,
                costly={"tensors": tensors.get(name), "contrasts": contrasts.get(name)}.get,
            ),
        )
        for name, activations in features.items()
    }
