"""Verdicts as pandas DataFrames, for readers."""

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
