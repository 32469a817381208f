import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from compgen_jax.metrics import geometry


@pytest.mark.parametrize("real", [np.ones(3, bool), np.array([True, False, True])])
def test_every_output_of_a_function_in_one_pass_against_its_jacobian(real, rng):
    """Of some factors the metric tensor is their block of that of all; one may be ignored."""
    function = lambda p: {
        "sines": jnp.sin(jnp.arange(1.0, 9.0) * p[0]) * p[1] + p[2] ** 2,
        "image": jnp.outer(jnp.exp(p), jnp.sin(p)),
        "first": p[:1] * jnp.ones(3),
    }
    points = np.float32(rng.normal(size=(5, 3)))
    tensors = jax.jit(lambda points: geometry.metric_tensors(function, points, real))(points)
    jacobians = jax.jit(jax.vmap(jax.jacrev(function)))(points)
    for name, jacobian in jacobians.items():
        flat = np.asarray(jacobian, np.float64).reshape(5, -1, 3)[..., real]
        expected = np.einsum("bdf,bdg->bfg", flat, flat)
        assert_allclose(tensors[name], expected, rtol=1e-4, atol=1e-5)
        volumes = np.sqrt(np.maximum(np.linalg.det(expected), 0))
        assert_allclose(geometry.volume_element(tensors[name]), volumes, rtol=1e-3, atol=1e-3)
    assert not np.asarray(geometry.cosines(tensors["first"]))[:, 0, 1].any()
    assert all(np.isfinite(float(score)) for score in geometry.factorization(tensors["first"]))


def test_contrasts_of_three_factors_against_loops(rng):
    """Units in another order, or of another sign, change nothing."""
    weights = rng.normal(size=(7, 3))
    function = lambda mixing: lambda p: jnp.tanh(mixing @ (jnp.asarray(weights) @ p))
    points = np.float32(rng.normal(size=(5, 3)))
    of = lambda mixing: geometry.tensors_and_contrasts(function(jnp.asarray(mixing)), points)
    tensors, contrasts = jax.jit(lambda: of(np.eye(7)))()
    slopes = 1 - np.tanh(points @ weights.T) ** 2
    jacobians = slopes[:, :, None] * weights
    for index, jacobian in enumerate(jacobians):
        pairs = [abs(row[i] * row[j]) for row in jacobian for i, j in ((0, 1), (0, 2), (1, 2))]
        assert contrasts[index] == pytest.approx(sum(pairs), rel=1e-4)
    assert_allclose(tensors, np.einsum("bdf,bdg->bfg", jacobians, jacobians), rtol=1e-4, atol=1e-5)
    mirrored = jax.jit(lambda: of(-np.eye(7)[::-1]))()[1]
    assert_allclose(mirrored, contrasts, rtol=1e-5)


def test_readings_of_the_factorization_score_against_loops(rng):
    jacobians = rng.normal(size=(6, 5, 3))
    metrics = np.einsum("bdf,bdg->bfg", jacobians, jacobians)
    pairs = [(0, 1), (0, 2), (1, 2)]
    crossed = [[abs(g[i, j]) for i, j in pairs] for g in metrics]
    sums = [[g[i, i] + g[j, j] for i, j in pairs] for g in metrics]
    expected = 1 - np.mean(crossed) / np.mean(sums), 1 - np.mean(np.divide(crossed, sums))
    assert jax.device_get(geometry.factorization(metrics)) == pytest.approx(expected, rel=1e-5)


def test_log_volume_has_a_floor_for_every_map():
    volume = np.array([[[100.0, 1.0], [1e-9, 0.0]], [[1e-3, 1e-4], [1e-8, 1e-20]]])
    maps = geometry.log_volume(np.append(volume, np.zeros((1, 2, 2)), axis=0), axis=(1, 2))
    assert_allclose(maps, [[[2, 0], [-4, -4]], [[-3, -4], [-8, -9]], np.zeros((2, 2))])


def test_log_volume_over_a_grid_in_closed_form():
    """(2^x, y, -y): central differences have 3/4 2^x and sqrt 2, one-sided ones 1 at x = 0 and
    2^(V - 2) at the last x."""
    y, x = np.divmod(np.arange(30), 6)
    log_volume = geometry.grid_log_volume(np.stack([2.0**x, y, -y], axis=1), (6, 5))
    along_x = np.array([1, *(0.75 * 2.0 ** np.arange(1, 5)), 16])
    expected = np.broadcast_to(np.log10(np.sqrt(2) * along_x), (5, 6))
    assert_allclose(log_volume, expected, rtol=1e-12)
    assert not geometry.grid_log_volume(np.outer(2 * x + y, np.arange(5.0)), (6, 5)).any()


def test_roughness_counts_pairs_inside_the_cells_alone(rng):
    values, cells = rng.normal(size=(5, 7)), rng.uniform(size=(5, 7)) < 0.7
    inside = np.where(cells, values, np.nan)
    steps = np.abs(np.concatenate([np.diff(inside, axis=axis).ravel() for axis in (0, 1)]))
    steps = steps[~np.isnan(steps)]
    assert 10 < len(steps) < 40
    assert geometry.roughness(values, cells) == pytest.approx(np.mean(steps))
