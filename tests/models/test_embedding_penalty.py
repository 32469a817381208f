"""Regularisers of embeddings against loops and known answers."""

import math
import statistics
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, changed
from compgen_jax.models import embedding_penalty as losses
from compgen_jax.models import lowrank
from compgen_jax.models.embedding_penalty import PenaltyConfig
from compgen_jax.models.lowrank import LowRank
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.training import loop
from tests.models.shapes import of_image


class Factor(NamedTuple):
    """What the penalties read of a `models.lowrank.Factor`."""

    values: np.ndarray
    left: np.ndarray
    right: np.ndarray
    raw_left: np.ndarray
    raw_right: np.ndarray


def factor(seed, tokens, terms, side):
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(2, tokens, terms, side))
    unit = raw / np.linalg.norm(raw, axis=-1, keepdims=True)
    return Factor(rng.normal(size=(tokens, terms)), *unit, *raw)


def entropy_by_loop(values):
    total = []
    for token in values.astype(np.float64):
        shares = [value**2 / sum(token**2) for value in token]
        total.append(-sum(p * math.log(max(p, 1e-8)) for p in shares))
    return total


def test_entropy_is_that_of_the_energy_shares():
    values = np.random.default_rng(1).normal(size=(4, 6))
    np.testing.assert_allclose(losses.entropy(values), entropy_by_loop(values), rtol=1e-5)
    np.testing.assert_allclose(losses.entropy(jnp.ones((2, 5))), math.log(5), rtol=1e-6)
    one_term = jnp.zeros((1, 5)).at[0, 2].set(-3.0)
    assert float(losses.entropy(one_term)[0]) == 0
    for values in (one_term, jnp.zeros((1, 5))):
        assert np.isfinite(jax.grad(lambda v: losses.entropy(v).sum())(values)).all()


def test_variance_is_along_each_vector_and_summed_over_terms():
    vectors = np.random.default_rng(2).normal(size=(3, 4, 5))
    expected = [sum(statistics.variance(v) for v in token) for token in vectors.tolist()]
    np.testing.assert_allclose(losses.variance(vectors), expected, rtol=1e-5)
    assert not losses.variance(jnp.full((3, 4, 5), 7.0)).any()


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
    found = losses.embedding_penalty(factors, 0.3, 0.02, config)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_scale_free_penalty_cannot_be_met_by_shrinking():
    one = factor(3, tokens=2, terms=3, side=4)
    shrunk = one._replace(raw_left=one.raw_left / 10, raw_right=one.raw_right / 10)
    for kind, same in (("raw", False), ("scale_free", True)):
        config = PenaltyConfig(vectors=kind)
        found = [float(losses.embedding_penalty([f], 0.0, 1.0, config)) for f in (one, shrunk)]
        assert (found[0] == pytest.approx(found[1])) == same


def test_on_the_authors_settings_the_penalties_start_where_theirs_do():
    """Entropy 17.6 and variance 1.28 at N = 32, K = 32, with their coefficients."""
    decoder = LowRank(depth=2, width=2).make(of_image(64, 32))
    params = decoder.init(jax.random.key(0), jnp.zeros(64))
    factors = lowrank.embeddings(params, "unit")
    config = PenaltyConfig()
    assert float(losses.embedding_penalty(factors, 0.1, 0.0, config)) == pytest.approx(17.6, 0.02)
    assert float(losses.embedding_penalty(factors, 0.0, 0.01, config)) == pytest.approx(1.28, 0.02)


def test_the_weights_of_the_penalty_are_traced_fields_of_the_model():
    """Added to the loss as `extra_loss`, by their names; a model without any adds nothing."""
    config = Config(task=Bump(code=CodeConfig(name="onehot")), model=LowRank(depth=1, width=2))
    config = changed(config, {"model.penalty.entropy": 0.5, "model.penalty.variance": 0.25})
    assert {"model.penalty.entropy", "model.penalty.variance"} < set(loop.hyper_of(config))
    params = LowRank(depth=1, width=2).make(of_image(16, 8)).init(jax.random.key(0), jnp.zeros(16))
    hyper = {"penalty.entropy": 0.5, "penalty.variance": 0.25}
    factors = lowrank.embeddings(params, "unit")
    expected = losses.embedding_penalty(factors, 0.5, 0.25, PenaltyConfig())
    assert float(config.model.extra_loss(params, hyper)) == pytest.approx(float(expected))
    assert Config().model.extra_loss(params, {}) is None
