"""Which points a step sees: epochs through a table, and draws by rejection."""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from compgen_jax.tasks import sampling

KEY = jax.random.key(0)


def test_every_epoch_sees_each_example_once_in_a_new_order():
    """Of a table of 12 rows of which fewer count; another count does not compile again."""
    chex.clear_trace_counter()
    table = sampling.Table(jnp.arange(24.0).reshape(12, 2), jnp.int32(0))
    epochs = jax.jit(chex.assert_max_traces(lambda n, s: sampling.epochs(
        KEY, s, table._replace(count=n), 4), 1))  # fmt: skip
    for n_samples in (10, 12, 3):
        per_epoch, orders = -(-n_samples // 4), set()
        for epoch in range(5):
            seen = []
            for step in range(epoch * per_epoch, (epoch + 1) * per_epoch):
                points, counts = epochs(jnp.int32(n_samples), step)
                seen += np.asarray(points)[np.asarray(counts), 0].tolist()
            assert sorted(seen) == list(range(0, 2 * n_samples, 2))
            orders.add(tuple(seen))
        assert len(orders) > 2


def test_padding_a_table_keeps_what_counts():
    table = sampling.table(jnp.ones((3, 2)))
    padded = sampling.padded(table, 5)
    assert sampling.capacity(padded) == 5 and int(padded.count) == 3
    np.testing.assert_array_equal(padded.points, [[1, 1]] * 3 + [[0, 0]] * 2)
    mask = jnp.ones((4, 4), bool)
    assert sampling.padded(mask, 5) is mask and sampling.capacity(mask) == 0


def test_a_stream_draws_every_row_that_counts_as_often():
    """Counts of 20000 draws of 16 of 20 rows, within 5 standard errors."""
    table = sampling.Table(jnp.arange(20.0)[:, None], jnp.int32(16))
    points, counts = sampling.stream(sampling.from_table)(KEY, 0, table, 20_000)
    values, number = np.unique(np.asarray(points), return_counts=True)
    assert counts.all() and values.tolist() == list(range(16))
    assert np.abs(number - 1250).max() < 5 * 1250**0.5


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
