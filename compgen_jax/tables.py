"""Numbers of a run and verdicts as pandas DataFrames, for readers."""

import numpy as np
import pandas as pd

OF_CLAIMS = ("claim", "case", "scale", "setting", "statement", "verdict", "reason", "criterion")


def claims(rows):
    """Rows of claims.json, of a run or of figures: one for each claim, case and setting. `value` is
    that of the first condition, its interval from `low` to `high`; `seeds` is their number."""
    found = []
    for row in rows:
        first = next(iter(row["conditions"].values()))
        found.append(
            {name: row[name] for name in OF_CLAIMS}
            | dict(zip(("value", "low", "high"), (first["value"], *first["ci95"]), strict=True))
            | {"seeds": len(row["seeds"])}
        )
    return pd.DataFrame(found)


def cells(results, factors):
    """What every seed says at every cell (`metrics.evaluation.CellResults`): a row for each seed
    and cell, with columns `seed`, those of the `factors` by name, `held_out`, `distance` in cells
    to the nearest seen one, and each score."""
    of_cells = dict(zip(factors, results.factors.T, strict=True))
    of_cells |= {"held_out": results.held_out, "distance": results.distance}
    columns = {"seed": np.repeat(results.seeds, len(results.factors))}
    columns |= {name: np.tile(values, len(results.seeds)) for name, values in of_cells.items()}
    columns |= {name: values.ravel() for name, values in results.scores.items()}
    return pd.DataFrame(columns)
