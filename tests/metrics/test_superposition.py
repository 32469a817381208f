import numpy as np
import pytest

from compgen_jax.metrics import superposition


def test_matching_sums_of_three_factors(rng):
    seen, points = rng.integers(0, 3, (40, 3)), np.array([[0, 1, 2], [2, 2, 0]])
    outputs = rng.normal(size=(40, 5))
    found = superposition.matching_sums(outputs, seen, points)
    for q, point in enumerate(points):
        for factor in range(3):
            matching = outputs[seen[:, factor] == point[factor]]
            np.testing.assert_allclose(found[q, factor], matching.sum(axis=0))


def test_r2_against_lstsq_and_parallel_parts(rng):
    parts, outputs = rng.normal(size=(4, 2, 40)), rng.normal(size=(4, 40)) + 1
    parts[2, 1], outputs[3] = 2 * parts[2, 0], 0
    r2 = superposition.superposition_r2(outputs, parts)
    for q in range(3):
        solved, *_ = np.linalg.lstsq(parts[q].T, outputs[q])
        residual = outputs[q] - parts[q].T @ solved
        assert r2[q] == pytest.approx(1 - residual @ residual / (outputs[q] @ outputs[q]))
    assert np.isnan(r2[3])  # of a blank


def test_scores_are_means_over_the_hole_and_over_its_inner_half(rng):
    points = np.array([(a, b) for b in range(4) for a in range(4)], float)
    outputs, parts = rng.normal(size=(16, 9)), rng.normal(size=(16, 2, 9))
    distance = np.array([1, 1, 1, 1, 1, 2, 2, 1.5, 1, 2, 2, 1, 1, 1, 1, 4])
    found = superposition.scores(outputs, parts, points, distance)
    r2, inner = superposition.superposition_r2(outputs, parts), [5, 6, 9, 10, 15]
    assert found["r2"] == pytest.approx(r2.mean())
    assert found["inner_r2"] == pytest.approx(r2[inner].mean())
    others = superposition.other_coordinates(points, superposition.SHUFFLES)
    assert (points[others] != points[None]).all() and len(np.unique(others)) == 16
    assert superposition.other_coordinates([[1, 1], [1, 2]], repeats=1) is None
    shuffled = np.stack([superposition.superposition_r2(outputs, parts[each]) for each in others])
    assert found["inner_shuffled_r2"] == pytest.approx(shuffled[:, inner].mean())
    assert np.isnan(list(superposition.scores(outputs, None, points, distance).values())).all()
