"""All measurements of a finished run: shapes, known answers, cache, bad input."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.analysis import geometry, layers
from compgen_jax.runs import experiment, inspection, results
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import supports
from compgen_jax.tasks.encodings import encode

N = 8
CELLS = supports.cells(N)
HELD_OUT = (np.abs(CELLS - 4) <= 1).all(axis=1)  # a 3 x 3 hole


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("inspection") / "run"
    experiment.train(tiny, workdir, progress=False)
    return workdir


def test_every_layer_of_every_seed_and_the_cache(run):
    found = inspection.inspect_directory(run, progress=False)
    assert found.layers == ("layer_00", "layer_01", "layer_02", "layer_03", "output")
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


def test_the_code_is_layer_0_with_its_known_geometry_and_factorization(run, tiny):
    found = inspection.inspect_directory(run, progress=False)
    assert found.numbers["schmidt.rank"][:, 0].tolist() == [2, 2]
    np.testing.assert_allclose(found.numbers["anova.interaction"][:, 0], 0, atol=1e-9)
    np.testing.assert_allclose(found.numbers["factorization.cosine"][:, 0], 1, atol=1e-6)
    jacobian = jax.jacfwd(lambda p: encode(*p, N, tiny.task.code))(jnp.array([5.0, 2.0]))
    volume = float(jnp.sqrt(jnp.linalg.det(jacobian.T @ jacobian)))
    np.testing.assert_allclose(found.maps["volume"][:, 0, 2, 5], volume, rtol=1e-5)


def test_metric_of_the_drawn_signal_agrees_with_small_differences(run, tiny):
    found = inspection.inspect_directory(run, progress=False)
    step, (x, y) = 0.02, (5.0, 2.0)
    points = jnp.array([[x + dx, y + dy] for dy in (-step, 0, step) for dx in (-step, 0, step)])
    signals = results.decode(results.load(run), points)
    grids = signals.reshape(2, 3, 3, N * N)
    for grid, volume in zip(grids, found.maps["volume"][:, -1, 2, 5], strict=True):
        metric = geometry.grid_metric(jnp.asarray(grid), step)[1, 1]
        assert float(geometry.volume_element(metric)) == pytest.approx(volume, rel=0.05)


def test_layers_of_known_answer():
    x, y = CELLS.T.astype(float)
    additive = layers.layer_numbers(np.stack([x, y, x + y], axis=1), CELLS, HELD_OUT)
    assert additive["anova.interaction"] == pytest.approx(0, abs=1e-12)
    assert additive["probe.ood_r2"] == pytest.approx(1, abs=1e-3)
    product = layers.layer_numbers(((x - 3.5) * (y - 3.5))[:, None], CELLS, HELD_OUT)
    assert product["anova.interaction"] == pytest.approx(1)
    # over the hole x and y have means of their own, so the product has main effects there
    u, v = CELLS[HELD_OUT].T - 3.5
    total = np.var(u * v)
    main = np.var(u) * v.mean() ** 2 + np.var(v) * u.mean() ** 2
    assert product["anova.interaction_ood"] == pytest.approx(1 - main / total)
    constant = layers.layer_numbers(np.ones((64, 3)), CELLS, HELD_OUT)
    assert all(np.isnan(value) for value in constant.values())
    random_hole = np.random.default_rng(0).permutation(HELD_OUT)
    found = layers.layer_numbers(np.stack([x, y, x * y], axis=1), CELLS, random_hole)
    assert np.isnan(found["anova.interaction_ood"]) and found["anova.interaction"] > 0


def test_volume_of_the_hole_against_the_rest():
    scale = np.where(HELD_OUT, 10.0, 1.0) * np.exp(0.1 * np.sin(np.arange(64)))
    metrics = jnp.asarray(np.eye(2) * scale[:, None, None])  # volume is the scale
    found = layers.geometry_numbers(metrics, HELD_OUT)
    logs = np.log10(scale)
    expected = logs[HELD_OUT].mean() - logs[~HELD_OUT].mean()
    assert found["volume.log10_ratio"] == pytest.approx(expected, rel=1e-4)
    pooled = np.sqrt((logs[HELD_OUT].var() + logs[~HELD_OUT].var()) / 2)
    assert found["volume.effect"] == pytest.approx(expected / pooled, rel=1e-3)
    assert found["factorization.cosine"] == pytest.approx(1)


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


def test_damaged_cache_is_named_and_can_be_made_anew(run):
    found = inspection.inspect_directory(run, progress=False)
    maps = (run / "analysis.npz").read_bytes()
    (run / "analysis.npz").write_bytes(maps[: len(maps) // 2])
    with pytest.raises(RunError, match=r"its analysis is damaged .* remove .*analysis\.json"):
        inspection.inspect_directory(run, progress=False)
    (run / "analysis.json").unlink()
    again = inspection.inspect_directory(run, progress=False)
    np.testing.assert_allclose(again.maps["volume"], found.maps["volume"], rtol=1e-6)
