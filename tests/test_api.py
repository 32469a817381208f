"""The surface that a notebook uses: each value beside the library's own, or a float64 loop."""

import csv
import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import compgen_jax as cg
from compgen_jax import api
from compgen_jax.config import changed
from compgen_jax.papers import presets
from compgen_jax.runs import progress
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from figures import draw
from tests.command import refused


@pytest.fixture(scope="module")
def run(tiny_run):
    return cg.load(tiny_run[0])


@pytest.fixture(scope="module")
def swept(tiny, tmp_path_factory):
    """A sweep of four trials, which share a program."""
    axes = {"training.learning_rate": (1e-3, 1e-2)}
    overrides = {"model.name": "mlp", "training.epochs": 2, "sweep.axes": axes}
    return cg.sweep(tiny, tmp_path_factory.mktemp("sweep") / "run", overrides, progress=False)


def test_importing_the_package_imports_neither_jax_nor_numpy():
    lines = "import sys, compgen_jax; print({'jax', 'numpy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
    assert {"train", "load", "Run"} <= set(dir(cg)) and cg.train is api.train
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = cg.trian


# --- train -----------------------------------------------------------------------------------


@pytest.fixture
def trained(monkeypatch):
    """The configs that were given to the trainer, which trains none of them."""
    configs = []
    monkeypatch.setattr(
        api.experiment, "train", lambda config, *rest: configs.append(config) or {"mean": {}}
    )
    return configs


def test_a_config_is_a_presets_name_a_file_or_an_object_with_overrides(
    trained, tiny, tmp_path, monkeypatch
):
    monkeypatch.setitem(presets.PRESETS, "bump_cnn_quick", tiny)
    (tmp_path / "mine.py").write_text(
        "from compgen_jax.config import Config\nget_config = lambda name: Config(name=name)\n"
    )
    overrides = {"training.seeds": [3], "training.learning_rate": 1, "model.name": "mlp"}
    for config in ("bump_cnn_quick", tiny, f"{tmp_path}/mine.py:own"):
        cg.train(config, tmp_path / "run", overrides)
    assert trained[0] == trained[1] == changed(tiny, overrides)
    assert trained[2].name == "own" and trained[2].training.seeds == (3,)
    assert type(trained[2].training.learning_rate) is float
    assert trained[2].model.name == "mlp"


@pytest.mark.parametrize(
    ("config", "overrides", "message"),
    [
        ("bump_cn", None, "config=bump_cn: no preset 'bump_cn'; close are bump_cnn, "),
        ("nowhere.py:mine", None, "config=nowhere.py:mine: there is no file 'nowhere.py'"),
        (None, None, "config=None: give a preset's name, 'FILE.py:NAME' of your own, or a Config"),
        ("bump_cnn_quick", {"training.epoch": 3}, "config.training.epoch: no such field; allowed"),
        ("bump_cnn_quick", {"task.grid": 4}, "config.task.grid=4: must be at least 8"),
        ("holdout_map_quick", None, "holdout_map_quick is a sweep, not one run"),
    ],
)
def test_a_bad_config_is_one_line(tmp_path, config, overrides, message):
    with refused(message, kind=cg.ConfigError):
        cg.train(config, tmp_path / "run", overrides)
    assert not (tmp_path / "run").exists()


def test_a_directory_without_a_run_is_one_line(tmp_path, swept):
    for call in (cg.load, cg.analyze, cg.judge, cg.explore):
        with refused("holds no run (no config.json", kind=cg.RunError):
            call(tmp_path)
        if call is not cg.load:
            with refused("holds a sweep, ", kind=cg.RunError):
                call(swept.path)


# --- what a run says -------------------------------------------------------------------------


def test_the_cells_are_what_is_predicted_there_scored_in_float64(run):
    at_cells = Run.load(run.path).cells
    predictions = run.predict(at_cells.factors)
    np.testing.assert_array_equal(predictions, at_cells.predictions)
    assert run.predict([[2.0, 3.5]]).shape == (2, 1, 8, 8)
    table = run.cells
    assert list(table.columns[:5]) == ["seed", "x", "y", "held_out", "distance"]
    assert set(table.columns[5:]) == set(at_cells.scores)
    for (seed, x, y), row in table.set_index(["seed", "x", "y"]).iloc[::17].iterrows():
        index = int(y * 8 + x)  # the first factor varies fastest
        asked, said = at_cells.truths[index], predictions[(0, 7).index(seed), index]
        expected = np.square(said.astype(np.float64) - asked).mean()
        assert row["mse"] == pytest.approx(expected, rel=1e-5)
        assert row["held_out"] == (3 <= x <= 5 and 3 <= y <= 5)
        assert row["rendered"] == at_cells.scores["rendered"][(0, 7).index(seed), index]


def test_the_table_of_metrics_and_the_summary_are_those_of_the_files(run, tiny, tiny_run):
    table = run.metrics()
    with open(run.path / "metrics.csv") as file:
        rows = list(csv.DictReader(file))
    assert table["ood.mse"].tolist() == [float(row["ood.mse"]) for row in rows]
    assert len(table) == 2 * 3  # seeds, evaluations
    assert run.summary == tiny_run[1] and run.config == tiny
    assert cg.train(tiny, run.path).summary == tiny_run[1]  # finished: nothing to train


def test_the_layers_are_measured_once_and_the_verdicts_are_those_of_claims_json(run, monkeypatch):
    table = cg.analyze(run.path, progress=False)
    r2 = Run.load(run.path).layers("probe.ood_r2")
    of_layers = table[table.metric == "probe.ood_r2"].pivot(
        index="seed", columns="layer", values="value"
    )
    np.testing.assert_allclose(of_layers[list(run.finished.layer_names)].to_numpy(), r2)
    monkeypatch.setattr(api.measure, "measure", None)  # would fail
    assert run.layers().equals(table)
    table = cg.judge(run.path)
    rows = json.loads((run.path / "claims.json").read_text())
    for found, row in zip(table.to_dict("records"), rows, strict=True):
        first = next(iter(row["conditions"].values()))
        assert [found["value"], found["low"], found["high"]] == [first["value"], *first["ci95"]]
        assert all(found[name] == row[name] for name in ("claim", "case", "verdict", "reason"))


def test_points_of_another_shape_are_one_line(run):
    for points in ([1.0, 2.0], [[1.0]], [[1.0, 2.0, 3.0]]):
        with refused("must be (B, 2): x, y"):
            run.predict(points)
    for point, message in (((1.0,), "give a value for each factor: x, y"),
                           ((1.0, "up"), "y = 'up': must be a number")):  # fmt: skip
        with refused(message):
            run.draw(*point)


# --- sweeps ----------------------------------------------------------------------------------


def test_a_sweep_is_loaded_with_a_row_for_each_trial(swept):
    loaded = cg.load(swept.path)
    assert type(loaded) is cg.Sweep and loaded.summary == swept.summary
    table = loaded.trials()
    rates = sorted(zip(table["training.learning_rate"], table["seed"], strict=True))
    assert rates == [(1e-3, 0), (1e-3, 7), (1e-2, 0), (1e-2, 7)]
    faster = table[table["training.learning_rate"] == 1e-2]["seen.mse"]
    (mean,) = [m for m in swept.summary["means"] if m["training.learning_rate"] == 1e-2]
    assert mean["seen.mse"]["value"] == pytest.approx(faster.mean(), rel=1e-6)


# --- drawings and bars -----------------------------------------------------------------------


def shown(axis):
    return np.asarray(axis.images[0].get_array())


def test_a_point_is_drawn_as_asked_drawn_and_difference(run):
    figure = run.draw(2, 3.5)
    assert figure.get_suptitle() == "x = 2, y = 3.5: not held out"
    assert run.draw(4, 4).get_suptitle() == "x = 4, y = 4: held out"
    asked, first, second, empty, *differences = figure.axes
    predictions = run.predict([[2, 3.5]])[:, 0]
    columns, rows = np.meshgrid(np.arange(8.0), np.arange(8.0))
    sigma = run.config.task.image.sigma
    bump = np.exp(-(np.square(columns - 2) + np.square(rows - 3.5)) / (2 * sigma**2))
    np.testing.assert_allclose(shown(asked) / shown(asked).max(), bump / bump.max(), atol=1e-5)
    for axis, difference, image in zip((first, second), differences, predictions, strict=True):
        np.testing.assert_array_equal(shown(axis), image)
        np.testing.assert_allclose(shown(difference), image - shown(asked), atol=1e-6)
    assert not empty.axison


def known(truths, predictions):
    """A run of two seeds that gives these answers, whatever it is asked."""
    factor = tasks.Factor("hue", np.array([0.0, 30.0]))
    held_out = lambda points: points[..., 0] > 0
    task = tasks.over_cells([factor], held_out, lambda key, point: tasks.Example(point, truths[0]))
    answers = predictions[:, None], truths[:, None]
    return SimpleNamespace(task=task, seeds=(0, 1), predict_with_truth=lambda points: answers)


def test_a_vector_is_drawn_as_a_curve_and_colours_as_an_image():
    truths = np.stack([np.arange(5.0)] * 2)
    figure = draw.draw(known(truths, truths + [[1.0], [-2.0]]), (30.0,))
    first, second = (axis.lines[0].get_ydata() for axis in figure.axes[4:])
    assert first.tolist() == [1.0] * 5 and second.tolist() == [-2.0] * 5
    colours = np.zeros((2, 4, 4, 3))
    colours[..., 0] = 2.0
    figure = draw.draw(known(colours, colours * 0.5), (30.0,))
    assert shown(figure.axes[1])[0, 0].tolist() == [0.5, 0, 0]
    assert shown(figure.axes[4]) == pytest.approx(-1.0)  # of the channel that differs most


def test_a_bar_moves_often_where_somebody_looks(monkeypatch):
    kinds = {"ipykernel.iostream": 0.5, "terminal": 0.5, "file": 20}
    for module, seconds in kinds.items():
        stream = type("Stream", (), {"__module__": module, "isatty": lambda self: False})
        if module == "terminal":
            stream.isatty = lambda self: True
        monkeypatch.setattr(sys, "stderr", stream())
        assert progress.seconds_between_updates() == seconds
