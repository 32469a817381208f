"""Numbers of seen cells: closed forms, and the whole-grid measures where all cells are seen."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import function, geometry, kernels, layers, probes, seen

AXES = [np.arange(7.0), np.arange(6.0)]
CELLS = grids.points(AXES)
DONUT = ~((CELLS >= 2) & (CELLS <= 4)).all(axis=1)
RANDOM = np.random.default_rng(3).random(len(CELLS)) < 0.6
CUBE = grids.points([np.arange(5.0), np.arange(4.0), np.arange(3.0)])


def random_features(cells, units=9, seed=0):
    return np.random.default_rng(seed).normal(size=(len(cells), units))


def bump(point, width=7):
    pixels = jnp.arange(float(width))
    x, y = (jnp.exp(-((pixels - value) ** 2) / 2) for value in (point[0], point[1]))
    return y[:, None] * x[None, :]


def by_least_squares(features, factors):
    """Residual over total, with dummies for all values but the first of each factor."""
    columns = [np.ones(len(factors))]
    for values in factors.T:
        columns += [(values == value).astype(float) for value in np.unique(values)[1:]]
    design = np.stack(columns, axis=1)
    residual = features - design @ np.linalg.lstsq(design, features)[0]
    return np.sum(residual**2) / np.sum((features - features.mean(axis=0)) ** 2)


@pytest.mark.parametrize("units", [4, 200])
@pytest.mark.parametrize(
    ("cells", "sizes"), [(CELLS, (7, 6)), (CUBE, (5, 4, 3))], ids=["two factors", "three"]
)
def test_of_a_complete_grid_the_interaction_is_that_of_the_analysis_of_variance(
    cells, sizes, units
):
    features = random_features(cells, units) + cells[:, :1] * cells[:, 1:2] + 5 * cells[:, 1:2]
    expected = layers.interaction(kernels.gram(features), sizes)
    assert 0.01 < expected < 0.99
    assert seen.interaction(features, cells) == pytest.approx(expected, rel=1e-9)
    order = np.random.default_rng(0).permutation(len(cells))
    assert seen.interaction(features[order], cells[order]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kept", [DONUT, RANDOM], ids=["donut", "random"])
def test_of_seen_cells_it_is_the_residual_of_least_squares(kept):
    cells = CELLS[kept]
    features = random_features(cells) + 3 * cells[:, :1]
    found = seen.interaction(features, cells)
    assert found == pytest.approx(by_least_squares(features, cells), rel=1e-9)
    # labels are as good as numbers, and units and their offsets do not count
    named = np.stack([np.exp(cells[:, 0]), -7 * cells[:, 1]], axis=1)
    assert seen.interaction(1e3 - 2 * features, named) == pytest.approx(found, rel=1e-9)


def test_sums_have_none_products_some_and_noise_its_share():
    cells = CELLS[DONUT]
    x, y = (random_features(range(7), seed=1), random_features(range(6), seed=2))
    at = cells.astype(int)
    added, multiplied = x[at[:, 0]] + y[at[:, 1]], x[at[:, 0]] * y[at[:, 1]]
    assert seen.interaction(added, cells) == pytest.approx(0, abs=1e-20)
    assert seen.interaction(multiplied, cells) > 0.2
    noise = random_features(cells, 20_000)
    expected = (len(cells) - 12) / (len(cells) - 1)  # 7 + 6 - 1 free effects
    assert seen.interaction(noise, cells) == pytest.approx(expected, abs=0.01)


def test_a_design_of_deficient_rank_is_fitted():
    """Two blocks that share no value: a constant each is among the effects."""
    cells = np.array([(x, y) for b in (0, 3) for x in range(b, b + 3) for y in range(b, b + 3)])
    shift = np.where(cells[:, :1] < 3, 0.0, 10.0)
    features = random_features(cells)
    expected = by_least_squares(features, cells)
    assert seen.interaction(features, cells) == pytest.approx(expected, rel=1e-9)
    assert seen.interaction(shift * np.ones((1, 2)) + cells, cells) == pytest.approx(0, abs=1e-20)
    diagonal = np.stack([np.arange(12.0)] * 2, axis=1)
    assert np.isnan(seen.interaction(random_features(diagonal), diagonal))


def test_the_probe_is_the_cross_validated_one_of_the_seen_cells():
    cells = np.concatenate([CELLS[RANDOM], random_features(CELLS[RANDOM], 1) > 0], axis=1)
    features = random_features(cells, 60) + 3 * cells[:, :1]
    every = probes.probe(features, cells, np.zeros(len(cells), bool), seed=5)["id_r2"]
    real = (True, True, False)
    found = seen.seen_numbers(features, cells, real=real, seed=5)["probe"]
    assert found == pytest.approx(every[:2].mean(), abs=1e-9)
    assert np.isnan(seen.seen_numbers(features, cells, real=(False,) * 3)["probe"])
    noise = seen.seen_numbers(random_features(cells, 60), cells, real=real)
    assert noise["probe"] < 0.1


def test_an_angle_is_read_where_it_jumps():
    angle = np.arange(0.0, 360.0, 15.0)
    cells = np.stack([angle, np.zeros(24)], axis=1)
    features = np.stack([np.cos(angle * np.pi / 180), np.sin(angle * np.pi / 180)], axis=1)
    real = (True, False)
    found = seen.seen_numbers(features, cells, real=real, periods=(360.0, np.inf))["probe"]
    assert found == pytest.approx(1, abs=1e-6)
    assert seen.seen_numbers(features, cells, real=real)["probe"] < 0.9


def test_geometry_of_metrics_written_down():
    cells = CELLS[:12]
    lengths = np.random.default_rng(0).uniform(0.5, 2, size=(12, 2))
    cosine = np.linspace(-0.9, 0.9, 12)
    metrics = lengths[:, :, None] * lengths[:, None, :]
    metrics[:, 0, 1] *= cosine
    metrics[:, 1, 0] *= cosine
    logs = np.log10(lengths.prod(axis=1) * np.sqrt(1 - cosine**2))
    true = np.broadcast_to(4 * np.eye(2), (12, 2, 2))
    found = seen.seen_numbers(random_features(cells), cells, metrics, true)
    assert found["log10_volume_mean"] == pytest.approx(logs.mean(), abs=1e-5)
    assert found["log10_volume_spread"] == pytest.approx(logs.std(), abs=1e-5)
    assert found["log10_volume_excess"] == pytest.approx(logs.mean() - np.log10(4), abs=1e-5)
    assert found["orthogonality"] == pytest.approx(np.abs(cosine).mean(), abs=1e-5)
    # of one real factor the volume is a length, and there is no angle
    one = seen.seen_numbers(random_features(cells), cells, metrics[:, :1, :1], real=(True, False))
    assert one["log10_volume_mean"] == pytest.approx(np.log10(lengths[:, 0]).mean(), abs=1e-5)
    assert np.isnan([one["orthogonality"], one["log10_volume_excess"]]).all()
    dead = seen.seen_numbers(random_features(cells), cells, 0 * metrics)
    assert np.isnan([dead["log10_volume_mean"], dead["log10_volume_spread"]]).all()


def test_constant_features_have_no_numbers():
    constant = np.full((12, 3), 0.1, np.float32)
    jitter = constant + 1e-10 * random_features(CELLS[:12], 3)
    for features in (constant, jitter, np.zeros((12, 3))):
        found = seen.seen_numbers(features, CELLS[:12], np.ones((12, 2, 2)))
        assert tuple(found) == seen.NUMBERS and np.isnan(list(found.values())).all()
        assert np.isnan(seen.interaction(features, CELLS[:12]))


def test_chosen_cells_keep_every_value_and_the_rank():
    """Though a value has a single cell, and a single cell links two blocks of values."""
    blocks = [(x, y, z) for b in (0, 6) for x in range(b, b + 6) for y in range(b, b + 6)
              for z in range(3)]  # fmt: skip
    cells = np.array([*blocks, (0, 6, 0), (12, 0, 1)], float)
    design = seen._design(cells)
    for seed in range(3):
        chosen = seen.choose_cells(cells, 60, seed)
        assert len(chosen) == len(set(chosen.tolist())) == 60
        assert (np.diff(chosen) > 0).all()
        assert {216, 217} <= set(chosen.tolist())
        rank = np.linalg.matrix_rank(design[chosen])
        assert rank == np.linalg.matrix_rank(design) == 13 + 12 + 3 - 2
    assert seen.choose_cells(cells, 60).tolist() == seen.choose_cells(cells, 60).tolist()
    assert seen.choose_cells(cells, 60, 1).tolist() != seen.choose_cells(cells, 60, 2).tolist()
    assert seen.choose_cells(cells).tolist() == list(range(218))
    assert len(seen.choose_cells(cells, 26)) == 26
    with pytest.raises(ValueError, match="most must be at least 26, the rank of the design"):
        seen.choose_cells(cells, 25)


def test_measures_of_a_function_are_those_of_its_arrays():
    cells = CELLS[DONUT]
    network = lambda point: {"code": jnp.stack([point[0], 3 * point[1]]), "bump": bump(point)}
    found = seen.measure(network, cells, true=bump)
    assert found["code"]["log10_volume_mean"] == pytest.approx(np.log10(3), abs=1e-5)
    assert found["code"]["log10_volume_spread"] == pytest.approx(0, abs=1e-5)
    assert found["code"]["orthogonality"] == pytest.approx(0, abs=1e-6)
    assert found["code"]["interaction"] == pytest.approx(0, abs=1e-12)
    assert found["code"]["probe"] == pytest.approx(1, abs=1e-5)
    assert found["bump"]["log10_volume_excess"] == pytest.approx(0, abs=1e-6)
    images = np.asarray(jax.vmap(bump)(jnp.asarray(cells))).reshape(len(cells), -1)
    metrics = geometry.metric_tensors(bump, jnp.asarray(cells))
    expected = seen.seen_numbers(images, cells, metrics, metrics)
    assert found["bump"] == pytest.approx(expected, abs=1e-4)
    few = seen.measure(bump, cells, most=20)[""]
    chosen = seen.choose_cells(cells, 20)
    expected = seen.seen_numbers(images[chosen], cells[chosen], metrics[chosen])
    assert few["log10_volume_mean"] == pytest.approx(expected["log10_volume_mean"], abs=1e-4)
    rough = seen.measure(lambda p: jnp.round(p) ** 2, cells, differentiable=False)[""]
    assert np.isnan(rough["orthogonality"]) and np.isfinite(rough["probe"])


def test_layers_have_the_names_that_the_measures_of_a_grid_give_them():
    class Pair(NamedTuple):
        left: jax.Array
        right: jax.Array

    network = lambda point: {"b": [point, {"__call__": (2 * point,)}], "a": Pair(point, point)}
    found = seen.measure(network, CELLS[:12], differentiable=False)
    assert list(found) == ["a.left", "a.right", "b.0", "b.1.__call__.0"]
    axes, held_out = [np.arange(4.0)] * 2, lambda points: (points > 1).all(axis=-1)
    assert list(function.measure(network, axes, held_out)) == list(found)


def test_tangents_are_those_of_the_real_factors():
    """A label between two numbers: its value picks a gain, and has no derivative."""
    cells = grids.points([np.arange(5.0), np.arange(2.0), np.arange(4.0)])
    gains = jnp.array([1.0, 10.0])

    def network(point):
        gain = gains[point[1].astype(int)]
        return jnp.stack([gain * point[0], gain * point[2], 100 * point[1]])

    found = seen.measure(network, cells, real=(True, False, True))[""]
    assert found["log10_volume_mean"] == pytest.approx(1, abs=1e-5)  # of volumes 1 and 100
    assert found["log10_volume_spread"] == pytest.approx(1, abs=1e-5)
    labels = seen.measure(network, cells, real=(False,) * 3)[""]
    assert np.isnan([labels["log10_volume_mean"], labels["probe"]]).all()
    assert np.isfinite(labels["interaction"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features_SxD": np.ones((5, 3))}, r"features must be \(12, D\), not \(5, 3\)"),
        ({"features_SxD": np.full((12, 3), np.nan)}, "features: NaN or infinite"),
        ({"factors_SxF": np.ones((12, 2))}, "a cell is given twice"),
        ({"factors_SxF": np.ones(12)}, r"factors must be \(S, F\), not \(12,\)"),
        ({"real": (True,)}, "for 2 factors"),
        ({"periods": (0.0, 1.0)}, "one above 0 each"),
        ({"metrics_SxRxR": np.ones((12, 3, 3))}, r"metrics must be \(12, 2, 2\), not"),
        ({"metrics_SxRxR": np.full((12, 2, 2), np.inf)}, "metrics: NaN or infinite"),
        ({"features_SxD": np.eye(9), "factors_SxF": CELLS[:9]}, "5 folds need at least 10"),
    ],
)
def test_bad_input_is_named(change, message):
    asked = {"features_SxD": random_features(CELLS[:12]), "factors_SxF": CELLS[:12]} | change
    with jax.debug_nans(False), pytest.raises(ValueError, match=message):
        seen.seen_numbers(**asked)
