"""Stripes in the training set: what they show, how they are coded, and where they stand."""

from dataclasses import replace

import chex
import jax
import numpy as np
import pytest

from compgen_jax.config import (
    CodeConfig,
    Config,
    ConfigError,
    ImageConfig,
    StripesConfig,
    SupportConfig,
    TaskConfig,
)
from compgen_jax.tasks import dataset, supports
from compgen_jax.tasks.encodings import encode

N = 8
KEY = jax.random.key(3)


def task(copies=1, samples=5, sampling="without_replacement", amplitude=1.0, **image):
    return TaskConfig(
        grid=N,
        image=ImageConfig(**image),
        support=SupportConfig(region="corner", low=4, sampling=sampling, samples=samples),
        stripes=StripesConfig(copies=copies, amplitude=amplitude),
    )


@pytest.mark.parametrize("polarity", ["inverted", "upright"])
def test_stripes_are_the_profile_of_one_coordinate_drawn_across(polarity):
    data = dataset.stripes(task(polarity=polarity, sigma=1.3, amplitude=0.5))
    chex.assert_shape(data.targets, (2 * N, N, N))
    for c in range(N):
        profile = 0.5 * np.exp(-((np.arange(N) - c) ** 2) / (2 * 1.3**2))
        image = 1 - profile if polarity == "inverted" else profile
        expected = np.broadcast_to(image, (N, N))
        np.testing.assert_allclose(data.targets[c], expected, atol=1e-6)  # constant along y
        np.testing.assert_allclose(data.targets[N + c], expected.T, atol=1e-6)


@pytest.mark.parametrize("missing", ["zero", "off_grid"])
def test_the_missing_factor_has_its_own_code(missing):
    config = TaskConfig(grid=N, code=CodeConfig(missing=missing, missing_coordinate=-3.0))
    data = dataset.stripes(config)
    assert np.isnan(data.factors[:N, 1]).all() and np.isnan(data.factors[N:, 0]).all()
    np.testing.assert_array_equal(data.factors[:N, 0], np.arange(N))
    np.testing.assert_array_equal(data.factors[N:, 1], np.arange(N))
    absent = np.zeros(N)
    if missing == "off_grid":
        absent = np.exp(-((np.arange(N) + 3.0) ** 2) / 2)
    whole = encode(5.0, 2.0, N, config.code)
    np.testing.assert_allclose(data.codes[5], [*whole[:N], *absent], atol=1e-6)
    np.testing.assert_allclose(data.codes[N + 2], [*absent, *whole[N:]], atol=1e-6)


@pytest.mark.parametrize("sampling", ["with_replacement", "without_replacement", "real"])
def test_stripes_come_first_and_fewer_bumps_are_the_first_of_more(sampling):
    """So a traced number of examples picks a number of bumps, whatever the data set's size."""
    large, small, none = (
        dataset.training_set(KEY, task(copies=2, samples=n, sampling=sampling)) for n in (40, 7, 0)
    )
    chex.assert_shape(large.codes, (4 * N + 40, 2 * N))
    for data, count in ((small, 7), (none, 0)):
        chex.assert_shape(data.codes, (4 * N + count, 2 * N))
        for mine, theirs in zip(data, large, strict=True):
            np.testing.assert_array_equal(mine, theirs[: 4 * N + count])
    np.testing.assert_array_equal(large.codes[: 2 * N], large.codes[2 * N : 4 * N])
    points = large.factors[4 * N :]
    assert not np.isnan(points).any() and not supports.is_held_out(*points.T, task()).any()


def test_size_counts_stripes_and_points():
    assert dataset.size(task(copies=3, samples=5)) == 3 * 2 * N + 5
    assert dataset.size(task(copies=0, sampling="every_cell")) == N * N - 16
    assert len(dataset.training_set(KEY, task(copies=3, samples=5)).codes) == 3 * 2 * N + 5


def test_stripes_show_every_value_so_marginals_need_no_points():
    with_stripes = task(copies=1, samples=1)
    supports.check_marginals(dataset.training_factors(KEY, with_stripes), with_stripes)
    alone = task(copies=0, samples=1)
    with pytest.raises(ConfigError, match="no training point has x in"):
        supports.check_marginals(dataset.training_factors(KEY, alone), alone)


def test_shuffled_stripes_can_be_left_out():
    """All of them in an order of the seed's; without the last ones, the same order's beginning."""
    whole = dataset.training_factors(KEY, shuffled(0))
    by_axis = dataset.stripes(task()).factors
    key = lambda factors: sorted(np.nan_to_num(np.asarray(factors), nan=-1).tolist())
    assert key(whole[: 2 * N]) == key(by_axis)
    assert not np.array_equal(whole[: 2 * N], by_axis, equal_nan=True)
    other = dataset.training_factors(jax.random.key(4), shuffled(0))
    assert not np.array_equal(whole[: 2 * N], other[: 2 * N], equal_nan=True)
    some = dataset.training_factors(KEY, shuffled(5))
    assert len(some) == dataset.size(shuffled(5)) == 2 * N
    np.testing.assert_array_equal(some[: 2 * N - 5], whole[: 2 * N - 5])
    np.testing.assert_array_equal(some[2 * N - 5 :], whole[2 * N :])  # the same points behind them


def test_a_value_that_no_stripe_and_no_point_shows_is_found():
    few = replace(shuffled(2 * N - 1), support=task(samples=1).support)
    with pytest.raises(ConfigError, match="no training point has x in"):
        supports.check_marginals(dataset.training_factors(KEY, few), few)


def shuffled(left_out):
    return replace(task(), stripes=StripesConfig(copies=1, order="shuffled", left_out=left_out))


@pytest.mark.parametrize("stripes", [StripesConfig(copies=1, left_out=3),
                                     StripesConfig(copies=1, order="shuffled", left_out=2 * N),
                                     StripesConfig(order="shuffled", left_out=1)])  # fmt: skip
def test_stripes_that_cannot_be_left_out(stripes):
    with pytest.raises(ConfigError, match="config.task.stripes.left_out="):
        Config(task=replace(task(), stripes=stripes))


def test_nothing_to_train_on_is_an_error():
    with pytest.raises(ConfigError, match="samples=0: leaves nothing to train on"):
        Config(task=task(copies=0, samples=0))
    Config(task=task(copies=0, samples=0, sampling="every_cell"))
    Config(task=task(copies=1, samples=0))


def test_a_ramp_cannot_say_that_a_factor_is_missing_by_zero():
    ramp = {"grid": N, "stripes": StripesConfig(copies=1), "support": task().support}
    with pytest.raises(ConfigError, match="is the ramp's code of coordinate 0"):
        Config(task=TaskConfig(code=CodeConfig(name="ramp"), **ramp))
    Config(task=TaskConfig(code=CodeConfig(name="ramp", missing="off_grid"), **ramp))
