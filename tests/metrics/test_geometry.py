import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import geometry
from compgen_jax.models.conv import Conv
from compgen_jax.tasks import encodings
from compgen_jax.tasks.encodings import CodeConfig
from tests.models.shapes import of_image

N = 12
POINTS = np.float32([[5.0, 6.0], [3.25, 8.5], [6.6, 4.1]])

grid_metric = jax.jit(geometry.grid_metric, static_argnums=1)


def metric_tensors(function, points, real=None):
    found = jax.jit(lambda points: geometry.metric_tensors(function, points, real))
    return jax.device_get(found(points))


def bump_code(point, cells=N, name="bump"):
    return encodings.encode([(c, cells) for c in point], CodeConfig(name=name))


def test_linear_map_has_its_metric_everywhere():
    rng = np.random.default_rng(0)
    matrix, points = rng.normal(size=(7, 3)), np.float32(rng.normal(size=(5, 3)))
    times = lambda p: jnp.float32(matrix) @ p
    metrics = metric_tensors(lambda p: {"a": times(p), "b": times(p).reshape(7, 1)}, points)
    expected = np.broadcast_to(matrix.T @ matrix, (5, 3, 3))
    for name in ("a", "b"):
        np.testing.assert_allclose(metrics[name], expected, rtol=1e-5, atol=1e-5)
    volumes = geometry.volume_element(metrics["a"])
    np.testing.assert_allclose(volumes, np.sqrt(np.linalg.det(expected)), rtol=1e-5)


def test_readings_of_the_factorization_score_against_loops():
    rng = np.random.default_rng(0)
    jacobians = rng.normal(size=(6, 5, 3))
    metrics = np.einsum("bdf,bdg->bfg", jacobians, jacobians)
    pairs = [(0, 1), (0, 2), (1, 2)]
    crossed = [[abs(g[i, j]) for i, j in pairs] for g in metrics]
    sums = [[g[i, i] + g[j, j] for i, j in pairs] for g in metrics]
    cosine = [[abs(g[i, j]) / math.sqrt(g[i, i] * g[j, j]) for i, j in pairs] for g in metrics]
    found = geometry.factorization(metrics)
    assert float(found["ratio_of_means"]) == pytest.approx(
        1 - np.mean(crossed) / np.mean(sums), rel=1e-5
    )
    assert float(found["mean_of_ratios"]) == pytest.approx(
        1 - np.mean(np.divide(crossed, sums)), rel=1e-5
    )
    assert float(found["cosine"]) == pytest.approx(1 - np.mean(cosine), rel=1e-5)


def test_finite_differences_of_three_factors_are_exact_for_a_linear_map():
    matrix = np.random.default_rng(0).normal(size=(7, 3))
    sizes = (5, 4, 3)
    values = 0.5 * np.array([(a, b, c) for c in range(3) for b in range(4) for a in range(5)])
    activations = np.float32(grids.over_grid(values @ matrix.T, sizes))
    metrics = grid_metric(activations, 0.5)
    assert metrics.shape == (3, 4, 5, 3, 3)
    expected = np.broadcast_to(matrix.T @ matrix, metrics.shape)
    np.testing.assert_allclose(metrics, expected, rtol=1e-4, atol=1e-4)
    line = grid_metric(activations[0, 0], 0.5)  # one factor
    np.testing.assert_allclose(line, np.full((5, 1, 1), matrix[:, 0] @ matrix[:, 0]), rtol=1e-4)


def test_log_volume_has_a_floor_for_every_map():
    volume = np.array(
        [[[100.0, 1.0], [1e-9, 0.0]], [[1e-3, 1e-4], [1e-8, 1e-20]], np.zeros((2, 2))]
    )
    each = geometry.log_volume(volume, axis=(1, 2))
    np.testing.assert_allclose(each[0], [[2, 0], [-4, -4]])
    np.testing.assert_allclose(each[1], [[-3, -4], [-8, -9]])
    assert not each[2].any()  # no map has no scale
    together = geometry.log_volume(volume)
    np.testing.assert_allclose(together[1], [[-3, -4], [-4, -4]])
    np.testing.assert_allclose(geometry.log_volume(volume[0], floor=1e-1), [[2, 1], [1, 1]])
    assert geometry.log_volume(volume.astype(np.float32)).dtype == np.float32


def test_log_volume_over_a_grid_in_closed_form():
    """(2^x, y, -y): central differences have 3/4 2^x and sqrt 2, one-sided ones 1 at x = 0 and
    2^(V - 2) at the last x."""
    y, x = np.divmod(np.arange(30), 6)
    log_volume = geometry.grid_log_volume(np.stack([2.0**x, y, -y], axis=1), (6, 5))
    along_x = np.array([1, *(0.75 * 2.0 ** np.arange(1, 5)), 16])
    expected = np.broadcast_to(np.log10(np.sqrt(2) * along_x), (5, 6))
    assert not geometry.grid_log_volume(np.outer(2 * x + y, np.arange(5.0)), (6, 5)).any()
    np.testing.assert_allclose(log_volume, expected, rtol=1e-12)
    steps = np.abs(np.diff(np.log10(along_x)))
    pairs = 5 * 5 + 4 * 6  # along x, and along y, where nothing changes
    assert geometry.roughness(log_volume) == pytest.approx(5 * steps.sum() / pairs)


def test_roughness_counts_pairs_inside_the_cells_alone():
    rng = np.random.default_rng(0)
    values, cells = rng.normal(size=(5, 7)), rng.uniform(size=(5, 7)) < 0.7
    steps = [
        abs(values[y, x] - values[y + dy, x + dx])
        for y in range(5) for x in range(7) for dy, dx in ((0, 1), (1, 0))
        if y + dy < 5 and x + dx < 7 and cells[y, x] and cells[y + dy, x + dx]
    ]  # fmt: skip
    assert 10 < len(steps) < 40
    assert geometry.roughness(values, cells) == pytest.approx(np.mean(steps))


def test_every_layer_of_a_decoder_in_one_pass_against_single_layers():
    decoder = Conv(depth=2, width=4).make(of_image(2 * N, N, "gemm"))
    params = jax.jit(decoder.init)(jax.random.key(0), np.ones(2 * N, np.float32))

    def layers(point):
        image, activations = decoder.apply(params, bump_code(point))
        return activations | {"image": image}

    together = jax.jit(lambda points: geometry.metric_tensors(layers, points, points_at_once=2))(
        POINTS
    )
    assert set(together) == {f"layer_{k:02d}" for k in range(4)} | {"image"}
    alone = jax.jit(jax.vmap(jax.jacrev(layers)))(POINTS)
    for name, jacobians in alone.items():
        flat = np.asarray(jacobians).reshape(len(POINTS), -1, 2)
        expected = np.einsum("bdf,bdg->bfg", flat, flat)
        np.testing.assert_allclose(together[name], expected, rtol=1e-3, atol=1e-6)


def test_tangents_of_some_factors_are_a_part_of_those_of_all():
    """The volume of two of three factors is that of their block of the metric tensor."""
    function = lambda p: jnp.sin(jnp.arange(1.0, 9.0) * p[0]) * p[1] + p[2] ** 2
    points = np.float32(np.random.default_rng(0).normal(size=(4, 3)))
    every = metric_tensors(function, points)
    some = metric_tensors(function, points, np.array([True, False, True]))
    np.testing.assert_allclose(some, every[:, [0, 2]][:, :, [0, 2]], rtol=1e-5)


def test_factor_that_a_layer_ignores():
    metrics = metric_tensors(lambda p: p[:1] * jnp.ones(3), POINTS)
    assert not np.any(geometry.volume_element(metrics))
    assert not np.asarray(geometry.cosines(metrics))[:, 0, 1].any()
    assert all(np.isfinite(float(score)) for score in geometry.factorization(metrics).values())
