import math
from itertools import product

import numpy as np
import pytest

from compgen_jax.analysis.statistics import bootstrap_interval, mean_with_interval


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
