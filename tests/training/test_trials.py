import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.training import trials as over
from compgen_jax.training.trials import MappedTrials, join, split


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


def test_as_many_trials_fit_as_the_memory_holds():
    """A trial of a million floats needs them twice: once as its argument, once as its result."""

    doubled = lambda shared, trial: shared * trial
    trial, megabyte = jnp.ones(1_000_000), 10**6
    device = lambda limit: SimpleNamespace(memory_stats=lambda: {"bytes_limit": limit})
    fit = lambda limit: over.trials_that_fit(doubled, 2.0, trial, device(limit))
    assert fit(8 * megabyte * 17) == 14  # an eighth is left free
    assert fit(8 * megabyte * 160) == pytest.approx(140, abs=1)
    assert fit(megabyte) == 1  # one is tried in any case
    assert over.trials_that_fit(doubled, 2.0, trial, jax.devices()[0]) is None


@pytest.mark.parametrize("n_devices", [1, 2])
def test_what_was_compiled_for_shapes_is_what_runs(n_devices):
    """Nothing is traced again, and the numbers are those of a program compiled at its first call;
    other shapes are compiled when they come. Split trials go from one call to the next."""
    chex.clear_trace_counter()
    devices = jax.devices()[:n_devices]
    prepared = MappedTrials(chex.assert_max_traces(lambda n, x: x + n * x, n=2), 0, devices)
    trials = jnp.arange(5.0)
    shares = split(trials, devices)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), shares)
    prepared.compile(ThreadPoolExecutor(1), np.float32(1), shapes)
    for _ in range(2):
        moved = prepared(np.float32(3), prepared(np.float32(1), shares))
        np.testing.assert_array_equal(join(moved, 5, devices), 8 * trials)
    assert join(prepared(np.float32(1), split(jnp.arange(9.0), devices)), 9, devices).shape == (9,)


def test_a_call_waits_for_its_program_and_has_its_error(monkeypatch):
    prepared = MappedTrials(scaled_sum, 0, jax.devices()[:1])
    trials, go = (jnp.ones((2, 3)), jnp.ones(2), ()), threading.Event()

    def failing(*_, **__):
        assert go.wait(60)
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED")

    monkeypatch.setattr(jax.stages.Lowered, "compile", failing)
    prepared.compile(ThreadPoolExecutor(1), np.int32(4), trials)  # and this thread goes on
    go.set()
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        prepared(np.int32(4), trials)
