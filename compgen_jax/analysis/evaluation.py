"""What trained models say at every cell beside what they should: scores by region, error maps.

Every function takes *signals* (0 is blank, a bump is positive), which a task makes of outputs, and
the task's own scores.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

PEAK_THRESHOLD = 0.25  # of the amplitude: what counts as a peak, not as ripple


def region_means(scores: dict, masks: dict) -> dict:
    """{'REGION.SCORE': mean over the points of the region}, NaN for one without points.

    Args: scores (B,) by name; masks (B,) bool by region.
    """

    def mean(values_B, mask_B):
        return jnp.sum(jnp.where(mask_B, values_B, 0.0)) / jnp.sum(mask_B)

    return {
        f"{region}.{name}": mean(values_B, mask_B)
        for region, mask_B in masks.items()
        for name, values_B in scores.items()
    }


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


def fine_points(grid: int, per_pixel: int = 2):
    """(M*M, 2) real points (x, y), `per_pixel` to a pixel, row-major; M = (N-1) per_pixel + 1."""
    axis = np.linspace(0, grid - 1, (grid - 1) * per_pixel + 1, dtype=np.float32)
    y, x = np.meshgrid(axis, axis, indexing="ij")
    return np.stack([x.ravel(), y.ravel()], axis=1)


class CellResults(NamedTuple):
    """What T trained seeds say at every cell; NumPy.

    signals (T, B, ...); targets (B, ...), the true signals; factors (B, F); held_out (B,) bool;
    distance (B,), cells to the nearest seen one; sizes (V_1, ..., V_F), the first factor varying
    fastest over the B cells; scores: the task's, (T, B) each by name, of which `error` is the
    error.
    """

    seeds: tuple
    signals: np.ndarray
    targets: np.ndarray
    factors: np.ndarray
    held_out: np.ndarray
    distance: np.ndarray
    sizes: tuple
    scores: dict
    error: str = "mse"

    @property
    def grid(self) -> int:
        """N of square images."""
        return self.targets.shape[-1]

    @property
    def amplitude(self) -> float:
        """The largest true signal."""
        return float(self.targets.max())


def errors(results: CellResults):
    """(T, B) the error of every seed at every cell."""
    return results.scores[results.error]


def mean_score(results: CellResults, name: str, cells):
    """(T,) mean of a score over some cells, (B,) bool."""
    return results.scores[name][:, cells].mean(axis=1, dtype=np.float64)


def relative_error(results: CellResults, cells):
    """(T,) mean squared error over these cells, that of a blank signal being 1."""
    return errors(results)[:, cells].mean(axis=1) / np.square(results.targets[cells]).mean()


def peak_maps(results: CellResults, threshold: float = PEAK_THRESHOLD):
    """(T, B, H, W) bool: the peaks of every image."""
    find = lambda signal: find_peaks(signal, results.amplitude, threshold)
    return np.asarray(jax.jit(jax.vmap(jax.vmap(find)))(results.signals))


def profile_by_distance(values_TxB, results: CellResults):
    """Mean over held-out cells of equal distance to the seen region: (distances, means_TxK)."""
    distance = results.distance.round(6)
    levels = np.unique(distance[results.held_out])
    means = [values_TxB[:, results.held_out & (distance == d)].mean(axis=1) for d in levels]
    return levels, np.stack(means, axis=1)
