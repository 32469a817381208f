import math
from itertools import product

import numpy as np
import pytest

from compgen_jax.analysis.statistics import bootstrap_interval, mean_band, mean_with_interval


def test_three_seeds_give_the_enumerated_interval():
    values = [0.1, 0.4, 0.9]
    means = sorted(sum(chosen) / 3 for chosen in product(values, repeat=3))  # 27 resamples
    low, high = bootstrap_interval(values)
    # 2.5% of 27 resamples is less than one: the extremes are inside the interval
    assert (low, high) == pytest.approx((means[0], means[-1]))


def test_many_seeds_approach_the_normal_interval_and_repeat():
    values = np.random.default_rng(1).normal(size=400)
    low, high = bootstrap_interval(values)
    half = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.02)
    assert (low, high) == bootstrap_interval(values)


def test_equal_values_have_no_spread_and_one_seed_shows_none():
    assert mean_with_interval([0.5] * 5) == {"value": 0.5, "ci95": [0.5, 0.5]}
    assert all(math.isnan(end) for end in bootstrap_interval([1.0]))
    for bad in ([], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="non-empty vector over seeds"):
            bootstrap_interval(bad)


def test_another_statistic_is_taken_of_the_same_resamples():
    values = [3.0, 1.0, 7.0, 2.0]
    ranges = sorted(max(chosen) - min(chosen) for chosen in product(values, repeat=4))  # 256
    low, high = bootstrap_interval(values, 0.5, statistic=lambda values_RxT: np.ptp(values_RxT, 1))
    assert (low, high) == (ranges[63], ranges[191])  # the 64th and the 192nd of 256
    mean = lambda values_RxT: values_RxT.mean(axis=1)
    assert bootstrap_interval(values, statistic=mean) == bootstrap_interval(values)


def test_undefined_resamples_are_left_out_up_to_the_share_allowed():
    def defined_without_threes(values_RxT):  # undefined in the one resample (3, 3, 3) of 27
        return np.where((values_RxT == 3.0).all(axis=1), np.nan, values_RxT.mean(axis=1))

    interval = lambda share: bootstrap_interval(
        [1.0, 2.0, 3.0], 0.95, defined_without_threes, share
    )
    assert interval(0.05) == pytest.approx((1.0, 8 / 3))  # the largest mean left: (2, 3, 3)
    assert all(math.isnan(end) for end in interval(0.03))
    nowhere = lambda values_RxT: np.full(len(values_RxT), np.nan)
    assert all(math.isnan(end) for end in bootstrap_interval([1.0, 2.0], 0.95, nowhere, 1.0))
    assert all(math.isnan(end) for end in bootstrap_interval([1.0, 2.0, math.nan]))


def test_a_band_is_over_the_seeds_that_have_a_value():
    values = np.array(
        [[1.0, 4.0, np.nan, np.inf], [3.0, np.nan, np.nan, 2.0], [8.0, np.nan, np.nan, 2.0]]
    )
    middle, low, high = mean_band(values)
    np.testing.assert_allclose(middle, [4, 4, np.nan, 2])
    # of three seeds the interval is their range; one seed shows no spread
    np.testing.assert_allclose(low, [1, 4, np.nan, 2])
    np.testing.assert_allclose(high, [8, 4, np.nan, 2])
    assert mean_band(np.zeros((2, 0))).shape == (3, 0)
    with pytest.raises(ValueError, match=r"values must be \(T, L\)"):
        mean_band([1.0, 2.0])
