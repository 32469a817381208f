"""Layers of a finished run on what it was shown: against the functions of analysis, cached."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, TrainingConfig, changed
from compgen_jax.metrics import geometry
from compgen_jax.metrics import seen as analysis
from compgen_jax.models.mlp import MLP
from compgen_jax.runs import experiment, results, seen
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.bump import Bump
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.tasks.supports import SupportConfig
from compgen_jax.training import family

TRAINING = TrainingConfig(steps=20, evaluate_every=10, seeds=(0, 1))
CONFIGS = {
    "bumps": Config(
        task=Bump(grid=8, support=SupportConfig(low=3, high=4, sampling="every_cell")),
        # of fewer units so few are active at some cells that the metric is singular, to rounding
        model=MLP(depth=1, width=16), training=TRAINING,
    ),
    "digits": Config(
        task=Rotation(side=8, objects=(4, 7), angles=24, samples=24, gap=GapConfig(of=(4,))),
        model=MLP(depth=1, width=6), training=TRAINING,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=CONFIGS)
def run(request, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("seen") / request.param
    experiment.train(CONFIGS[request.param], workdir, progress=False)
    return workdir


def test_numbers_are_those_of_the_layers_on_seen_cells(run):
    found, loaded = seen.measure_directory(run), results.load(run)
    task = loaded.task
    assert found.layers == ("layer_00", "layer_01", "output") and found.seeds == (0, 1)
    points = tasks.points(task)
    points = points[~np.asarray(task.held_out(points))]
    module = loaded.config.model.make(family.shapes_of(task))
    params = jax.tree.map(lambda leaf: leaf[1], loaded.params)

    def hidden(angle_or_xy, point):
        real = np.flatnonzero([factor.real for factor in task.factors])
        moved = point.at[real].set(angle_or_xy)
        _, layers = module.apply(params, task.example(jax.random.key(0), moved).input)
        return layers["layer_01"]

    real = np.array([factor.real for factor in task.factors])
    features = np.stack([hidden(point[real], jnp.asarray(point)) for point in points])
    metrics = np.stack(
        [
            geometry.metric_tensor(
                lambda value, point=point: hidden(value, jnp.asarray(point)),
                jnp.asarray(point[real]),
            )
            for point in points
        ]
    )
    true = np.stack(
        [
            geometry.metric_tensor(
                lambda value, point=point: tasks.truth(
                    task,
                    task.example(
                        jax.random.key(0), jnp.asarray(point).at[np.flatnonzero(real)].set(value)
                    ).target,
                ),
                jnp.asarray(point[real]),
            )
            for point in points
        ]
    )
    periods = [factor.period for factor in task.factors]
    expected = analysis.seen_numbers(features, points, metrics, true, real, periods)
    for name in (
        "interaction", "probe", "log10_volume_mean", "log10_volume_spread", "log10_volume_excess",
    ):  # fmt: skip
        np.testing.assert_allclose(found.numbers[name][1, 1], expected[name], rtol=1e-3)
    if real.all():
        np.testing.assert_allclose(
            found.numbers["orthogonality"][1, 1], expected["orthogonality"], rtol=1e-3
        )


def test_it_is_measured_once_and_a_damaged_file_is_named(run):
    first, path = seen.measure_directory(run), run / "seen.json"
    written = path.read_text()
    again = seen.measure_directory(run)
    np.testing.assert_array_equal(first.numbers["probe"], again.numbers["probe"])
    path.write_text(json.dumps({"version": seen.VERSION, "layers": []}))
    with pytest.raises(RunError, match="its analysis is damaged .* remove .*seen.json"):
        seen.measure_directory(run)
    path.write_text(json.dumps({"version": 0}))
    seen.measure_directory(run)
    assert json.loads(path.read_text()) == json.loads(written)


def test_a_code_without_a_derivative_has_no_volume(tmp_path):
    config = CONFIGS["bumps"]
    onehot = {"task.code.name": "onehot"}
    experiment.train(changed(config, onehot), tmp_path / "run", progress=False)
    found = seen.measure_directory(tmp_path / "run").numbers
    assert np.isnan(found["log10_volume_mean"]).all()
    assert np.isfinite(found["interaction"]).all() and np.isfinite(found["probe"]).all()
