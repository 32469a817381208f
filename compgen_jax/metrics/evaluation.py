"""What trained models say at every cell beside what they should: scores by region and distance."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np


def region_means(scores: dict, masks: dict, derived: Callable | None = None) -> dict:
    """{'REGION.SCORE': mean}, NaN without points. scores (B,) by name; masks (B,) bool by region;
    derived: a region's means -> further numbers."""
    by_region = {}
    for region, mask_B in masks.items():
        means = {
            name: jnp.sum(jnp.where(mask_B, values_B, 0.0)) / jnp.sum(mask_B)
            for name, values_B in scores.items()
        }
        means |= derived(means) if derived else {}
        by_region |= {f"{region}.{name}": value for name, value in means.items()}
    return by_region


@dataclass(frozen=True, eq=False)
class CellResults:
    """The outputs of S seeds at every cell, (S, B, ...), or at C steps of each, (S, C, B, ...);
    NumPy. predict: `predictions` or a function that makes them.  truths (B, ...); factors (B, F);
    distance (B,) to the nearest seen cell; scores (S, B) or (S, C, B) by name; error: which is the
    error."""

    seeds: tuple
    predict: Callable | np.ndarray
    truths: np.ndarray
    factors: np.ndarray
    held_out: np.ndarray
    distance: np.ndarray
    sizes: tuple
    scores: dict
    error: str = "mse"

    @cached_property
    def predictions(self) -> np.ndarray:
        return self.predict() if callable(self.predict) else self.predict

    @property
    def grid(self) -> int:
        """N of square images."""
        return self.truths.shape[-1]

    @property
    def amplitude(self) -> float:
        """The largest true signal."""
        return float(self.truths.max())


def mean_score(results: CellResults, name: str, cells):
    """(...) mean of a score over some cells, (B,) bool."""
    return results.scores[name][..., cells].mean(axis=-1, dtype=np.float64)


def relative_error(results: CellResults, cells):
    """(...) mean squared error over these cells, that of a blank signal being 1."""
    return (
        results.scores[results.error][..., cells].mean(axis=-1)
        / np.square(results.truths[cells]).mean()
    )


def profile_by_distance(values_xB, results: CellResults):
    """Means over held-out cells of equal distance to the seen region: (K distances, (..., K))."""
    distance = results.distance.round(6)
    levels = np.unique(distance[results.held_out])
    means = [values_xB[..., results.held_out & (distance == d)].mean(axis=-1) for d in levels]
    return levels, np.stack(means, axis=-1)


def over_networks(function: Callable, axes: int = 3) -> Callable:
    """`function(values, *shared)` of one network's values, of `axes` axes, compiled for values with
    any axes of networks before them."""

    @jax.jit
    def of_all(values, *shared):
        networks = values.shape[: values.ndim - axes]
        flat = values.reshape(-1, *values.shape[len(networks) :])
        results = jax.vmap(lambda network: function(network, *shared))(flat)
        return jax.tree.map(lambda leaf: leaf.reshape(*networks, *leaf.shape[1:]), results)

    return of_all
