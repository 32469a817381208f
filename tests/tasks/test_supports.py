import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import ConfigError, SupportConfig, TaskConfig
from compgen_jax.tasks import dataset, supports


def task_of(grid, **support):
    return TaskConfig(grid=grid, support=SupportConfig(**support))


@pytest.mark.parametrize(
    ("task", "held_out", "seen"),
    [
        (task_of(28, region="donut", low=6, high=22), 289, 495),
        (task_of(28, region="donut", low=10, high=18), 81, 703),
        (task_of(32, region="corner", low=12), 400, 624),
        (task_of(28, region="corner", low=14), 196, 588),
        (task_of(28, region="cross", low=10, high=17), 28 * 28 - 20 * 20, 400),
        (task_of(16, region="random", share=0.25), 64, 192),
        (task_of(16, region="none"), 0, 256),
    ],
)
def test_counts_of_cells(task, held_out, seen):
    mask = supports.held_out_mask(task)
    assert (mask.sum(), len(supports.seen_cells(task))) == (held_out, seen)


@pytest.mark.parametrize(
    ("corner", "inside"),
    [
        ("top_right", (7, 7)),
        ("top_left", (0, 7)),
        ("bottom_right", (7, 0)),
        ("bottom_left", (0, 0)),
    ],
)
def test_corner_lies_where_its_name_says_and_all_have_one_size(corner, inside):
    """y points up, mask[y, x]: the top right corner is large x and large y."""
    mask = supports.held_out_mask(task_of(8, region="corner", low=5, corner=corner))
    x, y = inside
    assert mask[y, x] and mask.sum() == 9


def test_bounds_are_inclusive_and_real_points_belong_to_their_nearest_cell():
    task = task_of(28, region="donut", low=6, high=22)
    x = np.array([5.0, 5.49, 5.51, 6.0, 22.0, 22.49, 22.51])
    np.testing.assert_array_equal(
        supports.is_held_out(x, np.full(7, 14.0), task),
        [False, False, True, True, True, True, False],
    )


def test_random_region_is_drawn_once_for_all_and_covers_cells_of_real_points():
    task = task_of(16, region="random", share=0.3, seed=3)
    mask = supports.held_out_mask(task)
    np.testing.assert_array_equal(mask, supports.held_out_mask(task))
    other = supports.held_out_mask(task_of(16, region="random", share=0.3, seed=4))
    assert (mask != other).any()
    x, y = supports.cells(16).T
    np.testing.assert_array_equal(supports.is_held_out(x + 0.4, y - 0.4, task), mask.ravel())


def test_jax_and_numpy_agree_on_every_region():
    x, y = supports.cells(16).T
    for region in ("donut", "corner", "cross", "random", "none"):
        task = task_of(16, region=region, low=4, high=9)
        compiled = jax.jit(lambda x, y, task=task: supports.is_held_out(x, y, task))
        np.testing.assert_array_equal(compiled(x, y), supports.is_held_out(x, y, task))


@pytest.mark.parametrize(
    "sampling", ["with_replacement", "without_replacement", "every_cell", "real"]
)
@pytest.mark.parametrize("region", ["donut", "corner", "cross", "random"])
def test_samples_are_seen_points_only(sampling, region):
    task = task_of(
        16, region=region, low=5, high=10, sampling=sampling, samples=90, require_marginals=False
    )
    factors = np.asarray(supports.sample(jax.random.key(0), task))
    assert factors.shape == (supports.n_samples(task), 2)
    mask = supports.held_out_mask(task)
    assert not any(mask[int(np.round(y)), int(np.round(x))] for x, y in factors)
    assert factors.min() >= 0 and factors.max() <= 15
    distinct = len(np.unique(factors, axis=0))
    if sampling == "with_replacement":
        assert distinct < 90 and (factors == factors.round()).all()
    else:
        assert distinct == len(factors)
    if sampling == "every_cell":
        np.testing.assert_array_equal(factors, supports.seen_cells(task))


def test_real_samples_fill_the_seen_region_evenly():
    """Shares of the two outer thirds against their areas, within 4 standard errors."""
    task = task_of(16, region="cross", low=5, high=10, sampling="real", samples=4000)
    x, y = np.asarray(supports.sample(jax.random.key(1), task)).T
    for side in (x < 4.5, y < 4.5):  # by symmetry half of what is seen: [0, 4.5] and [10.5, 15]
        assert abs(side.mean() - 0.5) < 4 * 0.5 / 4000**0.5


def test_draws_differ_by_key_and_repeat_for_the_same():
    task = task_of(16, region="donut", low=5, high=10, samples=50)
    first, again, other = (supports.sample(jax.random.key(k), task) for k in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (task_of(16, region="donut", low=0, high=15), "holds out every cell"),
        (task_of(16, region="donut", low=9, high=8), "low=9, high=8: holds out no cell"),
        (task_of(16, region="corner", low=16), "holds out no cell"),
        (task_of(16, region="random", share=1.0), "share=1.0, seed=0: holds out every cell"),
        (task_of(16, region="cross", low=4, high=6), r"no training point has x in \[4, 5, 6\]"),
        (task_of(16, region="donut", low=0, high=13), None),
        (
            task_of(16, region="none", sampling="without_replacement", samples=257),
            "samples=257: only 256 cells are seen",
        ),
    ],
)
def test_impossible_supports_are_refused(task, message):
    if message is None:
        return supports.check(task)
    with pytest.raises(ConfigError, match=message):
        supports.check(task)


def test_marginals_of_a_draw():
    task = task_of(8, region="none")
    supports.check_marginals(supports.cells(8), task)
    with pytest.raises(ConfigError, match=r"seed 3: no training point has y in \[7\]"):
        supports.check_marginals(supports.cells(8)[:56], task, source="seed 3")
    assert supports.missing_marginals(np.array([0, 1.2]), np.array([2, 2]), 3) == ([2], [0, 1])


def test_dataset_joins_code_and_target():
    task = task_of(8, region="donut", low=3, high=4, samples=20)
    data = dataset.training_set(jax.random.key(0), task)
    assert data.codes.shape == (20, 16) and data.targets.shape == (20, 8, 8)
    x, y = data.factors[0].astype(int)
    assert float(data.targets[0, y, x]) == 0.0  # inverted: darkest at image[y, x]
    assert float(data.codes[0, x]) == 1.0 and float(data.codes[0, 8 + y]) == 1.0
    everything = dataset.every_cell(task)
    np.testing.assert_array_equal(
        everything.factors[:9], jnp.array([[i % 8, i // 8] for i in range(9)])
    )
