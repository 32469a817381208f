"""A padded trial is the unpadded run: forward, gradients and after 60 steps."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import changed
from compgen_jax.models.conv import Conv
from compgen_jax.tasks import sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop, padding
from tests.models.oracles import of_image
from tests.trees import share_apart

GRIDS = (8, 12)
STEPS = 60


def config_of(tiny, code):
    """Stripes, bumps and a decoder with channels enough for every lowering's products; a code as
    long as the grid, or (ramp) of a fixed length."""
    return changed(tiny, {
        "task.code.name": code, "task.code.missing": "off_grid" if code == "ramp" else "zero",
        "task.support.region": "none", "task.stripes.copies": 1, "model.width": 8, "model.depth": 2,
        "training.batch_size": 8, "execution.chunk_steps": STEPS,
    })  # fmt: skip


def at(config, grid):
    return changed(config, {"task.grid": grid})


def test_groups_keep_waste_below_the_limit():
    assert padding.group_grids((8, 12, 16, 20, 24), 0.3) == [(16, 20, 24), (8, 12)]
    assert padding.group_grids((12, 8), 0) == [(12,), (8,)]
    of_two = 1 - (64 + 144) / 288
    assert padding.group_grids((8, 12), of_two + 1e-9) == [(8, 12)]
    assert padding.group_grids((8, 12), of_two) == [(12,), (8,)]


@pytest.mark.parametrize(
    "told", [{}, {"coordinates": True}, {"sines": True, "activation": "prelu"}]
)
@pytest.mark.parametrize("lowering", ["lax", "gemm", "winograd"])
def test_a_padded_decoder_draws_what_the_small_one_draws(lowering, told):
    """Every layer of it, with biases that would light the image beyond the grid. Parts of the code
    are padded each at its end: 8 + 3 + 1 numbers to 12 + 5 + 1."""
    grid = GRIDS[0]
    settings = Conv(width=8, depth=3, **told)
    small, large = (settings.make(of_image(length, side, lowering))
                    for length, side in zip((12, 18), GRIDS, strict=True))  # fmt: skip
    key = jax.random.key(grid)

    params = jax.tree.map(lambda leaf: leaf + 0.1, small.init(key, jnp.zeros(12)))
    like = jax.eval_shape(large.init, key, jnp.zeros(18))
    padded = settings.pad_params(params, like, (8, 3, 1), (12, 5, 1))
    chex.assert_trees_all_equal_shapes(padded, like)
    added = [*range(8, 12), 15, 16]
    assert not padded["params"]["render"]["kernel"][:, :, added].any()
    code = np.float32(np.random.default_rng(0).normal(size=(3, 12)))
    wide_code = np.insert(code, [8] * 4 + [11] * 2, 0, axis=1)
    image, layers = jax.jit(small.apply)(params, code)
    wide_image, wide_layers = jax.jit(large.apply)(padded, wide_code, jnp.int32(grid))
    pairs = [(wide_layers[name], layers[name]) for name in list(layers)[1:]]
    for wide, narrow in [*pairs, (wide_image, image)]:
        side, largest = narrow.shape[1], float(jnp.abs(narrow).max())
        np.testing.assert_allclose(wide[:, :side, :side], narrow, atol=1e-5 * largest)
        assert not wide[:, side:].any() and not wide[:, :, side:].any()


@functools.cache
def program(config, grids):
    """run(trial, n_steps) -> state, losses, and the scores on its training set."""
    members = tuple(at(config, grid).task.make() for grid in grids)
    network = functools.partial(padding.PaddedNetwork, members=members)
    trainer = loop.make_trainer(at(config, max(grids)), "winograd", network=network)

    def run(trial, n_steps):
        state, losses = trainer.advance(trial, trainer.init(trial.key, trial.task_index), n_steps)
        points = trial.dataset.points
        return state, losses, trainer.predict(trial.key, state.params, points, trial.task_index)[2]

    return jax.jit(run)


def trial_of(config, grid, grids):
    """The trial of one of the grids, its data set as long as the largest grid's."""
    own, key = at(config, grid), jax.random.key(grid)
    dataset = jax.jit(functools.partial(loop.dataset_of, own.task.make()))(key)
    beyond = 2 * (max(grids) - grid)  # stripes that a larger grid has more
    dataset = sampling.padded(dataset, len(dataset.points) + beyond)
    return loop.Trial(key, loop.hyper_of(own), dataset, jnp.int32(grids.index(grid)))


def padded_like(config, params):
    small, large = (at(config, side).task.make() for side in GRIDS)
    module = config.model.make(loop.shapes_of(large))
    like = jax.eval_shape(module.init, jax.random.key(0), tasks.shapes(large)[0])
    return config.model.pad_params(params, like, small.parts, large.parts)


@pytest.mark.parametrize("code", ["bump", "ramp"])
def test_a_padded_trial_has_the_gradients_of_the_unpadded_one_and_ends_where_it_ends(tiny, code):
    config, grid = config_of(tiny, code), GRIDS[0]
    trials = [(program(config, grids), trial_of(config, grid, grids)) for grids in ((grid,), GRIDS)]
    # after one step AdamW's first moment is a tenth of the gradient
    alone, padded = (run(trial, 1) for run, trial in trials)
    assert float(alone[1][0]) == pytest.approx(float(padded[1][0]), rel=1e-5)
    moments = padded_like(config, alone[0].opt_state[0].mu)
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(moments))
    assert largest > 0
    chex.assert_trees_all_close(padded[0].opt_state[0].mu, moments, atol=2e-5 * largest)

    alone, padded = (run(trial, STEPS) for run, trial in trials)
    np.testing.assert_allclose(padded[1], alone[1], rtol=2e-3)
    assert alone[1][-10:].mean() < 0.9 * alone[1][:5].mean()  # it has learnt something
    # scored on its own pixels: the blank error would tell of any other
    n = len(alone[2]["mse"])
    for name, tolerance in (("mse", 1e-3), ("blank_mse", 1e-6)):
        np.testing.assert_allclose(padded[2][name][:n], alone[2][name], atol=tolerance)
    expected = padded_like(config, alone[0].params)
    assert share_apart(padded[0].params, expected, atol=2e-3) < 0.01
    # beyond the grid parameters stay exactly zero
    within = padded_like(config, jax.tree.map(jnp.ones_like, alone[0].params))
    for leaf, mask in zip(*map(jax.tree.leaves, (padded[0].params, within)), strict=True):
        assert not leaf[mask == 0].any()
