"""Tables as pandas DataFrames, for readers.

    metrics("runs/mine").query("seed == 0").plot(x="step", y="ood.mse")
    layers("runs/mine").pivot_table(index="metric", columns="layer", values="value")

Each raises FileNotFoundError if the directory has no such table.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

OF_CLAIMS = ("claim", "code", "statement", "reading", "verdict", "reason", "criterion", "measured")


def metrics(workdir):
    """`metrics.csv` of a run: a row for each seed and evaluation, a column for each score."""
    return pd.read_csv(Path(workdir) / "metrics.csv")


def trials(workdir):
    """`trials.csv` of a sweep: a row for each trial, columns of its axes and scores."""
    return pd.read_csv(Path(workdir) / "trials.csv")


def layers(workdir):
    """`layers.csv` of a run: seed, step, layer, metric and value (see `runs.measure`)."""
    return pd.read_csv(Path(workdir) / "layers.csv")


def claims(workdir):
    """`claims.json` of a run or of figures: a row for each claim and reading. The interval of
    `measured` is from `low` to `high`; `seeds` is their number."""
    found = json.loads((Path(workdir) / "claims.json").read_text())
    rows = [
        {name: row[name] for name in OF_CLAIMS}
        | dict(zip(("low", "high"), row["ci95"], strict=True))
        | {"seeds": len(row["seeds"])}
        for row in found
    ]
    return pd.DataFrame(rows)


def cells(results, factors):
    """What every seed says at every cell (`metrics.evaluation.CellResults`): a row for each seed
    and cell, with columns `seed`, those of the `factors` by name, `held_out`, `distance` in cells
    to the nearest seen one, and each score."""
    seeds, count = len(results.seeds), len(results.factors)
    columns = {"seed": np.repeat(results.seeds, count)}
    columns |= {
        name: np.tile(values, seeds)
        for name, values in zip(factors, results.factors.T, strict=True)
    }
    columns["held_out"] = np.tile(results.held_out, seeds)
    columns["distance"] = np.tile(results.distance, seeds)
    columns |= {name: values.ravel() for name, values in results.scores.items()}
    return pd.DataFrame(columns)
