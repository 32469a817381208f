"""Trivial predictors against loops."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.tasks import baselines
from compgen_jax.tasks.baselines import best_constant, mean_answer


@pytest.mark.parametrize(
    ("predict", "shape", "axis"),
    [(best_constant, (), None), (best_constant, (2, 4), None), (mean_answer, (4,), 0)],
)
def test_constants_are_mean_truths_of_their_regions(predict, shape, axis):
    """One number for all entries, or one for each."""
    truths = np.random.default_rng(1).normal(size=(7, *shape))
    held_out = np.arange(7) % 3 == 1
    for hidden in (held_out, held_out & False):
        found = predict(baselines.Query(None, None, jnp.asarray(truths), None, hidden))
        for region in filter(np.any, (hidden, ~hidden)):
            expected = np.broadcast_to(truths[region].mean(axis=axis), truths[region].shape)
            assert_allclose(found[region], expected, rtol=1e-5, atol=1e-6)


# --- the interpolator ---------------------------------------------------------------------------


def kernel_ridge_by_loops(codes, truths, queries):
    """A fit for every length, point left out and query: the definition."""

    def predict(codes, truths, query, length):
        gauss = lambda a: np.exp(-np.square(codes - a).sum(axis=1) / (2 * length**2))
        kernel, mean = np.array([gauss(code) for code in codes]), np.mean(truths, axis=0)
        weights = np.linalg.solve(kernel + 1e-6 * np.eye(len(codes)), truths - mean)
        return mean + gauss(query) @ weights

    apart, errors = np.linalg.norm(codes[:, None] - codes, axis=2), {}
    for multiple in (0.5, 0.75, 1, 1.5, 2, 3, 5, 8):
        length = multiple * np.median(np.sort(apart)[:, 1])  # behind the point itself
        alone = [predict(np.delete(codes, i, 0), np.delete(truths, i, 0), code, length)
                 for i, code in enumerate(codes)]  # fmt: skip
        errors[length] = np.mean(np.square(truths - alone))
    best = min(errors, key=errors.get)
    return np.array([predict(codes, truths, query, best) for query in queries])


@pytest.mark.parametrize("seed", range(8))
def test_interpolate_against_loops_that_leave_each_point_out(seed):
    """Points with the same code count once, with their mean output."""
    rng, count = np.random.default_rng(seed), 4 if seed else 17
    codes, queries = rng.uniform(-2, 2, (count, 2)), rng.uniform(-2, 2, (9, 2))
    truths = np.stack([np.sin(2 * codes[:, 0]), codes[:, 0] * codes[:, 1], 1 + codes[:, 1]], 1)
    expected = kernel_ridge_by_loops(codes, truths, queries)
    off = np.array([[0.5, -1.0, 2.0]])
    repeated = np.concatenate([truths, truths[[2]] + off, truths[[2]] - off])
    found = baselines.interpolate(codes[[*range(count), 2, 2]], repeated[..., None], queries)
    assert_allclose(found, expected[..., None], rtol=1e-6, atol=1e-8)


def test_interpolate_from_few_points():
    for codes, truths, expected in (
        (np.zeros((0, 2)), np.zeros((0, 3, 3)), np.zeros((4, 3, 3))),
        (np.ones((1, 2)), np.full((1, 3), 7.0), np.full((4, 3), 7.0)),
        ([[0, 1], [0, -1]], [3, 5], np.full(4, 4.0)),  # as much of both
    ):
        assert_allclose(baselines.interpolate(codes, truths, np.zeros((4, 2))), expected)


def test_beyond_many_points_interpolate_uses_the_nearest(monkeypatch):
    monkeypatch.setattr(baselines, "MOST_POINTS", 20)
    monkeypatch.setattr(baselines, "NEAREST_POINTS", 9)
    rng = np.random.default_rng(5)
    codes, truths, queries = np.split(rng.normal(size=(66, 2)), [30, 60])
    found = baselines.interpolate(codes, truths, queries)
    for query, predicted in zip(queries, found, strict=True):
        near = sorted(range(30), key=lambda s: math.dist(codes[s], query))[:9]
        expected = kernel_ridge_by_loops(codes[near], truths[near], query[None])
        assert_allclose(predicted, expected[0], rtol=1e-5, atol=1e-7)


# --- the wide network ---------------------------------------------------------------------------


def tangent_by_loops(a, b):
    """The recursion at three hidden layers, pair by pair: the definition."""
    lengths, tangent = math.hypot(*a) * math.hypot(*b), np.dot(a, b)
    cosine = tangent / lengths
    for _ in range(3):
        angle = math.acos(max(-1.0, min(1.0, cosine)))
        on = (math.pi - angle) / math.pi  # twice the chance that a unit is on for both
        cosine = math.sin(angle) / math.pi + math.cos(angle) * on
        tangent = tangent * on + lengths * cosine
    return tangent


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_wide_network_against_loops(scale):
    """A constant as long as the codes are on average stands beside each; their scale is nothing."""
    rng = np.random.default_rng(3)
    codes, queries, truths = rng.normal(size=(17, 2)), rng.normal(size=(9, 2)), rng.normal(size=17)
    queries[0] = 0.0
    constant = math.sqrt(2 * np.mean(codes**2))
    kernel = lambda a, b: np.array([[tangent_by_loops((*p, constant), (*q, constant))
                                     for q in b] for p in a])  # fmt: skip
    known = kernel(codes, codes)
    ridge = 1e-6 * np.mean(np.diag(known)) * np.eye(17)
    weights = np.linalg.solve(known + ridge, truths - truths.mean())
    expected = truths.mean() + kernel(queries, codes) @ weights
    found = baselines.wide_network(scale * codes, truths, scale * queries)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


# --- on a grid ---------------------------------------------------------------------------------


def rank_one_of_pixel(values_yx, seen_yx):
    """Alternating least squares, line by line."""
    known_yx = values_yx * seen_yx
    b = known_yx[:, np.argmax(np.sum(known_yx**2, axis=0))]

    def fitted(line, values, seen):
        unit = line / np.linalg.norm(line)
        parts = zip(values, seen, strict=True)
        return np.array([unit[s] @ v[s] / (unit[s] @ unit[s] + 0.01**2) for v, s in parts])

    for _ in range(50):
        a = fitted(b, values_yx.T, seen_yx.T)
        b = fitted(a, values_yx, seen_yx)
    return np.outer(b, a / np.linalg.norm(a))


SIZES = (6, 5)
HOLE = np.zeros((5, 6), bool)
HOLE[1:4, 2:5] = HOLE[0, 0] = True


def test_rank_one_against_a_loop():
    targets = np.random.default_rng(0).normal(size=(5, 6, 4))
    targets[..., 1] *= 1e-3  # below the noise
    found = baselines.rank_one(targets, ~HOLE)
    assert not found[..., 1].any()
    for pixel in (0, 2, 3):
        expected = rank_one_of_pixel(targets[..., pixel], ~HOLE)
        assert_allclose(found[..., pixel], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_predictors_see_no_held_out_output(shape):
    """Outputs of any shape; the blank predictor is 0."""
    targets = np.random.default_rng(0).normal(size=(30, *shape))
    hidden = HOLE.ravel()
    predictions = baselines.grid_predictions(targets, hidden, SIZES)
    others = targets.copy()
    others[hidden] = 7
    again = baselines.grid_predictions(others, hidden, SIZES)
    for name, predicted in predictions.items():
        assert predicted.shape == targets.shape and np.isfinite(predicted).all()
        assert predicted.any() == (name != "blank")
        assert name != "id_constant" or np.allclose(predicted, targets[~hidden].mean())
        assert_array_equal(predicted, again[name])


def test_lines_against_a_loop():
    targets = np.random.default_rng(0).normal(size=(5, 6, 2))
    found, cells = baselines.line_mean(targets, ~HOLE), np.argwhere(~HOLE)
    assert_allclose(found[~HOLE], targets[~HOLE])
    for here in np.argwhere(HOLE):
        lines = []
        for axis in (0, 1):
            on_line = cells[cells[:, 1 - axis] == here[1 - axis]]
            apart = abs(on_line[:, axis] - here[axis])
            nearest = on_line[apart == apart.min()]
            lines.append(np.mean([targets[*cell] for cell in nearest], axis=0))
        assert_allclose(found[*here], np.mean(lines, axis=0), atol=1e-12)
