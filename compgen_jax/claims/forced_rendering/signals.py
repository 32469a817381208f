"""Images of bumps and stripes over a square grid: peaks, sums and products of stripes.

Signals are 0 where an image is blank; positions are (x, y) in pixels, `signal[y, x]`.
"""

from math import isqrt

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax import grids
from compgen_jax.analysis.evaluation import CellResults

PEAK_THRESHOLD = 0.25  # of the amplitude: what counts as a peak, not as ripple


def find_peaks(signal_HxW, amplitude: float = 1.0, threshold: float = PEAK_THRESHOLD):
    """(H, W) bool: pixels above `threshold * amplitude` and not below any of 8 neighbours.

    A plateau counts once per row-major first pixel: ties go to the earlier neighbour.
    """
    height, width = signal_HxW.shape
    padded = jnp.pad(signal_HxW, 1, constant_values=-jnp.inf)
    peak = signal_HxW > threshold * amplitude
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if (dy, dx) == (0, 0):
                continue
            neighbour = padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]
            earlier = (dy, dx) < (0, 0)
            peak &= (signal_HxW > neighbour) if earlier else (signal_HxW >= neighbour)
    return peak


def peak_maps(results: CellResults, threshold: float = PEAK_THRESHOLD):
    """(T, B, H, W) bool: the peaks of every image."""
    find = lambda signal: find_peaks(signal, results.amplitude, threshold)
    return np.asarray(jax.jit(jax.vmap(jax.vmap(find)))(results.signals))


def fine_points(grid: int, per_pixel: int = 2):
    """(M*M, 2) real points (x, y), `per_pixel` to a pixel, row-major; M = (N-1) per_pixel + 1."""
    axis = np.linspace(0, grid - 1, (grid - 1) * per_pixel + 1, dtype=np.float32)
    y, x = np.meshgrid(axis, axis, indexing="ij")
    return np.stack([x.ravel(), y.ravel()], axis=1)


def stripes_product(stripes_2NxHxW, held_out_B, amplitude: float = 1.0):
    """Product of each held-out cell's two stripes over the amplitude: the true bump; (Q, H, W).

    `stripes` are N vertical ones, x = 0..N-1, and then N horizontal ones (Figure 7a). ValueError
    for other shapes.
    """
    vertical, horizontal = _stripes_of(stripes_2NxHxW, held_out_B)
    return vertical * horizontal / amplitude


def stripes_sum(stripes_2NxHxW, held_out_B):
    """Sum of each held-out cell's two stripes: the plus; (Q, H, W). As `stripes_product`."""
    vertical, horizontal = _stripes_of(stripes_2NxHxW, held_out_B)
    return vertical + horizontal


def stripes_union(stripes_2NxHxW, held_out_B):
    """The brighter of each held-out cell's two stripes, pixel by pixel. As `stripes_product`."""
    vertical, horizontal = _stripes_of(stripes_2NxHxW, held_out_B)
    return np.maximum(vertical, horizontal)


def _stripes_of(stripes_2NxHxW, held_out_B):
    stripes = np.asarray(stripes_2NxHxW, np.float64)
    grid = isqrt(np.size(held_out_B))
    held_out = grids.checked_mask(held_out_B, (grid, grid))
    if stripes.ndim != 3 or len(stripes) != 2 * grid:
        raise ValueError(f"stripes must be ({2 * grid}, H, W), not {stripes.shape}")
    y, x = np.divmod(np.flatnonzero(held_out), grid)
    return stripes[x], stripes[grid + y]
