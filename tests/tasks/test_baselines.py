"""Trivial predictors against loops."""

import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.tasks import baselines


@pytest.mark.parametrize("shape", [(), (3,), (2, 4)])
def test_trivial_predictors_against_loops(shape):
    rng = np.random.default_rng(1)
    truths = rng.normal(size=(7, *shape)).astype(np.float32)
    held_out = np.array([False, True, False, True, False, False, True])
    nearest = np.array([0, 0, 2, 2, 4, 5, 5])
    asked = baselines.Asked(None, None, jnp.asarray(truths), truths[nearest], held_out)
    constant, copied = (
        baselines.BASELINES[name](asked) for name in ("best_constant", "nearest_seen")
    )
    assert constant.shape == copied.shape == truths.shape
    for cell in range(7):
        np.testing.assert_array_equal(copied[cell], truths[nearest[cell]])
        own = [t for t, out in zip(truths, held_out, strict=True) if out == held_out[cell]]
        np.testing.assert_allclose(constant[cell], np.mean(own), rtol=1e-5, atol=1e-6)


def test_no_other_constant_has_a_smaller_error():
    rng = np.random.default_rng(2)
    truths, held_out = rng.normal(size=(6, 5)), np.arange(6) < 2
    asked = baselines.Asked(None, None, jnp.asarray(truths), None, held_out)
    found = np.asarray(baselines.best_constant(asked))
    for region in (held_out, ~held_out):
        error = lambda level, region=region: np.mean((truths[region] - level) ** 2)
        best = error(found[region][0, 0])
        for step in (-0.05, 0.05):
            assert error(found[region][0, 0] + step) > best
