"""What is decoded at points: known answers."""

import numpy as np
import pytest

from compgen_jax.metrics import decoding, registry
from compgen_jax.metrics.decoding import LastLayer, PointLayer
from compgen_jax.tasks.module_supports import ModuleSupportConfig
from compgen_jax.tasks.modules import Modules

TESTS, M, ROWS = 32, 4, 2


def points_of(**support):
    task = Modules(
        modules=M, most=2, inputs=3, hidden=5, outputs=2, samples=3, tests=TESTS,
        support=ModuleSupportConfig(**support),
    ).make()  # fmt: skip
    return task.points, np.asarray(task.held_out(task.points))


def decoded(layer_BxSxD, points, held_out) -> dict:
    """All numbers of one layer, which is the last one, too."""
    rows = {
        "features": layer_BxSxD.reshape(-1, layer_BxSxD.shape[2]),
        "factors": np.repeat(points, ROWS, axis=0).astype(np.float64),
        "held_out": np.repeat(held_out, ROWS),
    }
    groups = np.repeat(np.unique(points, axis=0, return_inverse=True)[1], ROWS)
    layer = PointLayer(untrained=rows["features"], groups=groups, **rows)
    outputs = [metric for metric in registry.OUTPUT_METRICS if metric.at == "points"]
    found = registry.layer_numbers(layer, "points")
    return found | registry.numbers(outputs, LastLayer(rows_per_point=ROWS, **rows))


def of_code(points):
    return np.repeat(points[:, None].astype(np.float64), ROWS, axis=1)


def test_factors_beside_noise_are_read_and_noise_is_not():
    """Both rows of a point are in one fold: what is the same in them does not tell the point."""
    points, held_out = points_of()
    noise = np.repeat(np.random.default_rng(0).normal(size=(2 * TESTS, 1, 8)), ROWS, axis=1)
    of_noise = decoded(noise, points, held_out)
    found = decoded(np.concatenate([of_code(points), 0.001 * noise], axis=2), points, held_out)
    for region in ("id", "ood"):
        for control in ("", "untrained."):
            assert of_noise[f"decode.{control}{region}_r2"] < 0.1
            assert found[f"decode.{control}{region}_r2"] > 0.999
        assert found[f"decode.shuffled.{region}_r2"] < 0.1
    assert found["decode.recovery"] == found["decode.active_recovery"] == 1
    distinct = len(np.unique(points[held_out], axis=0))
    assert of_noise["decode.recovery"] < 6 / distinct


def test_a_module_that_was_never_shown_counts_as_not_read():
    """As no readout of it can be fitted; not as NaN, and not left out of the mean."""
    points, held_out = points_of(name="non_compositional")
    assert not points[~held_out, M - 1].any() and points[held_out, M - 1].all()
    found = decoded(of_code(points), points, held_out)
    for region in ("id", "ood"):
        assert found[f"decode.{region}_r2"] == pytest.approx((M - 1) / M, abs=1e-3)
    assert 0 <= found["decode.recovery"] <= found["decode.active_recovery"] <= 1


def test_a_module_that_no_held_out_set_has_is_left_out_of_their_mean():
    """All sets with a hub are ID: its weight is 0 at every held-out point, with no R^2."""
    points, held_out = points_of(name="popular", held_out_share=0.5)
    assert not points[held_out].any(axis=0).all() and points[~held_out].any(axis=0).all()
    found = decoded(of_code(points), points, held_out)
    assert found["decode.id_r2"] > 0.999 and found["decode.ood_r2"] > 0.999
    assert np.isnan(decoding.mean_over_factors(np.full(3, np.nan), 3))


def test_the_share_recovered_is_of_points_that_are_nearest_to_what_was_read():
    rng = np.random.default_rng(1)
    true = rng.normal(size=(2000, 3))
    assert decoding.recovery(true, true) == 1
    assert decoding.recovery(rng.normal(size=true.shape), true) < 5 / 2000
    # by a loop, at an error of about the distance of neighbours
    true = true[:150]
    read = true + 0.2 * rng.normal(size=true.shape)
    hits = [int(np.argmin([sum((each - other) ** 2) for other in true])) == index
            for index, each in enumerate(read)]  # fmt: skip
    assert decoding.recovery(read, true) == np.mean(hits) and 0.05 < np.mean(hits) < 0.95


def test_points_of_the_same_factors_are_as_good_as_each_other():
    """For k-hot weights every set has one latent, which comes many times."""
    true = np.repeat(np.eye(5), 40, axis=0)
    assert decoding.recovery(true + 0.1, true) == 1
    read = true[np.random.default_rng(0).permutation(200)]
    assert decoding.recovery(read, true) == pytest.approx((read == true).all(axis=1).mean())
