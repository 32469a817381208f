import jax
import numpy as np
import pytest

from compgen_jax.metrics import evaluation

N = 6


def test_region_means_are_means_over_their_points(rng):
    scores = {"mse": rng.normal(size=7).astype(np.float32), "hit": rng.random(7) < 0.5}
    masks = {"id": rng.random(7) < 0.5, "ood": np.ones(7, bool), "real": np.zeros(7, bool)}
    means = evaluation.region_means(scores, masks)
    expected = {f"{r}.{name}": np.mean(values[mask]) if mask.any() else np.nan
                for name, values in scores.items() for r, mask in masks.items()}  # fmt: skip
    assert jax.device_get(means) == pytest.approx(expected, rel=1e-5, nan_ok=True)


def test_scores_over_chosen_cells_and_by_distance_against_loops(rng):
    predictions, truths = rng.normal(size=(2, 36, N, N)), rng.random((36, N, N))
    hits, cells, held_out = rng.random((2, 36)) < 0.5, rng.random(36) < 0.3, np.arange(36) < 20
    distance = held_out * rng.integers(1, 3, 36)
    squared = np.square(predictions - truths[None])
    results = evaluation.CellResults(
        seeds=(0, 1), predict=predictions, truths=truths, factors=None, held_out=held_out,
        distance=distance, sizes=(N, N), scores={"mse": squared.mean(axis=(2, 3)), "hit": hits},
    )  # fmt: skip
    assert results.grid == N and results.amplitude == truths.max()
    levels, profile = evaluation.profile_by_distance(hits, results)
    assert levels.tolist() == [1, 2]
    for seed in range(2):
        mean = hits[seed, cells].mean()
        assert evaluation.mean_score(results, "hit", cells)[seed] == pytest.approx(mean)
        relative = squared[seed, cells].sum() / (truths[cells] ** 2).sum()
        assert evaluation.relative_error(results, cells)[seed] == pytest.approx(relative)
        assert profile[seed].tolist() == [hits[seed, distance == d].mean() for d in levels]
