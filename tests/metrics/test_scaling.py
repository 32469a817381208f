import math

import numpy as np
import pytest

from compgen_jax.metrics import censored, scaling
from compgen_jax.metrics.scaling import Curve
from compgen_jax.statistics import t_interval

GRIDS = np.array([4, 6, 8, 10, 12, 16, 20, 24, 32])


def make_curve(values_SxK, status_SxK=None, grids_K=GRIDS):
    values_SxK = np.asarray(values_SxK, float)
    status = np.full(values_SxK.shape, "reached") if status_SxK is None else np.array(status_SxK)
    grids_K = np.asarray(grids_K)[: values_SxK.shape[1]]
    names = "ood.exact_accuracy", 0.5, "task.grid", {}
    return Curve(*names, grids_K, np.arange(len(values_SxK)), values_SxK, status,
                 np.full(np.shape(values_SxK), np.nan))  # fmt: skip


def make_censored(rng, seeds, low, high, slope=3.0, spread=0.3):
    """A curve whose thresholds outside [low, high] are known as bounds only."""
    log_SxK = slope * np.log(GRIDS) - 1 + rng.normal(0, spread, (seeds, GRIDS.size))
    status = np.where(log_SxK > math.log(high), "above", "reached")
    status = np.where(log_SxK < math.log(low), "below", status)
    return make_curve(np.clip(np.exp(log_SxK), low, high), status)


def flat(curve):
    """x_P, y_P and side_P of a curve without unknown thresholds."""
    x_P = np.tile(np.log(curve.along_K), len(curve.seeds_S))
    side_P = np.select([curve.status_SxK == "above", curve.status_SxK == "below"], [1, -1])
    return x_P, np.log(curve.values_SxK).ravel(), side_P.ravel()


def make_row(grid=8, copies=0, region="donut", side=0.5, images=10, **changes):
    row = {"task.grid": grid, "task.stripes.copies": copies, "task.support.region": region}
    row |= {"task.support.side": side, "seed": 0, "task.images": images, "status": "ok"}
    return row | {"ood.exact_accuracy": 0.3, "ood.position_accuracy": 0.9} | changes


def thresholds(rows, score="ood.exact_accuracy", target=0.5, copies=0, **fixed):
    fixed = {f"task.support.{name}": value for name, value in fixed.items()}
    fixed = {"task.stripes.copies": copies, "task.support.region": "donut"} | fixed
    return scaling.thresholds(
        rows, score, target, field="task.images", along="task.grid", fixed=fixed
    )


def slope_by_expectations(x_P, y_P, side_P, steps):
    """Schmee & Hahn's iteration with Aitkin's variance."""
    completed_P, extra_P = y_P.copy(), np.zeros_like(y_P)
    for _ in range(steps):
        slope, intercept = np.polyfit(x_P, completed_P, 1)
        line_P = intercept + slope * x_P
        spread = math.sqrt(np.mean((completed_P - line_P) ** 2 + extra_P))
        for p in np.flatnonzero(side_P):
            z = side_P[p] * (y_P[p] - line_P[p]) / spread
            hazard = math.exp(-z * z / 2) * math.sqrt(2 / math.pi) / math.erfc(z / math.sqrt(2))
            completed_P[p] = line_P[p] + side_P[p] * spread * hazard
            extra_P[p] = spread**2 * (1 - hazard * (hazard - z))
    return slope


def test_isotonic_pools_what_falls_by_weight():
    fit = scaling.isotonic([1.0, 5.0, 2.0, 3.0, 9.0, 6.0], [1, 1, 2, 3, 1, 1])
    np.testing.assert_allclose(fit, [1, *[(5 + 4 + 9) / 6] * 3, 7.5, 7.5])


def test_the_crossing_is_interpolated_in_log_images():
    assert scaling.threshold([10, 100, 1000], [0.2, 0.6, 1.0], 0.8).value == pytest.approx(10**2.5)
    # 0.7 and 0.3 are pooled to 0.5: the crossing of 0.6 lies between 100 and 1000
    value, status, _ = scaling.threshold([1, 10, 100, 1000], [0.1, 0.7, 0.3, 0.9], 0.6)
    assert (value, status) == (pytest.approx(10**2.25), "reached")
    # at 10 the mean of three is 0.2, weighted three against one where it is pooled with 0.0
    value, *_ = scaling.threshold([10, 10, 10, 100, 1000], [0.1, 0.2, 0.3, 0.0, 0.65], 0.4)
    assert value == pytest.approx(10**2.5)  # halfway from 0.15 to 0.65
    assert scaling.threshold([10, 50, 100], [0.0, math.nan, 1.0], 0.5).value == pytest.approx(
        math.sqrt(1000)
    )


def test_single_precision_accuracies_reach_the_target_they_are():
    accuracy = float(np.float32(0.95))
    assert accuracy < 0.95
    value, status, _ = scaling.threshold([10, 20], [0.5, accuracy], 0.95)
    assert (value, status) == (pytest.approx(20, rel=1e-12), "reached")
    assert scaling.threshold([10, 20], [0.5, 0.9499], 0.95).status == "above"


def test_thresholds_out_of_range_are_bounds():
    assert scaling.threshold([30, 10], [0.4, 0.1], 0.5)[:2] == (30, "above")
    assert scaling.threshold([30, 10, 60], [0.4, 0.1, math.nan], 0.5)[:2] == (30, "above")
    assert scaling.threshold([30, 10], [0.9, 0.5], 0.5)[:2] == (10, "below")
    assert scaling.threshold([7], [0.9], 0.5)[:2] == (7, "below")
    value, status, _ = scaling.threshold([30, 10], [math.nan, math.inf], 0.5)
    assert math.isnan(value) and status == "unknown"
    for accuracies in ([0.1, 0.4], [0.6, 0.7], [math.nan, math.nan]):
        assert scaling.threshold([10, 30], accuracies, 0.5).bracket is None
        assert scaling.refinement([10, 30], accuracies, 0.5, 3) == []


def test_refinement_is_geometric_and_free():
    n_data, accuracies = [1, 16, 256], [0.0, 0.4, 0.6]
    assert scaling.threshold(n_data, accuracies, 0.5).bracket == (16, 256)
    assert scaling.refinement(n_data, accuracies, 0.5, 3) == [32, 64, 128]
    assert scaling.refinement(n_data, accuracies, 0.5, 0) == []
    # 64 was tried and failed: its nearest neighbour by ratio is 65
    failed = ([*n_data, 64], [*accuracies, math.nan])
    assert scaling.threshold(*failed, 0.5).bracket == (16, 256)
    assert scaling.refinement(*failed, 0.5, 3) == [32, 65, 128]
    assert scaling.refinement([10, 14], [0.0, 1.0], 0.5, 3) == [11, 12, 13]
    assert scaling.refinement([10, 14], [0.0, 1.0], 0.5, 9) == [11, 12, 13]
    assert scaling.refinement([10, 11], [0.0, 1.0], 0.5, 3) == []


def test_refinement_takes_allowed_numbers_alone():
    even = lambda number: number % 4 == 0
    assert scaling.refinement([8, 64], [0.0, 1.0], 0.5, 1, allowed=even) == [24]  # 23 is nearest
    assert scaling.refinement([8, 20], [0.0, 1.0], 0.5, 9, allowed=even) == [12, 16]
    assert scaling.refinement([8, 12], [0.0, 1.0], 0.5, 9, allowed=even) == []
    small = lambda value: value < 1
    assert scaling.refinement([0.25, 4.0], [0.0, 1.0], 0.5, 3, whole=False, allowed=small) == [0.5]


def test_refinement_of_numbers_that_are_not_whole_is_geometric():
    found = scaling.refinement([0.01, 1.0], [0.0, 1.0], 0.5, 3, whole=False)
    np.testing.assert_allclose(found, [10**-1.5, 0.1, 10**-0.5])
    assert scaling.refinement([0.01, 1.0], [0.0, 0.2], 0.5, 3, whole=False) == []


def test_thresholds_of_a_table():
    rows = [
        make_row(images=10, **{"ood.exact_accuracy": 0.25}),
        make_row(images=1000, **{"ood.exact_accuracy": 0.75}),
        make_row(images=2000, status="failed", **{"ood.exact_accuracy": 0.0}),
        make_row(grid=16, images=10),
        make_row(grid=16, seed=3, images=10, **{"ood.exact_accuracy": 0.6}),
        make_row(grid=32, seed=3, status="failed", **{"ood.exact_accuracy": math.nan}),
        make_row(grid=64, copies=1),
        make_row(grid=64, region="corner"),
        make_row(images=10, side=0.9, **{"ood.exact_accuracy": 1.0}),
    ]
    curve = thresholds(rows[::-1], side=0.5)
    assert (curve.score, curve.target, curve.along) == ("ood.exact_accuracy", 0.5, "task.grid")
    assert curve.fixed["task.support.side"] == 0.5
    assert curve.along_K.tolist() == [8, 16, 32] and curve.seeds_S.tolist() == [0, 3]
    assert curve.status_SxK.tolist() == [
        ["reached", "above", "unknown"],
        ["unknown", "below", "unknown"],
    ]
    expected = [[100, 10, math.nan], [math.nan, 10, math.nan]]
    np.testing.assert_allclose(curve.values_SxK, expected)
    np.testing.assert_array_equal(curve.factor_SxK[0], [100, np.nan, np.nan])
    position = thresholds(rows, "ood.position_accuracy", copies=1)
    assert position.along_K.tolist() == [64] and position.status_SxK.tolist() == [["below"]]


def test_without_censoring_the_exponent_is_that_of_least_squares():
    rng = np.random.default_rng(3)
    log_3xK = 2 * np.log(GRIDS) + rng.normal(0, 0.5, (3, GRIDS.size))
    result = scaling.exponent(make_curve(np.exp(log_3xK)))
    slopes = [np.polyfit(np.log(GRIDS), log_K, 1)[0] for log_K in log_3xK]
    assert result["value"] == pytest.approx(np.mean(slopes), rel=1e-12)
    half = 4.302652729911275 * np.std(slopes, ddof=1) / math.sqrt(3)  # Student's t, 2 degrees
    assert result["ci95"] == pytest.approx([np.mean(slopes) - half, np.mean(slopes) + half])
    assert [result[name] for name in ("reached", "above", "below", "unknown")] == [27, 0, 0, 0]


def test_the_censored_interval_takes_whole_seeds():
    curve = make_censored(np.random.default_rng(4), 3, low=40, high=2000)
    result = scaling.exponent(curve)
    assert min(result["above"], result["below"]) >= 2
    pseudo = []
    for seeds in ((1, 2), (0, 2), (0, 1)):
        left = make_curve(curve.values_SxK[list(seeds)], curve.status_SxK[list(seeds)])
        pseudo.append(3 * result["value"] - 2 * scaling.exponent(left)["value"])
    assert result["ci95"] == pytest.approx(t_interval(pseudo), rel=1e-9)


def test_the_censored_fit_is_the_fixed_point_of_conditional_expectations():
    curve = make_censored(np.random.default_rng(6), 3, low=20, high=400)
    expected = slope_by_expectations(*flat(curve), steps=2000)
    assert scaling.exponent(curve)["value"] == pytest.approx(expected, abs=1e-7)


def test_newton_steps_to_a_negative_spread_are_shortened():
    # two values and slack bounds: the first full step makes the spread negative
    x_P = np.log(np.tile([6, 10, 12, 16, 32], 3))
    side_P = np.array([1, 1, -1, -1, 1, -1, -1, 0, 0, 1, -1, 1, 1, 1, -1])
    y_P = np.select([side_P == 1, side_P == -1, x_P < 2.6], [5.27, 3.98, 3.99], 4.05)
    expected = slope_by_expectations(x_P, y_P, side_P, steps=4000)
    slope = censored.censored_slopes(x_P, y_P, side_P, np.ones((1, 15)))[0]
    assert slope == pytest.approx(expected, abs=1e-5)


def test_bounds_that_a_perfect_line_meets_leave_it():
    values = 0.5 * GRIDS.astype(float) ** 3
    status = ["below", "reached", "reached"] + ["above"] * 6
    values[0] *= 2  # at most twice what the line says
    values[3:] = 150  # more than 150
    result = scaling.exponent(make_curve([values] * 2, [status] * 2))
    assert result["value"] == pytest.approx(3, abs=1e-6)
    assert [result[name] for name in ("reached", "above", "below")] == [4, 12, 2]
    level = scaling.exponent(make_curve([[50.0] * 9] * 2, [["reached"] * 8 + ["above"]] * 2))
    assert level["value"] == pytest.approx(0, abs=censored.SMALLEST_SPREAD)  # a bound on the line


def test_an_exponent_that_hangs_on_one_seed_has_no_interval():
    reached, above = ["reached"] * 3, ["reached", "above", "above"]
    values = [[5.0, 20.0, 50.0], [6.0, 25.0, 40.0], [4.0, 9.0, 9.0]]
    rare = scaling.exponent(make_curve(values, [reached, reached, above]))
    assert np.isfinite(rare["ci95"]).all() and rare["ci95"][0] < rare["value"] < rare["ci95"][1]
    often = scaling.exponent(make_curve(values, [reached, above, above]))
    assert np.isfinite(often["value"]) and all(math.isnan(end) for end in often["ci95"])
    single = scaling.exponent(make_curve(values[:1]))
    assert np.isfinite(single["value"]) and all(math.isnan(end) for end in single["ci95"])


@pytest.mark.parametrize(("coarse", "resolved"), [(1, True), (2, False)])
def test_an_exponent_of_which_more_than_a_tenth_is_coarse_is_not_resolved(coarse, resolved):
    curve = make_curve([[2.0 * n for n in GRIDS[:5]]] * 2)
    curve.factor_SxK.flat[:] = 2.0
    curve.factor_SxK.flat[:coarse] = 4.0
    number = scaling.exponent(curve)
    assert number["coarse"] == coarse and scaling.is_resolved(number) == resolved
