"""Images of bumps and stripes over a square grid: peaks, and stripes.

Signals are 0 where an image is blank; positions are (x, y) in pixels, `signal[y, x]`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.metrics.evaluation import over_networks
from compgen_jax.tasks import images

PEAK_SHARE = 0.2  # of the image's maximum: how high a peak is at least, and how far above others
VISIBLE = 0.05  # of the amplitude: an image that is nowhere brighter shows no peak


def windows(signal_HxW) -> list:
    """Every pixel's neighbours and, as the fifth of nine, itself, row by row; -inf beyond."""
    height, width = signal_HxW.shape
    padded = jnp.pad(signal_HxW, 1, constant_values=-jnp.inf)
    return [padded[y : y + height, x : x + width] for y in range(3) for x in range(3)]


def find_peaks(signal_HxW, visible: float = VISIBLE, share: float = PEAK_SHARE):
    """(H, W) bool: pixels that are brighter than their 8 neighbours and, by `share` of the image's
    maximum, than 0 and than the way to any brighter peak (their prominence). None where nothing is
    brighter than `visible`. A plateau counts once: ties go to the earlier neighbour."""
    around, step = windows(signal_HxW), share * signal_HxW.max()
    before, after = (functools.reduce(jnp.maximum, some) for some in (around[:4], around[5:]))
    peak = (signal_HxW > step) & (signal_HxW.max() > visible)
    peak &= (signal_HxW > before) & (signal_HxW >= after)
    # a little less than a step, as the same level may be rounded in two ways
    return peak & (_flooded(signal_HxW, signal_HxW - step) < signal_HxW - 0.99999 * step)


def _flooded(signal_HxW, lower_HxW):
    """Of every pixel the highest level, at most its own, at which it is connected with a pixel
    whose lower level is that high: morphological reconstruction (Vincent 1993)."""
    return jax.lax.while_loop(
        lambda pair: (pair[0] != pair[1]).any(),
        lambda pair: (
            pair[1],
            jnp.minimum(signal_HxW, functools.reduce(jnp.maximum, windows(pair[1]))),
        ),
        (signal_HxW, lower_HxW),
    )[1]


# (..., B, H, W) of what networks draw (..., B, H, W), and of what is visible
peak_maps = over_networks(jax.vmap(find_peaks, (0, None)))
# (..., B) of what networks draw (..., B, H, W) and of the truths (B, H, W)
squared_correlations = over_networks(jax.vmap(images.squared_correlation))


def stripes_at(stripes_x2NxHxW, held_out_B):
    """The vertical and the horizontal stripe of each held-out cell, (..., Q, H, W) each.
    `stripes` are N vertical ones and then N horizontal ones."""
    stripes = np.asarray(stripes_x2NxHxW, np.float64)
    grid = stripes.shape[-3] // 2
    y, x = np.divmod(np.flatnonzero(held_out_B), grid)
    return stripes[..., x, :, :], stripes[..., grid + y, :, :]
