"""How well images match their targets: errors, baselines, positions and peaks.

Every function takes *signals* (0 is blank, a bump is positive; see `tasks.bump`), so that the
polarity of the images cannot decide an outcome. Positions are (x, y) in pixels, x the column.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.analysis import grids

PEAK_THRESHOLD = 0.25  # of the amplitude: what counts as a peak, not as ripple
BEYOND = 1e30  # darker than any pixel, and finite, as `brightest_pixel` has it


def mse_per_point(signals_BxHxW, targets_BxHxW):
    """Mean squared error over the pixels of each image; (B,)."""
    return jnp.mean(jnp.square(signals_BxHxW - targets_BxHxW), axis=(-2, -1))


def brightest_pixel(signal_HxW):
    """(x, y) of the largest pixel: the darkest one of an inverted image. Not-a-number
    images have no position: (-inf, -inf)."""
    row, column = jnp.unravel_index(jnp.argmax(signal_HxW), signal_HxW.shape)
    position = jnp.array([column, row], jnp.float32)
    return jnp.where(jnp.isfinite(signal_HxW).all(), position, -jnp.inf)


def position_error(signal_HxW, factors):
    """Chebyshev distance in pixels from the brightest pixel to the requested (x, y)."""
    return jnp.max(jnp.abs(brightest_pixel(signal_HxW) - factors))


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


def distance_to_seen(held_out_NxN):
    """(N, N): Euclidean distance in pixels from each cell to the nearest seen one; NumPy."""
    held_out = np.asarray(held_out_NxN)
    found = grids.distance_to_seen(held_out.ravel(), held_out.shape[::-1])
    return found.reshape(held_out.shape)


def nearest_seen(held_out_NxN):
    """(N*N,) int: for every cell in row-major order, the index of its nearest seen cell (the
    first of several)."""
    held_out = np.asarray(held_out_NxN)
    return grids.nearest_seen(held_out.ravel(), held_out.shape[::-1])


def summarize(signals, targets, factors, held_out, lookup) -> dict:
    """Errors, accuracies and trivial baselines of one trial on all cells, ID and OOD apart.

    Args:
      signals, targets: (B, H, W), every cell of the grid.  factors: (B, 2).
      held_out: (B,) bool.  lookup: (B,) int, `nearest_seen`.

    Returns scalars under 'id.' and 'ood.': `mse`; `exact_accuracy` (the brightest pixel is the
    requested one), `position_accuracy` (within 1 pixel on both axes); and the MSE of a blank
    image, of the best constant image (fitted to each region itself: as strong as can be) and,
    OOD, of the nearest seen cell's true image.
    """
    errors_B = mse_per_point(signals, targets)
    distances_B = jax.vmap(position_error)(signals, factors)
    blank_B = mse_per_point(jnp.zeros_like(targets), targets)
    lookup_B = mse_per_point(targets[lookup], targets)
    summary = {}
    for region, mask_B in {"id": ~held_out, "ood": held_out}.items():

        def mean(values_B, mask_B=mask_B):
            return jnp.sum(jnp.where(mask_B, values_B, 0.0)) / jnp.sum(mask_B)

        level = mean(jnp.mean(targets, axis=(1, 2)))
        summary |= {
            f"{region}.mse": mean(errors_B),
            f"{region}.exact_accuracy": mean(distances_B < 0.5),
            f"{region}.position_accuracy": mean(distances_B <= 1.0),
            f"{region}.blank_mse": mean(blank_B),
            f"{region}.best_constant_mse": mean(mse_per_point(targets, level)),
        }
        if region == "ood":
            summary["ood.nearest_seen_mse"] = mean(lookup_B)
    return summary


class PointScores(NamedTuple):
    """At B points: the mean squared error over the grid's pixels, that of a blank image, and the
    distance in pixels from the brightest pixel to the requested position; (B,) each."""

    error: jax.Array
    blank: jax.Array
    distance: jax.Array


def score_points(signals, targets, factors, inside_HxW) -> PointScores:
    """Scores of signals (B, H, W) at factors (B, 2), on the pixels `inside` alone (bool): those of
    a smaller grid that was padded, or all."""
    pixels = jnp.sum(inside_HxW)
    mean = lambda values_BxHxW: jnp.sum(jnp.where(inside_HxW, values_BxHxW, 0.0), (1, 2)) / pixels
    within_BxHxW = jnp.where(inside_HxW[None], signals, -BEYOND)
    return PointScores(
        error=mean(jnp.square(signals - targets)),
        blank=mean(jnp.square(targets)),
        distance=jax.vmap(position_error)(within_BxHxW, factors),
    )


def accuracies(
    scores: PointScores, mask_B, position_tolerance: float = 1.0, image_tolerance: float = 0.25
) -> dict:
    """Scalars over the points of a mask, NaN where it has none: `exact_accuracy` (the brightest
    pixel is the requested one), `position_accuracy` (within `position_tolerance` pixels),
    `image_accuracy` (the error is at most `image_tolerance` of a blank image's), `mse` and
    `blank_mse`."""
    mean = lambda values_B: jnp.sum(jnp.where(mask_B, values_B, 0.0)) / jnp.sum(mask_B)
    return {
        "exact_accuracy": mean(scores.distance < 0.5),
        "position_accuracy": mean(scores.distance <= position_tolerance),
        "image_accuracy": mean(scores.error <= image_tolerance * scores.blank),
        "mse": mean(scores.error),
        "blank_mse": mean(scores.blank),
    }


def fine_points(grid: int, per_pixel: int = 2):
    """(M*M, 2) real points (x, y), `per_pixel` to a pixel, row-major; M = (N-1) per_pixel + 1."""
    axis = np.linspace(0, grid - 1, (grid - 1) * per_pixel + 1, dtype=np.float32)
    y, x = np.meshgrid(axis, axis, indexing="ij")
    return np.stack([x.ravel(), y.ravel()], axis=1)


class CellResults(NamedTuple):
    """What T trained seeds draw at every cell of the grid; NumPy.

    signals (T, B, H, W); targets (B, H, W); factors (B, 2); held_out (B,) bool; distance (B,),
    pixels to the nearest seen cell; B = N*N cells, row-major.
    """

    seeds: tuple
    signals: np.ndarray
    targets: np.ndarray
    factors: np.ndarray
    held_out: np.ndarray
    distance: np.ndarray
    amplitude: float

    @property
    def grid(self) -> int:
        return self.targets.shape[-1]


def error_map(results: CellResults):
    """(T, B) mean squared error of every seed at every cell."""
    return np.asarray(mse_per_point(results.signals, results.targets[None]))


def position_errors(results: CellResults):
    """(T, B) Chebyshev distance in pixels from the brightest pixel to the requested one."""
    over_cells = jax.vmap(position_error)
    return np.asarray(jax.vmap(over_cells, (0, None))(results.signals, results.factors))


def exact_hits(results: CellResults):
    """(T, B) bool: the brightest pixel is the requested one."""
    return position_errors(results) < 0.5


def exact_accuracy(results: CellResults, cells):
    """(T,) share of these cells, (B,) bool, whose brightest pixel is the requested one."""
    return exact_hits(results)[:, cells].mean(axis=1)


def position_accuracy(results: CellResults, cells):
    """(T,) share of these cells whose brightest pixel is within one of the requested one."""
    return (position_errors(results)[:, cells] <= 1.0).mean(axis=1)


def relative_error(results: CellResults, cells):
    """(T,) mean squared error over these cells, that of a blank image being 1."""
    return error_map(results)[:, cells].mean(axis=1) / np.square(results.targets[cells]).mean()


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
