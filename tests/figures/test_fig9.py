"""Figure 9, for networks whose answer is known: one cross-fades the gap's edges, one is right."""

import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from compgen_jax.config import Config
from compgen_jax.metrics import circle
from compgen_jax.models.mlp import MLP
from compgen_jax.runs import results
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.training import task_group
from figures.forced_rendering import fig9


def run_of(objects, of, mixes: bool):
    """A gap of 8 of 72 angles; 1.02 and 0.98 times what it draws, as two seeds."""
    model = MLP(depth=3, width=8)
    config = Config(task=Rotation(side=16, angles=72, objects=objects, gap=GapConfig(of=of)),
                    model=model)  # fmt: skip
    task = config.task.make()
    points = tasks.points(task)
    truths = results.truths_at(task, points)
    images = truths.copy()
    if mixes:
        (gap,) = circle.gaps(points, np.asarray(task.held_out(points)))
        images[gap.cells] = circle.cross_fade(*truths[list(gap.edges)], gap.place)
    with jax.numpy_rank_promotion("allow"):
        cells = results.scorer(task)(np.stack([1.02 * images, 0.98 * images]))
    module = model.make(task_group.shapes_of(task))
    inputs = tasks.examples_at(task, jax.random.key(0), points[:1]).input
    params = jax.vmap(lambda key: module.init(key, inputs[0]))(
        jax.random.split(jax.random.key(0), 2)
    )
    return Run.known((0, 1), cells, config=config, task=task, params=params)


@pytest.fixture(scope="module")
def both():
    """In an order that is not the figure's."""
    return {
        "rotation_objects": run_of((3, 4, 7), (3,), mixes=False),
        "rotation": run_of((3,), (), mixes=True),
    }


def test_the_figure_draws_both_networks(drawn, both):
    figure = drawn(fig9.draw, both)
    labels = {axis.get_ylabel(): axis for axis in figure.axes}
    assert {"one object,\nseed 0", "several objects,\nseed 0", "asked"} <= set(labels)
    curves = {line.get_label(): line for line in labels["MSE / blank image's"].lines}
    assert {"one object", "several objects", "edges' cross-fade", "nearer edge"} <= set(curves)
    angles, error = curves["one object"].get_data()
    inside = (angles >= 160) & (angles < 200)
    assert error[inside].min() > 5 * error[(angles >= 0) & ~inside & (angles < 360)].max()
    # what draws the cross-fade errs as it, but for its gain
    ideal = curves["edges' cross-fade"].get_ydata()
    np.testing.assert_allclose(error[inside], ideal, rtol=0.2, atol=0.01)
    assert curves["several objects"].get_ydata().max() < 0.02
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert [title.partition("\n")[0] for title in titles if "PCA" in title] == [
        "code", "layer 1", "layer 2", "layer 3",
    ]  # fmt: skip
    residuals = [axis.get_xlabel() for axis in figure.axes if axis.get_xlabel()[:2] == "0."]
    assert len(residuals) == 3 * 10  # 8 cells and both edges, of three rows


def test_the_figure_draws_one_network_alone(drawn, both):
    figure = drawn(fig9.draw, {"rotation": both["rotation"]})
    assert "several objects,\nseed 0" not in {axis.get_ylabel() for axis in figure.axes}


def test_layers_are_laid_out_by_their_principal_components(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)  # as if it were not there
    layer = np.random.default_rng(0).normal(size=(30, 5)) * [3, 2, 1, 1, 1]
    plane, method = fig9.flattened(layer)
    values, vectors = np.linalg.eigh(np.cov(layer.T))
    expected = (layer - layer.mean(axis=0)) @ vectors[:, :-3:-1]
    signs = np.sign((plane * expected).sum(axis=0))
    np.testing.assert_allclose(plane, expected * signs, atol=1e-9)
    assert method == f"PCA, {values[-2:].sum() / values.sum():.0%} of variance"
    plane, method = fig9.flattened(np.ones((30, 1)))
    assert not plane.any() and method == "PCA, 100% of variance"


def test_umap_has_the_authors_settings(monkeypatch):
    given = {}

    class UMAP:
        def __init__(self, **settings):
            given.update(settings)

        def fit_transform(self, layer):
            return layer[:, :2]

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    plane, method = fig9.flattened(np.eye(4))
    assert method == "UMAP" and plane.shape == (4, 2)
    assert given == {"n_neighbors": 15, "min_dist": 0.1, "random_state": 42, "n_jobs": 1}
