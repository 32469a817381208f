"""Which points a step sees: epochs through a table, and streams of fresh points."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.tasks import sampling
from compgen_jax.tasks.bump import Bump, SizeConfig
from compgen_jax.tasks.supports import SupportConfig

KEY = jax.random.key(0)


def test_every_epoch_sees_each_example_once_in_a_new_order():
    """Of a table of 12 rows of which fewer count; another count does not compile again."""
    chex.clear_trace_counter()
    batch = jax.jit(
        chex.assert_max_traces(lambda n, s: sampling.batch_indices(KEY, s, n, 4, 12), 1)
    )
    for n_samples in (10, 12, 3):
        per_epoch, orders = -(-n_samples // 4), set()
        for epoch in range(5):
            seen = []
            for step in range(epoch * per_epoch, (epoch + 1) * per_epoch):
                chosen, counts = batch(jnp.int32(n_samples), step)
                seen += np.asarray(chosen)[np.asarray(counts)].tolist()
            assert sorted(seen) == list(range(n_samples))
            orders.add(tuple(seen))
        assert len(orders) > 2


def test_the_first_points_of_a_table_count_whatever_its_capacity():
    points = jax.random.normal(KEY, (9, 2))
    for n in (1, 9):
        longer = sampling.Table(
            jnp.pad(points, [(0, 5), (0, 0)], constant_values=9.0), jnp.int32(n)
        )
        seen = []
        for step in range(-(-n // 4)):
            found, counts = sampling.epochs(KEY, step, longer, 4)
            seen.append(np.asarray(found)[np.asarray(counts)])
        seen = np.concatenate(seen)
        np.testing.assert_array_equal(np.sort(seen[:, 0]), np.sort(points[:n, 0]))


def test_padding_a_table_keeps_what_counts():
    table = sampling.table(jnp.ones((3, 2)))
    padded = sampling.padded(table, 5)
    assert sampling.capacity(padded) == 5 and int(padded.count) == 3
    np.testing.assert_array_equal(padded.points, [[1, 1]] * 3 + [[0, 0]] * 2)
    mask = jnp.ones((4, 4), bool)
    assert sampling.padded(mask, 5) is mask and sampling.capacity(mask) == 0


# --- streams ---------------------------------------------------------------------------------


def streamed(fresh, region="donut", size=0) -> Bump:
    return Bump(
        grid=8,
        size=SizeConfig(values=size, low=1, high=1),
        support=SupportConfig(region=region, low=2, high=5, fresh=fresh, share=0.5),
    )


@pytest.mark.parametrize(
    ("fresh", "region", "size"),
    [("cells", "donut", 3), ("real", "random", 0), ("real", "corner", 3)],
)
def test_a_stream_shows_seen_points_alone_and_all_of_them_count(fresh, region, size):
    task = streamed(fresh, region, size).make()
    assert task.examples == 0
    dataset, draw = task.dataset(KEY), jax.jit(task.next_batch, static_argnums=3)
    batches = [draw(KEY, step, dataset, 64) for step in range(20)]
    points = np.concatenate([points for points, _ in batches])
    assert points.shape == (20 * 64, 2 + bool(size)) and all(c.all() for _, c in batches)
    assert not np.asarray(task.held_out(points)).any()
    low = np.array([factor.values[0] for factor in task.factors])
    high = np.array([factor.values[-1] for factor in task.factors])
    assert (points >= low).all() and (points <= high + 1e-6).all()
    whole = (points[:, :2] == points[:, :2].round()).all()
    assert whole == (fresh == "cells")
    assert len(np.unique(points, axis=0)) > (100 if fresh == "real" else 20)


@pytest.mark.parametrize("fresh", ["cells", "real"])
def test_a_streams_batches_are_functions_of_key_and_step(fresh):
    """The same bits alone and as one of many trials."""
    task = streamed(fresh).make()
    keys, steps = jax.random.split(KEY, 5), jnp.array([0, 7, 7, 3, 100])
    dataset = task.dataset(KEY)
    draw = lambda key, step, dataset: task.next_batch(key, step, dataset, 16)[0]
    alone = np.stack([jax.jit(draw)(k, s, dataset) for k, s in zip(keys, steps, strict=True)])
    datasets = jax.tree.map(lambda leaf: jnp.stack([leaf] * 5), dataset)
    together = jax.jit(jax.vmap(draw))(keys, steps, datasets)
    np.testing.assert_array_equal(together, alone)
    assert not np.array_equal(draw(KEY, 7, dataset), draw(KEY, 8, dataset))
    assert not np.array_equal(alone[1], alone[2])  # another key


def test_a_stream_of_cells_is_uniform_over_those_seen():
    """Counts of 64000 draws of 48 cells, within 5 standard errors."""
    task = streamed("cells").make()
    points, _ = jax.jit(task.next_batch, static_argnums=3)(KEY, 0, task.dataset(KEY), 64_000)
    _, counts = np.unique(np.asarray(points), axis=0, return_counts=True)
    assert len(counts) == 64 - 16
    expected = 64_000 / 48
    assert np.abs(counts - expected).max() < 5 * expected**0.5


def test_supports_of_a_stream_are_data_not_program():
    """Another region is another mask: nothing is compiled again."""
    chex.clear_trace_counter()
    draw = streamed("real").make().next_batch
    run = jax.jit(chex.assert_max_traces(lambda dataset: draw(KEY, 0, dataset, 32)[0], n=1))
    for region in ("donut", "corner", "none"):
        task = streamed("real", region).make()
        assert not np.asarray(task.held_out(np.asarray(run(task.dataset(KEY))))).any()


def test_rejection_draws_are_uniform_over_what_is_left():
    keys = jax.random.split(KEY, 20_000)
    first, extent = jnp.array([1.0, -1.0]), jnp.array([2.0, 4.0])
    rejected = lambda point: (point[0] < 2.0) & (point[1] > 1.0)  # a quarter
    points = jax.vmap(lambda key: sampling.by_rejection(key, first, extent, rejected))(keys)
    x, y = np.asarray(points).T
    assert x.min() >= 1 and x.max() <= 3 and y.min() >= -1 and y.max() <= 3
    assert not ((x < 2) & (y > 1)).any()
    for part in ((x < 2), (y > 1)):  # a third each
        assert abs(part.mean() - 1 / 3) < 5 * (2 / 9 / 20_000) ** 0.5
