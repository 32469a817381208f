import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from compgen_jax.metrics import censored, scaling
from compgen_jax.metrics.scaling import Curve
from compgen_jax.statistics import t_interval

NAN = np.nan
GRIDS = np.array([4, 6, 8, 10, 12, 16, 20, 24, 32])


def make_curve(values_SxK, status_SxK=None):
    values_SxK = np.asarray(values_SxK, float)
    seeds, count = values_SxK.shape
    status = np.full((seeds, count), "reached") if status_SxK is None else np.array(status_SxK)
    return Curve("score", 0.5, "task.grid", {}, GRIDS[:count], np.arange(seeds), values_SxK, status,
                 np.full((seeds, count), np.nan))  # fmt: skip


def most_likely_slope(x_P, y_P, side_P):
    """By a general optimiser, in float64."""

    def loss(parameters):
        z = (y_P - parameters[0] - parameters[1] * x_P) / np.exp(parameters[2])
        known = norm.logpdf(z) - parameters[2]
        return -np.sum(
            np.select([side_P == 1, side_P == -1], [norm.logsf(z), norm.logcdf(z)], known)
        )

    slope, intercept = np.polyfit(x_P, y_P, 1)
    return minimize(loss, [intercept, slope, 0], tol=1e-9).x[1]


@pytest.mark.parametrize(
    ("values", "scores", "target", "value", "status"),
    [
        # 10 images with the mean of three, 0.2, are pooled with 100 to 0.15: the crossing of 0.4 is
        # halfway from there to 0.65, in log images
        ([10, 10, 10, 100, 1000], [0.1, 0.2, 0.3, 0.0, 0.65], 0.4, 10**2.5, "reached"),
        ([10, 20], [0.5, float(np.float32(0.95))], 0.95, 20, "reached"),  # which is below 0.95
        ([30, 10], [0.9, 0.5], 0.5, 10, "below"),
        ([30, 10], [NAN, np.inf], 0.5, NAN, "unknown"),
    ],
)
def test_thresholds_of_known_curves(values, scores, target, value, status):
    found = scaling.threshold(values, scores, target)
    assert found.value == pytest.approx(value, rel=1e-12, nan_ok=True) and found.status == status
    assert (found.bracket is None) == (status != "reached")
    if status != "reached":
        assert scaling.refinement(values, scores, target, 3) == []


@pytest.mark.parametrize(
    ("values", "scores", "count", "settings", "expected"),
    [
        ([1, 16, 256, 64], [0.0, 0.4, 0.6, NAN], 3, {}, [32, 65, 128]),
        ([8, 64], [0.0, 1.0], 1, {"allowed": lambda v: v % 4 == 0}, [24]),  # 23 is nearest
        ([0.01, 1.0], [0.0, 1.0], 3, {"whole": False}, [10**-1.5, 0.1, 10**-0.5]),
        ([0.25, 4.0], [0.0, 1.0], 3, {"whole": False, "allowed": lambda v: v < 1}, [0.5]),
    ],
)
def test_refinement_is_geometric_free_and_allowed(values, scores, count, settings, expected):
    found = scaling.refinement(values, scores, 0.5, count, **settings)
    assert found == pytest.approx(expected)


def test_thresholds_of_a_table():
    row = {"grid": 8, "copies": 0, "side": 0.5, "seed": 0, "n": 10, "status": "ok", "exact": 0.25}
    rows = [
        row,
        row | {"exact": 0.75, "n": 1000},
        row | {"exact": 0, "n": 2000, "status": "failed"},
        row | {"grid": 16},
        row | {"grid": 16, "exact": 0.75, "seed": 3},
        row | {"grid": 32, "seed": 3, "status": "failed"},
        row | {"grid": 64, "copies": 1},
        row | {"exact": 1, "side": 0.9},
    ]
    fixed = {"copies": 0, "side": 0.5}
    curve = scaling.thresholds(rows[::-1], "exact", 0.5, field="n", along="grid", fixed=fixed)
    assert curve.along_K.tolist() == [8, 16, 32] and curve.seeds_S.tolist() == [0, 3]
    status = [["reached", "above", "unknown"], ["unknown", "below", "unknown"]]
    assert curve.status_SxK.tolist() == status
    np.testing.assert_allclose(curve.values_SxK, [[100, 10, NAN], [NAN, 10, NAN]])
    np.testing.assert_array_equal(curve.factor_SxK[0], [100, NAN, NAN])


def test_without_censoring_the_exponent_is_that_of_least_squares():
    rng = np.random.default_rng(3)
    log_3xK = 2 * np.log(GRIDS) + rng.normal(0, 0.5, (3, GRIDS.size))
    result = scaling.exponent(make_curve(np.exp(log_3xK)))
    slopes = [np.polyfit(np.log(GRIDS), log_K, 1)[0] for log_K in log_3xK]
    assert result["value"] == pytest.approx(np.mean(slopes), rel=1e-12)
    assert result["ci95"] == pytest.approx(t_interval(slopes))


def test_the_censored_slope_is_the_most_likely_one():
    rng = np.random.default_rng(6)
    log_3xK = 3 * np.log(GRIDS) - 1 + rng.normal(0, 0.3, (3, GRIDS.size))
    status = np.select([log_3xK > 6, log_3xK < 3], ["above", "below"], "reached")
    values_3xK = np.exp(np.clip(log_3xK, 3, 6))
    result = scaling.exponent(make_curve(values_3xK, status))
    side_P = np.select([status == "above", status == "below"], [1, -1]).ravel()
    expected = most_likely_slope(np.tile(np.log(GRIDS), 3), np.log(values_3xK).ravel(), side_P)
    assert result["value"] == pytest.approx(expected, abs=1e-5)
    pseudo = []  # the interval takes whole seeds
    for seeds in ([1, 2], [0, 2], [0, 1]):
        left = make_curve(values_3xK[seeds], status[seeds])
        pseudo.append(3 * result["value"] - 2 * scaling.exponent(left)["value"])
    assert result["ci95"] == pytest.approx(t_interval(pseudo), rel=1e-6)
    # two values and slack bounds: Newton's first full step makes the spread negative
    x_P = np.log(np.tile([6, 10, 12, 16, 32], 3))
    side_P = np.array([1, 1, -1, -1, 1, -1, -1, 0, 0, 1, -1, 1, 1, 1, -1])
    y_P = np.select([side_P == 1, side_P == -1, x_P < 2.6], [5.27, 3.98, 3.99], 4.05)
    slope = censored.censored_slopes(x_P, y_P, side_P, np.ones((1, 15)))[0]
    assert slope == pytest.approx(most_likely_slope(x_P, y_P, side_P), abs=1e-4)


def test_an_exponent_that_hangs_on_one_seed_has_no_interval():
    reached, above = ["reached"] * 3, ["reached", "above", "above"]
    values = [[5.0, 20.0, 50.0], [6.0, 25.0, 40.0], [4.0, 9.0, 9.0]]
    rare = scaling.exponent(make_curve(values, [reached, reached, above]))
    assert rare["ci95"][0] < rare["value"] < rare["ci95"][1]
    for curve in (make_curve(values, [reached, above, above]), make_curve(values[:1])):
        result = scaling.exponent(curve)
        assert np.isfinite(result["value"]) and np.isnan(result["ci95"]).all()


def test_an_exponent_of_which_more_than_a_tenth_is_coarse_is_not_resolved():
    for coarse in (1, 2):
        curve = make_curve([[2.0 * n for n in GRIDS[:5]]] * 2)
        curve.factor_SxK.flat[:] = [4.0] * coarse + [2.0] * (10 - coarse)
        number = scaling.exponent(curve)
        assert number["coarse"] == coarse and scaling.is_resolved(number) == (coarse == 1)
