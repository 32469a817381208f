"""The measurement of finished runs: known answers, the table, its cache, bad input."""

import csv
import json
import shutil

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, TrainingConfig, changed
from compgen_jax.metrics import geometry, probes, registry
from compgen_jax.metrics.id_cells import IdLayer
from compgen_jax.metrics.layers import PROBE_SCORES
from compgen_jax.models.mlp import MLP
from compgen_jax.runs import experiment, measure, recording, results
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.results import FinishedRun
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.encodings import encode
from compgen_jax.tasks.rotation import GapConfig, Rotation
from compgen_jax.training import task_group

N = 8
DIGITS = Config(
    task=Rotation(side=8, objects=(4, 7), angles=24, samples=24, gap=GapConfig(of=(4,))),
    model=MLP(depth=1, width=6),
    training=TrainingConfig(steps=20, evaluate_every=10, seeds=(0, 1)),
)
THREE = {
    "task.size.values": 3,
    "task.size.low": 1,
    "task.size.high": 1,
    "task.size.smallest": 0.8,
    "task.size.largest": 1.6,
    "task.support.samples": 200,
    "training.epochs": 1,
    "training.evaluate_every": 1,
    "training.learning_rate": 0.03,
}


@pytest.fixture(scope="module")
def trained(tiny, tiny_run, tmp_path_factory):
    """trained(config): the directory of its run, trained once."""
    workdirs = {tiny: tmp_path_factory.mktemp("measure") / "tiny"}
    shutil.copytree(tiny_run[0], workdirs[tiny])

    def train(config):
        if config not in workdirs:
            workdirs[config] = tmp_path_factory.mktemp("measure") / "run"
            experiment.train(config, workdirs[config], progress=False)
        return workdirs[config]

    return train


@pytest.fixture(scope="module")
def run(trained, tiny):
    return trained(tiny)


@pytest.fixture(scope="module")
def measured(run):
    return measure.measure_directory(run, progress=False)


def with_bias(run: FinishedRun, layer: str, value: float) -> FinishedRun:
    """The run with this bias in a layer of its second network."""
    params = jax.tree.map(np.copy, run.params)
    params["params"][layer]["bias"][1] = value
    return FinishedRun(run.config, run.task, params, run.summary, run.seeds, run.path)


# --- the table -----------------------------------------------------------------------------------


def test_the_table_has_every_layer_of_every_seed(run, measured):
    assert measured.layers == ("layer_00", "layer_01", "layer_02", "layer_03", "output")
    assert (measured.factors, measured.sizes, measured.seeds) == (("x", "y"), (N, N), (0, 7))
    held_out = [[3 <= x <= 5 and 3 <= y <= 5 for x in range(N)] for y in range(N)]
    np.testing.assert_array_equal(measured.maps["held_out"], held_out)
    assert all(values.shape == (2, 5) for values in measured.numbers.values())
    assert all(values.shape == (2,) for values in measured.outputs.values())
    assert {f"probe.{score}" for score in PROBE_SCORES} < set(measured.numbers)
    # a block with a hole is a mixture of two products, up to the noise of 60 draws
    law = [measured.outputs[f"output.training_law_kl_rank_{k}"] for k in (1, 2)]
    assert (law[1] < law[0]).all() and (law[1] >= 0).all()
    assert (measured.outputs["output.target_rank"] >= 1).all()
    assert measured.maps["superposition.points"].shape == (4, 2)

    rows = list(csv.DictReader((run / "layers.csv").read_text().splitlines()))
    steps = {row["step"] for row in rows}
    assert len(steps) == 1 and tuple(rows[0]) == measure.COLUMNS
    found = [row for row in rows if row["metric"] == "probe.id_r2" and row["layer"] == "layer_02"]
    assert [row["seed"] for row in found] == ["0", "7"]
    assert [float(row["value"]) for row in found] == measured.numbers["probe.id_r2"][:, 2].tolist()
    of_output = {row["layer"] for row in rows if row["metric"].startswith("output.")}
    assert of_output == {"output"}

    summary = json.loads((run / "analysis.json").read_text())
    assert summary["layers"] == list(measured.layers) and summary["seeds"] == [0, 7]
    assert summary["numbers"]["probe.id_r2"] == measured.numbers["probe.id_r2"].tolist()
    mean = summary["mean"]["probe.id_r2"][1]
    assert mean["value"] == pytest.approx(measured.numbers["probe.id_r2"][:, 1].mean())
    mean = summary["mean"]["output.target_rank"]
    assert mean["value"] == measured.outputs["output.target_rank"].mean()


def test_it_is_measured_once_and_read_back_to_the_bit(run, measured):
    before = (run / "analysis.json").stat().st_mtime_ns
    for again in (measure.measure_directory(run), measure.read(run)):
        assert again.table.keys() == measured.table.keys()
        for group in ("numbers", "outputs", "maps"):
            for name, values in getattr(measured, group).items():
                np.testing.assert_array_equal(getattr(again, group)[name], values)
    assert (run / "analysis.json").stat().st_mtime_ns == before
    loaded = results.load(run)
    np.testing.assert_array_equal(loaded.layers("probe.id_r2"), measured.numbers["probe.id_r2"])
    assert loaded.layer_names == measured.layers and loaded.maps.keys() == measured.maps.keys()
    assert loaded.outputs("output.target_rank").shape == (2,)


@pytest.fixture
def own_metrics():
    """What a test registers is taken away again."""
    lists = registry.LAYER_METRICS, registry.OUTPUT_METRICS
    kept = [list(metrics) for metrics in lists]
    yield
    for metrics, before in zip(lists, kept, strict=True):
        metrics[:] = before


def test_a_metric_of_ones_own_is_one_function_and_is_measured_when_asked_for(
    run, measured, own_metrics
):
    @registry.layer_metric("mine.zeros")
    def share_of_zeros(features_BxD):
        return np.mean(features_BxD == 0)

    @registry.output_metric("mine.largest")
    def largest(predictions_BxD, held_out_B):
        return predictions_BxD[held_out_B].max()

    loaded = results.load(run)
    zeros = loaded.layers("mine.zeros")
    assert zeros.shape == (2, 5) and 0 < zeros[0, 2] < 1
    cells = loaded.cells
    expected = cells.predictions[:, cells.held_out].max(axis=(1, 2, 3))
    np.testing.assert_allclose(loaded.outputs("mine.largest"), expected, rtol=1e-5)
    known = measure.read(run)
    for name, values in measured.numbers.items():
        np.testing.assert_array_equal(known.numbers[name], values)

    @registry.layer_metric("mine.strange")
    def strange(weights):
        return 0.0

    with pytest.raises(RunError, match="metric mine.strange needs weights, which there is not"):
        loaded.layers("mine.strange")


def test_kept_steps_are_further_steps_of_the_table(run, measured):
    loaded = results.load(run)
    last = measured.last_step
    metrics = [m for m in registry.LAYER_METRICS if "anova.interaction" in m.fixed_names]
    first = loaded.kept_steps[0]
    assert first < last == loaded.kept_steps[-1]
    chex.assert_trees_all_equal(loaded.at(last).params, loaded.params)
    found = measure.measure(loaded, metrics, (first, last), progress=False)
    assert set(found.table) == {("anova.interaction", first), ("anova.interaction", last)}
    np.testing.assert_array_equal(
        found.numbers["anova.interaction"], measured.numbers["anova.interaction"]
    )
    early = found.table["anova.interaction", first]["layer_02"]
    assert (early != found.table["anova.interaction", last]["layer_02"]).all()
    with pytest.raises(RunError, match="takes the layers of earlier steps"):
        loaded.at(first).layers("anova.interaction")


def test_several_checkpoints_are_measured_one_row_at_a_time(run, measured, tmp_path, monkeypatch):
    workdir = tmp_path / "run"
    shutil.copytree(run, workdir)
    loaded = results.load(workdir)
    before, steps = measure.read(workdir), loaded.kept_steps
    layers = loaded.along.layers("probe.ood_r2")
    of_seed = layers.reshape(len(loaded.seeds), len(steps), -1)
    np.testing.assert_array_equal(of_seed[:, -1], before.numbers["probe.ood_r2"])
    metrics = [m for m in registry.LAYER_METRICS if "probe.ood_r2" in m.fixed_names]
    alone = measure.measure(loaded, metrics, steps[:1], progress=False)
    first = np.stack(list(alone.table["probe.ood_r2", steps[0]].values()), axis=1)
    np.testing.assert_array_equal(of_seed[:, 0], first)
    # the end of training and its maps stay as they are, and all is read back
    kept = measure.read(workdir)
    chex.assert_trees_all_equal(kept.numbers, before.numbers)
    chex.assert_trees_all_equal(kept.maps, before.maps)
    assert ("schmidt.rank", steps[0]) not in kept.table
    late = loaded.late  # of so short a run the end, five times
    outputs = late.outputs("output.cosine.cross_binary").reshape(2, 5)
    end = loaded.outputs("output.cosine.cross_binary")
    np.testing.assert_array_equal(outputs, np.tile(end[:, None], 5))
    monkeypatch.setattr(measure, "measure", None)
    again = results.load(workdir).along
    np.testing.assert_array_equal(again.layers("probe.ood_r2"), layers)
    assert again.layers("probe.id_r2").shape == layers.shape
    assert late.layer_names == loaded.layer_names and late.maps.keys() == loaded.maps.keys()
    for kind in ("LAYER_METRICS", "OUTPUT_METRICS"):  # as if no row had the name, but the data
        monkeypatch.setattr(measure, kind, ())
    with pytest.raises(RunError, match="schmidt.rank is measured at the end of training alone"):
        again.layers("schmidt.rank")


# --- known answers -------------------------------------------------------------------------------


def test_the_code_is_layer_0_with_its_known_geometry_and_factorization(measured, tiny):
    assert measured.numbers["schmidt.rank"][:, 0].tolist() == [2, 2]
    np.testing.assert_allclose(measured.numbers["anova.interaction"][:, 0], 0, atol=1e-9)
    np.testing.assert_allclose(measured.numbers["factorization.cosine"][:, 0], 1, atol=1e-6)
    code = lambda p: encode([(p[0], N), (p[1], N)], tiny.task.code)
    jacobian = np.float64(jax.jit(jax.jacfwd(code))(np.float32([5, 2])))
    volume = np.linalg.det(jacobian.T @ jacobian) ** 0.5
    np.testing.assert_allclose(measured.maps["volume"][:, 0, 2, 5], volume, rtol=1e-5)


def test_metric_of_the_drawn_signal_agrees_with_small_differences(run, measured):
    step, (x, y) = 0.02, (5.0, 2.0)
    points = np.float32([[x + dx, y + dy] for dy in (-step, 0, step) for dx in (-step, 0, step)])
    drawn = results.load(run).predict(points).reshape(2, 3, 3, N * N)
    for grid, volume in zip(drawn, measured.maps["volume"][:, -1, 2, 5], strict=True):
        metric = jax.jit(lambda grid: geometry.grid_metric(grid, step)[1, 1])(grid)
        assert float(geometry.volume_element(metric)) == pytest.approx(volume, rel=0.05)


def test_maps_of_all_units_hold_those_of_the_panel(run, measured):
    every = results.load(run).unit_maps("layer_02")
    assert every.shape[1:] == (N, N)
    for unit in measured.maps["units.layer_02"]:
        assert (every == unit).all(axis=(1, 2)).any()


@pytest.mark.parametrize("digits", [False, True], ids=["bumps", "digits"])
def test_numbers_of_id_cells_are_those_of_the_layers_there(trained, measured, tiny, digits):
    """Of one layer, from single points by `jacfwd`; digits are labels with an angle."""
    workdir = trained(DIGITS if digits else tiny)
    run, name = results.load(workdir), "layer_01"
    task = run.task
    points = tasks.points(task)
    points = points[~np.asarray(task.held_out(points))]
    module = run.config.model.make(task_group.shapes_of(task))
    params = jax.tree.map(lambda leaf: leaf[1], run.params)
    real = np.array([factor.real for factor in task.factors])

    def hidden(values, point):
        example = task.example(jax.random.key(0), point.at[np.flatnonzero(real)].set(values))
        return module.apply(params, example.input)[1][name].ravel()

    def true(values, point):
        moved = point.at[np.flatnonzero(real)].set(values)
        return tasks.truth(task, task.example(jax.random.key(0), moved).target).ravel()

    def tensors(function):
        jacobians = jax.jit(jax.vmap(jax.jacfwd(function)))(points[:, real], jnp.asarray(points))
        return np.einsum("bdi,bdj->bij", *[np.asarray(jacobians)] * 2)

    layer = IdLayer(
        np.asarray(jax.jit(jax.vmap(hidden))(points[:, real], jnp.asarray(points))), points,
        tensors(hidden), tensors(true), real, [factor.period for factor in task.factors],
    )  # fmt: skip
    for metric, expected in registry.layer_numbers(layer, "id_cells").items():
        found = run.layers(metric)[1, 1]
        assert found == pytest.approx(expected, rel=2e-3, abs=1e-6, nan_ok=True), metric
    assert measured.sizes == (N, N)
    assert measure.read(workdir).sizes == (() if digits else (N, N))


def test_an_angle_is_probed_and_a_label_is_not_and_neither_has_a_distance_in_cells(trained):
    run = results.load(trained(DIGITS))
    layer = run.layer_names[1]
    features = run.unit_maps(layer).reshape(-1, len(tasks.points(run.task))).T
    held_out = np.asarray(run.task.held_out(tasks.points(run.task)))
    scores = probes.probe(
        features, tasks.points(run.task), held_out, real=(True, False), periods=(360, np.inf)
    )
    found = run.layers("probe.id_r2")[0, 1]
    assert np.isfinite(found) and found == pytest.approx(scores["id_r2"][0], rel=1e-3)
    assert np.isfinite(run.layers("probe.id_accuracy")).all()
    assert np.isnan(run.outputs("output.kernel_regression.factorized_error")).all()


def test_a_code_without_derivative_has_no_geometry_but_all_else(trained, tiny):
    config = changed(tiny, {"task.code.name": "onehot", "training.epochs": 1})
    run = results.load(trained(config))
    assert "volume" not in run.maps
    for metric in ("factorization.cosine", "id_cells.log10_volume_mean"):
        assert np.isnan(run.layers(metric)).all()
    for metric in ("probe.id_r2", "id_cells.interaction", "id_cells.probe"):
        assert np.isfinite(run.layers(metric)).all()


def test_a_stream_has_no_law_of_a_training_set_but_all_else(trained, tiny, monkeypatch):
    monkeypatch.setattr(results, "DRAWN", 100)  # the interpolator inverts matrices of this size
    config = changed(tiny, {
        "task.name": "sprites", "task.side": 16, "task.counts.posX": 2, "task.counts.posY": 4,
        "training.steps": 4, "training.evaluate_every": 4, "training.seeds": (0,),
    })  # fmt: skip
    names = {"output.training_law_kl_rank_1", "output.superposition.sums.r2", "probe.id_r2"}
    metrics = [m for m in measure.missing_metrics("grid", set()) if names & {*m.fixed_names}]
    found = measure.measure(results.load(trained(config)), metrics, progress=False)
    for k in (1, 2):
        assert np.isnan(found.outputs[f"output.training_law_kl_rank_{k}"]).all()
    assert np.isfinite(found.outputs["output.superposition.sums.r2"]).all()
    assert np.isfinite(found.numbers["probe.id_r2"]).all()


# --- three factors -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three(trained, tiny):
    """A run of three factors and what was measured of it."""
    workdir = trained(changed(tiny, THREE))
    return workdir, measure.measure_directory(workdir, progress=False)


def test_three_factors_have_tensors_of_three_rows_and_all_numbers(three):
    _, found = three
    assert found.factors == ("x", "y", "size") and found.sizes == (N, N, 3)
    assert found.maps["volume"].shape == (2, 5, 3, N, N)
    assert found.maps["held_out"].shape == (3, N, N) and found.maps["held_out"].sum() == 9
    assert found.maps["superposition.mean_code"].shape == (4, 3, N, N)  # a part for each factor
    assert {f"probe.{name}.ood_r2" for name in found.factors} < set(found.numbers)
    assert {"angle.x-y.id", "angle.x-size.ood"} < set(found.numbers)
    for name, values in found.numbers.items():
        assert np.isfinite(values[:, :-1]).all() or "ood" in name, name
    for name in ("output.target_rank", "output.cosine.true", "output.superposition.mean_code.r2"):
        assert np.isfinite(found.outputs[name]).all(), name
    # one product of the factors is no law with a hole; two products are
    law = [found.outputs[f"output.training_law_kl_rank_{k}"] for k in (1, 2)]
    assert (law[1] < law[0]).all() and (law[1] >= -1e-9).all()


def test_volumes_of_three_factors_are_known_for_the_code_and_differences_for_the_output(
    three, tiny
):
    """Each factor has units of its own: the code's metric is diagonal, the volume a product."""
    workdir, found = three
    task = changed(tiny, THREE).task.make()
    key, centre, step = jax.random.key(0), np.float32([5, 2, 1.2]), 0.02
    jacobian = np.float64(jax.jit(jax.jacfwd(lambda p: task.example(key, p).input))(centre))
    metric = jacobian.T @ jacobian
    np.testing.assert_allclose(metric, np.diag(np.diag(metric)), atol=1e-6)
    expected = np.prod(np.diag(metric)) ** 0.5
    np.testing.assert_allclose(found.maps["volume"][:, 0, 1, 2, 5], expected, rtol=1e-4)
    np.testing.assert_allclose(found.numbers["anova.interaction"][:, 0], 0, atol=1e-9)

    moves = np.concatenate([step * np.eye(3), -step * np.eye(3)]).astype(np.float32)
    drawn = results.load(workdir).predict(centre + moves).reshape(2, 2, 3, N * N)
    jacobians = np.float64(drawn[:, 0] - drawn[:, 1]) / (2 * step)
    for jacobian, volume in zip(jacobians, found.maps["volume"][:, -1, 1, 2, 5], strict=True):
        assert np.linalg.det(jacobian @ jacobian.T) ** 0.5 == pytest.approx(volume, rel=0.1)


def test_more_cells_than_can_be_held_are_measured_on_a_subgrid(three, monkeypatch):
    workdir, _ = three
    monkeypatch.setattr(recording, "MOST_CELLS_OF_MORE", 100)
    names = {"schmidt.rank", "output.superposition.sums.r2"}
    metrics = [metric for metric in measure.missing_metrics("grid", set())
               if names & {*metric.fixed_names} or "tensors" in metric.needs]  # fmt: skip
    found = measure.measure(results.load(workdir), metrics, progress=False)
    assert np.prod(found.sizes) <= 100 and found.sizes[2] == 3
    assert found.maps["volume"].shape == (2, 5, *found.sizes[::-1])
    assert np.isfinite(found.numbers["schmidt.rank"]).all()


# --- what cannot be measured, and damage ---------------------------------------------------------


def test_runs_that_cannot_be_measured_are_named(run, tmp_path, monkeypatch):
    with pytest.raises(RunError, match="holds no run"):
        measure.measure_directory(tmp_path)
    loaded = results.load(run)
    every_cell = loaded.task._replace(held_out=lambda points: np.zeros(len(points), bool))
    rest = loaded.params, loaded.summary, loaded.seeds, loaded.path
    full = FinishedRun(loaded.config, every_cell, *rest)
    with pytest.raises(RunError, match="nothing is held out to analyse"):
        measure.measure(full, measure.missing_metrics("grid", set()), progress=False)
    with pytest.raises(RunError, match="there is no metric probe.r2"):
        measure.measure_directory(run, "probe.r2", progress=False)
    for place in ("grid", "points", "id_cells"):
        broken = with_bias(results.load(run), "hidden_2", np.nan)
        with pytest.raises(RunError, match="layer_02 of seed 7 has activations that are not fin"):
            measure.measure(broken, measure.missing_metrics(place, set()), progress=False)

    def few(*arguments, **settings):
        raise ValueError("6 ID points: 5 folds need at least 10")

    monkeypatch.setattr("compgen_jax.metrics.probes.probe", few)
    (run / "analysis.json").rename(tmp_path / "kept")
    with pytest.raises(RunError, match=f"{run}: 6 ID points: 5 folds need at least 10"):
        measure.measure_directory(run, progress=False)
    (tmp_path / "kept").rename(run / "analysis.json")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("analysis.npz", lambda content: content[: len(content) // 2]),
        ("analysis.npz", lambda content: b""),
        ("analysis.npz", lambda content: content[:1] + b"\0" * 40),
        ("layers.csv", lambda content: content[: len(content) // 2]),
        ("layers.csv", lambda content: content[: content.rindex(b"\n", 0, -1)]),
        ("layers.csv", lambda content: b""),
        ("layers.csv", lambda content: b"\x80" + content),
        ("layers.csv", lambda content: content.replace(b"\n7,", b"\n8,", 1)),
        ("layers.csv", lambda content: content.replace(b",output,", b",", 1)),
        ("analysis.json", lambda content: b"{"),
        ("analysis.json", lambda content: content.replace(b'"seeds"', b'"sed"', 1)),
        ("analysis.json", lambda content: content.replace(b'"rows": ', b'"rows": 9', 1)),
        ("analysis.json", lambda content: b'{"version": %d}' % measure.VERSION),
    ],
)
def test_damage_is_named_in_one_line(measured, run, name, damage):
    whole = (run / name).read_bytes()
    (run / name).write_bytes(damage(whole))
    try:
        with pytest.raises(RunError, match=r"analysis(\.json)? is damaged") as error:
            measure.measure_directory(run, progress=False)
        assert "\n" not in str(error.value)
    finally:
        (run / name).write_bytes(whole)


def test_a_table_of_another_version_or_without_its_files_is_made_anew(measured, run):
    assert measure.read(run) is not None
    for name in ("analysis.npz", "layers.csv"):
        whole = (run / name).read_bytes()
        (run / name).unlink()
        assert measure.read(run) is None
        (run / name).write_bytes(whole)
    whole = (run / "analysis.json").read_text()
    for text in ("[]", '{"version": 0}', whole.replace(f": {measure.VERSION},", ": 1,", 1)):
        (run / "analysis.json").write_text(text)
        assert measure.read(run) is None
    (run / "analysis.json").write_text(whole)
    # rows that were written before a process was killed, and its summary was not
    with (run / "layers.csv").open("a") as file:
        file.write("0,12,layer_00,mine.other,1.0\n7,12,lay")
    again = measure.read(run)
    assert again.table.keys() >= measured.table.keys()
    assert "mine.other" not in again.numbers


def test_tables_are_read_as_data_frames(measured, run):
    pytest.importorskip("pandas")
    from compgen_jax import tables

    frame = tables.layers(run).query("metric == 'probe.id_r2' and layer == 'layer_02'")
    assert frame.value.tolist() == measured.numbers["probe.id_r2"][:, 2].tolist()
    assert tables.metrics(run).seed.unique().tolist() == [0, 7]
