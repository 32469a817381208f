import functools

import jax
import numpy as np
import pytest

from compgen_jax import grids
from compgen_jax.metrics import evaluation
from compgen_jax.tasks import bump
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, ImageConfig
from compgen_jax.tasks.supports import SupportConfig

N = 12
TASK = Bump(grid=N, support=SupportConfig(region="donut", low=4, high=7)).make()
CELLS = tasks.cells(TASK.factors)
HELD_OUT = np.asarray(TASK.held_out(CELLS))


@functools.cache
def drawing(**kwargs):
    return jax.jit(lambda x, y: bump.bump(x, y, N, ImageConfig(**kwargs)))


def draw(x, y, **kwargs):
    return np.asarray(drawing(**kwargs)(float(x), float(y)))


def cell_results(signals_by_seed):
    """CellResults of given signals (T, B, N, N) on the task above, scored by loops."""
    signals = np.asarray(signals_by_seed)
    targets = np.stack([draw(*cell) for cell in CELLS])
    places = signals.reshape(len(signals), len(CELLS), -1).argmax(axis=2)
    found = np.stack(np.divmod(places, N)[::-1], axis=2)  # x, y
    distance = np.abs(found - CELLS[None]).max(axis=2)
    return evaluation.CellResults(
        seeds=tuple(range(len(signals))),
        predict=lambda: signals,
        truths=targets,
        factors=CELLS,
        held_out=HELD_OUT,
        distance=grids.distance_to_seen(HELD_OUT, (N, N)),
        sizes=(N, N),
        scores={
            "mse": np.square(signals - targets[None]).mean(axis=(2, 3)),
            "exact_accuracy": (distance == 0).astype(np.float32),
            "position_accuracy": (distance <= 1).astype(np.float32),
        },
    )


def test_region_means_are_means_over_their_points():
    rng = np.random.default_rng(0)
    scores = {"mse": rng.normal(size=7).astype(np.float32), "hit": rng.random(7) < 0.5}
    masks = {"id": rng.random(7) < 0.5, "ood": np.ones(7, bool), "real": np.zeros(7, bool)}
    found = evaluation.region_means(scores, masks)
    assert set(found) == {f"{r}.{s}" for r in masks for s in scores}
    for name, values in scores.items():
        for region in ("id", "ood"):
            expected = np.mean([float(v) for v, m in zip(values, masks[region], strict=True) if m])
            assert float(found[f"{region}.{name}"]) == pytest.approx(expected, rel=1e-5)
        assert np.isnan(found[f"real.{name}"])  # it has no point


def test_scores_and_relative_error_over_chosen_cells():
    """Right at every cell but two: one off by a pixel, one blank."""
    drawn = np.stack([draw(x, y) for x, y in CELLS])
    near, lost = 5 * N + 5, 3 * N + 3
    drawn[near], drawn[lost] = draw(6, 5), 0
    results = cell_results([drawn])
    cells = np.isin(np.arange(N * N), [near, lost, 0, 7])
    assert evaluation.mean_score(results, "exact_accuracy", cells) == [0.5]
    assert evaluation.mean_score(results, "position_accuracy", cells) == [0.75]
    wanted = [np.square(draw(*CELLS[k])).sum() for k in (near, lost, 0, 7)]
    wrong = np.square(draw(6, 5) - draw(5, 5)).sum() + wanted[1]
    np.testing.assert_allclose(
        evaluation.relative_error(results, cells), [wrong / sum(wanted)], rtol=1e-5
    )
    assert results.grid == N and results.amplitude == 1


def test_maps_over_seeds():
    targets = np.stack([draw(*cell) for cell in CELLS])
    results = cell_results([targets, np.zeros_like(targets)])
    errors = evaluation.errors(results)
    assert errors.shape == (2, N * N) and not errors[0].any() and errors[1].all()
    hits = results.scores["exact_accuracy"]
    levels, means = evaluation.profile_by_distance(hits, results)
    assert levels.tolist() == [1, 2] and means.tolist() == [[1, 1], [0, 0]]


def test_sizes_are_those_of_the_nearest_true_image_at_the_place_that_is_drawn():
    grid, sigmas = 9, (0.6, 1.0, 1.5, 2.2)

    def image(x, y, sigma):
        rows, columns = np.mgrid[:grid, :grid]
        return np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2))

    true = np.array([image(x, y, s) for s in sigmas for y in range(grid) for x in range(grid)])
    own = np.arange(len(true)) // grid**2
    np.testing.assert_array_equal(evaluation.drawn_size(true[None], true), own[None])
    drawn = np.array(
        [[image(2, 7, 1.45), 0.9 * image(6, 1, 0.65)], [image(0, 0, 2), image(4, 4, 1.1)]]
    )
    np.testing.assert_array_equal(evaluation.drawn_size(drawn, true), [[2, 0], [3, 1]])
