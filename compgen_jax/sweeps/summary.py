"""A sweep's numbers: thresholds and exponents of a search, or means over seeds."""

import numpy as np

from compgen_jax.config import Config, field_value
from compgen_jax.metrics import scaling, text
from compgen_jax.statistics import geometric_mean_with_interval, mean_with_interval
from compgen_jax.sweeps import plan, table
from compgen_jax.sweeps.table import Table


def summarize(config: Config, results: Table) -> dict:
    """The number of trials, which of them failed, and either every reading's thresholds and their
    exponents along each numeric axis (of a search), or every combination's means over seeds."""
    layout = plan.layout(config)
    failed = [
        layout.describe(trial) for trial, values in results.items() if table.status(values) != "ok"
    ]
    summary = {"trials": len(results), "failed": failed}
    if not config.sweep.search.field:
        return summary | {"means": _means(layout, results)}
    return summary | {"readings": _readings(config, results, table.rows(results, layout))}


def _readings(config: Config, results: Table, rows: list[dict]) -> list[dict]:
    search, readings = config.sweep.search, []
    for along in plan.numeric_axes(config) or [None]:
        by_fixed = {}  # a trial for every combination of the other axes
        for trial in sorted(results):
            values = zip(dict(config.sweep.axes), trial.axes, strict=True)
            by_fixed.setdefault(tuple(pair for pair in values if pair[0] != along), trial)
        for fixed, trial in by_fixed.items():
            for where, score in plan.readings(config, trial):
                curve = scaling.thresholds(
                    rows, f"{where}.{score}", search.target, field=search.field, along=along,
                    fixed=dict(fixed),
                )  # fmt: skip
                reading = {"where": where, "score": score, "target": search.target, **curve.fixed}
                if along:
                    reading |= {"along": along, "exponent": scaling.exponent(curve)}
                values, status = curve.values_SxK.tolist(), curve.status_SxK.tolist()
                reading["thresholds"] = [
                    ({along: value} if along else {})
                    | {"seed": seed, "value": values[s][k], "status": status[s][k]}
                    for k, value in enumerate(curve.along_K.tolist())
                    for s, seed in enumerate(curve.seeds_S.tolist())
                ]
                readings.append(reading)
    return readings


def _means(layout: table.Layout, results: Table) -> list[dict]:
    """The means of all measures over seeds with their intervals, for every combination of the axes;
    NaN where all seeds failed."""
    by_axes = {}
    for trial, values in sorted(results.items()):
        finished = by_axes.setdefault(trial.axes, [])
        finished += [values] if table.status(values) == "ok" else []
    missing = [np.full(len(layout.measures), np.nan)]
    return [
        dict(zip(layout.axes, axes, strict=True))
        | {
            name: mean_with_interval(column, name)
            for name, column in zip(layout.measures, np.transpose(values or missing), strict=True)
        }
        for axes, values in by_axes.items()
    ]


def describe_search(config: Config, readings: list[dict]) -> list[str]:
    """The thresholds of the scores that the search is for, a line for every combination of the
    axes; then how they grow along an axis, where both are whole numbers, such as sizes, and the
    exponent is resolved."""
    axes, search, lines, powers = dict(config.sweep.axes), config.sweep.search, {}, []
    for reading in readings:
        if reading["score"] not in search.scores:
            continue
        wanted = f"{reading['where']} {reading['score']} {reading['target']:g}"
        along, by_value = reading.get("along"), {}
        for each in reading["thresholds"]:
            by_value.setdefault(each.get(along), []).append(each)
        for value, thresholds in by_value.items():
            place = combination(reading | ({along: value} if along else {}), axes)
            head = ", ".join(filter(None, [place, wanted]))
            lines[f"{head}: {search.field} {_threshold(thresholds)}"] = None  # each of them once
        whole = along and {type(v) for v in (*axes[along], field_value(config, search.field))}
        if whole == {int} and scaling.is_resolved(reading["exponent"]):
            head = ", ".join(filter(None, [combination(reading, axes), wanted]))
            power = text.with_interval(reading["exponent"])
            powers.append(f"{head}: {search.field} ~ ({along})^{power}")
    return [*lines, *powers]


def _threshold(thresholds: list[dict]) -> str:
    """The geometric mean over the seeds that have one, and how many do not."""
    seeds, parts = len(thresholds), []
    for status in dict.fromkeys((scaling.REACHED, *(each["status"] for each in thresholds))):
        values = [each["value"] for each in thresholds if each["status"] == status]
        if status == scaling.REACHED and values:
            parts.append(text.with_interval(geometric_mean_with_interval(values)))
        elif status == scaling.UNKNOWN:
            parts.append(f"unknown for {len(values)} of {seeds} seeds")
        elif values:
            bound = min(values) if status == scaling.ABOVE else max(values)  # holds of each seed
            parts.append(f"{status} {text.number(bound)} for {len(values)} of {seeds} seeds")
    return ", ".join(parts)


def combination(values: dict, axes) -> str:
    """Those of the values that are of axes, as text."""
    return ", ".join(f"{name} {values[name]}" for name in axes if name in values)
