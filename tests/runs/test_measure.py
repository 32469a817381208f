"""The measurement of finished runs: known answers, the table, its cache, bad input."""

import json
import re
import shutil
from functools import partial

import chex
import jax
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.config import changed
from compgen_jax.metrics import geometry, probes, registry
from compgen_jax.runs import measure, study
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from compgen_jax.tasks.encodings import encode

N = 8
THREE = {
    "task.size.values": 3, "task.size.low": 1, "task.size.high": 1, "task.size.smallest": 0.8,
    "task.size.largest": 1.6, "task.support.samples": 200, "training.epochs": 1,
    "training.evaluate_every": 1, "training.learning_rate": 0.03,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    return shutil.copytree(tiny_run[0], tmp_path_factory.mktemp("measure") / "run")


@pytest.fixture(scope="module")
def measured(run):
    return measure.measure(Run.load(run))


# --- the table -----------------------------------------------------------------------------------


def test_the_table_has_every_layer_of_every_seed_and_is_read_back_to_the_bit(run, measured):
    assert (measured.sizes, measured.seeds) == ((N, N), (0, 7))
    held_out = [[3 <= x <= 5 and 3 <= y <= 5 for x in range(N)] for y in range(N)]
    assert_array_equal(measured.maps["held_out"], held_out)

    table, probe = pd.read_csv(run / "layers.csv"), measured.numbers["probe.id_r2"]
    assert table.step.nunique() == 1 and tuple(table) == measure.COLUMNS
    rows = table.query("metric == 'probe.id_r2' and layer == 'layer_02'")
    assert rows.seed.tolist() == [0, 7] and rows.value.tolist() == probe[:, 2].tolist()
    path = run / "analysis.json"
    mean = json.loads(path.read_text())["mean"]["probe.id_r2"][1]
    assert mean["value"] == pytest.approx(probe[:, 1].mean())

    before, loaded = path.stat().st_mtime_ns, Run.load(run)
    again = measure.measure(loaded)
    pd.testing.assert_frame_equal(again.table, measured.table.reset_index(drop=True))
    chex.assert_trees_all_equal(again.maps, measured.maps)
    assert path.stat().st_mtime_ns == before
    assert_array_equal(loaded.layers("probe.id_r2"), probe)
    assert loaded.layer_names == measured.layers


def test_an_output_metric_of_ones_own_is_measured_when_asked_for(run, measured):
    """A layer's: tests/test_extend.py."""
    metrics = list(registry.METRICS)

    @registry.layer_metric("mine.largest", of_output=True)
    def largest(layer):
        return layer.features[layer.held_out].max()

    loaded = Run.load(run)
    found, cells = loaded.outputs("mine.largest"), loaded.cells
    registry.METRICS[:] = metrics
    expected = cells.predictions[:, cells.held_out].max(axis=(1, 2, 3))
    assert_allclose(found, expected, rtol=1e-5)
    known = measure.read(run).numbers
    chex.assert_trees_all_equal({name: known[name] for name in measured.numbers}, measured.numbers)


def test_kept_steps_are_further_steps_of_the_table(run, measured, copy, monkeypatch):
    """Measured one row at a time, as single steps are; the end and its maps stay as they are."""
    for name in ("layers.csv", "analysis.json", "analysis.npz"):
        shutil.copy(run / name, copy)
    loaded = Run.load(copy)
    steps, along = loaded.kept_steps, loaded.along
    assert steps[-1] == measured.table.step.max() and along.seeds == loaded.seeds
    for index, step in enumerate(steps):
        at_step = jax.tree.map(lambda leaf, k=index: leaf[:, k], along.params)
        chex.assert_trees_all_equal(at_step, loaded.at(step).params)
    layers = along.layers("probe.ood_r2")
    assert_array_equal(layers[:, -1], measured.numbers["probe.ood_r2"])
    metrics = [metric for metric in registry.METRICS if "probe.ood_r2" in metric.names]
    alone = measure.take(loaded, metrics, steps[1:2])
    assert_array_equal(layers[:, 1], alone.values("probe.ood_r2"))
    assert (layers[:, 0, 2] != layers[:, -1, 2]).all()
    table = measure.read(copy)
    same = {name: table.numbers[name] for name in measured.numbers}, table.maps
    chex.assert_trees_all_equal(same, (measured.numbers, measured.maps))
    cosine = "output.cosine.cross_binary"  # of so short a run the five late networks are the end
    ends = np.tile(loaded.outputs(cosine)[:, None], 5)
    assert_array_equal(loaded.late.outputs(cosine), ends)
    monkeypatch.setattr(measure, "take", None)
    assert_array_equal(Run.load(copy).along.layers("probe.ood_r2"), layers)


def test_layers_are_measured_over_the_cells_that_another_run_holds_out(run, tiny, tmp_path,
                                                                       monkeypatch):  # fmt: skip
    """Those of its own stay as they are, and are the same where the held-out cells are."""
    workdir = shutil.copytree(run, tmp_path / "run")
    own, other = Run.load(workdir), changed(tiny, {"task.support.region": "corner"})
    over = own.over(Run(other, other.task.make(), (0,)))
    cells = own.cells
    corner = (cells.factors >= tiny.task.support.low).all(axis=1)
    for seed, images in enumerate(cells.predictions.reshape(2, N * N, -1)):
        probe = probes.probe(images, cells.factors, corner)["ood_r2"].mean()
        assert over.late.layers("probe.ood_r2")[seed, -1, -1] == pytest.approx(probe, abs=1e-3)
    table = pd.read_csv(next(workdir.glob("over_*")) / "layers.csv")
    assert {*table.metric} == {f"probe.{score}" for score in probes.SCORES}
    same = own.over(own).late.layers("volume.inner_effect")
    assert_array_equal(same[:, -1], own.layers("volume.inner_effect"))
    larger = changed(tiny, {"task.grid": N + 1})
    with pytest.raises(RunError, match="the cells of their tasks differ"):
        own.over(Run(larger, larger.task.make(), (0,)))
    monkeypatch.setattr(measure, "take", None)
    again = Run.load(workdir).over(Run(other, other.task.make(), (0,))).late
    assert_array_equal(again.layers("probe.ood_r2"), over.late.layers("probe.ood_r2"))


# --- known answers -------------------------------------------------------------------------------


def test_the_code_is_layer_0_with_its_known_geometry_and_factorization(measured, tiny):
    assert measured.numbers["schmidt.rank"][:, 0].tolist() == [2, 2]
    assert_allclose(measured.numbers["anova.interaction"][:, 0], 0, atol=1e-9)
    factorization = measured.numbers["factorization.mean_of_ratios"]
    assert_allclose(factorization[:, 0], 1, atol=1e-6)
    code = lambda p: encode(p, (N, N), tiny.task.code)
    jacobian = np.float64(jax.jit(jax.jacfwd(code))(np.float32([5, 2])))
    volume = np.linalg.det(jacobian.T @ jacobian) ** 0.5
    assert_allclose(measured.maps["volume"][:, 0, 2, 5], volume, rtol=1e-5)


def test_parts_of_a_code_beside_the_mean_code_of_training(run):
    recorder = measure.recorder(Run.load(run), "grid")
    codes, mean = recorder.inputs[:3], np.mean(recorder.inputs[:5], axis=0)
    first, second = recorder.code_parts(recorder.points[:5], codes)
    of_mean = np.stack([mean] * 3)
    assert_allclose(first, np.hstack([codes[:, :N], of_mean[:, N:]]), rtol=1e-6)
    assert_allclose(second, np.hstack([of_mean[:, :N], codes[:, N:]]), rtol=1e-6)


def test_a_code_without_derivative_has_no_geometry_but_all_else(tiny, tmp_path):
    onehot = changed(tiny, {"task.code.name": "onehot", "training.epochs": 1})
    study.train(onehot, tmp_path / "run")
    run = Run.load(tmp_path / "run")
    assert "volume" not in run.maps
    assert np.isnan(run.layers("factorization.mean_of_ratios")).all()
    assert np.isfinite(run.layers("probe.id_r2")).all()


# --- three factors -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three(tiny, tmp_path_factory):
    """A run of three factors and what was measured of it."""
    workdir = tmp_path_factory.mktemp("three") / "run"
    study.train(changed(tiny, THREE), workdir)
    return workdir, measure.measure(Run.load(workdir))


def test_three_factors_have_tensors_of_three_rows_and_all_numbers(three):
    """The volume of the output is known by differences."""
    workdir, found = three
    assert found.sizes == (N, N, 3)
    assert found.maps["volume"].shape == (2, 5, 3, N, N)
    assert found.maps["held_out"].shape == (3, N, N) and found.maps["held_out"].sum() == 9
    assert {f"probe.{name}.ood_r2" for name in ("x", "y", "size")} < set(found.numbers)
    for name, values in found.numbers.items():
        of_one_factor = name.startswith("curve.")
        assert of_one_factor or "ood" in name or np.isfinite(values[:, :-1]).all(), name
    centre, step = np.float32([5, 2, 1.2]), 0.02
    assert_allclose(found.numbers["anova.interaction"][:, 0], 0, atol=1e-9)
    moves = np.concatenate([step * np.eye(3), -step * np.eye(3)]).astype(np.float32)
    drawn = Run.load(workdir).predict(centre + moves).reshape(2, 2, 3, N * N)
    jacobians = np.float64(drawn[:, 0] - drawn[:, 1]) / (2 * step)
    for jacobian, volume in zip(jacobians, found.maps["volume"][:, -1, 1, 2, 5], strict=True):
        assert np.linalg.det(jacobian @ jacobian.T) ** 0.5 == pytest.approx(volume, rel=0.1)


def test_more_cells_than_can_be_held_are_measured_on_a_subgrid(three, monkeypatch):
    workdir, _ = three
    monkeypatch.setattr(measure, "MOST_CELLS_OF_MORE", 100)
    metrics = registry.metrics_of("grid", ["schmidt", "output.superposition"])
    found = measure.take(Run.load(workdir), metrics, with_maps=True)
    assert np.prod(found.sizes) <= 100 and found.sizes[2] == 3
    assert found.maps["volume"].shape == (2, 5, *found.sizes[::-1])
    assert np.isfinite(found.numbers["schmidt.rank"]).all()


def test_some_metrics_are_measured_first_all_others_later(three, tmp_path, capsys):
    written = shutil.ignore_patterns("analysis.*", "layers.csv")
    workdir = shutil.copytree(three[0], tmp_path / "run", ignore=written)
    late = Run.load(workdir).late
    names = "schmidt.rank", "anova.interaction"  # of late checkpoints nothing else is measured
    found = measure.together([partial(late.layers, name) for name in names])
    assert capsys.readouterr().err.count("100%") == 1  # in one pass
    assert_array_equal(found, [late.layers(name) for name in names])
    assert len({*measure.read(workdir).table.metric}) == 4
    few = measure.measure(Run.load(workdir), families=("probe", "anova.interaction"))
    bar = capsys.readouterr().err
    assert re.search(r"seed(/s)?, \w", bar)  # slow: seconds per seed
    families = {name.partition(".")[0] for name in few.numbers}
    assert families == {"probe", "anova", "schmidt"}
    assert Run.load(workdir).layer_names == three[1].layers  # measures nothing more
    assert capsys.readouterr().err == ""
    whole = measure.measure(Run.load(workdir))
    assert whole.numbers.keys() == three[1].numbers.keys()
    chex.assert_trees_all_close(whole.numbers, three[1].numbers, rtol=1e-6)
    assert whole.maps.keys() == three[1].maps.keys()


# --- what cannot be measured, and damage ---------------------------------------------------------


def test_runs_that_cannot_be_measured_are_named(run, monkeypatch):
    with pytest.raises(RunError, match="there is no metric probe.r2"):
        measure.measure(Run.load(run), "probe.r2")
    with pytest.raises(RunError, match="--metrics=prob: no such metric here; nearest: probe, "):
        measure.measure(Run.load(run), families=["prob"])
    loaded = Run.load(run)
    params = jax.tree.map(np.copy, loaded.params)
    params["params"]["hidden_2"]["bias"][1] = np.nan
    broken = Run(loaded.config, loaded.task, loaded.seeds)
    broken.params = params
    for domain in registry.DOMAINS:
        with pytest.raises(RunError, match="layer_02 of seed 7 has activations that are not fin"):
            measure.take(broken, registry.metrics_of(domain))
    monkeypatch.setattr(geometry, "MOST_NUMBERS", 99)
    with pytest.raises(ValueError, match=r"^\d+ features at 64 cells: at most 99 numbers"):
        measure.take(Run.load(run), registry.metrics_of("grid"))
    monkeypatch.undo()
    every_cell = loaded.task._replace(held_out=lambda points: np.zeros(len(points), bool))
    full = Run(loaded.config, every_cell, loaded.seeds)
    with pytest.raises(RunError, match="nothing is held out to analyse"):
        measure.take(full, registry.metrics_of("grid"))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("analysis.npz", lambda content: content[: len(content) // 2]),
        ("layers.csv", lambda content: content[: len(content) // 2]),
        ("layers.csv", lambda content: content.replace(b"\n7,", b"\n8,", 1)),
        ("analysis.json", lambda content: content.replace(b'"seeds"', b'"sed"', 1)),
        ("analysis.json", lambda content: content.replace(b'"rows": ', b'"rows": 9', 1)),
    ],
)
def test_damage_is_named_in_one_line(measured, run, tmp_path, name, damage):
    workdir = shutil.copytree(run, tmp_path / "run")
    (workdir / name).write_bytes(damage((run / name).read_bytes()))
    with pytest.raises(RunError, match=r"analysis(\.json)? is damaged") as error:
        measure.measure(Run.load(workdir))
    assert "\n" not in str(error.value)


def test_a_table_of_another_version_or_without_its_files_is_made_anew(measured, run):
    assert measure.read(run) is not None
    for name, content in (
        ("analysis.npz", None),
        ("layers.csv", None),
        ("analysis.json", b"[]"),
        ("analysis.json", b'{"version": 0}'),
    ):
        whole = (run / name).read_bytes()
        (run / name).unlink() if content is None else (run / name).write_bytes(content)
        assert measure.read(run) is None
        (run / name).write_bytes(whole)
    # rows that were written before a process was killed, and its summary was not
    with (run / "layers.csv").open("a") as file:
        file.write("0,12,layer_00,mine.other,1.0\n7,12,lay")
    again = measure.read(run)
    assert {*again.table.metric} >= {*measured.table.metric}
    assert "mine.other" not in again.numbers
