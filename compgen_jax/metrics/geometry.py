"""Exact geometry of every layer (paper Eq 5-7, App B): g = J^T J, which says how far apart it puts
neighbouring factors."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

POINTS_AT_ONCE = 8  # bounds memory: the Jacobians of so many points are held at a time
MOST_NUMBERS = 2**29  # of one network: 2 GiB, and as much before training
VOLUME_FLOOR = 1e-6  # of a map's largest volume: a dead point has no logarithm


def features(activations_of: Callable, inputs) -> dict:
    """Every layer at every input, {layer: (B, D)}; `activations_of` is a function of one input.
    ValueError for more than `MOST_NUMBERS` in all, before anything is computed."""
    flat = lambda code: jax.tree.map(jnp.ravel, activations_of(code))
    layers = jax.lax.map(flat, inputs, batch_size=POINTS_AT_ONCE)
    cells, total = len(layers["output"]), sum(layer.size for layer in layers.values())
    if total > MOST_NUMBERS:
        raise ValueError(
            f"{total // cells} features at {cells} cells: at most {MOST_NUMBERS} numbers can be "
            "measured"
        )
    return layers


def metric_tensors(activations_of: Callable, points_BxF, real_F=None):
    """The metric tensor of every layer at every point (Eq 38): a pytree as of `activations_of`, of
    (B, R, R).

    activations_of: (F,) factors -> pytree of arrays, differentiable in forward mode.
    real_F: (F,) bool NumPy, the R factors along which there is a derivative; None: all.
    """
    return tensors_and_contrasts(activations_of, points_BxF, real_F)[0]


def tensors_and_contrasts(activations_of: Callable, points_BxF, real_F=None) -> tuple:
    """`metric_tensors` and, from the same Jacobians J (D, R), the compositional contrast: of (B,),
    the sum over units d and pairs i < j of |J_di| |J_dj| (Brady et al. 2023, ICML)."""
    along = slice(None) if real_F is None or np.all(real_F) else np.flatnonzero(real_F)

    def at_point(point):
        of_real = lambda real: activations_of(point.at[along].set(real))
        jacobians = jax.jacfwd(of_real)(point[along])
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]), jacobians)
        products = lambda leaf_DxF: jnp.einsum("df,dg->fg", leaf_DxF, leaf_DxF)
        contrast = lambda leaf_DxF: jnp.triu(products(jnp.abs(leaf_DxF)), k=1).sum()
        return jax.tree.map(products, flat), jax.tree.map(contrast, flat)

    return jax.lax.map(at_point, points_BxF, batch_size=POINTS_AT_ONCE)


@jax.jit
def volume_element(metric):
    """(...) sqrt(det g) of metrics (..., F, F): the local stretch of volume (Eq 6, 39)."""
    return jnp.sqrt(jnp.maximum(jnp.linalg.det(metric), 0.0))


def log_volume(volume, axis=None):
    """log10 of volume elements, at least `VOLUME_FLOOR` of a map's largest; 0 of a map without any;
    NumPy. `axis`: the axes of one map; None: all."""
    volume = np.asarray(volume)
    least = VOLUME_FLOOR * volume.max(axis=axis, keepdims=True)
    return np.log10(np.maximum(volume, np.where(least > 0, least, 1)))


def grid_log_volume(signals_BxD, sizes):
    """(V_y, V_x) log10 of the volume element on a grid of two factors, by differences in float64:
    in float32 a degenerate map's is rounding error."""
    signals = np.asarray(signals_BxD, np.float64).reshape(*sizes[::-1], -1)
    along_y, along_x = np.gradient(signals, axis=(0, 1))
    dot = partial(np.einsum, "yxd,yxd->yx")
    squared = dot(along_x, along_x) * dot(along_y, along_y) - dot(along_x, along_y) ** 2
    return log_volume(np.sqrt(np.maximum(squared, 0)))


def roughness(log_volume_YxX, cells_YxX=None) -> float:
    """Mean absolute difference of log volume between neighbours, both among `cells` (V_y, V_x)
    bool; None: all (Figure 3d)."""
    values = np.asarray(log_volume_YxX, np.float64)
    cells = np.ones(values.shape, bool) if cells_YxX is None else np.asarray(cells_YxX, bool)
    steps = [
        np.abs(np.diff(values, axis=axis))[~np.diff(cells, axis=axis) & among]
        for axis, among in ((0, cells[1:]), (1, cells[:, 1:]))
    ]
    return float(np.concatenate(steps).mean())


@jax.jit
def cosines(metric):
    """(..., F, F) cosines between the factors' tangents; 0 of a factor that is ignored."""
    lengths = jnp.sqrt(jnp.diagonal(metric, axis1=-2, axis2=-1))
    products = lengths[..., :, None] * lengths[..., None, :]
    return jnp.where(products > 0, metric / jnp.where(products > 0, products, 1.0), 0.0)


@jax.jit
def factorization(metrics_BxFxF) -> tuple:
    """How orthogonal the factors' tangents are, over pairs i < j: 1 - mean |g_ij| / mean (g_ii +
    g_jj), as the authors' code has it, and the mean of 1 - |g_ij| / (g_ii + g_jj) (Eq 7, 42)."""
    size = metrics_BxFxF.shape[-1]
    i, j = jnp.triu_indices(size, k=1)
    crossed = jnp.abs(metrics_BxFxF[:, i, j])
    lengths = metrics_BxFxF[:, i, i] + metrics_BxFxF[:, j, j]
    ratios = jnp.where(lengths > 0, crossed / jnp.where(lengths > 0, lengths, 1.0), 0.0)
    return 1 - jnp.mean(crossed) / (jnp.mean(lengths) + 1e-9), 1 - jnp.mean(ratios)
