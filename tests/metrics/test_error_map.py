import math

import numpy as np

from compgen_jax.metrics.error_map import error_map


def row(grid, share, error, status="ok", seen=False):
    return {"grid": grid, "share": share, "error": error, "status": status, "seen": seen}


ROWS = [
    row(24, 0.2, 1.0), row(24, 0.2, 4.0, seen=True), row(16, 0.2, 7.0),
    row(16, 0.6, 5.0, status="failed", seen=True), row(24, 0.6, math.nan), row(24, 0.6, 0.5),
]  # fmt: skip


def test_means_are_over_the_trials_that_succeeded():
    found = error_map(ROWS, "grid", "share", lambda row: (row["error"], row["seen"]))
    assert found.columns_X == (16, 24) and found.lines_Y == (0.2, 0.6)
    np.testing.assert_array_equal(found.values_YxX, [[7, 2.5], [np.nan, 0.5]])
    np.testing.assert_array_equal(found.succeeded_YxX, [[1, 2], [0, 1]])
    np.testing.assert_array_equal(found.trials_YxX, [[1, 2], [1, 2]])
    np.testing.assert_array_equal(found.on_seen_YxX, [[False, True], [False, False]])
