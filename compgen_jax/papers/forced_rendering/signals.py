"""Images of bumps and stripes over a square grid: peaks, and stripes.

Signals are 0 where an image is blank; positions are (x, y) in pixels, `signal[y, x]`.
"""

import functools
from math import isqrt

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics.evaluation import CellResults, over_networks

PEAK_SHARE = 0.2  # of the image's maximum: how high a peak is at least, and how far above others
VISIBLE = 0.05  # of the amplitude: an image that is nowhere brighter shows no peak


def find_peaks(signal_HxW, visible: float = VISIBLE, share: float = PEAK_SHARE):
    """(H, W) bool: pixels that are brighter than their 8 neighbours and, by `share` of the image's
    maximum, than 0 and than the way to any brighter peak (their prominence): ripples on a ridge are
    none. None where nothing is brighter than `visible`.

    A plateau counts once per row-major first pixel: ties go to the earlier neighbour.
    """
    height, width = signal_HxW.shape
    padded = jnp.pad(signal_HxW, 1, constant_values=-jnp.inf)
    step = share * signal_HxW.max()
    peak = (signal_HxW > step) & (signal_HxW.max() > visible)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if (dy, dx) == (0, 0):
                continue
            neighbour = padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]
            earlier = (dy, dx) < (0, 0)
            peak &= (signal_HxW > neighbour) if earlier else (signal_HxW >= neighbour)
    return peak & (_flooded(signal_HxW, step) <= signal_HxW - step)


def _flooded(signal_HxW, step):
    """Of every pixel the highest level, at most its own, at which it is connected with a pixel that
    is `step` or more above: morphological reconstruction (Vincent 1993)."""

    def brightest_of_3(levels, axis):
        last = levels.shape[axis] - 1
        before, after = (jax.lax.slice_in_dim(levels, low, low + last, axis=axis) for low in (0, 1))
        edge = jnp.full_like(jax.lax.slice_in_dim(levels, 0, 1, axis=axis), -jnp.inf)
        shifted = (jnp.concatenate(pair, axis) for pair in ((edge, before), (after, edge)))
        return functools.reduce(jnp.maximum, shifted, levels)

    def spread(levels):
        # by axes and by shifts: a tenth of the time of reduce_window on a CPU
        return jnp.minimum(signal_HxW, brightest_of_3(brightest_of_3(levels, 0), 1))

    def once_more(carry):
        _, levels = carry
        return levels, spread(levels)

    levels = signal_HxW - step
    found = jax.lax.while_loop(lambda pair: (pair[0] != pair[1]).any(), once_more,
                               (levels, spread(levels)))  # fmt: skip
    return found[1]


def peak_maps(results: CellResults, cells_B):
    """(..., Q, H, W) bool: the peaks of what is drawn at some cells, (B,) bool."""
    drawn = results.predictions[..., cells_B, :, :]
    return np.asarray(_peaks_of_all(drawn, VISIBLE * results.amplitude))


_peaks_of_all = over_networks(jax.vmap(find_peaks, (0, None)))


def fine_points(grid: int, per_pixel: int = 2):
    """(M*M, 2) real points (x, y), `per_pixel` to a pixel, row-major; M = (N-1) per_pixel + 1."""
    axis = np.linspace(0, grid - 1, (grid - 1) * per_pixel + 1, dtype=np.float32)
    y, x = np.meshgrid(axis, axis, indexing="ij")
    return np.stack([x.ravel(), y.ravel()], axis=1)


def stripes_at(stripes_x2NxHxW, held_out_B):
    """The vertical and the horizontal stripe of each held-out cell, (..., Q, H, W) each. Their sum
    is the plus; their product over the amplitude the true bump.

    `stripes` are N vertical ones, x = 0..N-1, and then N horizontal ones (Figure 7a). ValueError
    for other shapes.
    """
    stripes = np.asarray(stripes_x2NxHxW, np.float64)
    grid = isqrt(np.size(held_out_B))
    held_out = grids.checked_mask(held_out_B, (grid, grid))
    if stripes.ndim < 3 or stripes.shape[-3] != 2 * grid:
        raise ValueError(f"stripes must be (..., {2 * grid}, H, W), not {stripes.shape}")
    y, x = np.divmod(np.flatnonzero(held_out), grid)
    return stripes[..., x, :, :], stripes[..., grid + y, :, :]
