"""The transformer of pixels against a float64 loop and PyTorch's own encoder layer."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.models import transformer
from compgen_jax.models.transformer import Transformer
from compgen_jax.tasks.task import Example
from tests.models.oracles import KEY, of_image, variables

E, N, WIDTH, HEADS, HIDDEN, BATCH = 6, 4, 8, 2, 10, 3
CODES = np.random.default_rng(1).normal(size=(BATCH, E)).astype("f4") * np.float32(0.3)
COUNTS = np.ones(BATCH, bool)


SETTINGS = Transformer(2, WIDTH, HEADS, HIDDEN, dropout=0.3)
MODULE = SETTINGS.make(of_image(E, N))
PARAMS = variables(MODULE, of_image(E, N), seed=2)


def train(key, module=MODULE):
    return SETTINGS.train_apply(module, PARAMS, Example(CODES, None), COUNTS, key)[0]


# --- dropout ---------------------------------------------------------------------------------


def test_dropout_is_of_training_and_of_its_key():
    compiled = jax.jit(train, static_argnums=1)
    plain, _ = jax.jit(SETTINGS.apply, static_argnums=0)(MODULE, PARAMS, CODES)
    one, same, other = (np.asarray(compiled(jax.random.key(seed))) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    for images in (other, plain):
        assert (np.abs(one - images).max(axis=(1, 2)) > 0.01).all()
    without = replace(SETTINGS, dropout=0.0).make(of_image(E, N))
    np.testing.assert_allclose(compiled(KEY, without), plain, atol=1e-6)


def test_no_two_of_the_four_places_of_each_block_drop_by_one_key(monkeypatch):
    keys = []
    monkeypatch.setattr(
        transformer, "dropped", lambda key, values, rate: (keys.append(key), values)[1]
    )
    monkeypatch.setattr(
        transformer, "attention", lambda q, k, v, key, rate: (keys.append(key), v)[1]
    )
    SETTINGS.apply(MODULE, PARAMS, CODES)
    assert not any(key is not None for key in keys)  # nothing is dropped in evaluation
    keys.clear()
    train(KEY)
    assert len({tuple(np.asarray(jax.random.key_data(key))) for key in keys}) == len(keys) == 8


@pytest.mark.parametrize("rate", [0.1, 0.99])
def test_dropped_values_are_zero_at_the_rate_and_keep_their_mean(rate):
    values = np.full((401, 501), 3.0, "f4")  # an odd number of them
    found = np.asarray(jax.jit(transformer.dropped, static_argnums=2)(KEY, values, rate))
    error = (rate * (1 - rate) / values.size) ** 0.5
    assert abs(np.mean(found == 0) - rate) < 4 * error
    below = round(rate * 2**16) / 2**16
    np.testing.assert_allclose(np.unique(found), [0, 3 / (1 - below)], rtol=1e-6)
    kept = (found != 0) - (1 - rate)
    for shift in (1, 2):  # neighbours, of one random number and of two, know nothing of each other
        product = np.mean(kept[:, shift:] * kept[:, :-shift])
        assert abs(product) < 5 * rate * (1 - rate) / values.size**0.5


def test_attention_drops_weights_after_the_softmax():
    """Of values that are 1 in all channels, what is left of the weights' sum of 1; each example of
    a batch, which are alike here, drops weights of its own."""
    query, key = np.random.default_rng(5).normal(size=(2, 1, 50, HEADS, 3)).astype("f4")
    query, key = (np.tile(each, (BATCH, 1, 1, 1)) for each in (query, key))
    attend = jax.jit(transformer.attention, static_argnums=4)
    sums = np.asarray(attend(query, key, np.ones_like(key), KEY, 0.4))
    np.testing.assert_allclose(sums, np.repeat(sums[..., :1], 3, axis=-1), rtol=1e-5)
    assert sums.mean() == pytest.approx(1, abs=0.05) and sums[..., 0].std() > 0.05
    assert all(np.abs(sums[0] - sums[b]).max() > 0.05 for b in range(1, BATCH))


# --- derivatives -----------------------------------------------------------------------------


def test_the_backward_pass_drops_what_the_forward_pass_dropped():
    """Of attention, whose weights it makes again: by forward mode, which makes them once."""
    draws = np.random.default_rng(6).normal(size=(7, BATCH, 9, HEADS, 3)).astype("f4")
    inputs, directions, weights = tuple(draws[:3]), tuple(draws[3:6]), draws[6]
    value = lambda inputs: jnp.sum(weights * transformer.attention(*inputs, KEY, 0.3))
    gradient = jax.jit(jax.grad(value))(inputs)
    _, tangent = jax.jit(lambda by: jax.jvp(value, (inputs,), (by,)))(directions)
    slope = sum(np.vdot(one, by) for one, by in zip(gradient, directions, strict=True))
    np.testing.assert_allclose(slope, tangent, rtol=1e-4)
