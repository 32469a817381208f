"""What a seed was shown, and predictors from codes that know it."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.runs import directory, results
from compgen_jax.runs.run import Run
from compgen_jax.tasks import baselines, sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, StripesConfig
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.tasks.task import Example, Factor, over_cells
from compgen_jax.training import loop


def config_of(task, batch_size=16):
    return Config(task=task, training=TrainingConfig(batch_size=batch_size, seeds=(0, 3)))


def waves(next_batch=None):
    """A task whose input is a pytree; points between the cells are shown, in a stream or a table of
    which the first four count, one without a factor."""
    factors = Factor("a", np.arange(3.0)), Factor("b", np.arange(4.0))
    held_out = lambda points: (points[..., 0] > 1.5) & (points[..., 1] > 2.5)
    example = lambda key, point: Example(
        {"a": point[0], "b": jnp.stack([point[1], 1.0])[None]}, jnp.sin(point[0]) + point
    )
    if next_batch is not None:
        return over_cells(factors, held_out, example, next_batch=next_batch, examples=0)
    table = sampling.Table(
        jnp.array([[0.5, 1], [1, 2], [jnp.nan, 1], [1, 0.5], [7, 7]]), jnp.int32(4)
    )
    return over_cells(factors, held_out, example, dataset=lambda key: table, examples=4)


def code_and_truth(points):
    points = np.asarray(points, np.float64)
    code = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    return code, np.sin(points[:, :1]) + points


def test_a_table_shows_the_complete_points_that_count():
    found = results.interpolations(config_of(Bump(grid=8)), waves(), (0,))
    cells, _ = code_and_truth(tasks.points(waves()))
    shown = code_and_truth([[0.5, 1], [1, 2], [1, 0.5]])
    for name, predict in baselines.FROM_CODES.items():
        assert_allclose(found[name][0][0], predict(*shown, cells), atol=1e-5)


def test_a_stream_shows_the_points_that_it_draws_first(monkeypatch):
    monkeypatch.setattr(results, "DRAWN", 6)

    def next_batch(key, step, dataset, batch_size):
        points = jnp.stack([0.25 * step + jnp.arange(batch_size), jnp.ones(batch_size)], axis=1)
        return points, jnp.arange(batch_size) < 3  # the fourth does not count

    task = waves(next_batch)
    found = results.interpolations(config_of(Bump(grid=8), batch_size=4), task, (0,))
    cells, _ = code_and_truth(tasks.points(task))
    shown = code_and_truth([[0, 1], [1, 1], [2, 1], [0.25, 1], [1.25, 1]])
    drawn = found["interpolator"][0][0]
    assert_allclose(drawn, baselines.interpolate(*shown, cells), atol=1e-5)


def test_of_examples_that_the_key_draws_all_are_known():
    """Two points, each shown four times with other targets."""
    points = jnp.tile(jnp.array([[0.0, 1], [2, 3]]), (4, 1))
    noisy = lambda key, point: Example(point, jax.random.normal(key))
    task = waves()._replace(example=noisy, dataset=lambda key: sampling.table(points))
    found = results.interpolations(config_of(Bump(grid=8)), task, (0,))["interpolator"][0][0]
    drawn = tasks.examples_at(task, loop.stream(jax.random.key(0), "example"), points).target
    shown = points[:2], drawn.reshape(4, 2).mean(axis=0), tasks.points(task)
    assert_allclose(found, baselines.interpolate(*shown), atol=1e-5)


def test_of_many_points_a_sample_of_each_region_is_scored(monkeypatch):
    run, held_out = Run(config_of(Bump(grid=8)), waves(), (0,)), tasks.regions(waves())["ood"]
    whole = results.interpolations(run.config, run.task, (0,))
    monkeypatch.setattr(results, "MOST_POINTS", 11)
    monkeypatch.setattr(results, "OF_EACH_REGION", 3)
    known, means = results.predicted(run.task), run.trivial
    assert known.sum() == 4 and known[held_out].sum() == 1
    for name, (predictions, scores) in whole.items():
        expected = np.where(known[:, None], predictions, np.nan)
        assert_allclose(getattr(run, name).predictions, expected, rtol=1e-6)
        mean = scores["mse"][:, known & ~held_out].mean(axis=1)
        assert means[name]["id", "mse"] == pytest.approx(mean.mean(), rel=1e-5)


def test_a_run_was_shown_the_cells_of_its_complete_points():
    """Stripes show none; each seed drew its own; a late network has its seed's."""
    support = SupportConfig(region="corner", low=5, sampling="without_replacement", samples=6)
    settings = Bump(grid=8, support=support, stripes=StripesConfig(copies=1))
    config = Config(task=settings, training=TrainingConfig(steps=1, seeds=(0, 1)))
    run = Run(config, settings.make(), (0, 1))
    assert run.shown.shape == (2, 64) and (run.shown[0] != run.shown[1]).any()
    at_steps = Run(config, run.task, (0, 1), steps=(3, 6, 9), end=run)
    assert_array_equal(at_steps.shown, run.shown[:, None])
    for seed in (0, 1):
        points = np.asarray(loop.dataset_of(run.task, jax.random.key(seed)).points)
        x, y = points[~np.isnan(points).any(axis=1)].T
        assert set(np.flatnonzero(run.shown[seed])) == set(8 * y + x)


def test_kept_scores_are_those_that_are_made_anew(copy):
    """Where they are damaged, or were not kept at all."""
    kept, path = Run.load(copy).late.cells.scores, copy / "late.npz"
    assert directory.kept_scores(copy, "late")
    path.write_bytes(path.read_bytes()[:-9])
    assert directory.kept_scores(copy, "late") is None
    chex.assert_trees_all_close(Run.load(copy).late.cells.scores, kept, rtol=1e-5)
    for name in baselines.FROM_CODES:
        kept = getattr(Run.load(copy), name).scores
        (copy / f"{name}.npz").unlink()
        anew = getattr(Run.load(copy), name)
        chex.assert_trees_all_close(anew.scores, kept, rtol=1e-5)
        assert anew.predictions.shape[:2] == anew.scores["mse"].shape
