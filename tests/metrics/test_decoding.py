"""What is decoded at points: known answers."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from compgen_jax.metrics import decoding as decoding  # registers its metrics
from compgen_jax.metrics import readout, registry
from compgen_jax.metrics.layers import Layer
from tests.metrics.test_probes import explicit_ridge

ROWS = 2


def decoded(layer_BxSxD, points, held_out) -> dict:
    """All numbers of one layer, which is the last one, too."""
    features = layer_BxSxD.reshape(-1, layer_BxSxD.shape[2])
    groups = np.unique(points, axis=0, return_inverse=True)[1]
    layer = Layer(
        features, np.repeat(points, ROWS, axis=0), np.repeat(held_out, ROWS), rows_per_point=ROWS,
        groups=np.repeat(groups, ROWS), costly={"untrained": features}.get,
    )  # fmt: skip
    metrics = [metric for metric in registry.METRICS if metric.domain == "points"]
    return registry.numbers(metrics, layer)


def of_code(points):
    return np.repeat(points[:, None], ROWS, axis=1)


@pytest.mark.parametrize("lacking", ["id", "ood"])
def test_a_factor_that_is_0_in_a_region(lacking, rng):
    """One never shown counts as not read, as no readout of it can be fitted; one that no held-out
    point has, with no R^2, is left out of the mean."""
    held_out = np.arange(64) < 20
    points = rng.random((64, 4))
    points[held_out == (lacking == "ood"), 3] = 0
    numbers = decoded(of_code(points), points, held_out)
    for region in ("id", "ood"):
        expected = 3 / 4 if lacking == "id" else 1
        assert numbers[f"decode.{region}_r2"] == pytest.approx(expected, abs=1e-3)


def test_what_is_recovered_against_a_loop():
    """By a readout of normal equations, rows of a point in the mean; twins are as good as each
    other, and active factors are those that are not 0."""
    rng = np.random.default_rng(1)
    points = np.round(rng.normal(size=(60, 3)).clip(0), 1)
    held_out = points[:, 1] + points[:, 2] > 0.8
    layer = of_code(points) @ rng.normal(size=(3, 6)) + 0.6 * rng.normal(size=(60, ROWS, 6))
    seen, factors = layer[~held_out].reshape(-1, 6), np.repeat(points[~held_out], ROWS, axis=0)
    (fit,) = readout.ridge(seen, [factors])
    weights, intercept = explicit_ridge(seen, factors, fit.penalty)
    true, read = points[held_out], (layer[held_out] @ weights + intercept).mean(axis=1)
    nearest = true[cdist(read, true).argmin(axis=1)]
    hits = (nearest == true).all(axis=1).mean()
    active_hits = ((nearest != 0) == (true != 0)).all(axis=1).mean()
    numbers = decoded(layer, points, held_out)
    assert (numbers["decode.recovery"], numbers["decode.active_recovery"]) == (hits, active_hits)
    assert 0.05 < hits < active_hits < 1
