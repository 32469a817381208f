import math

import numpy as np
import pytest
from scipy import stats

from compgen_jax import statistics
from compgen_jax.statistics import jackknife_interval, mean_band, t_interval

T_2 = 4.302652729911275  # the 97.5% quantile of Student's t with 2 degrees of freedom


def test_the_interval_of_a_share_ends_at_0_and_1_and_no_others_does():
    low = 5 / 6 - T_2 / 6  # of 1, 1 and 0.5, whose mean has the standard error 1/6
    names = "ood.rendered", "id.interpolator_exact_accuracy", "share rendered OOD, none"
    ends = lambda values, name: statistics.mean_with_interval(values, name)["ci95"]
    for name in names:
        assert ends([1, 1, 0.5], name) == pytest.approx([low, 1])
        assert ends([0, 0, 0.5], name) == pytest.approx([0, 1 - low])
    for name in ("", "ood.r2", "ood.rendered_mse", "share rendered OOD, less that without"):
        assert ends([1, 1, 0.5], name) == pytest.approx([low, 5 / 3 - low])
    assert ends([99, 99, 50], "accuracy")[1] > 100  # percent
    unknown = {"value": None, "ci95": [None, None]}
    assert statistics.in_range("ood.rendered", unknown) == unknown
    assert np.isnan(ends([1.0], "ood.rendered")).all()


def test_equal_values_have_no_spread_and_values_are_a_vector_over_seeds():
    assert statistics.mean_with_interval([0.5] * 5) == {"value": 0.5, "ci95": [0.5, 0.5]}
    for bad in ([], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="non-empty vector over seeds"):
            t_interval(bad)


def test_the_interval_of_another_statistic():
    values, below = np.array([3.0, 1.0, 7.0, 2.0]), np.array([2.0, 1.0, 4.0, 3.0])
    # of a ratio of means, by loops, and of a mean
    ratios = np.array([np.delete(values, s).sum() / np.delete(below, s).sum() for s in range(4)])
    ratio, without = values.sum() / below.sum(), (values.sum() - values) / 3
    both = jackknife_interval([ratio, values.mean()], [ratios, without])
    np.testing.assert_allclose(both, [t_interval(4 * ratio - 3 * ratios), t_interval(values)])
    assert jackknife_interval(values.mean(), without, most=4)[1] == 4
    assert np.isnan(jackknife_interval(0.9, [0.5])).all()


def test_a_band_is_over_the_seeds_that_have_a_value():
    values = np.array(
        [[1.0, 4.0, np.nan, np.inf], [3.0, np.nan, np.nan, 2.0], [8.0, np.nan, np.nan, 2.0]]
    )
    middle, low, high = mean_band(values)
    np.testing.assert_allclose(middle, [4, 4, np.nan, 2])
    half = T_2 * math.sqrt(13 / 3)  # of 1, 3, 8; one seed shows no spread
    np.testing.assert_allclose(low, [4 - half, 4, np.nan, 2])
    np.testing.assert_allclose(high, [4 + half, 4, np.nan, 2])
    assert mean_band(np.zeros((2, 0))).shape == (3, 0)


def test_holms_factors_widen_a_family_until_one_is_not_rejected():
    """Beside p values by scipy's t test and Holm's adjusted ones, by his formula."""
    draws = np.random.default_rng(0).normal([[1.5], [0.7], [0.4], [0.8], [0.0]], 0.6, (5, 6))
    p = stats.ttest_1samp(draws, 0, axis=1).pvalue
    adjusted = np.maximum.accumulate(np.sort(p) * np.arange(5, 0, -1))[np.argsort(np.argsort(p))]
    halves = np.array([statistics.half_width(values) for values in draws])
    ratios = np.abs(draws.mean(axis=1)) / halves
    factors = statistics.holm_factors(ratios, [6] * 5)
    np.testing.assert_array_equal(ratios > factors, adjusted < 0.05)
    assert 0 < (adjusted < 0.05).sum() < (p < 0.05).sum()  # the correction matters here
    least = stats.t.ppf(1 - 0.05 / 10, 5) / stats.t.ppf(0.975, 5)
    assert factors[np.argmin(p)] == pytest.approx(least)
    # p of 0.03 twice: the second alone would be at 0.05, but the first is not rejected at 0.025
    ratio = stats.t.ppf(0.985, 5) / stats.t.ppf(0.975, 5)
    assert (statistics.holm_factors([ratio, ratio], [6, 6]) > ratio).all()
