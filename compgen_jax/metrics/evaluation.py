"""What trained models say at every cell beside what they should: scores by region and distance."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np


def region_means(scores: dict, masks: dict, derived: Callable = lambda means: {}) -> dict:
    """{'REGION.SCORE': mean over the points of the region}, NaN for one without points.

    Args: scores (B,) by name; masks (B,) bool by region; derived: a region's means by name ->
    further numbers of it.
    """

    def mean(values_B, mask_B):
        return jnp.sum(jnp.where(mask_B, values_B, 0.0)) / jnp.sum(mask_B)

    by_region = {}
    for region, mask_B in masks.items():
        means = {name: mean(values_B, mask_B) for name, values_B in scores.items()}
        by_region |= {f"{region}.{name}": value for name, value in (means | derived(means)).items()}
    return by_region


@dataclass(frozen=True, eq=False)
class CellResults:
    """What S trained seeds say at every cell, or networks at C steps of each; NumPy.

    predict: () -> `predictions`, (S, B, ...) or (S, C, B, ...), made when they are asked for first.
    truths (B, ...); factors (B, F); held_out (B,) bool; distance (B,), cells to the nearest seen
    one; sizes (V_1, ..., V_F), the first factor varying fastest over the B cells; scores: the
    task's by name, (S, B) or (S, C, B) each, of which `error` is the error.
    """

    seeds: tuple
    predict: Callable
    truths: np.ndarray
    factors: np.ndarray
    held_out: np.ndarray
    distance: np.ndarray
    sizes: tuple
    scores: dict
    error: str = "mse"

    @cached_property
    def predictions(self) -> np.ndarray:
        return self.predict()

    def _replace(self, predictions=None, **changes) -> "CellResults":
        if predictions is not None:
            changes["predict"] = lambda: predictions
        return replace(self, **changes)

    @property
    def grid(self) -> int:
        """N of square images."""
        return self.truths.shape[-1]

    @property
    def amplitude(self) -> float:
        """The largest true signal."""
        return float(self.truths.max())


def errors(results: CellResults):
    """(..., B) the error of every network at every cell."""
    return results.scores[results.error]


def mean_score(results: CellResults, name: str, cells):
    """(...) mean of a score over some cells, (B,) bool."""
    return results.scores[name][..., cells].mean(axis=-1, dtype=np.float64)


def relative_error(results: CellResults, cells):
    """(...) mean squared error over these cells, that of a blank signal being 1."""
    return errors(results)[..., cells].mean(axis=-1) / np.square(results.truths[cells]).mean()


def profile_by_distance(values_xB, results: CellResults):
    """Mean over held-out cells of equal distance to the seen region: (K distances,
    (..., K) means)."""
    distance = results.distance.round(6)
    levels = np.unique(distance[results.held_out])
    means = [values_xB[..., results.held_out & (distance == d)].mean(axis=-1) for d in levels]
    return levels, np.stack(means, axis=-1)


def over_networks(function: Callable, axes: int = 3) -> Callable:
    """`function(values, *shared)` of one network's values, which have `axes` axes, as a compiled
    function of values with any axes of networks before them; so are its results."""

    @jax.jit
    def of_all(values, *shared):
        networks = values.shape[: values.ndim - axes]
        flat = values.reshape(-1, *values.shape[len(networks) :])
        found = jax.vmap(lambda one: function(one, *shared))(flat)
        return jax.tree.map(lambda leaf: leaf.reshape(*networks, *leaf.shape[1:]), found)

    return of_all


def drawn_size(signals_TxBxHxW, targets_CxHxW):
    """(T, B) int: which size's true image, at the brightest pixel of what is drawn, is nearest.

    Args:
      signals: of T seeds at any B points.  targets: the true signals of all cells of x, y and
        size, the first varying fastest, x and y the pixels.

    An image that is brightest nowhere is read at the first pixel, one with pixels that are no
    numbers at the first of these.
    """
    signals, targets = np.asarray(signals_TxBxHxW), np.asarray(targets_CxHxW)
    height, width = targets.shape[-2:]
    by_place = targets.reshape(-1, height * width, height * width)  # size, place, pixel
    sizes = []
    for one_BxHxW in signals:
        flat = one_BxHxW.reshape(len(one_BxHxW), -1)
        place = np.argmax(flat, axis=1)
        errors = [np.square(flat - true[place]).mean(axis=1) for true in by_place]
        sizes.append(np.argmin(errors, axis=0))
    return np.array(sizes)
