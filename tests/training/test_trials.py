from concurrent.futures import ThreadPoolExecutor

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.training import trials as over
from compgen_jax.training.trials import MappedTrials, join, needed_memory, split


def scaled_sum(shared, trial):
    """Any function of a trial: here with a loop of traced length inside, and an empty leaf."""
    x, scale, _ = trial
    return {"sum": jax.lax.fori_loop(0, shared, lambda _, s: s * scale + x.sum(), 0.0), "x": x + 1}


@pytest.mark.parametrize(
    ("n_devices", "trials_per_device", "n_trials"),
    [(1, 0, 4), (1, 1, 5), (1, 3, 5), (2, 0, 5), (2, 2, 5), (2, 3, 4), (2, 8, 1)],
)
def test_trials_equal_one_by_one_on_any_devices(n_devices, trials_per_device, n_trials):
    devices = jax.devices()[:n_devices]
    x, empty = jax.random.normal(jax.random.key(0), (n_trials, 3)), jnp.ones((n_trials, 0, 2))
    trials = x, jnp.linspace(0.5, 1.0, n_trials), empty
    results = over.over_trials(scaled_sum, trials_per_device, devices)(4, trials)
    for index in range(n_trials):
        alone = scaled_sum(4, jax.tree.map(lambda x, i=index: x[i], trials))
        chosen = jax.tree.map(lambda x, i=index: x[i], results)
        chex.assert_trees_all_close(alone, chosen, rtol=1e-6)
    assert results["sum"].shape == (n_trials,) and len(devices) == n_devices


def test_memory_is_of_arguments_and_results():
    program = MappedTrials(lambda shared, trial: shared * trial, 0, jax.devices()[:1])
    compiled = program.compile(ThreadPoolExecutor(1), np.float32(2), jnp.ones((3, 1_000_000)))
    assert needed_memory(compiled) == pytest.approx(2 * 3 * 4e6, rel=0.01)


@pytest.mark.parametrize("n_devices", [1, 2])
def test_what_was_compiled_for_shapes_is_what_runs(n_devices):
    """Nothing is traced again, and split trials go from one call to the next."""
    chex.clear_trace_counter()
    devices = jax.devices()[:n_devices]
    prepared = MappedTrials(chex.assert_max_traces(lambda n, x: x + n * x, n=1), 0, devices)
    trials = jnp.arange(5.0)
    shares = split(trials, devices)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), shares)
    prepared.compile(ThreadPoolExecutor(1), np.float32(1), shapes)
    for _ in range(2):
        moved = prepared(np.float32(3), prepared(np.float32(1), shares))
        np.testing.assert_array_equal(join(moved, 5), 8 * trials)
