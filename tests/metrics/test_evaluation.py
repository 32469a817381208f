import jax
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import evaluation
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.supports import SupportConfig

N = 12
TASK = Bump(grid=N, support=SupportConfig(region="donut", low=4, high=7)).make()
CELLS = tasks.cells(TASK.factors)


def test_region_means_are_means_over_their_points(rng):
    scores = {"mse": rng.normal(size=7).astype(np.float32), "hit": rng.random(7) < 0.5}
    masks = {"id": rng.random(7) < 0.5, "ood": np.ones(7, bool), "real": np.zeros(7, bool)}
    means = evaluation.region_means(scores, masks)
    expected = {f"{r}.{name}": np.mean(values[mask]) if mask.any() else np.nan
                for name, values in scores.items() for r, mask in masks.items()}  # fmt: skip
    assert jax.device_get(means) == pytest.approx(expected, rel=1e-5, nan_ok=True)


def test_scores_over_chosen_cells_and_by_distance_against_loops():
    rng, held_out = np.random.default_rng(0), np.asarray(TASK.held_out(CELLS))
    predictions, truths = rng.normal(size=(2, 144, N, N)), rng.random((144, N, N))
    hits, cells = rng.random((2, 144)) < 0.5, rng.random(144) < 0.3
    distance = grids.distance_to_seen(held_out, (N, N))
    mse = np.square(predictions - truths[None]).mean(axis=(2, 3))
    results = evaluation.CellResults(
        seeds=(0, 1), predict=lambda: predictions, truths=truths, factors=CELLS,
        held_out=held_out, distance=distance, sizes=(N, N), scores={"mse": mse, "hit": hits},
    )  # fmt: skip
    assert results.grid == N and results.amplitude == truths.max()
    levels, profile = evaluation.profile_by_distance(hits, results)
    assert levels.tolist() == [1, 2]
    for seed in range(2):
        mean = hits[seed, cells].mean()
        assert evaluation.mean_score(results, "hit", cells)[seed] == pytest.approx(mean)
        wrong = ((predictions[seed, cells] - truths[cells]) ** 2).sum()
        relative = wrong / (truths[cells] ** 2).sum()
        assert evaluation.relative_error(results, cells)[seed] == pytest.approx(relative)
        at = [hits[seed, held_out & (distance == level)].mean() for level in (1, 2)]
        assert profile[seed].tolist() == at
