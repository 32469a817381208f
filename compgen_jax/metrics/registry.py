"""The registry of metrics: a metric is one function of arrays, with its row.

    @layer_metric("zeros")
    def share_of_zeros(features_BxD):
        return np.mean(features_BxD == 0)

A function's parameters without a default name the arrays that it needs, less their shapes:
`features_BxD` asks for `features`. It gets those of one layer (`layer_metric`) or of the prediction
(`output_metric`), and returns one number or, for several names, a dict by name. Its numbers are NaN
if an array is not known (None; the metric tensors of a code without a derivative, say), or if it
returns None.

A metric is measured at one of three places:

    grid      every cell of the factors' grid, or of a sub-grid  `layers.GridLayer`
    id_cells  ID cells alone                                     `id_cells.IdLayer`
    points    the task's own points, which may form no grid      `decoding.PointLayer`

`runs.measure` fills a run's table with them, `function` measures any function of the factors.
"""

import inspect
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

PLACES = ("grid", "id_cells", "points")


class Metric(NamedTuple):
    """names: those of its numbers, or a function arrays -> names.  needs: names of arrays.
    at: one of `PLACES`."""

    names: tuple[str, ...] | Callable
    function: Callable
    needs: tuple[str, ...]
    at: str

    @property
    def fixed_names(self) -> tuple[str, ...]:
        return () if callable(self.names) else self.names


class Arrays:
    """Arrays by name, as attributes; subclasses compute further ones when these are asked for."""

    def __init__(self, **arrays):
        vars(self).update(arrays)


LAYER_METRICS: list[Metric] = []
OUTPUT_METRICS: list[Metric] = []


def layer_metric(*names, at: str = "grid") -> Callable:
    """Registers a function as a metric of every layer, which gives the numbers `names`.

    Names that depend on the factors are given as one function arrays -> names. A later metric
    replaces an earlier one with one of its names. ValueError for an unknown place.
    """
    return _registering(LAYER_METRICS, names, at)


def output_metric(*names, at: str = "grid") -> Callable:
    """As `layer_metric`, for a metric of the prediction as a whole."""
    return _registering(OUTPUT_METRICS, names, at)


def _registering(registry: list, names, at):
    if at not in PLACES:
        raise ValueError(f"at must be one of {', '.join(PLACES)}, not {at!r}")
    names = names[0] if len(names) == 1 and callable(names[0]) else names

    def register(function):
        parameters = inspect.signature(function).parameters.values()
        asked = [each.name for each in parameters if each.default is each.empty]
        needs = tuple(re.sub(r"_[A-Z].*", "", name) for name in asked)
        metric = Metric(names, function, needs, at)
        registry[:] = [one for one in registry if not {*one.fixed_names} & {*metric.fixed_names}]
        registry.append(metric)
        return function

    return register


def names(metrics) -> set[str]:
    """The fixed names of these metrics."""
    return {name for metric in metrics for name in metric.fixed_names}


def place_of(name: str) -> str:
    """Where the metric of this name is measured; one without fixed names belongs to the grid."""
    metrics = (*LAYER_METRICS, *OUTPUT_METRICS)
    return next((metric.at for metric in metrics if name in metric.fixed_names), "grid")


def numbers(metrics: list[Metric], arrays: Arrays, say=lambda name: None) -> dict[str, float]:
    """The numbers of all these metrics, by name. `say` is told the first name of each beforehand.

    ValueError for a metric that needs an array which there is not, or that is not one number.
    """
    values_by_name = {}
    for metric in metrics:
        wanted = metric.names(arrays) if callable(metric.names) else metric.names
        for name in wanted[:1]:
            say(name)
        for need in metric.needs:
            if not hasattr(arrays, need):
                there = ", ".join(sorted(name for name in dir(arrays) if name[0] != "_"))
                raise ValueError(
                    f"metric {wanted[0]} needs {need}, which there is not at {metric.at}: {there}"
                )
        given = [getattr(arrays, need) for need in metric.needs]
        values = None if any(one is None for one in given) else metric.function(*given)
        if values is None:
            values = np.nan
        for name in wanted:
            value = values.get(name) if isinstance(values, dict) else values
            if value is None or np.ndim(value):
                kind = "nothing" if value is None else f"an array {np.shape(value)}"
                raise ValueError(f"metric {name} is {kind}, not one number")
            values_by_name[name] = float(value)
    return values_by_name


def layer_numbers(arrays: Arrays, at: str) -> dict[str, float]:
    """The numbers of one layer: of all registered metrics of this place."""
    return numbers([metric for metric in LAYER_METRICS if metric.at == at], arrays)
