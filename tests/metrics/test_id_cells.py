"""Numbers of ID cells: closed forms, and the whole-grid metrics where all cells are ID."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import function, geometry, id_cells, probes
from compgen_jax.metrics.id_cells import IdLayer
from compgen_jax.metrics.registry import layer_numbers

CELLS = grids.points([np.arange(7.0), np.arange(6.0)])
DONUT = ~((CELLS >= 2) & (CELLS <= 4)).all(axis=1)
RANDOM = np.random.default_rng(3).random(len(CELLS)) < 0.6
# two blocks that share no value: the design's rank is deficient
BLOCKS = np.array([(x, y) for b in (0, 3) for x in range(b, b + 3) for y in range(b, b + 3)])
CUBE = grids.points([np.arange(5.0), np.arange(4.0), np.arange(3.0)])


def random_features(cells, units=9, seed=0):
    return np.random.default_rng(seed).normal(size=(len(cells), units))


def numbers_of(features, cells, *arrays, **named) -> dict:
    return layer_numbers(IdLayer(features, cells, *arrays, **named), "id_cells")


def interaction(features, cells) -> float:
    return numbers_of(features, cells)["id_cells.interaction"]


def bump(point):
    x, y = jnp.exp(-((jnp.arange(7.0)[None] - point[:, None]) ** 2) / 2)
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
@pytest.mark.parametrize("cells", [CELLS[DONUT], CELLS[RANDOM], CUBE, BLOCKS])
def test_the_interaction_is_the_residual_of_least_squares(cells, units):
    features = random_features(cells, units) + 3 * cells[:, :1]
    found = interaction(features, cells)
    assert found == pytest.approx(by_least_squares(features, cells), rel=1e-9)
    # labels are as good as numbers, and the order and units and their offsets do not count
    order = np.random.default_rng(0).permutation(len(cells))
    named = np.stack([np.exp(cells[:, 0]), *-7 * cells.T[1:]], axis=1)
    again = interaction((1e3 - 2 * features)[order], named[order])
    assert again == pytest.approx(found, rel=1e-9)
    diagonal = np.stack([np.arange(12.0)] * 2, axis=1)
    assert np.isnan(interaction(random_features(diagonal), diagonal))  # effects fit anything


def test_the_probe_is_the_cross_validated_one_of_the_seen_cells():
    cells = np.concatenate([CELLS[RANDOM], random_features(CELLS[RANDOM], 1) > 0], axis=1)
    features = random_features(cells, 60) + 3 * cells[:, :1]
    every = probes.probe(features, cells, np.zeros(len(cells), bool), seed=0)["id_r2"]
    real = (True, True, False)
    found = numbers_of(features, cells, real=real)["id_cells.probe"]
    assert found == pytest.approx(every[:2].mean(), abs=1e-9)
    assert np.isnan(numbers_of(features, cells, real=(False,) * 3)["id_cells.probe"])


def test_of_one_real_factor_the_volume_is_a_length_and_there_is_no_angle():
    cells, metrics = CELLS[:12], np.random.default_rng(0).uniform(0.5, 2, size=(12, 1, 1))
    one = numbers_of(random_features(cells), cells, metrics, real=(True, False))
    mean = np.log10(metrics).mean() / 2
    assert one["id_cells.log10_volume_mean"] == pytest.approx(mean, abs=1e-5)
    assert np.isnan([one["id_cells.orthogonality"], one["id_cells.log10_volume_excess"]]).all()
    dead = numbers_of(random_features(cells), cells, np.zeros((12, 2, 2)))
    assert np.isnan(dead["id_cells.log10_volume_mean"])


def test_constant_features_have_no_numbers():
    jitter = 0.1 + 1e-10 * random_features(CELLS[:12], 3)
    for features in (jitter, np.zeros((12, 3))):
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
        assert len(chosen) == 60 and (np.diff(chosen) > 0).all()
        assert {216, 217} <= set(chosen.tolist())
        rank = np.linalg.matrix_rank(design[chosen])
        assert rank == np.linalg.matrix_rank(design) == 13 + 12 + 3 - 2
    assert id_cells.choose_cells(cells).tolist() == list(range(218))


def test_numbers_of_a_function_are_those_of_its_arrays():
    cells = CELLS[DONUT]
    cells = cells[id_cells.choose_cells(cells, 20)]
    found = function.measure_id_cells(bump, CELLS[DONUT], true=bump, most=20)[""]
    images = np.asarray(jax.jit(jax.vmap(bump))(np.float32(cells))).reshape(len(cells), -1)
    tensors = jax.jit(lambda cells: geometry.metric_tensors(bump, cells))
    metrics = np.asarray(tensors(np.float32(cells)))
    assert found == pytest.approx(numbers_of(images, cells, metrics, metrics), abs=1e-4)


def test_tangents_are_those_of_the_real_factors():
    """A label between two numbers: its value picks a gain, and has no derivative."""
    cells = grids.points([np.arange(5.0), np.arange(2.0), np.arange(4.0)])
    gains = jnp.array([1.0, 10.0])

    def network(point):
        gain = gains[point[1].astype(int)]
        return jnp.stack([gain * point[0], gain * point[2], 100 * point[1]])

    found = function.measure_id_cells(network, cells, real=(True, False, True))[""]
    assert found["id_cells.log10_volume_mean"] == pytest.approx(1, abs=1e-5)  # of volumes 1 and 100
    assert found["id_cells.log10_volume_spread"] == pytest.approx(1, abs=1e-5)
