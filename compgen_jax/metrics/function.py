"""All metrics of layers, for any function of the factors: Flax, Equinox, plain JAX.

It needs no task, no run and no config: a function from a point to activations is enough.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import geometry, id_cells, kernels, layers, probes
from compgen_jax.metrics.id_cells import IdLayer
from compgen_jax.metrics.layers import GridLayer
from compgen_jax.metrics.registry import layer_numbers


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
      true_outputs: (B, ...) what it should say at the cells, for the agreement of kernels, which
        is NaN without them.
      differentiable: whether it has a derivative in all factors, forward mode; without one, numbers
        of geometry are NaN.

    Returns the numbers of all metrics that are registered at 'grid' (`layers`).

    Raises ValueError if nothing is held out or all is, for fewer than 2 values of a factor, and
    for activations that are not finite. Gram matrices have a row and a column for each cell: 1600
    cells are plenty.
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
    features, tensors = _recorded(activations_of, points, np.ones(len(sizes), bool), differentiable)
    return {
        name: layer_numbers(
            GridLayer(
                features=layer, factors=points, sizes=sizes, held_out=held_out_B,
                border=grids.border(layers.BORDER, sizes), tensors=tensors[name],
                true_kernel=true_kernel,
            ),
            "grid",
        )
        for name, layer in features.items()
    }  # fmt: skip


def measure_id_cells(
    activations_of: Callable,
    points_SxF,
    real=None,
    differentiable: bool = True,
    true: Callable | None = None,
    periods=None,
    most: int = id_cells.MOST_CELLS,
) -> dict[str, dict]:
    """{layer: {number: value}} of a network at ID cells alone, any part of a grid.

    Args:
      activations_of: as for `measure`.
      points: (S, F), no cell twice; `id_cells.choose_cells` takes at most `most` of them.
      real: of each factor, whether there is a derivative along it; None: all are.
      differentiable: along these, in forward mode; if not, numbers of geometry are NaN.
      true: point (F,) -> the output that it should have, for `id_cells.log10_volume_excess`.
      periods: of each factor, inf where it does not repeat; None: none does.

    Returns the numbers of all metrics that are registered at 'id_cells'.

    Raises ValueError as `id_cells.IdLayer` and `id_cells.choose_cells` do.
    """
    points = np.asarray(points_SxF, np.float32)
    points = points[id_cells.choose_cells(points, most)]
    real = probes.checked_real(real, points.shape[1])
    features, tensors = _recorded(activations_of, points, real, differentiable)
    true_tensors = None
    if true is not None:
        (true_tensors,) = _recorded(true, points, real, differentiable)[1].values()
    return {
        name: layer_numbers(
            IdLayer(layer, points, tensors[name], true_tensors, real, periods), "id_cells"
        )
        for name, layer in features.items()
    }


def _recorded(activations_of, points_BxF, real_F, differentiable: bool):
    """Features (B, D) and metric tensors (B, R, R), or None, by layer. Layers are named by their
    places in the pytree ('Dense_0.__call__.0')."""

    def by_name(point):
        leaves = jax.tree_util.tree_leaves_with_path(activations_of(point))
        name = lambda path: jax.tree_util.keystr(path, simple=True, separator=".")
        return {name(path): jnp.ravel(leaf) for path, leaf in leaves}

    points = jnp.asarray(points_BxF)
    mapped = jax.jit(partial(jax.lax.map, by_name, batch_size=128))
    features = jax.device_get(mapped(points))
    for name, layer in features.items():
        kernels.check_finite(name, layer)
    if not (differentiable and real_F.any()):
        return features, dict.fromkeys(features)
    tensors = jax.jit(lambda points: geometry.metric_tensors(by_name, points, real_F))
    return features, jax.device_get(tensors(points))
