"""What is refused, each with one line that says what is wrong."""

from functools import partial

import jax
import numpy as np
import pytest

from compgen_jax.metrics import circle, function, probes, scaling

CELLS = np.array([(x, y) for y in range(3) for x in range(4)], float)
ONES = np.ones((12, 3))
HALF = np.arange(12) < 6
AXES = [np.arange(4.0), np.arange(3.0)]
thresholds = partial(scaling.thresholds, field="n")
row = {"grid": 8, "side": 0.5, "seed": 0, "n": 10, "status": "ok", "score": 1.0}
REFUSED = [
    (lambda: probes.probe(ONES, CELLS, HALF), "6 ID points: 5 folds need at least 10"),
    (lambda: function.measure(len, AXES, lambda p: HALF | True), "of some of the 12 cells"),
    (lambda: function.measure(lambda p: {"nan": p / 0}, AXES, lambda p: HALF), "nan: NaN or inf"),
    (lambda: circle.gaps(CELLS, HALF & False), "nothing is held out"),
    (lambda: thresholds([row], "score", 0.5, fixed={"grid": 9}), "no rows"),
    (lambda: thresholds([row, row | {"side": 1}], "score", 0.5, along="grid"), "values of side"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_wrong_is_said(call, message):
    with jax.debug_nans(False), pytest.raises(ValueError, match=message):
        call()
