"""What a seed was shown, and the interpolator that knows it."""

import shutil

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.runs import directory, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from compgen_jax.tasks import baselines, sampling
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump, StripesConfig
from compgen_jax.tasks.modules import Modules
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.tasks.task import Example, Factor, over_cells
from compgen_jax.training import loop


def config_of(task, batch_size=16):
    return Config(task=task, training=TrainingConfig(batch_size=batch_size, seeds=(0, 3)))


def test_stripes_are_no_complete_points():
    alone = Bump(grid=8, stripes=StripesConfig(copies=1), support=SupportConfig(samples=0))
    predictions, truths, scores = results.interpolations(config_of(alone), alone.make(), (0, 3))
    assert predictions.shape == truths.shape == (2, 64, 8, 8) and not predictions.any()
    np.testing.assert_allclose(scores["mse"], scores["blank_mse"])
    assert not scores["rendered"].any()


def waves(next_batch=None):
    """A task whose input is a pytree; points between the cells are shown, in a stream or a table of
    which the first three count."""
    factors = Factor("a", np.arange(3.0)), Factor("b", np.arange(4.0))
    held_out = lambda points: (points[..., 0] > 1.5) & (points[..., 1] > 2.5)
    example = lambda key, point: Example(
        {"a": point[0], "b": jnp.stack([point[1], 1.0])[None]}, jnp.sin(point[0]) + point
    )
    if next_batch is not None:
        return over_cells(factors, held_out, example, next_batch=next_batch, examples=0)
    table = sampling.Table(jnp.array([[0.5, 1], [1, 2], [1, 0.5], [7, 7]]), jnp.int32(3))
    return over_cells(factors, held_out, example, dataset=lambda key: table, examples=3)


def code_and_truth(points):
    points = np.asarray(points, np.float64)
    code = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    return code, np.sin(points[:, :1]) + points


def test_a_table_shows_the_points_that_count():
    predictions, truths, _ = results.interpolations(config_of(Bump(grid=8)), waves(), (0,))
    cells, expected = code_and_truth(tasks.points(waves()))
    np.testing.assert_allclose(truths[0], expected, atol=1e-6)
    shown = code_and_truth([[0.5, 1], [1, 2], [1, 0.5]])
    np.testing.assert_allclose(predictions[0], baselines.interpolate(*shown, cells), atol=1e-5)


def test_a_stream_shows_the_points_that_it_draws_first(monkeypatch):
    monkeypatch.setattr(results, "DRAWN", 6)

    def next_batch(key, step, dataset, batch_size):
        points = jnp.stack([0.25 * step + jnp.arange(batch_size), jnp.ones(batch_size)], axis=1)
        return points, jnp.arange(batch_size) < 3  # the fourth does not count

    task = waves(next_batch)
    predictions, _, _ = results.interpolations(config_of(Bump(grid=8), batch_size=4), task, (0,))
    cells, _ = code_and_truth(tasks.points(task))
    shown = code_and_truth([[0, 1], [1, 1], [2, 1], [0.25, 1], [1.25, 1]])
    np.testing.assert_allclose(predictions[0], baselines.interpolate(*shown, cells), atol=1e-5)


def test_a_task_whose_inputs_are_drawn_has_no_interpolator():
    config = config_of(Modules(modules=3, most=2, inputs=2, hidden=2, outputs=2, tests=4))
    run = Run(config, config.task.make(), (0, 3))
    with pytest.raises(RunError, match="its task has no interpolator"):
        _ = run.interpolator


def test_a_run_was_shown_the_cells_of_its_complete_points():
    """Stripes show none; each seed drew its own; a late network has its seed's."""
    support = SupportConfig(region="corner", low=5, sampling="without_replacement", samples=6)
    settings = Bump(grid=8, support=support, stripes=StripesConfig(copies=1))
    config = Config(task=settings, training=TrainingConfig(steps=1, seeds=(0, 1)))
    task = settings.make()
    run = Run(config, task, (0, 1))
    assert run.shown.shape == (2, 64) and (run.shown[0] != run.shown[1]).any()
    at_steps = Run(config, task, (0, 1), steps=(3, 6, 9), end=run)
    np.testing.assert_array_equal(at_steps.shown, run.shown[:, None])
    for seed in (0, 1):
        points = np.asarray(loop.dataset_of(task, jax.random.key(seed)).points)
        expected = np.zeros(64, bool)
        for x, y in points[~np.isnan(points).any(axis=1)].astype(int):
            expected[8 * y + x] = True
        np.testing.assert_array_equal(run.shown[seed], expected)


@pytest.mark.parametrize(
    ("name", "of_run"),
    [("late", lambda run: run.late.cells), ("interpolator", lambda run: run.interpolator)],
)
def test_kept_scores_are_those_that_are_made_anew(tiny_run, tmp_path, name, of_run, monkeypatch):
    """Where they are gone, damaged or of other cells."""
    workdir = tmp_path / "run"
    shutil.copytree(tiny_run[0], workdir)
    kept, path = of_run(Run.load(workdir)), workdir / f"{name}.npz"
    shape = kept.scores["mse"].shape
    assert directory.kept_scores(workdir, name, shape)
    with monkeypatch.context() as patch:
        patch.setattr(directory, "SCORES_VERSION", 0)
        assert directory.kept_scores(workdir, name, shape) is None
    for damaged in (None, path.read_bytes()[:-9], "other cells"):
        path.unlink(missing_ok=True)
        if damaged == "other cells":
            other = {score: values[..., :-1] for score, values in kept.scores.items()}
            directory.keep_scores(workdir, name, other)
        elif damaged:
            path.write_bytes(damaged)
        anew = of_run(Run.load(workdir))
        chex.assert_trees_all_close(anew.scores, kept.scores, rtol=1e-5)
    np.testing.assert_allclose(kept.predictions, anew.predictions, atol=1e-5)
