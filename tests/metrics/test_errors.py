"""What is refused, each with one line that says what is wrong."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.metrics import (
    anova,
    circle,
    decodability,
    embeddings,
    function,
    geometry,
    id_cells,
    kernels,
    probes,
    registry,
    scaling,
    spectra,
    superposition,
    tuning,
)
from compgen_jax.metrics import decomposition as dec
from compgen_jax.metrics.error_map import error_map

NAN = np.full((12, 3), np.nan)
CELLS = np.array([(x, y) for y in range(3) for x in range(4)], float)
RNG = np.random.default_rng(0)
ONES = np.ones((12, 3))
HALF = np.arange(12) < 6
AXES = [np.arange(4.0), np.arange(3.0)]
ANGLES = np.arange(0, 360, 30)[:, None]
measure = partial(function.measure, lambda p: {"sum": p}, AXES)
id_layer = partial(id_cells.IdLayer, RNG.normal(size=(12, 3)), CELLS)
GROUPS = np.repeat(np.arange(24), 4)
decode = partial(
    decodability.decode, {"a": RNG.normal(size=(96, 3))}, RNG.normal(size=(96, 2)), GROUPS < 8
)
gaps = lambda *hidden: circle.gaps(ANGLES, np.isin(ANGLES[:, 0], hidden))
matching = superposition.matching_sums
thresholds = partial(scaling.thresholds, field="n")
row = {"grid": 8, "side": 0.5, "seed": 0, "n": 10, "status": "ok", "score": 1.0}
REFUSED = [
    (lambda: kernels.gram(NAN), r"features: NaN or infinite values at points \[0, 1, 2"),
    (lambda: kernels.cosine(np.zeros((4, 4))), "every point has zero norm"),
    (lambda: kernels.gaussian(CELLS, (0.0, 1.0)), "lengths above 0, one for each factor"),
    (lambda: anova.anova_shares(ONES[1:], (4, 3)), "has 12 cells"),
    (lambda: tuning.choose_units(None, 0), "count must be at least 1"),
    (lambda: anova.kernel_anova(np.ones((6, 6)), (2, 2)), "is not square over the grid"),
    (lambda: anova.kernel_anova(np.zeros((4, 4)), (2, 2)), "gram is 0"),
    (lambda: dec.operator_schmidt(np.eye(4), (2, 2), 2), "factor must be from 0 to 1, not 2"),
    (lambda: dec.distribution_rank(-np.eye(3)), "law must be"),
    (lambda: spectra.spectrum(0.3 * ONES), "features: constant over the points"),
    (lambda: embeddings.embedding_numbers(*[np.ones((1, 2, 3, 3))] * 2, np.ones((1, 5, 2))),
     "needed, not"),
    (lambda: superposition.mean_code_superpositions(jnp.ones(6), jnp.ones(6), (3, 2)),
     r"must be \(5,\), of parts of \(3, 2\)"),
    (lambda: matching(ONES[:2], [[3, 1], [3, 2]], [[3, 9]]), "a value that no seen cell has"),
    (lambda: superposition.superposition_r2(NAN, np.ones((12, 2, 3))), "outputs: NaN"),
    (lambda: probes.probe(ONES, CELLS[:-1], HALF), "the features have 12 points"),
    (lambda: probes.probe(ONES, CELLS, HALF), "6 ID points: 5 folds need at least 10"),
    (lambda: probes.probe(ONES, CELLS, HALF, 2, periods=(360.0,)), "one above 0 each"),
    (lambda: probes.probe(ONES, CELLS, HALF, 2, real=(True,)), "for 2 factors"),
    (lambda: decode(folds=2), "at least 3 folds"),
    (lambda: decode(groups_B=GROUPS[1:]), r"groups \(95,\) for 96 rows"),
    (lambda: decode(groups_B=GROUPS // 3), "a group is ID at row 32 and held out at row 24"),
    (lambda: decode(classes=(True,)), "for 2 factors"),
    (lambda: decodability.decode({}, ONES, HALF), "no layers"),
    (lambda: decodability.decode({"a": ONES[1:]}, ONES, HALF), r"layer a \(11, 3\) for 12 rows"),
    (lambda: decodability.decode({"a": NAN}, ONES, HALF), "layer a: NaN or infinite"),
    (lambda: decodability.decode({"a": ONES}, NAN, HALF), "factors: NaN or infinite"),
    (lambda: decodability.decode({"a": ONES}, ONES, HALF, folds=4), "6 ID groups: at least 3"),
    (lambda: decodability.decode({"a": ONES}, ONES, HALF, folds=3), "every factor is constant"),
    (lambda: decodability.decode({"a": ONES}, CELLS, HALF & False), "no row is held out"),
    (lambda: decodability.success_correlation(HALF, HALF[1:], HALF), r"all must be \(B,\)"),
    (lambda: id_cells.IdLayer(ONES[1:], CELLS), r"features must be \(12, D\), not \(11, 3\)"),
    (lambda: id_cells.IdLayer(ONES, ONES), "a cell is given twice"),
    (lambda: id_cells.IdLayer(ONES[:9], CELLS[:9]), "5 folds need at least 10"),
    (lambda: id_layer(tensors=np.ones((12, 3, 3))), r"tensors must be \(12, 2, 2\), not"),
    (lambda: id_cells.choose_cells(CELLS, 5), "most must be at least 6, the rank of the design"),
    (lambda: measure(lambda p: np.ones(12, bool)), "of some of the 12 cells and not of all"),
    (lambda: function.measure(lambda p: p, [AXES[0], [1.0]], None), r"2 values or more each"),
    (lambda: function.measure(lambda p: {"nan": p / 0}, AXES, lambda p: HALF), "nan: NaN or inf"),
    (lambda: gaps(), "nothing is held out"),
    (lambda: gaps(0, 180, 330), "2 gaps, not one"),
    (lambda: gaps(*ANGLES[:, 0]), "every angle of the object is held out"),
    (lambda: circle.windows(circle.gaps(ANGLES, HALF)[0], ANGLES, HALF), "no 8 ID cells"),
    (lambda: geometry.roughness(np.ones((2, 2)), np.eye(2)), "no two neighbouring cells"),
    (lambda: error_map([row], "grid", "n", None, columns_X=[16]), r"grid of \[8\] is not among"),
    (lambda: registry.layer_metric("x", at="sea")(len), "at must be one of grid, id_cells, points"),
    (lambda: scaling.threshold([], [], 0.5), "not empty"),
    (lambda: scaling.threshold([10, 20], [0.1], 0.5), "one length"),
    (lambda: scaling.threshold([0, 20], [0.1, 0.9], 0.5), "positive numbers"),
    (lambda: scaling.threshold([10, 20], [0.1, 0.9], np.nan), "target"),
    (lambda: scaling.refinement([10, 20], [0.1, 0.9], 0.5, -1), "count must not be negative"),
    (lambda: thresholds([row], "mse", 0.5), "no column mse"),
    (lambda: thresholds([row], "score", 0.5, fixed={"grid": 9}), "no rows"),
    (lambda: thresholds([row, row | {"side": 1}], "score", 0.5, along="grid"), "values of side"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_wrong_is_said(call, message):
    with jax.debug_nans(False), pytest.raises(ValueError, match=message):
        call()
