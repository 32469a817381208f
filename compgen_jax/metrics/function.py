"""Everything that is measured of a layer, of any function of the factors: Flax, Equinox, plain JAX.

It needs no task, no run and no config: a function from a point to activations is enough.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import geometry, kernels, layers, tuning


def measure(
    activations_of: Callable,
    axes: Sequence,
    held_out: Callable,
    true_outputs_Bx=None,
    differentiable: bool = True,
) -> dict[str, dict]:
    """{layer: {number: value}} of a network over a grid of the factors' values.

    Args:
      activations_of: point (F,) float32 -> pytree of arrays of any shape, each a layer, in the
        order of the tree and named by its place in it; its parameters are closed over.
      axes: of each factor, its values; the cells are all their combinations, the first factor
        varying fastest.
      held_out: points (B, F) -> (B,) bool, NumPy: which cells the network was not shown.
      true_outputs: (B, ...) what it should say at the cells, for the agreement of kernels; without
        them these are left out.
      differentiable: whether it has a derivative in all factors, forward mode; without one, numbers
        of geometry are NaN.

    Returns numbers of `layers.layer_numbers` (probes, ranks, decompositions, agreements),
    `layers.geometry_numbers` (of exact metric tensors) and `tuning.layer_tuning`.

    Raises ValueError where nothing is held out or all is, for fewer than 2 values of a factor, and
    for activations that are not finite. Gram matrices of all cells are made: 1600 are plenty.
    """
    sizes = tuple(len(axis) for axis in axes)
    if min(sizes, default=0) < 2:
        raise ValueError(f"axes must have 2 values or more each, not {sizes}")
    points = grids.points(axes)
    held_out_B = np.asarray(held_out(points), bool)
    if held_out_B.shape != (len(points),) or held_out_B.all() or not held_out_B.any():
        raise ValueError(f"held_out must be true of some of the {len(points)} cells and not of all")

    named = layers.named(activations_of)
    features = jax.device_get(jax.lax.map(named, jnp.asarray(points), batch_size=128))
    for name, layer in features.items():
        kernels.check_finite(name, layer)
    metrics = dict.fromkeys(features)
    if differentiable:
        metrics = jax.device_get(geometry.metric_tensors(named, jnp.asarray(points)))
    border_B, true_BxB = grids.border(layers.BORDER, sizes), np.ones((len(points), len(points)))
    if true_outputs_Bx is not None:
        true = np.asarray(true_outputs_Bx, np.float64).reshape(len(points), -1)
        true_BxB = kernels.cosine(kernels.gram(true))
    found = {}
    for name, layer in features.items():
        numbers = layers.layer_numbers(layer, points, held_out_B, sizes, true_BxB)
        if true_outputs_Bx is None:
            numbers = {key: v for key, v in numbers.items() if not key.startswith("cosine.")}
        numbers |= layers.geometry_numbers(metrics[name], held_out_B, border_B)
        found[name] = numbers | tuning.layer_tuning(layer, sizes)
    return found
