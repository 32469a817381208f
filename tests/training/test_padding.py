"""A padded trial is the unpadded run: forward, gradients and after 100 steps."""

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
from compgen_jax.training import family, loop, padding
from tests.models.shapes import of_image
from tests.trees import share_apart

GRIDS = (8, 12, 20)
SIZE = max(GRIDS)


@pytest.fixture(scope="module", autouse=True)
def optimized():
    """Programs with as much effort as users': over 100 steps rounding grows, and is theirs."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture
def config(tiny):
    """Stripes, bumps and a decoder with channels enough for every lowering's products."""
    return changed(
        tiny,
        {
            "task.code.name": "bump",
            "task.code.missing": "zero",
            "task.support.region": "none",
            "task.stripes.copies": 1,
            "model.width": 8,
            "model.depth": 3,
            "training.batch_size": 8,
            "execution.chunk_steps": 100,
        },
    )


CASES = ("bump", 8), ("bump", 12), ("bump", 20), ("ramp", 8)


@pytest.fixture(params=CASES, ids=[f"{code}-{grid}" for code, grid in CASES])
def case(request, config):
    """A config and a grid, of codes as long as the grid and of one of fixed length."""
    code, grid = request.param
    missing = "off_grid" if code == "ramp" else "zero"
    return changed(config, {"task.code.name": code, "task.code.missing": missing}), grid


def test_buckets_keep_waste_below_the_limit():
    assert padding.buckets((8, 12, 16, 20, 24), 0.3) == [(16, 20, 24), (8, 12)]
    assert padding.buckets((12, 8), 0) == [(12,), (8,)]
    assert padding.buckets((16, 16), 0.9) == [(16,)]
    for limit in (0.1, 0.2, 0.3):
        found = padding.buckets(range(24, 57, 4), limit)
        assert sorted(grid for bucket in found for grid in bucket) == list(range(24, 57, 4))
        for bucket in found:
            pixels = [max(bucket) ** 2 for _ in bucket]
            used = [grid**2 for grid in bucket]
            assert 1 - sum(used) / sum(pixels) == pytest.approx(padding.waste(bucket))
            assert padding.waste(bucket) < limit


@pytest.mark.parametrize("lowering", ["lax", "gemm", "winograd"])
@pytest.mark.parametrize("grid", GRIDS[:2])
def test_a_padded_decoder_draws_what_the_small_one_draws(grid, lowering):
    """Every layer of it, with biases that would light what lies beyond the grid."""
    settings = Conv(width=8, depth=3)
    small, large = (settings.make(of_image(2 * side, side, lowering)) for side in (grid, SIZE))
    key = jax.random.key(grid)
    params = jax.jit(small.init)(key, jnp.zeros(2 * grid))
    params = jax.tree.map(lambda leaf: leaf + np.float32(0.1), params)  # no bias is zero
    like = jax.eval_shape(large.init, key, jnp.zeros(2 * SIZE))
    padded = settings.pad_params(params, like, (grid, grid), (SIZE, SIZE))
    code = jax.random.normal(key, (3, 2, grid))
    padded_code = jnp.pad(code, [(0, 0), (0, 0), (0, SIZE - grid)])
    image, layers = jax.jit(small.apply)(params, code.reshape(3, -1))
    padded_image, padded_layers = jax.jit(large.apply)(
        padded, padded_code.reshape(3, -1), jnp.int32(grid)
    )
    pairs = [(padded_layers[name], layers[name]) for name in list(layers)[1:]]
    for wide, narrow in [*pairs, (padded_image, image)]:
        side, largest = narrow.shape[1], float(jnp.abs(narrow).max())
        np.testing.assert_allclose(wide[:, :side, :side], narrow, atol=1e-5 * largest)
        assert not wide[:, side:].any() and not wide[:, :, side:].any()


def test_codes_and_arrays_are_padded_behind_their_parts_and_cropped_again():
    code = jnp.arange(1.0, 7.0)
    padded = padding.pad_code(code, (3, 1, 2), (4, 1, 5))
    assert padded.tolist() == [1, 2, 3, 0, 4, 5, 6, 0, 0, 0]
    image = jnp.ones((2, 3))
    wide = padding.pad(image, (4, 4))
    assert wide.sum() == 6 and wide.shape == (4, 4) and not wide[2:].any() and not wide[:, 3:].any()
    np.testing.assert_array_equal(padding.crop(wide, (2, 3)), image)


def at(config, grid):
    return changed(config, {"task.grid": grid})


@functools.cache
def program(config, grids, lowering="winograd"):
    """run(trial, n_steps) -> state, losses, and the scores on its training set."""
    of = tuple(at(config, grid).task.make() for grid in grids)
    trainer = loop.make_trainer(at(config, max(grids)), lowering, of=of)

    def run(trial, n_steps):
        state, losses = trainer.advance(trial, trainer.init(trial.key, trial.which), n_steps)
        scores = trainer.score(trial.key, state.params, trial.dataset.points, trial.which)
        return state, losses, scores

    return jax.jit(run)


@functools.cache
def trial_of(config, grid, grids=()):
    """One of `grids` or, without them, alone."""
    which = jnp.int32(grids.index(grid) if grids else 0)
    own, key = at(config, grid), jax.random.key(grid)
    dataset = jax.jit(functools.partial(loop.dataset_of, own.task.make()))(key)
    beyond = 2 * (max(grids, default=grid) - grid)  # stripes that a larger grid has more
    dataset = sampling.padded(dataset, len(dataset.points) + beyond)
    return loop.Trial(key, loop.hyper_of(own), dataset, which)


def both(config, grid, n_steps):
    """The trial alone, and padded in the program of all grids."""
    alone = program(config, (grid,))
    padded = program(config, GRIDS)
    return alone(trial_of(config, grid), n_steps), padded(trial_of(config, grid, GRIDS), n_steps)


def padded_like(config, grid, params):
    small, large = (at(config, side).task.make() for side in (grid, SIZE))
    module = config.model.make(family.shapes_of(large))
    like = jax.eval_shape(module.init, jax.random.key(0), tasks.shapes(large)[0])
    return config.model.pad_params(params, like, small.parts, large.parts)


def test_a_padded_trial_has_the_gradient_of_the_unpadded_one(case):
    """After one step AdamW's first moment is a tenth of the gradient, and the loss is the same."""
    config, grid = case
    alone, padded = both(config, grid, 1)
    assert float(alone[1][0]) == pytest.approx(float(padded[1][0]), rel=1e-5)
    moments = padded_like(config, grid, alone[0].opt_state[0].mu)
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(moments))
    assert largest > 0
    chex.assert_trees_all_close(padded[0].opt_state[0].mu, moments, atol=2e-5 * largest)


def test_a_padded_trial_ends_where_the_unpadded_one_ends(case):
    """After 100 steps; what is beyond the grid stays exactly zero."""
    config, grid = case
    alone, padded = both(config, grid, 100)
    n = len(alone[2]["mse"])
    np.testing.assert_allclose(padded[1], alone[1], rtol=2e-3)
    assert alone[1][90:].mean() < 0.9 * alone[1][:5].mean()  # it has learnt something
    # scored on its own pixels: the blank error would tell of any other
    for name, tolerance in (("mse", 1e-3), ("blank_mse", 1e-6)):
        np.testing.assert_allclose(padded[2][name][:n], alone[2][name], atol=tolerance)
    expected = padded_like(config, grid, alone[0].params)
    assert share_apart(padded[0].params, expected, atol=2e-3) < 0.01
    # images of the trained parameters, pixel by pixel
    task, large = at(config, grid).task.make(), at(config, SIZE).task.make()
    points = trial_of(config, grid).dataset.points
    codes = jax.jit(lambda: tasks.examples_at(task, jax.random.key(0), points).input)()
    wide = jax.vmap(lambda code: padding.pad_code(code, task.parts, large.parts))(codes)
    own, wider = (config.model.make(family.shapes_of(each, "winograd")) for each in (task, large))
    image, _ = jax.jit(own.apply)(alone[0].params, codes)
    padded_image, _ = jax.jit(wider.apply)(padded[0].params, wide, jnp.int32(grid))
    np.testing.assert_allclose(padded_image[:, :grid, :grid], image, atol=5e-3)
    beyond = padded_like(config, grid, jax.tree.map(jnp.ones_like, alone[0].params))
    for leaf, within in zip(*map(jax.tree.leaves, (padded[0].params, beyond)), strict=True):
        assert not leaf[within == 0].any()


def test_vmapped_trials_of_different_grids_equal_each_alone_with_one_trace(config):
    chex.clear_trace_counter()
    of = tuple(at(config, grid).task.make() for grid in GRIDS)
    trainer = loop.make_trainer(at(config, SIZE), "gemm", of=of)

    @chex.assert_max_traces(n=1)
    def run(trial):
        return trainer.advance(trial, trainer.init(trial.key, trial.which), 10)[1]

    trials = [trial_of(config, grid, GRIDS) for grid in GRIDS]
    for count in (None, 5):  # other sizes of the data set, same trace
        chosen = [
            t._replace(dataset=t.dataset._replace(count=jnp.int32(count or t.dataset.count)))
            for t in trials
        ]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *chosen)
        together = run_vmapped(run)(stacked)
    for index, grid in enumerate(GRIDS):
        single = trial_of(config, grid)
        single = single._replace(dataset=single.dataset._replace(count=jnp.int32(5)))
        alone = program(config, (grid,))(single, 10)[1]
        np.testing.assert_allclose(together[index][:10], alone[:10], rtol=1e-4)


@functools.cache
def run_vmapped(run):
    return jax.jit(jax.vmap(run))
