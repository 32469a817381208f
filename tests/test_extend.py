"""The recipes of docs/how_to, run from outside the package by the commands that they name."""

import json
import re
from functools import partial
from operator import itemgetter
from pathlib import Path

import chex
import jax
import numpy as np
import pytest

from compgen_jax import settings
from compgen_jax.metrics import geometry, registry
from compgen_jax.models.mlp import MLPDecoder
from compgen_jax.runs.run import Run
from compgen_jax.training import loop
from figures import make
from launch import analyze, train
from tests.command import call, refused

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / "how_to" / f"{name}.md" for name in ("extend", "training_set", "sweeps")]
CELLS = [(float(x), float(y)) for x in range(1, 7) for y in range(1, 7)]
TEXT = "".join(page.read_text() for page in PAGES)
RECIPES = dict(re.findall(r"^`(my_\w+\.py)`:\n\n```python\n(.*?)```", TEXT, re.S | re.M))


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A user's directory with the files of all recipes; what they register is taken away again."""
    path = tmp_path_factory.mktemp("desk")
    assert len(RECIPES) == 10
    for name, text in RECIPES.items():
        # in a checkout the figures are beside the package
        (path / name).write_text(text.replace("compgen_jax.figures", "figures"))
    metrics, figures = list(registry.METRICS), dict(make.FIGURES)
    # what lies outside the package broadcasts as NumPy does
    with jax.numpy_rank_promotion("allow"):
        yield path
    registry.METRICS[:] = metrics
    make.FIGURES.clear()
    make.FIGURES.update(figures)


@pytest.fixture(scope="module")
def mine(desk):
    """The directory where the figure of one's own was made."""
    files = f"--extend={desk}/my_claim.py,{desk}/my_figure.py"
    call(make, files, "--only=mine", f"--workdir={desk}/mine")
    return desk / "mine"


def test_a_training_set_of_ones_own_shows_so_many_id_cells_other_ones_to_each_seed(desk):
    task = settings.load_file(desk / "my_sample.py").Sampled(shown=5).make()
    (points, count), (others, _) = (task.dataset(jax.random.key(seed)) for seed in range(2))
    assert task.examples == count == 5 and not np.array_equal(points, others)
    held_out = [(x, y) for x in (5.0, 6.0) for y in (5.0, 6.0)]
    assert {tuple(point) for point in points.tolist()} == set(CELLS) - set(held_out)


def test_a_task_with_a_model_of_ones_own_is_trained_and_measured_by_a_metric_of_ones_own(
    desk, capsys
):
    workdir, model = desk / "gated", f"--config.model.name={desk}/my_model.py:Gated"
    call(train, f"--config={desk}/my_task.py:waves", model, f"--workdir={workdir}")
    call(analyze, f"--extend={desk}/my_metric.py", f"--workdir={workdir}")
    assert re.search(r"^mine\.zeros +0", capsys.readouterr().out, re.M)
    table = (workdir / "layers.csv").read_text().splitlines()
    assert sum(",mine.zeros," in line for line in table) == 3 * 3  # seeds, layers


def test_a_module_of_nnx_trains_and_has_the_geometry_of_the_same_linen_module(desk):
    workdir = desk / "nnx"
    own = f"--config.model.name={desk}/my_nnx.py:Mine"
    call(train, f"--config={desk}/my_task.py:waves", own, f"--workdir={workdir}")
    run, points = Run.load(workdir), np.float32([[2, 3], [5, 1.5]])
    mean = run.summary["mean"]
    assert mean["id.mse"]["value"] < mean["id.best_constant_mse"]["value"] / 2
    flat = jax.tree.map(itemgetter(1), run.params["params"]["nnx"])
    layers = {"hidden_1": "hidden", "image": "out"}
    params = {
        linen: {kind: flat[f"{name}.{kind}.value"] for kind in ("kernel", "bias")}
        for linen, name in layers.items()
    }
    linen = partial(MLPDecoder((16,), 16, 1).apply, {"params": params})
    module = run.config.model.make(loop.shapes_of(run.task))
    nnx = partial(module.apply, {"params": {"nnx": flat}})
    tensors_of = jax.jit(geometry.metric_tensors, static_argnums=0)
    tensors = [tensors_of(lambda point, f=f: f(point / 6), points) for f in (nnx, linen)]
    expected = jax.jit(jax.vmap(lambda point: linen(point / 6)[0]))(points)
    np.testing.assert_allclose(run.predict(points)[1], expected, atol=1e-5)
    chex.assert_trees_all_close(*tensors, rtol=1e-4, atol=1e-6)


def test_classes_are_scored_as_probabilities_and_a_look_up_has_no_error_on_id_cells(desk):
    task = f"--config.task.name={desk}/my_classes.py:Classes"
    call(train, f"--config={desk}/my_task.py:waves", task, f"--workdir={desk}/classes")
    mean = json.loads((desk / "classes/summary.json").read_text())["mean"]
    assert mean["id.accuracy"]["value"] == 1 and mean["id.nearest_seen_nll"]["value"] == 0
    classes = settings.load_file(desk / "my_classes.py").Classes().make()
    rows = [0.5, 0.3, 0.2, 0, 0, 0], [0, 1, 0, 0, 0, 0], None
    assert classes.scores(*map(np.array, rows))["nll"] == pytest.approx(-np.log(0.3))
    logits = RECIPES["my_classes.py"].replace("prediction=jax.nn.softmax", "prediction=jnp.asarray")
    (desk / "my_logits.py").write_text(logits.replace("jnp.log(prob", "jax.nn.log_softmax(prob"))
    wrong = f"{desk}/my_logits.py:Classes: the truth itself has nll 1.04, not 0: Task.prediction("
    with refused(wrong):
        call(train, f"--config={desk}/my_task.py:waves", task.replace("classes.py", "logits.py"),
             f"--workdir={desk}/logits")  # fmt: skip


def test_a_claim_and_a_figure_of_ones_own_train_what_they_name(mine):
    assert {path.suffix for path in (mine / "figures").glob("mine.*")} == {".png", ".pdf"}
    (row,) = json.loads((mine / "claims.json").read_text())
    assert (row["claim"], row["setting"], row["runs"]) == ("X1", "base", ["waves"])
    assert row["verdict"] in ("reproduced", "contradicted", "inconclusive")
    (trained,) = (mine / "trained").iterdir()
    mean = json.loads((trained / "summary.json").read_text())["mean"]
    error, constant = (mean[f"id.{name}"]["value"] for name in ("mse", "best_constant_mse"))
    assert error < constant / 500  # the task of the page is learnt
    assert "X1" in (mine / "RESULTS.md").read_text()


def test_a_claim_is_tried_on_known_answers(desk):
    settings.load_file(desk / "my_known.py")  # asserts it


def test_a_claim_is_judged_at_settings_of_ones_own_alone(desk, mine):
    """In the directory where its base is trained already."""
    files = f"--extend={desk}/my_claim.py,{desk}/my_settings.py"
    call(make, files, "--only=settings", f"--workdir={mine}")
    base, *rows = json.loads((mine / "claims.json").read_text())
    names = ["learning rate x3", "training time x1/2", "more samples", "shallow"]
    assert [row["setting"] for row in (base, *rows)] == ["base", *names]
    assert len(list((mine / "trained").iterdir())) == 1 + len(names)
