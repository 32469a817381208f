"""The decoder of low-rank embeddings: its vectors, its initial law, its penalty by axes."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError, changed
from compgen_jax.models import lowrank
from compgen_jax.models.lowrank import Factor, LowRank, PenaltyConfig
from compgen_jax.models.model import Shapes
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.encodings import CodeConfig
from compgen_jax.training import loop
from tests.models.oracles import KEY, of_image, struct, variables

N = 8
SHAPES = of_image(2 * N, N)


def test_embeddings_are_what_the_decoder_uses_and_zero_for_a_missing_factor():
    decoder = LowRank(width=2, depth=1, rank=3).make(SHAPES)
    params = variables(decoder, SHAPES)
    factors = jax.device_get(jax.jit(lowrank.embeddings)(params))
    codes = np.tile(np.eye(N, dtype=np.float32), (1, 2))
    codes = np.concatenate([codes, codes[:1] * (np.arange(2 * N) < N)])
    embedded = jax.jit(decoder.apply)(params, codes)[1]["layer_01"]
    for channel, (name, factor) in enumerate(zip("xy", factors, strict=True)):
        chex.assert_shape([factor.left, factor.right], (N, 3, N))
        raw = params["params"][f"embed_{name}"]
        np.testing.assert_array_equal(factor.raw_left, raw["left"])
        np.testing.assert_array_equal(factor.raw_right, raw["right"])
        matrices = np.einsum("tk,tkh,tkw->thw", factor.values, factor.left, factor.right)
        np.testing.assert_allclose(embedded[:N, ..., channel], matrices, atol=1e-6)
    assert embedded[N, ..., 0].any() and not embedded[N, ..., 1].any()
    gradient = jax.jit(jax.grad(lambda p, code: jnp.sum(decoder.apply(p, code)[0] ** 2)))
    for missing in (codes[N], 0 * codes[N]):
        gradients = gradient(params, missing)
        chex.assert_tree_all_finite(gradients)
        assert not any(leaf.any() for leaf in jax.tree.leaves(gradients["params"]["embed_y"]))


def test_initial_parameters_follow_the_authors_law():
    decoder = LowRank(depth=2).make(of_image(64, 32))
    params = jax.device_get(jax.jit(decoder.init)(KEY, jnp.zeros(64)))["params"]
    for factor in (params["embed_x"], params["embed_y"]):
        assert float(factor["values"].std()) == pytest.approx(32**-0.5, rel=0.1)
        for side in ("left", "right"):
            np.testing.assert_allclose(np.linalg.norm(factor[side], axis=-1), 1, atol=1e-5)
            assert abs(float(factor[side].mean())) < 5e-3
    assert not np.allclose(params["embed_x"]["left"], params["embed_y"]["left"])
    slopes = [params[f"prelu_{index}"]["negative_slope"] for index in range(3)]
    np.testing.assert_array_equal(slopes, [0.25] * 3)


# --- the penalty -----------------------------------------------------------------------------

AXES = ((0, "rows"), (2, "none"), (3, "columns"))  # of factors 0 to 4: 1 and 4 have both
SIDES = [("left",), ("left", "right"), (), ("right",), ("left", "right")]
embedding_penalty = jax.jit(lowrank.embedding_penalty, static_argnums=3)


def factor(seed, tokens, terms, side):
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(2, tokens, terms, side))
    unit = raw / np.linalg.norm(raw, axis=-1, keepdims=True)
    return Factor(rng.normal(size=(tokens, terms)), *unit, *raw)


def test_penalty_of_each_factor_along_its_axes():
    factors = [factor(seed, tokens=3 + seed, terms=4, side=5) for seed in range(5)]
    expected = 0.0
    for one, sides in zip(factors, SIDES, strict=True):
        shares = one.values**2 / (one.values**2).sum(axis=1, keepdims=True)
        expected -= 0.3 * sum(p * np.log(max(p, 1e-8)) for p in shares.ravel())
        for side in sides:
            expected += 0.02 * getattr(one, f"raw_{side}").var(axis=2, ddof=1).sum()
    assert float(embedding_penalty(factors, 0.3, 0.02, AXES)) == pytest.approx(expected, rel=1e-5)


def test_entropy_of_equal_terms_of_one_and_of_none():
    np.testing.assert_allclose(lowrank.entropy(jnp.ones((2, 5))), np.log(5), rtol=1e-6)
    one_term = np.float32([[0, 0, -3, 0, 0]])
    assert not np.any(lowrank.entropy(one_term))
    gradient = jax.jit(jax.grad(lambda values: lowrank.entropy(values).sum()))
    for values in (one_term, 0 * one_term):
        assert np.isfinite(gradient(values)).all()


def test_the_weights_of_the_penalty_are_traced_fields_of_the_model():
    """Added to the loss as `extra_loss`, by their names; a model without any adds nothing."""
    config = Config(task=Bump(code=CodeConfig(name="onehot")), model=LowRank(depth=1, width=2))
    config = changed(config, {"model.penalty.entropy": 0.5, "model.penalty.variance": 0.25})
    assert {"model.penalty.entropy", "model.penalty.variance"} < set(loop.hyper_of(config))
    params = variables(config.model.make(SHAPES), SHAPES)
    weights = {"penalty.entropy": 0.5, "penalty.variance": 0.25}
    factors = lowrank.embeddings(params)
    expected = embedding_penalty(factors, *weights.values())
    assert float(config.model.extra_loss(params, weights)) == pytest.approx(float(expected))
    assert Config().model.extra_loss(params, {}) is None


def test_more_than_ten_factors_keep_their_order():
    shapes = Shapes(struct(15), struct(6, 8, 3), parts=(1,) * 10 + (2, 3))
    params = variables(LowRank(depth=1, width=3, rank=1).make(shapes), shapes)["params"]
    factors = lowrank.embeddings({"params": dict(sorted(params.items()))})
    assert [len(f.values) for f in factors] == list(shapes.parts)


def test_what_does_not_fit_is_refused_in_one_line(tiny):
    onehot_task = changed(tiny, {"task.code.name": "onehot"}).task
    pairs = "must be pairs of a factor's index, from 0, and one of both, rows, columns, none"
    for settings, message in [
        (LowRank(penalty=PenaltyConfig(axes=(("posX", "rows"),))), pairs),
        (LowRank(penalty=PenaltyConfig(axes=((0, "rows"), (0, "none")))), "names a factor twice"),
        (LowRank(depth=2, dilations=(1, 2, 4)), "positive integer for each of the 2 hidden layers"),
    ]:
        with pytest.raises(ConfigError, match=message):
            Config(task=onehot_task, model=settings)
    with pytest.raises(ConfigError, match="factors have the indices 0 to 1"):
        LowRank(penalty=PenaltyConfig(axes=((3, "rows"),))).make(SHAPES._replace(parts=(8, 8)))
