"""A score of many trials as a map over two of their settings, as of grid and held-out share."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class ErrorMap(NamedTuple):
    """Over Y lines and X columns: mean error, NaN where no trial succeeded; how many did, of how
    many; whether any was scored on seen points."""

    columns_X: tuple
    lines_Y: tuple
    values_YxX: np.ndarray
    succeeded_YxX: np.ndarray
    trials_YxX: np.ndarray
    on_seen_YxX: np.ndarray


def error_map(rows, column: str, line: str, measure: Callable) -> ErrorMap:
    """Mean error of the rows of a table, dicts with `status`, by the settings `column` and `line`.
    `measure`: row -> its error, and whether it is that of seen points. A trial succeeded if its
    status is 'ok' and its error finite."""
    lines, columns = (sorted({row[name] for row in rows}) for name in (line, column))
    shape = len(lines), len(columns)
    sums, succeeded, trials, on_seen = (np.zeros(shape, kind) for kind in (float, int, int, bool))
    for row in rows:
        cell = lines.index(row[line]), columns.index(row[column])
        trials[cell] += 1
        error, seen = measure(row)
        if row["status"] == "ok" and np.isfinite(error):
            sums[cell] += error
            succeeded[cell] += 1
            on_seen[cell] |= seen
    means = np.where(succeeded > 0, sums / np.maximum(succeeded, 1), np.nan)
    return ErrorMap(tuple(columns), tuple(lines), means, succeeded, trials, on_seen)
