"""Numbers of ID cells: closed forms, and the whole-grid metrics where all cells are ID."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import function, geometry, id_cells, kernels, layers, probes
from compgen_jax.metrics.id_cells import IdLayer
from compgen_jax.metrics.registry import layer_numbers

AXES = [np.arange(7.0), np.arange(6.0)]
CELLS = grids.points(AXES)
DONUT = ~((CELLS >= 2) & (CELLS <= 4)).all(axis=1)
RANDOM = np.random.default_rng(3).random(len(CELLS)) < 0.6
CUBE = grids.points([np.arange(5.0), np.arange(4.0), np.arange(3.0)])


def random_features(cells, units=9, seed=0):
    return np.random.default_rng(seed).normal(size=(len(cells), units))


def numbers_of(features, cells, *arrays, **named) -> dict:
    found = layer_numbers(IdLayer(features, cells, *arrays, **named), "id_cells")
    return {name.removeprefix("id_cells."): value for name, value in found.items()}


def interaction(features, cells) -> float:
    return numbers_of(features, cells)["interaction"]


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
    assert interaction(features, cells) == pytest.approx(expected, rel=1e-9)
    order = np.random.default_rng(0).permutation(len(cells))
    assert interaction(features[order], cells[order]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kept", [DONUT, RANDOM], ids=["donut", "random"])
def test_of_seen_cells_it_is_the_residual_of_least_squares(kept):
    cells = CELLS[kept]
    features = random_features(cells) + 3 * cells[:, :1]
    found = interaction(features, cells)
    assert found == pytest.approx(by_least_squares(features, cells), rel=1e-9)
    # labels are as good as numbers, and units and their offsets do not count
    named = np.stack([np.exp(cells[:, 0]), -7 * cells[:, 1]], axis=1)
    assert interaction(1e3 - 2 * features, named) == pytest.approx(found, rel=1e-9)


def test_a_design_of_deficient_rank_is_fitted():
    """Two blocks that share no value: a constant each is among the effects."""
    cells = np.array([(x, y) for b in (0, 3) for x in range(b, b + 3) for y in range(b, b + 3)])
    shift = np.where(cells[:, :1] < 3, 0.0, 10.0)
    features = random_features(cells)
    expected = by_least_squares(features, cells)
    assert interaction(features, cells) == pytest.approx(expected, rel=1e-9)
    assert interaction(shift * np.ones((1, 2)) + cells, cells) == pytest.approx(0, abs=1e-20)
    diagonal = np.stack([np.arange(12.0)] * 2, axis=1)
    assert np.isnan(interaction(random_features(diagonal), diagonal))


def test_the_probe_is_the_cross_validated_one_of_the_seen_cells():
    cells = np.concatenate([CELLS[RANDOM], random_features(CELLS[RANDOM], 1) > 0], axis=1)
    features = random_features(cells, 60) + 3 * cells[:, :1]
    every = probes.probe(features, cells, np.zeros(len(cells), bool), seed=0)["id_r2"]
    real = (True, True, False)
    found = numbers_of(features, cells, real=real)["probe"]
    assert found == pytest.approx(every[:2].mean(), abs=1e-9)
    assert np.isnan(numbers_of(features, cells, real=(False,) * 3)["probe"])
    noise = numbers_of(random_features(cells, 60), cells, real=real)
    assert noise["probe"] < 0.1


def test_geometry_of_metrics_written_down():
    cells = CELLS[:12]
    lengths = np.random.default_rng(0).uniform(0.5, 2, size=(12, 2))
    cosine = np.linspace(-0.9, 0.9, 12)
    metrics = lengths[:, :, None] * lengths[:, None, :]
    metrics[:, 0, 1] *= cosine
    metrics[:, 1, 0] *= cosine
    logs = np.log10(lengths.prod(axis=1) * np.sqrt(1 - cosine**2))
    true = np.broadcast_to(4 * np.eye(2), (12, 2, 2))
    found = numbers_of(random_features(cells), cells, metrics, true)
    assert found["log10_volume_excess"] == pytest.approx(logs.mean() - np.log10(4), abs=1e-5)
    assert found["orthogonality"] == pytest.approx(np.abs(cosine).mean(), abs=1e-5)
    # of one real factor the volume is a length, and there is no angle
    one = numbers_of(random_features(cells), cells, metrics[:, :1, :1], real=(True, False))
    assert one["log10_volume_mean"] == pytest.approx(np.log10(lengths[:, 0]).mean(), abs=1e-5)
    assert np.isnan([one["orthogonality"], one["log10_volume_excess"]]).all()
    dead = numbers_of(random_features(cells), cells, 0 * metrics)
    assert np.isnan([dead["log10_volume_mean"], dead["log10_volume_spread"]]).all()


def test_constant_features_have_no_numbers():
    constant = np.full((12, 3), 0.1, np.float32)
    jitter = constant + 1e-10 * random_features(CELLS[:12], 3)
    for features in (constant, jitter, np.zeros((12, 3))):
        found = numbers_of(features, CELLS[:12], np.ones((12, 2, 2)))
        assert len(found) == 6 and np.isnan(list(found.values())).all()


def test_chosen_cells_keep_every_value_and_the_rank():
    """Though a value has a single cell, and a single cell links two blocks of values."""
    blocks = [(x, y, z) for b in (0, 6) for x in range(b, b + 6) for y in range(b, b + 6)
              for z in range(3)]  # fmt: skip
    cells = np.array([*blocks, (0, 6, 0), (12, 0, 1)], float)
    design = id_cells._design(cells)
    for seed in range(3):
        chosen = id_cells.choose_cells(cells, 60, seed)
        assert len(chosen) == len(set(chosen.tolist())) == 60
        assert (np.diff(chosen) > 0).all()
        assert {216, 217} <= set(chosen.tolist())
        rank = np.linalg.matrix_rank(design[chosen])
        assert rank == np.linalg.matrix_rank(design) == 13 + 12 + 3 - 2
    assert id_cells.choose_cells(cells).tolist() == list(range(218))
    assert len(id_cells.choose_cells(cells, 26)) == 26


def measured(network, cells, **settings) -> dict:
    found = function.measure_id_cells(network, cells, **settings)
    return {
        layer: {name.removeprefix("id_cells."): value for name, value in numbers.items()}
        for layer, numbers in found.items()
    }


def test_numbers_of_a_function_are_those_of_its_arrays():
    cells = CELLS[DONUT]
    network = lambda point: {"code": jnp.stack([point[0], 3 * point[1]]), "bump": bump(point)}
    found = measured(network, cells, true=bump)
    code = found["code"]
    assert code["log10_volume_mean"] == pytest.approx(np.log10(3), abs=1e-5)
    assert code["log10_volume_spread"] == pytest.approx(0, abs=1e-5)
    assert code["orthogonality"] == pytest.approx(0, abs=1e-6)
    assert code["interaction"] == pytest.approx(0, abs=1e-12)
    assert code["probe"] == pytest.approx(1, abs=1e-5)
    images = np.asarray(jax.jit(jax.vmap(bump))(np.float32(cells))).reshape(len(cells), -1)
    tensors = jax.jit(lambda cells: geometry.metric_tensors(bump, cells))
    metrics = np.asarray(tensors(np.float32(cells)))
    assert found["bump"] == pytest.approx(numbers_of(images, cells, metrics, metrics), abs=1e-4)
    few = measured(bump, cells, most=20)[""]
    chosen = id_cells.choose_cells(cells, 20)
    expected = numbers_of(images[chosen], cells[chosen], metrics[chosen])
    assert few["log10_volume_mean"] == pytest.approx(expected["log10_volume_mean"], abs=1e-4)
    rough = measured(lambda p: jnp.round(p) ** 2, cells, differentiable=False)[""]
    assert np.isnan(rough["orthogonality"]) and np.isfinite(rough["probe"])


def test_tangents_are_those_of_the_real_factors():
    """A label between two numbers: its value picks a gain, and has no derivative."""
    cells = grids.points([np.arange(5.0), np.arange(2.0), np.arange(4.0)])
    gains = jnp.array([1.0, 10.0])

    def network(point):
        gain = gains[point[1].astype(int)]
        return jnp.stack([gain * point[0], gain * point[2], 100 * point[1]])

    found = measured(network, cells, real=(True, False, True))[""]
    assert found["log10_volume_mean"] == pytest.approx(1, abs=1e-5)  # of volumes 1 and 100
    assert found["log10_volume_spread"] == pytest.approx(1, abs=1e-5)
    labels = measured(network, cells, real=(False,) * 3)[""]
    assert np.isnan([labels["log10_volume_mean"], labels["probe"]]).all()
    assert np.isfinite(labels["interaction"])
