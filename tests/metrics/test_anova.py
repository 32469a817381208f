"""Subspaces of main effects: closed forms, and SciPy's principal angles of means in loops."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from compgen_jax import grids
from compgen_jax.metrics import anova, kernels

SIZES = (6, 5, 4)
CELLS = grids.indices(SIZES)


def subspaces(features, sizes=SIZES):
    return anova.subspaces(kernels.gram(features, center=True), sizes)


@pytest.mark.parametrize("degrees", [0, 30, 60, 90])
def test_two_directions_at_an_angle_and_an_interaction_that_counts_for_nothing(degrees):
    cells = grids.indices((6, 5))
    x, y = (cells - cells.mean(axis=0)).T
    angle = np.deg2rad(degrees)
    along_y = np.array([np.cos(angle), np.sin(angle), 0])
    features = np.outer(x, [1, 0, 0]) + np.outer(y, along_y) + np.outer(x * y, [5, 3, 4]) + 7
    cosine = np.cos(angle)
    numbers = subspaces(features, (6, 5))
    expected = {"rank": 1, "largest_cosine": cosine, "mean_squared_cosine": cosine**2}
    assert numbers == pytest.approx(expected, abs=1e-7)


def test_angles_of_three_noisy_factors_against_scipy(rng):
    features = np.eye(6)[CELLS[:, 0]] @ rng.normal(size=(6, 12)) + 0.1 * rng.normal(size=(120, 12))
    for column, size in ((1, 5), (2, 4)):
        features += np.eye(size)[CELLS[:, column]] @ rng.normal(size=(size, 12))
    bases = []
    for column, size in enumerate(SIZES):
        means = [features[CELLS[:, column] == value].mean(axis=0) for value in range(size)]
        _, singular, axes = np.linalg.svd(np.array(means) - features.mean(axis=0))
        shares = np.cumsum(singular**2) / np.sum(singular**2)
        bases.append(axes[: np.argmax(shares >= 0.95) + 1].T)
    cosines = [np.cos(subspace_angles(*pair)) for pair in combinations(bases, 2)]
    ranks = [basis.shape[1] for basis in bases]
    assert 1 < np.mean(ranks) < 5
    expected = {
        "rank": np.mean(ranks),
        "largest_cosine": max(map(np.max, cosines)),
        "mean_squared_cosine": np.mean([np.mean(of_pair**2) for of_pair in cosines]),
    }
    numbers = subspaces(features)
    assert numbers == pytest.approx(expected, rel=1e-6)
    turned = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    assert subspaces(3 * features @ turned + 7) == pytest.approx(numbers, rel=1e-6)


def test_factors_without_main_effects_have_no_subspace():
    x, y, z = (CELLS - CELLS.mean(axis=0)).T
    assert np.isnan(list(subspaces(np.stack([x * y, x], axis=1)).values())).all()
    known = subspaces(np.stack([x * y * z, x, z], axis=1))
    assert known == pytest.approx(
        {"rank": 1, "largest_cosine": 0, "mean_squared_cosine": 0}, abs=1e-9
    )
