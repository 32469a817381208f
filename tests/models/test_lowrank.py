"""The decoder of low-rank embeddings: its vectors, its initial law, its penalty by axes."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.models import lowrank
from compgen_jax.models.lowrank import LowRank, PenaltyConfig
from compgen_jax.models.model import Shapes
from compgen_jax.tasks.scene import CodesConfig
from compgen_jax.tasks.sprites import Sprites
from compgen_jax.training import loop
from tests.models.oracles import KEY, of_image, struct, variables

N = 8
SHAPES = of_image(2 * N, N)._replace(parts=(N, N))


def test_embeddings_are_what_the_decoder_uses_and_zero_for_a_missing_factor():
    decoder = LowRank(width=2, depth=1).make(SHAPES)
    params = variables(decoder, SHAPES)
    factors = jax.device_get(jax.jit(lowrank.embeddings)(params))
    codes = np.tile(np.eye(N, dtype=np.float32), (1, 2))
    codes = np.concatenate([codes, codes[:1] * (np.arange(2 * N) < N)])
    embedded = jax.jit(decoder.apply)(params, codes)[1]["layer_01"]
    for channel, (name, factor) in enumerate(zip("xy", factors, strict=True)):
        for side in ("left", "right"):
            raw = params["params"][f"embed_{name}"][side]
            unit = raw / np.linalg.norm(raw, axis=-1, keepdims=True)
            np.testing.assert_allclose(getattr(factor, side), unit, rtol=1e-5)
        matrices = np.einsum("tk,tkh,tkw->thw", factor.values, factor.left, factor.right)
        np.testing.assert_allclose(embedded[:N, ..., channel], matrices, atol=1e-6)
    assert embedded[N, ..., 0].any() and not embedded[N, ..., 1].any()
    gradient = jax.jit(jax.grad(lambda p, code: jnp.sum(decoder.apply(p, code)[0] ** 2)))
    for missing in (codes[N], 0 * codes[N]):
        gradients = gradient(params, missing)
        chex.assert_tree_all_finite(gradients)
        assert not any(leaf.any() for leaf in jax.tree.leaves(gradients["params"]["embed_y"]))


def test_initial_parameters_follow_the_authors_law():
    decoder = LowRank(depth=2).make(of_image(64, 32)._replace(parts=(32, 32)))
    params = jax.device_get(jax.jit(decoder.init)(KEY, jnp.zeros(64)))["params"]
    for factor in (params["embed_x"], params["embed_y"]):
        assert float(factor["values"].std()) == pytest.approx(32**-0.5, rel=0.1)
        for side in ("left", "right"):
            np.testing.assert_allclose(np.linalg.norm(factor[side], axis=-1), 1, atol=1e-5)
            assert abs(float(factor[side].mean())) < 5e-3
    assert [params[f"prelu_{index}"]["negative_slope"] for index in range(3)] == [0.25] * 3


# --- the penalty -----------------------------------------------------------------------------

AXES = ((0, "rows"), (2, "none"), (3, "columns"))  # the other factors have both
SIDES = {0: ("left",), 2: (), 3: ("right",)}


def test_penalty_of_each_factor_along_its_axes():
    """Its weights are traced fields of the model; a model without any adds nothing. More than ten
    factors keep their order."""
    penalty = PenaltyConfig(axes=AXES)
    task = Sprites(code=CodesConfig(name="onehot"))
    training = TrainingConfig(steps=1)
    hyper = loop.hyper_of(Config(task=task, model=LowRank(penalty=penalty), training=training))
    assert {"model.penalty.entropy", "model.penalty.variance"} < set(hyper)
    shapes = Shapes(struct(37), struct(6, 6), parts=(3, 4, 5, 6, 7) + (2,) * 6)
    model = LowRank(depth=1, width=2, penalty=penalty)
    params = variables(model.make(shapes), shapes)
    expected = 0.0
    for index in range(11):
        factor = params["params"][f"embed_{index}"]
        shares = factor["values"] ** 2 / (factor["values"] ** 2).sum(axis=1, keepdims=True)
        expected -= 0.3 * sum(p * np.log(max(p, 1e-8)) for p in shares.ravel())
        sides = SIDES.get(index, ("left", "right"))
        expected += 0.02 * sum(factor[side].var(axis=2, ddof=1).sum() for side in sides)
    found = jax.jit(model.extra_loss)(params, {"penalty.entropy": 0.3, "penalty.variance": 0.02})
    assert float(found) == pytest.approx(expected, rel=1e-5)
    assert Config().model.extra_loss(params, {}) is None


def test_entropy_of_one_term_and_of_none():
    one_term = np.float32([[0, 0, -3, 0, 0]])
    assert not np.any(lowrank.entropy(one_term))
    gradient = jax.jit(jax.grad(lambda values: lowrank.entropy(values).sum()))
    for values in (one_term, 0 * one_term):
        assert np.isfinite(gradient(values)).all()
