"""A sweep's numbers: thresholds and exponents of a search, or means over seeds."""

from itertools import groupby, product

import numpy as np

from compgen_jax.config import Config
from compgen_jax.metrics import scaling, text
from compgen_jax.runs import sweep_table
from compgen_jax.runs.sweep_table import Table
from compgen_jax.statistics import mean_with_interval


def summarize(config: Config, table: Table) -> dict:
    """The number of trials, which failed, and a search's thresholds and exponents or the means over
    seeds."""
    failed = [
        sweep_table.describe(config, trial)
        for trial, numbers in table.items()
        if sweep_table.status(numbers) != "ok"
    ]
    summary = {"trials": len(table), "failed": failed}
    if config.sweep.search.field:
        return summary | {"readings": _readings(config, table)}
    names, means = sweep_table.measures(config), []
    for axes, group in groupby(sorted(table.items()), lambda item: item[0].axes):
        finished = [numbers for _, numbers in group if sweep_table.status(numbers) == "ok"]
        columns = np.transpose(finished or [np.full(len(names), np.nan)])
        intervals = {n: mean_with_interval(c, n) for n, c in zip(names, columns, strict=True)}
        means.append(dict(zip(dict(config.sweep.axes), axes, strict=True)) | intervals)
    return summary | {"means": means}


def _readings(config: Config, table: Table) -> list[dict]:
    search, axes, readings = config.sweep.search, dict(config.sweep.axes), []
    rows = sweep_table.rows(config, table)
    numeric = [
        name
        for name, values in axes.items()
        if len(values) > 1 and all(type(value) in (int, float) and value > 0 for value in values)
    ]
    # every share, in the regions where the task has points: most finely the searched ones
    shares = [name for name in sweep_table.score_names(config) if name.endswith("accuracy")]
    scores = dict.fromkeys([*search.scores, *shares])
    for along in numeric or [None]:  # axes along which a search has an exponent
        by_fixed = {}  # the axes of a trial for every combination of the other axes
        for trial in sorted(table):
            pairs = zip(axes, trial.axes, strict=True)
            by_fixed.setdefault(tuple(pair for pair in pairs if pair[0] != along), trial.axes)
        for fixed, values in by_fixed.items():
            regions = dict.fromkeys(("unseen", "real", *sweep_table.searched(config, values)))
            for score, region in product(scores, regions):
                curve = scaling.thresholds(
                    rows,
                    f"{region}.{score}",
                    search.target,
                    field=search.field,
                    along=along,
                    fixed=dict(fixed),
                )
                reading = {"where": region, "score": score, "target": search.target, **curve.fixed}
                if along:
                    reading |= {"along": along, "exponent": scaling.exponent(curve)}
                thresholds, status = curve.values_SxK.tolist(), curve.status_SxK.tolist()
                reading["thresholds"] = [
                    ({along: value} if along else {})
                    | {"seed": seed, "value": thresholds[s][k], "status": status[s][k]}
                    for k, value in enumerate(curve.along_K.tolist())
                    for s, seed in enumerate(curve.seeds_S.tolist())
                ]
                readings.append(reading)
    return readings


def describe(config: Config, summary: dict) -> list[str]:
    """What a command prints: means on held-out points, or thresholds of every seed and resolved
    exponents."""
    axes, search, lines = dict(config.sweep.axes), config.sweep.search, []

    def add(values: dict, line: str):
        settings = [f"{name} {values[name]}" for name in axes if name in values]
        lines.append(", ".join([*settings, line]))

    for mean in summary.get("means", []):
        names = [name for name in mean if name.startswith("ood.") and name not in axes]
        add(mean, ", ".join(f"{name} {text.with_interval(mean[name])}" for name in names))
    for reading in summary.get("readings", []):
        if reading["score"] not in search.scores:
            continue
        along = reading.get("along")
        head = f"{reading['where']} {reading['score']} {reading['target']:g}: {search.field}"
        seeds = {}  # by the value along which there is an exponent
        for threshold in reading["thresholds"]:
            shown = f"{threshold['status']} {text.number(threshold['value'])}"
            seeds.setdefault(threshold.get(along), []).append(shown)
        for value, shown in seeds.items():
            add(reading | {along: value}, f"{head} {', '.join(shown)}")
        if along and scaling.is_resolved(reading["exponent"]):
            power = text.with_interval(reading["exponent"])
            add(reading, f"{head} ~ ({along})^{power}")
    return list(dict.fromkeys(lines))  # each line once
