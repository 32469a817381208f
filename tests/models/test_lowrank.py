"""The decoder of low-rank embeddings against loops, PyTorch and singular values; its penalty."""

import functools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, changed
from compgen_jax.models import lowrank
from compgen_jax.models.lowrank import Factor, LowRank, PenaltyConfig
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.training import loop
from tests.models import oracles
from tests.models.shapes import of_image

KEY = jax.random.key(0)
N = 8
BOTH = pytest.mark.parametrize("vectors", ["unit", "orthonormal"])


def build(grid=N, width=2, depth=2, rank=0, vectors="unit", lowering="lax"):
    settings = LowRank(width=width, depth=depth, rank=rank, vectors=vectors)
    return settings.make(of_image(2 * grid, grid, lowering))


def onehot(x, y, grid=N):
    return np.concatenate([np.eye(grid)[x], np.eye(grid)[y]], axis=-1).astype(np.float32)


CODES = onehot([0, 3, 7, 3], [5, 5, 0, 2])


def variables(decoder):
    return oracles.variables(decoder, of_image(2 * decoder.grid, decoder.grid))


@functools.cache
def compiled(decoder):
    return jax.jit(decoder.apply)


def test_orthonormal_vectors_span_the_same_flag_of_subspaces():
    """Gram-Schmidt: the first j vectors span what the first j raw ones do, on the same side."""
    rng, orthonormal = np.random.default_rng(0), jax.jit(lowrank.orthonormal)
    raw = np.float32(rng.normal(size=(5, 4, 6)))
    q = np.asarray(orthonormal(raw), np.float64)
    np.testing.assert_allclose(
        q @ q.swapaxes(1, 2), np.broadcast_to(np.eye(4), (5, 4, 4)), atol=1e-6
    )
    lower = raw @ q.swapaxes(1, 2)
    np.testing.assert_allclose(lower @ q, raw, atol=1e-5)
    np.testing.assert_allclose(np.triu(lower, 1), 0, atol=1e-5)
    assert (np.diagonal(lower, axis1=1, axis2=2) > 0).all()
    # nearly dependent vectors: rounding in a single pass would leave overlaps of 1e-3
    q = np.asarray(orthonormal(np.float32(1 + 1e-3 * rng.normal(size=(6, 8)))))
    np.testing.assert_allclose(q @ q.T, np.eye(6), atol=2e-6)


@BOTH
def test_a_missing_factor_has_a_zero_embedding_and_finite_gradients(vectors):
    decoder = build(vectors=vectors)
    params = variables(decoder)
    code = onehot(2, 4) * (np.arange(2 * N) < N)
    activations = jax.device_get(compiled(decoder)(params, code)[1])
    assert not activations["layer_01"][..., 1].any() and activations["layer_01"][..., 0].any()
    gradient = jax.jit(jax.grad(lambda p, code: jnp.sum(decoder.apply(p, code)[0] ** 2)))
    for missing in (code, 0 * code):
        gradients = jax.device_get(gradient(params, missing))
        chex.assert_tree_all_finite(gradients)
        assert not any(leaf.any() for leaf in jax.tree.leaves(gradients["params"]["embed_y"]))


@BOTH
def test_embeddings_are_what_the_decoder_uses(vectors):
    decoder = build(rank=3, vectors=vectors)
    params = variables(decoder)
    factors = jax.device_get(jax.jit(lambda params: lowrank.embeddings(params, vectors))(params))
    for channel, (name, factor) in enumerate(factors._asdict().items()):
        chex.assert_shape(factor.values, (N, 3))
        chex.assert_shape([factor.left, factor.right], (N, 3, N))
        raw = params["params"][f"embed_{name}"]
        np.testing.assert_array_equal(factor.raw_left, raw["left"])
        np.testing.assert_array_equal(factor.raw_right, raw["right"])
        matrices = np.einsum("tk,tkh,tkw->thw", factor.values, factor.left, factor.right)
        codes = np.tile(np.eye(N, dtype=np.float32), (1, 2))
        _, activations = compiled(decoder)(params, codes)
        np.testing.assert_allclose(activations["layer_01"][..., channel], matrices, atol=1e-6)


def test_initial_parameters_follow_the_authors_law():
    params = jax.device_get(jax.jit(build(32).init)(KEY, np.zeros(64, np.float32)))["params"]
    for factor in (params["embed_x"], params["embed_y"]):
        assert float(factor["values"].std()) == pytest.approx(32**-0.5, rel=0.1)
        for side in ("left", "right"):
            np.testing.assert_allclose(np.linalg.norm(factor[side], axis=-1), 1, atol=1e-5)
            assert abs(float(factor[side].mean())) < 5e-3
    assert not np.allclose(params["embed_x"]["left"], params["embed_y"]["left"])
    slopes = [params[f"prelu_{index}"]["negative_slope"] for index in range(3)]
    np.testing.assert_array_equal(slopes, [0.25] * 3)


# --- the penalty -----------------------------------------------------------------------------


def factor(seed, tokens, terms, side):
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(2, tokens, terms, side))
    unit = raw / np.linalg.norm(raw, axis=-1, keepdims=True)
    return Factor(rng.normal(size=(tokens, terms)), *unit, *raw)


embedding_penalty = jax.jit(lowrank.embedding_penalty, static_argnums=3)


def entropy_by_loop(values):
    total = []
    for token in values.astype(np.float64):
        shares = [value**2 / sum(token**2) for value in token]
        total.append(-sum(p * math.log(max(p, 1e-8)) for p in shares))
    return total


def test_entropy_of_equal_terms_of_one_and_of_none():
    np.testing.assert_allclose(lowrank.entropy(jnp.ones((2, 5))), math.log(5), rtol=1e-6)
    one_term = np.float32([[0, 0, -3, 0, 0]])
    assert not np.any(lowrank.entropy(one_term))
    gradient = jax.jit(jax.grad(lambda values: lowrank.entropy(values).sum()))
    for values in (one_term, 0 * one_term):
        assert np.isfinite(gradient(values)).all()


@pytest.mark.parametrize("tokens", ["sum", "mean"])
@pytest.mark.parametrize("vectors", ["raw", "scale_free"])
def test_penalty_of_both_factors(tokens, vectors):
    factors = [factor(seed, tokens=3, terms=4, side=5) for seed in (0, 1)]
    config = PenaltyConfig(tokens=tokens, vectors=vectors)
    expected = 0.0
    for one in factors:
        shares = one.values**2 / (one.values**2).sum(axis=1, keepdims=True)
        weights = np.ones_like(shares) if vectors == "raw" else shares
        pair = (one.raw_left, one.raw_right) if vectors == "raw" else (one.left, one.right)
        spread = sum((weights * v.var(axis=2, ddof=1)).sum() for v in pair)
        scale = 1 if tokens == "sum" else 1 / 3
        expected += scale * (0.3 * sum(entropy_by_loop(one.values)) + 0.02 * spread)
    found = embedding_penalty(factors, 0.3, 0.02, config)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_on_the_authors_settings_the_penalties_start_where_theirs_do():
    """Entropy 17.6 and variance 1.28 at N = 32, K = 32, with their coefficients."""
    decoder = LowRank(depth=2, width=2).make(of_image(64, 32))
    init = lambda key: lowrank.embeddings(decoder.init(key, jnp.zeros(64)), "unit")
    factors = jax.jit(init)(KEY)
    config = PenaltyConfig()
    assert float(embedding_penalty(factors, 0.1, 0.0, config)) == pytest.approx(17.6, 0.02)
    assert float(embedding_penalty(factors, 0.0, 0.01, config)) == pytest.approx(1.28, 0.02)


def test_the_weights_of_the_penalty_are_traced_fields_of_the_model():
    """Added to the loss as `extra_loss`, by their names; a model without any adds nothing."""
    config = Config(task=Bump(code=CodeConfig(name="onehot")), model=LowRank(depth=1, width=2))
    config = changed(config, {"model.penalty.entropy": 0.5, "model.penalty.variance": 0.25})
    assert {"model.penalty.entropy", "model.penalty.variance"} < set(loop.hyper_of(config))
    module = LowRank(depth=1, width=2).make(of_image(16, 8))
    params = jax.jit(module.init)(KEY, np.zeros(16, np.float32))
    hyper = {"penalty.entropy": 0.5, "penalty.variance": 0.25}
    penalty = lambda params: embedding_penalty(
        lowrank.embeddings(params, "unit"), 0.5, 0.25, PenaltyConfig()
    )
    found, expected = jax.jit(
        lambda params: (config.model.extra_loss(params, hyper), penalty(params))
    )(params)
    assert float(found) == pytest.approx(float(expected))
    assert Config().model.extra_loss(params, {}) is None
