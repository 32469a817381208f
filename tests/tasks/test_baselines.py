"""Trivial predictors against loops."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.tasks import baselines
from compgen_jax.tasks.baselines import best_constant
from compgen_jax.tasks.inverse import mean_answer


@pytest.mark.parametrize(
    ("predict", "shape", "axis"),
    [(best_constant, (), 0), (best_constant, (2, 4), None), (mean_answer, (4,), 0)],
)
def test_constants_are_mean_truths_of_their_regions(predict, shape, axis):
    """One number for all entries, or one for each."""
    truths = np.random.default_rng(1).normal(size=(7, *shape)).astype(np.float32)
    held_out = np.array([False, True, False, True, False, False, True])
    for hidden in (held_out, held_out & False):
        found = predict(baselines.Query(None, None, jnp.asarray(truths), None, hidden))
        assert found.shape == truths.shape
        for region in filter(np.any, (hidden, ~hidden)):
            expected = np.broadcast_to(truths[region].mean(axis=axis), found[region].shape)
            assert_allclose(found[region], expected, rtol=1e-5, atol=1e-6)


# --- the interpolator ---------------------------------------------------------------------------


def kernel_ridge_by_loops(codes, truths, queries):
    """A fit for every length, point left out and query: the definition."""

    def predict(codes, truths, query, length):
        gauss = lambda a: np.exp(-np.square(codes - a).sum(axis=1) / (2 * length**2))
        kernel, mean = np.array([gauss(code) for code in codes]), np.mean(truths, axis=0)
        weights = np.linalg.solve(kernel + 1e-6 * np.eye(len(codes)), truths - mean)
        return mean + gauss(query) @ weights

    rests = [np.delete(np.arange(len(codes)), i) for i in range(len(codes))]
    nearest = [min(math.dist(codes[i], codes[j]) for j in rest) for i, rest in enumerate(rests)]
    errors = {}
    for multiple in (0.5, 0.75, 1, 1.5, 2, 3, 5, 8):
        length = multiple * np.median(nearest)
        alone = [predict(codes[rest], truths[rest], codes[i], length)
                 for i, rest in enumerate(rests)]  # fmt: skip
        errors[length] = np.mean(np.square(truths - alone))
    best = min(errors, key=errors.get)
    return np.array([predict(codes, truths, query, best) for query in queries])


@pytest.mark.parametrize("seed", range(8))
def test_interpolate_against_loops_that_leave_each_point_out(seed):
    """Points with the same code count once, with their mean output."""
    rng, count = np.random.default_rng(seed), 5 if seed else 17
    codes, queries = rng.uniform(-2, 2, (count, 2)), rng.uniform(-2, 2, (9, 2))
    truths = np.stack([np.sin(2 * codes[:, 0]), codes[:, 0] * codes[:, 1], 1 + codes[:, 1]], 1)
    expected = kernel_ridge_by_loops(codes, truths, queries)
    off = np.array([[0.5, -1.0, 2.0]])
    repeated = np.concatenate([truths, truths[[2]] + off, truths[[2]] - off])
    found = baselines.interpolate(codes[[*range(count), 2, 2]], repeated[..., None], queries)
    assert found.shape == (9, 3, 1)
    assert_allclose(found[..., 0], expected, rtol=1e-6, atol=1e-8)


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


def test_the_tangent_kernel_is_that_of_a_wide_random_network():
    """Products of the gradients of one output, averaged over 64 networks of 256 units a layer."""
    width, (codes, others) = 256, np.random.default_rng(1).normal(size=(2, 4, 3))

    def output(weights, code):
        hidden, scale = code, 1.0
        for weight in weights[:-1]:
            hidden = jax.nn.relu(scale * weight @ hidden)
            scale = math.sqrt(2 / width)
        return scale * weights[-1] @ hidden

    def of_network(key):
        shapes = (width, 3), (width, width), (width, width), (width,)
        keys = jax.random.split(key, 4)
        weights = [jax.random.normal(*pair) for pair in zip(keys, shapes, strict=True)]
        slopes = [jax.vmap(jax.grad(output), (None, 0))(weights, a) for a in (codes, others)]
        return sum(a.reshape(4, -1) @ b.reshape(4, -1).T for a, b in zip(*slopes, strict=True))

    found = jax.lax.map(of_network, jax.random.split(jax.random.key(0), 64)).mean(axis=0)
    assert_allclose(found, baselines.tangent_kernel(codes, others), rtol=0.1)


# --- on a grid ---------------------------------------------------------------------------------


def ood_of(predict, truths_Bx, held_out_B, sizes, **geometry):
    """(Q, ...) what a predictor of a grid says of the held-out cells."""
    predictions = predict(baselines.query_on_grid(truths_Bx, held_out_B, sizes, **geometry))
    assert predictions.shape == truths_Bx.shape
    return predictions[held_out_B]


def rank_one_of_pixel(values_yx, seen_yx, noise):
    """Alternating least squares, line by line."""
    known_yx = values_yx * seen_yx
    b = known_yx[:, np.argmax(np.sum(known_yx**2, axis=0))]
    fitted = lambda unit, values, seen: np.array(
        [unit[s] @ v[s] / (unit[s] @ unit[s] + noise**2) for v, s in zip(values, seen, strict=True)]
    )
    for _ in range(baselines.SWEEPS):
        a = fitted(b / np.linalg.norm(b), values_yx.T, seen_yx.T)
        a = a / np.linalg.norm(a)
        b = fitted(a, values_yx, seen_yx)
    return np.outer(b, a)


def test_rank_one_against_a_loop():
    targets, inside = np.random.default_rng(0).normal(size=(36, 2, 2)), np.isin(range(6), (2, 3, 4))
    held_out = np.outer(inside, inside).ravel()
    targets[:, 0, 1] *= 1e-3  # below the noise
    found, seen = ood_of(baselines.rank_one, targets, held_out, (6, 6)), ~held_out.reshape(6, 6)
    assert not found[:, 0, 1].any()
    for pixel in ((0, 0), (1, 0), (1, 1)):
        values = targets[:, *pixel].reshape(6, 6)
        expected = rank_one_of_pixel(values, seen, 0.01)[~seen]
        assert_allclose(found[:, *pixel], expected, rtol=1e-9, atol=1e-12)


SIZES = (5, 4, 3)
CELLS = [(a, b, c) for c in range(3) for b in range(4) for a in range(5)]
# a box of 2 x 2 x 1 in a corner of the grid, and a cell by itself
HOLE = np.array([(a >= 3 and b <= 1 and c == 2) or (a, b, c) == (1, 0, 1) for a, b, c in CELLS])


@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("name", baselines.GRID_PREDICTORS)
def test_predictors_see_no_held_out_output(name, shape):
    """Outputs of any shape, three factors; the blank predictor is 0."""
    targets = np.random.default_rng(0).normal(size=(60, *shape))
    predict = partial(ood_of, baselines.GRID_PREDICTORS[name], sizes=SIZES)
    predicted, other = predict(targets, HOLE), targets.copy()
    assert predicted.shape == (5, *shape) and np.isfinite(predicted).all()
    assert predicted.any() == (name != "blank")
    assert name != "id_constant" or np.all(predicted == targets[~HOLE].mean())
    other[HOLE] = 7
    assert_array_equal(predicted, predict(other, HOLE))
    assert predict(targets, HOLE & False).shape == (0, *shape)


@pytest.mark.parametrize("ordered", [None, (True, True, False)])
@pytest.mark.parametrize("at_once", [2**23, 70])
def test_lines_of_three_factors_against_a_loop(monkeypatch, ordered, at_once):
    monkeypatch.setattr(baselines, "PAIRS_AT_ONCE", at_once)
    targets = np.random.default_rng(0).normal(size=(60, 2))
    found = ood_of(baselines.line_mean, targets, HOLE, SIZES, ordered=ordered)
    for value, here in zip(found, np.array(CELLS)[HOLE], strict=True):
        lines = []
        for f in range(3):
            apart = {}
            for cell, target, hidden in zip(CELLS, targets, HOLE, strict=True):
                if not hidden and not np.delete(here != cell, f).any():
                    distance = abs(cell[f] - here[f]) if not ordered or ordered[f] else 1
                    apart.setdefault(distance, []).append(target)
            if apart:
                lines.append(np.mean(apart[min(apart)], axis=0))
        assert_allclose(value, np.mean(lines, axis=0), atol=1e-12)


def test_products_of_three_functions_are_completed(monkeypatch):
    monkeypatch.setattr(baselines, "NOISE", 1e-6)
    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(size=(size, 4)) for size in SIZES)
    targets = np.einsum("ap,bp,cp->cbap", a, b, c).reshape(60, 2, 2)
    assert_allclose(ood_of(baselines.rank_one, targets, HOLE, SIZES), targets[HOLE], atol=1e-5)
