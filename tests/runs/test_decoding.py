"""What is read of every layer of a run of tasks of modules: known answers, cache, bad input."""

import json

import chex
import jax
import numpy as np
import pytest

from compgen_jax.config import Config, TrainingConfig, changed
from compgen_jax.models.task_conditioned import TaskMLP
from compgen_jax.runs import decoding, directory, experiment, results
from compgen_jax.runs.directory import RunError
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.modules import Modules
from compgen_jax.training import family, loop

TESTS, M = 32, 4
TINY = Config(
    name="tiny",
    task=Modules(modules=M, most=2, inputs=3, hidden=5, outputs=2, samples=3, tests=TESTS),
    model=TaskMLP(depth=2, width=24),
    training=TrainingConfig(
        steps=30, evaluate_every=15, batch_size=16, seeds=(0, 7), schedule="cosine",
        decay="matrices",
    ),
)  # fmt: skip
NUMBERS = {f"{control}{region}_r2" for control in ("", "untrained.", "shuffled.")
           for region in ("id", "ood")}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run, shared by the tests that only read it."""
    workdir = tmp_path_factory.mktemp("decoding") / "run"
    experiment.train(TINY, workdir, progress=False)
    return workdir


@pytest.fixture(scope="module")
def found(run):
    return decoding.decode_directory(run, progress=False)


def equal(first, second):
    assert (first.layers, first.seeds) == (second.layers, second.seeds)
    for group in ("numbers", "outputs"):
        chex.assert_trees_all_equal(getattr(first, group), getattr(second, group))


def test_every_layer_of_every_seed_and_the_cache(run, found):
    assert found.layers == ("layer_00", "layer_01", "layer_02") and found.seeds == (0, 7)
    assert set(found.numbers) == NUMBERS and set(found.outputs) == {"recovery", "active_recovery"}
    assert all(values.shape == (2, 3) for values in found.numbers.values())
    assert found.outputs["recovery"].shape == (2,)
    assert (0 <= found.outputs["recovery"]).all() and (found.outputs["recovery"] <= 1).all()
    before = (run / "analysis.json").stat().st_mtime_ns
    equal(decoding.decode_directory(run, progress=False), found)
    assert (run / "analysis.json").stat().st_mtime_ns == before
    written = json.loads((run / "analysis.json").read_text())["decoding"]
    assert written["layers"] == list(found.layers) and written["seeds"] == [0, 7]
    mean = written["mean"]["ood_r2"][1]["value"]
    assert mean == pytest.approx(found.numbers["ood_r2"][:, 1].mean())
    recovery = found.outputs["recovery"].mean()
    assert written["mean"]["recovery"]["value"] == pytest.approx(recovery)


def test_the_input_says_the_latent_and_permuted_latents_say_nothing(found):
    """Whatever the network is: its code is the latent itself."""
    for region in ("id", "ood"):
        for control in ("", "untrained."):
            assert (found.numbers[f"{control}{region}_r2"][:, 0] > 0.999).all()
    assert (found.numbers["shuffled.id_r2"] < 0.1).all()
    first, untrained = (found.numbers[f"{name}ood_r2"][:, 1] for name in ("", "untrained."))
    assert (first != untrained).all() and (first > 0.5).all()


def test_what_is_decoded_are_the_layers_at_the_first_inputs_of_every_test(run):
    """Those that the run is scored on."""
    loaded = results.load(run)
    task, key = loaded.task, jax.random.key(7)
    params = jax.tree.map(lambda leaf: leaf[1], loaded.params)
    found = decoding._features(loaded)(key, params, task.points)
    given = jax.jit(lambda: tasks.examples_at(task, loop.stream(key, "test"), task.points).input)()
    module = TINY.model.make(family.shapes_of(task))
    one = jax.jit(lambda index: module.apply(params, jax.tree.map(lambda leaf: leaf[index], given)))
    for index in (0, 9, TESTS + 5):
        for name, layer in one(index)[1].items():
            assert found[name].shape == (2 * TESTS, 2, layer.shape[1])
            np.testing.assert_allclose(found[name][index], layer[:2], atol=1e-5)


# --- known answers ---------------------------------------------------------------------------


def points_of(config=TINY):
    task = config.task.make()
    return task.points, np.asarray(task.held_out(task.points))


def test_factors_beside_noise_are_read_and_noise_is_not():
    """Both rows of a point are in one fold: what is the same in them does not tell the point."""
    points, held_out = points_of()
    rng = np.random.default_rng(0)
    noise = np.repeat(rng.normal(size=(2 * TESTS, 1, 8)), 2, axis=1)
    whole = np.concatenate([np.repeat(points[:, None], 2, axis=1), 0.001 * noise], axis=2)
    numbers, found = decoding._of_seed({"noise": noise, "whole": whole}, points, held_out, 0)
    for region in ("id", "ood"):
        assert numbers[f"{region}_r2"][0] < 0.1 and numbers[f"{region}_r2"][1] > 0.999
        assert (numbers[f"shuffled.{region}_r2"] < 0.1).all()
    assert found == {"recovery": 1, "active_recovery": 1}
    _, found = decoding._of_seed({"noise": noise}, points, held_out, 0)
    recovery = found["recovery"]
    distinct = len(np.unique(points[held_out], axis=0))
    assert recovery < 6 / distinct


def test_a_module_that_was_never_shown_counts_as_not_read():
    """As no readout of it can be fitted; not as NaN, and not left out of the mean."""
    points, held_out = points_of(changed(TINY, {"task.support.name": "non_compositional"}))
    assert not points[~held_out, M - 1].any() and points[held_out, M - 1].all()
    layer = np.repeat(points[:, None].astype(np.float64), 2, axis=1)
    numbers, found = decoding._of_seed({"code": layer}, points, held_out, 0)
    for region in ("id", "ood"):
        np.testing.assert_allclose(numbers[f"{region}_r2"], (M - 1) / M, atol=1e-3)
    assert 0 <= found["recovery"] <= found["active_recovery"] <= 1


def test_a_module_that_no_held_out_set_has_is_left_out_of_their_mean():
    """Of a hub all sets are seen: its weight is 0 at every held-out point, and no R^2 is known."""
    points, held_out = points_of(
        changed(TINY, {"task.support.name": "popular", "task.support.held_out_share": 0.5})
    )
    assert not points[held_out].any(axis=0).all() and points[~held_out].any(axis=0).all()
    layer = np.repeat(points[:, None].astype(np.float64), 2, axis=1)
    numbers, _ = decoding._of_seed({"code": layer}, points, held_out, 0)
    for region in ("id", "ood"):
        assert numbers[f"{region}_r2"][0] > 0.999
    assert np.isnan(decoding._over_factors(np.full((2, 3), np.nan), 3)).all()


def test_the_share_recovered_is_of_points_that_are_nearest_to_what_was_read():
    rng = np.random.default_rng(1)
    own = rng.normal(size=(2000, 3))
    assert decoding._recovery(own, own) == 1
    assert decoding._recovery(own + 1e-6 * rng.normal(size=own.shape), own) == 1
    assert decoding._recovery(rng.normal(size=own.shape), own) < 5 / 2000
    # by a loop, at an error of about the distance of neighbours
    own = own[:150]
    read = own + 0.2 * rng.normal(size=own.shape)
    hits = [int(np.argmin([sum((each - other) ** 2) for other in own])) == index
            for index, each in enumerate(read)]  # fmt: skip
    assert decoding._recovery(read, own) == np.mean(hits) and 0.05 < np.mean(hits) < 0.95


def test_points_of_the_same_factors_are_as_good_as_each_other():
    """Of k-hot weights every set has one latent, which comes many times; chance is a share of the
    sets."""
    own = np.repeat(np.eye(5), 40, axis=0)
    assert decoding._recovery(own + 0.1, own) == 1
    read = own[np.random.default_rng(0).permutation(200)]
    assert decoding._recovery(read, own) == pytest.approx((read == own).all(axis=1).mean())


# --- what cannot be decoded ------------------------------------------------------------------


@pytest.mark.parametrize("text", ["{", "", "\x80"])
def test_a_file_that_is_no_json_is_named(tmp_path, text):
    (tmp_path / "analysis.json").write_text(text, encoding="latin1")
    with pytest.raises(RunError, match=r"analysis\.json is damaged"):
        decoding.decode_directory(tmp_path, progress=False)


@pytest.mark.parametrize("damage", [
    lambda saved: saved.pop("numbers"),
    lambda saved: saved.update(numbers=[1]),
    lambda saved: saved["numbers"].update(id_r2="x"),
    lambda saved: saved["outputs"].update(recovery=[{}]),
    lambda saved: saved.update(layers=3),
    lambda saved: saved.clear(),
])  # fmt: skip
def test_a_damaged_cache_is_named_in_one_line(run, found, tmp_path, damage):
    saved = json.loads((run / "analysis.json").read_text())
    damage(saved["decoding"])
    path = tmp_path / "analysis.json"
    path.write_text(json.dumps(saved))
    with pytest.raises(RunError, match=r"its analysis is damaged .* remove .*analysis\.json") as e:
        decoding.decode_directory(tmp_path, progress=False)
    assert "\n" not in str(e.value)


def test_a_cache_of_another_version_is_made_anew(run, found):
    before = (run / "analysis.json").read_bytes()
    for text in ("[]", '{"version": 0, "decoding": {}}'):
        (run / "analysis.json").write_text(text)
        equal(decoding.decode_directory(run, progress=False), found)
        assert (run / "analysis.json").read_bytes() == before


def test_networks_that_are_not_finite_are_named(run):
    loaded = results.load(run)
    params = jax.tree.map(np.array, loaded.params)
    params["params"]["hidden_2"]["bias"][1] = np.nan
    with pytest.raises(RunError, match="layer_02 of seed 7 has activations that are not finite"):
        decoding.decode(loaded._replace(params=params), progress=False)


def test_a_run_that_is_not_finished_is_not_decoded(tmp_path):
    with pytest.raises(RunError, match="holds no run"):
        decoding.decode_directory(tmp_path, progress=False)


# --- the run itself --------------------------------------------------------------------------


def test_a_killed_run_goes_on_to_the_same_bits(run, tmp_path, monkeypatch):
    """Along its cosine, and through tasks that are functions of the step."""
    save = directory.save

    def save_and_stop(*args):
        save(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(directory, "save", save_and_stop)
        own = changed(TINY, {"execution.chunk_steps": 4})
        experiment.train(own, tmp_path / "killed", progress=False)
    assert directory.last_checkpoint(tmp_path / "killed").name == "15"
    summary = experiment.train(TINY, tmp_path / "killed", progress=False)
    assert summary == json.loads((run / "summary.json").read_text())
    for name in ("metrics.csv", "summary.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (run / name).read_bytes()
    params = [results.load(path).params for path in (run, tmp_path / "killed")]
    chex.assert_trees_all_equal(*params)


def test_training_lowers_the_error_of_seen_and_held_out_tasks(run):
    rows = (run / "metrics.csv").read_text().splitlines()
    names, first, last = (row.split(",") for row in (rows[0], rows[1], rows[-2]))
    for name in ("train_loss", "id.mse"):
        column = names.index(name)
        assert float(last[column]) < float(first[column])
    assert {"id.r2", "ood.r2", "ood.task_r2", "ood.task_accuracy"} <= set(names)
