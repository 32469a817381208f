"""The registry of metrics: a metric is a function of one layer.

    @layer_metric("mine.zeros")
    def share_of_zeros(layer):
        return np.mean(layer.features == 0)

It is given a `layers.Layer` and returns one number, or numbers by name; None counts as NaN. It is
measured at one of two places: `grid`, the cells of the factors' grid or of a sub-grid, and
`points`, the task's own points.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from compgen_jax import settings

DOMAINS = ("grid", "points")


class Metric(NamedTuple):
    """names: of the numbers that are always there; prefix: of the function's names."""

    names: tuple[str, ...]
    function: Callable
    domain: str
    of_output: bool
    prefix: str


METRICS: list[Metric] = []


def layer_metric(
    *names: str, domain: str = "grid", of_output: bool = False, prefix: str = ""
) -> Callable:
    """Registers a function of a `layers.Layer` as a metric that gives the numbers `names`; of one
    name it may return the number itself. domain: 'grid' or 'points'.  of_output: of the prediction
    alone; at points, of the last hidden layer.  prefix: of all names.

    A later metric replaces an earlier one of its name. A function from outside the package is tried
    on a small layer: TypeError or AttributeError if it fails there.
    """
    if domain not in DOMAINS:
        raise ValueError(f"domain must be one of {', '.join(DOMAINS)}, not {domain!r}")
    names = tuple(prefix + name for name in names)

    def register(function):
        metric = Metric(names, function, domain, of_output, prefix)
        if not function.__module__.startswith("compgen_jax."):
            from compgen_jax.metrics import layers  # which registers metrics itself

            numbers([metric], layers.example(domain))
        METRICS[:] = [other for other in METRICS if not {*other.names} & {*names}]
        METRICS.append(metric)
        return function

    return register


def metrics_of(domain: str, families=()) -> list[Metric]:
    """Those of a domain or of some `families`. Raises ConfigError for an unknown family."""
    metrics = [metric for metric in METRICS if metric.domain == domain]
    chosen = [] if families else metrics
    for family in families:
        prefix = f"{family}."
        members = [m for m in metrics if any(f"{name}.".startswith(prefix) for name in m.names)]
        names = sorted({name.partition(".")[0] for m in metrics for name in m.names})
        hint = f"no such metric here; {settings.nearest_or_all(family, names)}"
        settings.demand(members, f"--metrics={family}: {hint}")
        chosen += members
    return [metric for metric in metrics if metric in chosen]


def numbers(metrics: list[Metric], layer, say: Callable | None = None) -> dict[str, float]:
    """All numbers of a layer. Raises TypeError for what is not one number."""
    by_name = {}
    for metric in metrics:
        if say:
            say(metric.names[0])
        values = metric.function(layer)
        if isinstance(values, dict):
            values = {metric.prefix + name: value for name, value in values.items()}
        else:
            values = dict.fromkeys(metric.names, np.nan if values is None else values)
        for name in dict.fromkeys((*metric.names, *values)):
            value = values.get(name)
            if value is None or np.ndim(value):
                kind = "nothing" if value is None else f"an array {np.shape(value)}"
                raise TypeError(f"metric {name} is {kind}, not one number")
            by_name[name] = float(value)
    return by_name
