"""All measurements of a finished run: shapes, known answers, cache, bad input."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.config import Config, TrainingConfig, changed
from compgen_jax.metrics import geometry, layers
from compgen_jax.models.mlp import MLP
from compgen_jax.runs import experiment, inspection, results
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks.encodings import encode
from compgen_jax.tasks.rotation import GapConfig, Rotation

N = 8


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("inspection") / "run"
    experiment.train(tiny, workdir, progress=False)
    return workdir


def test_every_layer_of_every_seed_and_the_cache(run):
    found = inspection.inspect_directory(run, progress=False)
    assert found.layers == ("layer_00", "layer_01", "layer_02", "layer_03", "output")
    assert (found.factors, found.sizes, found.seeds) == (("x", "y"), (N, N), (0, 7))
    held_out = [[3 <= x <= 5 and 3 <= y <= 5 for x in range(N)] for y in range(N)]
    np.testing.assert_array_equal(found.maps["held_out"], held_out)
    assert all(values.shape == (2, 5) for values in found.numbers.values())
    assert set(layers.LAYER_NUMBERS) < set(found.numbers)
    assert all(values.shape == (2,) for values in found.outputs.values())
    assert found.maps["volume"].shape == (2, 5, N, N)
    assert (found.outputs["output.target_rank"] >= 1).all()
    # a block with a hole is a mixture of two products, up to the noise of 60 draws
    law = [found.outputs[f"output.training_law_kl_rank_{k}"] for k in (1, 2)]
    assert (law[1] < law[0]).all() and (law[1] >= 0).all()
    assert found.maps["superposition.points"].shape == (4, 2)
    written = json.loads((run / "analysis.json").read_text())
    assert written["layers"] == list(found.layers) and written["seeds"] == [0, 7]
    number = written["mean"]["probe.id_r2"][1]
    assert number["value"] == pytest.approx(found.numbers["probe.id_r2"][:, 1].mean())
    before = (run / "analysis.json").stat().st_mtime_ns
    again = inspection.inspect_directory(run, progress=False)
    assert (run / "analysis.json").stat().st_mtime_ns == before
    for name, values in found.numbers.items():
        np.testing.assert_array_equal(again.numbers[name], values)
    np.testing.assert_array_equal(again.maps["volume"], found.maps["volume"])
    assert (again.factors, again.sizes) == (found.factors, found.sizes)


def test_the_code_is_layer_0_with_its_known_geometry_and_factorization(run, tiny):
    found = inspection.inspect_directory(run, progress=False)
    assert found.numbers["schmidt.rank"][:, 0].tolist() == [2, 2]
    np.testing.assert_allclose(found.numbers["anova.interaction"][:, 0], 0, atol=1e-9)
    np.testing.assert_allclose(found.numbers["factorization.cosine"][:, 0], 1, atol=1e-6)
    jacobian = jax.jacfwd(lambda p: encode([(p[0], N), (p[1], N)], tiny.task.code))(
        jnp.array([5.0, 2.0])
    )
    volume = float(jnp.sqrt(jnp.linalg.det(jacobian.T @ jacobian)))
    np.testing.assert_allclose(found.maps["volume"][:, 0, 2, 5], volume, rtol=1e-5)


def test_metric_of_the_drawn_signal_agrees_with_small_differences(run, tiny):
    found = inspection.inspect_directory(run, progress=False)
    step, (x, y) = 0.02, (5.0, 2.0)
    points = jnp.array([[x + dx, y + dy] for dy in (-step, 0, step) for dx in (-step, 0, step)])
    signals = results.load(run).predict(points)
    grids = signals.reshape(2, 3, 3, N * N)
    for grid, volume in zip(grids, found.maps["volume"][:, -1, 2, 5], strict=True):
        metric = geometry.grid_metric(jnp.asarray(grid), step)[1, 1]
        assert float(geometry.volume_element(metric)) == pytest.approx(volume, rel=0.05)


def test_a_code_without_derivative_has_no_geometry_but_all_else(tiny, tmp_path, replace_in):
    config = replace_in(replace_in(tiny, "task.code.name", "onehot"), "training.epochs", 1)
    experiment.train(config, tmp_path / "run", progress=False)
    found = inspection.inspect_directory(tmp_path / "run", progress=False)
    assert "volume" not in found.maps
    assert np.isnan(found.numbers["factorization.cosine"]).all()
    assert np.isfinite(found.numbers["probe.id_r2"]).all()


def test_runs_that_cannot_be_analysed_are_named(tiny, tmp_path, replace_in, run):
    with pytest.raises(RunError, match="holds no run"):
        inspection.inspect_directory(tmp_path)
    config = replace_in(replace_in(tiny, "task.support.region", "none"), "training.epochs", 1)
    experiment.train(config, tmp_path / "full", progress=False)
    with pytest.raises(RunError, match="nothing is held out to analyse"):
        inspection.inspect_directory(tmp_path / "full", progress=False)
    broken = results.load(run)
    params = jax.tree.map(np.copy, broken.params)
    params["params"]["hidden_1"]["bias"][1] = np.nan
    with pytest.raises(RunError, match="layer_02 of seed 7 has activations that are not finite"):
        inspection.inspect(broken._replace(params=params), progress=False)


def test_angles_and_labels_have_no_regression_on_cells(tmp_path):
    """Of which the last and the first lie side by side, and no two are near."""
    digits = Config(
        task=Rotation(side=8, objects=(4, 7), angles=24, samples=24, gap=GapConfig(of=(4,))),
        model=MLP(depth=1, width=6),
        training=TrainingConfig(steps=4, evaluate_every=4, seeds=(0,)),
    )
    experiment.train(digits, tmp_path / "run", progress=False)
    found = inspection.inspect_directory(tmp_path / "run", progress=False)
    for name in ("factorized", "isotropic"):
        assert np.isnan(found.outputs[f"output.kernel_regression.{name}_error"]).all()


def test_damaged_cache_is_named_and_can_be_made_anew(run):
    found = inspection.inspect_directory(run, progress=False)
    maps = (run / "analysis.npz").read_bytes()
    for damaged in (maps[: len(maps) // 2], b"", bytes([maps[0]]) + b"\0" * 40):
        (run / "analysis.npz").write_bytes(damaged)
        with pytest.raises(RunError, match=r"its analysis is damaged .* remove .*analysis\.json"):
            inspection.inspect_directory(run, progress=False)
    (run / "analysis.npz").write_bytes(maps)
    whole = json.loads((run / "analysis.json").read_text())
    for damage in ({"layers": None}, {"numbers": []}, {"seeds": 7}):
        (run / "analysis.json").write_text(json.dumps(whole | damage))
        with pytest.raises(RunError, match=r"its analysis is damaged .* remove .*analysis\.json"):
            inspection.inspect_directory(run, progress=False)
    (run / "analysis.json").unlink()
    again = inspection.inspect_directory(run, progress=False)
    np.testing.assert_allclose(again.maps["volume"], found.maps["volume"], rtol=1e-6)


def test_points_that_are_too_few_to_read_layers_are_named(run, monkeypatch):
    (run / "analysis.json").unlink(missing_ok=True)

    def few(*arguments, **settings):
        raise ValueError("6 ID points: 5 folds need at least 10")

    monkeypatch.setattr(inspection.layers, "layer_numbers", few)
    with pytest.raises(RunError, match=f"{run}: 6 ID points: 5 folds need at least 10"):
        inspection.inspect_directory(run, progress=False)


THREE = {
    "task.size.values": 3,
    "task.size.low": 1,
    "task.size.high": 1,
    "task.size.smallest": 0.8,
    "task.size.largest": 1.6,
    "task.support.samples": 200,
    "training.epochs": 1,
    "training.evaluate_every": 1,
}


@pytest.fixture(scope="module")
def three(tiny, tmp_path_factory):
    """A run of three factors and its inspection."""
    workdir = tmp_path_factory.mktemp("three") / "run"
    config = changed(tiny, THREE)
    experiment.train(config, workdir, progress=False)
    return workdir, inspection.inspect_directory(workdir, progress=False)


def test_three_factors_have_metrics_of_three_rows_and_all_numbers(three):
    workdir, found = three
    assert found.factors == ("x", "y", "size") and found.sizes == (N, N, 3)
    assert found.maps["volume"].shape == (2, 5, 3, N, N)
    assert found.maps["held_out"].shape == (3, N, N) and found.maps["held_out"].sum() == 9
    assert found.maps["superposition.points"].shape == (4, 3)
    assert found.maps["superposition.mean_code"].shape == (4, 3, N, N)  # a part for each factor
    assert {f"probe.{name}.ood_r2" for name in found.factors} < set(found.numbers)
    for name, values in found.numbers.items():
        assert np.isfinite(values[:, :-1]).all() or "ood" in name, name
    for name in ("output.target_rank", "output.cosine.true", "output.training_law_kl_rank_1",
                 "output.superposition.mean_code.r2"):  # fmt: skip
        assert np.isfinite(found.outputs[name]).all(), name
    # one product of the factors is no law with a hole; two products are
    law = [found.outputs[f"output.training_law_kl_rank_{k}"] for k in (1, 2)]
    assert (law[1] < law[0]).all() and (law[1] >= -1e-9).all()
    again = inspection.inspect_directory(workdir, progress=False)
    np.testing.assert_array_equal(again.maps["volume"], found.maps["volume"])


def test_the_code_of_three_factors_has_its_known_volume_and_no_interaction(three, tiny):
    """Each factor has units of its own: the metric is diagonal, the volume a product."""
    _, found = three
    task = changed(tiny, THREE).task.make()
    key, point = jax.random.key(0), jnp.array([5.0, 2.0, 1.2])
    jacobian = np.asarray(jax.jacfwd(lambda p: task.example(key, p).input)(point), np.float64)
    metric = jacobian.T @ jacobian
    np.testing.assert_allclose(metric, np.diag(np.diag(metric)), atol=1e-6)
    expected = np.prod(np.diag(metric)) ** 0.5
    np.testing.assert_allclose(found.maps["volume"][:, 0, 1, 2, 5], expected, rtol=1e-4)
    np.testing.assert_allclose(found.numbers["anova.interaction"][:, 0], 0, atol=1e-9)
    np.testing.assert_allclose(found.numbers["factorization.cosine"][:, 0], 1, atol=1e-5)


def test_the_volume_of_three_factors_agrees_with_small_differences(three):
    """Of the drawn signal, column by column of the Jacobian."""
    workdir, found = three
    run, centre, step = results.load(workdir), np.float32([5, 2, 1.2]), 0.02
    moves = np.concatenate([step * np.eye(3), -step * np.eye(3)]).astype(np.float32)
    signals = run.predict(centre + moves)
    flat = signals.reshape(2, 2, 3, N * N)
    jacobians = np.float64(flat[:, 0] - flat[:, 1]) / (2 * step)
    for jacobian, volume in zip(jacobians, found.maps["volume"][:, -1, 1, 2, 5], strict=True):
        assert np.linalg.det(jacobian @ jacobian.T) ** 0.5 == pytest.approx(volume, rel=0.1)


def test_more_cells_than_can_be_held_are_measured_on_a_subgrid(three, monkeypatch):
    workdir, whole = three
    monkeypatch.setattr(inspection, "MOST_CELLS_OF_MORE", 100)
    found = inspection.inspect(results.load(workdir), progress=False)
    assert np.prod(found.sizes) <= 100 and found.sizes[2] == 3 and found.factors == whole.factors
    assert found.maps["volume"].shape == (2, 5, *found.sizes[::-1])
    assert np.isfinite(found.numbers["schmidt.rank"]).all()


@pytest.mark.parametrize("fresh", ["cells", "real"])
def test_a_stream_has_no_law_of_a_training_set_but_all_else(tiny, tmp_path, fresh):
    config = changed(tiny, {
        "task.support.fresh": fresh, "training.steps": 4, "training.evaluate_every": 4,
        "training.seeds": (0,),
    })  # fmt: skip
    experiment.train(config, tmp_path / "run", progress=False)
    found = inspection.inspect_directory(tmp_path / "run", progress=False)
    for k in (1, 2):
        assert np.isnan(found.outputs[f"output.training_law_kl_rank_{k}"]).all()
    assert np.isfinite(found.outputs["output.superposition.sums.r2"]).all()
    assert np.isfinite(found.numbers["probe.id_r2"]).all()
    assert found.maps["volume"].shape == (1, 5, N, N)
