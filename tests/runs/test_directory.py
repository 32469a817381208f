"""The run directory: what is written, resumed, refused and never lost."""

import io
import json
import os
import shutil
import zipfile

import chex
import filelock
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from compgen_jax import config as configs
from compgen_jax.config import ConfigError, changed
from compgen_jax.runs import directory, study
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from compgen_jax.tasks import baselines, bump, table_files
from compgen_jax.tasks import task as tasks
from compgen_jax.training import checkpoints, loop
from tests.command import refused
from tests.interrupts import interrupted_after_a_save


def contents(path):
    files = [p for p in sorted(path.rglob("*")) if p.is_file()]
    return {p: p.read_bytes() for p in files if p.name not in (".lock", "train.log")}


def test_a_run_writes_what_the_readme_promises(tiny, tiny_run):
    workdir, summary = tiny_run
    assert directory.read_config(workdir) == tiny
    assert json.loads((workdir / "summary.json").read_text()) == summary
    assert set(summary) == {"seeds", "mean"} and set(summary["seeds"]) == {"0", "7"}
    keys = {f"{region}.{name}" for region in ("id", "ood")
            for name in ("mse", "blank_mse", "exact_accuracy", "position_accuracy")}  # fmt: skip
    assert keys <= set(summary["seeds"]["7"]) and keys <= set(summary["mean"])
    number = summary["mean"]["ood.mse"]
    per_seed = [summary["seeds"][seed]["ood.mse"] for seed in ("0", "7")]
    assert number["value"] == pytest.approx(np.mean(per_seed))
    half = 12.706204736174694 * abs(per_seed[1] - per_seed[0]) / 2  # Student's t, 1 degree
    assert number["ci95"] == pytest.approx([number["value"] - half, number["value"] + half])
    assert (workdir / "metrics.csv").read_text().startswith("step,epoch,seed,train_loss,")


def test_parameters_along_training_and_scores_of_cells_are_kept(run):
    config, workdir = run.config, run.path
    assert run.kept_steps == [1, 2, 3, 6, 12]
    folder, template = workdir / "parameters", loop.template(config).params
    chex.assert_trees_all_equal(checkpoints.restore(folder, 12, template).state, run.params)
    early = checkpoints.restore(folder, 1, template).state
    init = jax.jit(jax.vmap(loop.make_trainer(config).init))
    start = init(jax.vmap(jax.random.key)(jnp.array([0, 7])))
    moved = jax.tree.map(lambda a, b: np.abs(a - b).max(), early, start.params)
    assert 0 < max(jax.tree.leaves(moved)) < 2e-3  # one step of AdamW
    with pytest.raises(RunError, match="parameters/5 is missing"):
        run.at(5)
    errors = directory.read_arrays(workdir / "late.npz")["mse"][1]
    error = run.summary["seeds"]["7"]["ood.mse"]
    held_out = tasks.regions(run.task)["ood"]
    assert np.median(errors[:, held_out].mean(axis=1)) == pytest.approx(error, rel=1e-5)


def test_late_networks_are_those_of_checkpoints(copy):
    shutil.rmtree(copy / "parameters")
    run = Run.load(copy)
    for late, end in zip(*map(jax.tree.leaves, (run.late.params, run.params)), strict=True):
        assert late.shape == (2, loop.LAST, *end.shape[1:])
        np.testing.assert_array_equal(late[:, -1], end)


def test_the_training_loss_is_the_mean_of_an_epoch(tiny, tmp_path):
    job = study.new_job(tiny, tmp_path)._replace(saved=checkpoints.Checkpoint(0, None, []))
    losses = np.array([[9.0, 1, 2], [9, 3, 5]])
    means = {f"{region}.exact_accuracy": np.ones(2) for region in ("id", "ood")}
    study._record(job, 3, {"w": np.zeros(2)}, losses, means)
    assert [row["train_loss"] for row in job.saved.rows] == [1.5, 4]


def test_a_finished_run_is_not_changed_by_a_second_run_nor_by_one_of_another_config(
    tiny, tiny_run, copy
):
    before = contents(copy)
    assert study.train(tiny, copy) == tiny_run[1]
    assert contents(copy) == before
    with pytest.raises(RunError, match=r"learning_rate is 0.001 there, 0.5 here"):
        study.train(changed(tiny, {"training.learning_rate": 0.5}), copy)
    assert contents(copy) == before


def test_interrupted_run_is_not_loaded_and_ends_with_the_same_bits(tiny, tiny_run, tmp_path):
    workdir, resumed = tiny_run[0], tmp_path / "run"
    for _ in range(2):
        with interrupted_after_a_save():
            # other chunks: how a run is carried out may change between its parts
            study.train(changed(tiny, {"execution.chunk_steps": 3}), resumed)
    assert not directory.is_finished(resumed)
    with pytest.raises(RunError, match="not finished; compgen-jax train resumes it"):
        Run.load(resumed)
    study.train(tiny, resumed)
    for name in ("metrics.csv", "summary.json", "late.npz"):
        assert (resumed / name).read_bytes() == (workdir / name).read_bytes()
    runs = [Run.load(path) for path in (workdir, resumed)]
    chex.assert_trees_all_equal(*((run.params, run.along.params) for run in runs))


def test_a_damaged_summary_is_named_and_kept(tiny, copy):
    """Other files: tests/runs/test_damage.py."""
    (copy / "summary.json").write_text("{")
    before = contents(copy)
    with pytest.raises(RunError, match="summary.json is damaged"):
        study.train(tiny, copy)
    assert contents(copy) == before


def test_what_is_said_of_a_damaged_late_checkpoint_mends_it(tiny, tiny_run, copy):
    workdir, summary = tiny_run
    before = contents(copy / "parameters")
    *_, damaged, _ = steps = checkpoints.steps(copy / "checkpoints")
    (copy / "checkpoints" / str(damaged) / "record.json").write_text("x")
    with pytest.raises(RunError, match="remove it, all later ones and summary.json, and the same"):
        checkpoints.restore(copy / "checkpoints", damaged, loop.template(tiny))
    for step in steps[steps.index(damaged) :]:
        shutil.rmtree(copy / "checkpoints" / str(step))
    (copy / "summary.json").unlink()
    assert study.train(tiny, copy) == summary
    assert checkpoints.steps(copy / "checkpoints") == steps
    assert contents(copy / "parameters") == before
    chex.assert_trees_all_equal(Run.load(copy).params, Run.load(workdir).params)


def test_directory_claimed_by_another_config_at_the_last_moment_is_left_alone(
    tiny, tmp_path, monkeypatch
):
    """The other process writes its config between our first look and our lock."""
    other = changed(tiny, {"training.learning_rate": 0.5})
    acquire = filelock.FileLock.acquire

    def acquire_late(lock):
        directory.write_json(tmp_path / "run" / "config.json", configs.to_dict(other))
        return acquire(lock)

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire_late)
    with (
        pytest.raises(RunError, match="belongs to another config"),
        directory.claim(tmp_path / "run", tiny),
    ):
        pass
    assert directory.read_config(tmp_path / "run") == other


def test_two_processes_cannot_share_a_directory(tiny, tmp_path):
    """Nor is another file emptied to which the lock is a link."""
    (tmp_path / "target").write_text("of another")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/.lock").symlink_to(tmp_path / "target")
    with pytest.raises(OSError), directory.claim(tmp_path / "linked", tiny):
        pass
    assert (tmp_path / "target").read_text() == "of another"
    run = tmp_path / "run"
    with directory.claim(run, tiny), pytest.raises(RunError, match="another process is at"):
        with directory.claim(run, tiny):
            pass


def test_loss_that_is_not_finite_ends_the_run_and_keeps_the_last_good(tiny, tmp_path, monkeypatch):
    workdir = tmp_path / "run"
    with interrupted_after_a_save():
        study.train(tiny, workdir)
    before = contents(workdir)
    hyper = loop.hyper_of(tiny) | {"training.learning_rate": jnp.float32(1e30)}
    with monkeypatch.context() as patch, pytest.raises(RunError) as error:
        patch.setattr(loop, "hyper_of", lambda config: hyper)
        study.train(tiny, workdir)
    # step 4 still has finite weights; its update makes the loss of step 5 overflow
    assert "the loss of seed 0 is " in str(error.value) and " at step 5; " in str(error.value)
    assert f"the last good checkpoint, if any, is in {workdir}/checkpoints" in str(error.value)
    assert contents(workdir) == before and not directory.is_finished(workdir)


def test_impossible_tasks_stop_before_anything_is_written(tiny, tmp_path):
    config = changed(tiny, {"task.support.samples": 3})
    with pytest.raises(ConfigError, match="the draw of seed 0: .*no training point has x in"):
        study.train(config, tmp_path / "run")
    assert contents(tmp_path / "run") == {}


def test_what_is_reported_is_the_median_over_the_last_evaluations(tiny, tmp_path):
    """The networks of these evaluations are kept, resumed or not, and cells are scored at all."""
    config = changed(tiny, {"training.steps": 100, "training.evaluate_every": 50})
    paths, steps = [tmp_path / name for name in ("whole", "killed")], [92, 94, 96, 98, 100]
    whole = study.train(config, paths[0])
    late = pd.read_csv(paths[0] / "metrics.csv").query("step > 90")
    for seed, numbers in whole["seeds"].items():
        values = sorted(late["ood.mse"][late.seed == int(seed)])
        assert len(values) == 5 and numbers["ood.mse"] == values[2] and values[0] < values[4]
    with interrupted_after_a_save(lambda workdir, step: step == 96):
        study.train(config, paths[1])
    assert study.train(config, paths[1]) == whole
    # also the scores of checkpoints that the resumed process did not train
    cells = [directory.read_arrays(path / "late.npz") for path in paths]
    chex.assert_trees_all_equal(*cells)
    assert [checkpoints.steps(path / "checkpoints") for path in paths] == [steps, steps]
    points, template = tasks.points(config.task.make()), loop.template(config)
    keys = jax.vmap(jax.random.key)(jnp.array(config.training.seeds))
    predict = jax.jit(jax.vmap(loop.make_trainer(config).predict, (0, 0, None)))
    for index, step in enumerate(steps):
        folders = [path / "checkpoints" for path in paths]
        states = [checkpoints.restore(folder, step, template).state for folder in folders]
        chex.assert_trees_all_equal(*states)
        *_, scores = predict(keys, states[0].params, points)
        for name in ("mse", "position_accuracy"):
            np.testing.assert_allclose(cells[0][name][:, index], scores[name], rtol=1e-5)


def test_trivial_predictors_of_a_summary_are_those_of_the_points_of_each_seed(run):
    """Those from codes are fitted to the points that the seed was shown."""
    points, regions = tasks.points(run.task), tasks.regions(run.task)
    code, image = jax.vmap(lambda point: bump.example(point, run.config.task))(points)
    predictions = {"nearest_seen": image[tasks.nearest_seen(run.task, regions["ood"])[0]]}
    for shown, numbers in zip(run.shown, run.summary["seeds"].values(), strict=True):
        assert shown.sum() < regions["id"].sum()  # of those seen, few were drawn
        for name, predict in baselines.FROM_CODES.items():
            predictions[name] = predict(code[shown], image[shown], code)
        for name, images in predictions.items():
            errors = np.square(images - image).mean(axis=(1, 2))
            for region, mask in regions.items():
                number = numbers[f"{region}.{name}_mse"]
                assert number == pytest.approx(errors[mask].mean(), rel=1e-4, abs=1e-9)


def test_a_derived_number_of_a_summary_is_the_median_of_its_own_column(own_task, tiny, tmp_path):
    """Not what the other numbers' medians give. Two evaluations, far apart at this large rate."""
    path, name = own_task
    derived = 'derived=lambda means: {"inverse": 1 / means["mse"]}, interpolated=False)'
    path.write_text(path.read_text().replace("out, example)", f"out, example, {derived}"))
    config = changed(tiny, {"task.name": name, "model.name": "mlp", "model.depth": 1,
                            "training.learning_rate": 3.0, "training.steps": 20})  # fmt: skip
    summary = study.train(config, tmp_path / "run")
    rows = pd.read_csv(tmp_path / "run" / "metrics.csv")
    for seed, numbers in summary["seeds"].items():
        late = rows[(rows["seed"] == int(seed)) & rows["step"].isin([19, 20])]
        for region in ("id", "ood"):
            expected = late[f"{region}.inverse"].median()
            assert numbers[f"{region}.inverse"] == pytest.approx(expected, rel=1e-6)
            assert 1 / late[f"{region}.mse"].median() < 0.999 * expected


def claim_of_size(path, shape):
    """An .npz whose arrays claim a shape and hold eight numbers."""
    header = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, about)
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("layers.a", "factors", "held_out", "images", "points", "predictions"):
            archive.writestr(f"{name}.npy", header.getvalue() + bytes(64))


@pytest.mark.parametrize("shape", [(2**45,), (2**62, 2**30), (-5,), (3 * 10**10,)])
def test_a_file_that_claims_a_giant_shape_is_one_line(tmp_path, shape):
    path = tmp_path / "giant.npz"
    claim_of_size(path, shape)
    with refused(f"--activations={path}: is no .npz of numbers or text, or is damaged"):
        directory.read_npz(path, "--activations=")
    with refused(f"{path} is damaged: "):
        directory.read_arrays(path)
    with refused(f"config.task.path='{path}': "):
        table_files.read(str(path))


DAMAGES = {
    "gone": None,
    "empty": lambda text: "",
    "cut at a row": lambda text: text[: text.rindex("\n", 0, -1) + 1],
    "longer row": lambda text: text[:-1] + ",1,1\n",
    "a word": lambda text: text[:-9] + "x" + text[-8:],
    "another name": lambda text: text.replace("seed", "sxed", 1),
    "binary": lambda text: "\udcff" + text,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_scores_along_training_are_named(copy, damage):
    path, run = copy / "metrics.csv", Run.load(copy, with_networks=False)
    text = path.read_text()
    path.unlink()
    if damage:
        path.write_bytes(damage(text).encode("utf-8", "surrogateescape"))
    with refused(f"{path} is damaged: ", kind=RunError):
        run.metrics()


def test_json_has_no_nan_and_writes_replace_whole_files(tmp_path, monkeypatch):
    """Whose bytes have reached the disk before they have the name."""
    path, calls = tmp_path / "a.json", []

    def recording(name, call):
        def record(*arguments):
            (temporary,) = tmp_path.glob(".a.json.*")
            calls.append((name, temporary.read_bytes()))
            return call(*arguments)

        monkeypatch.setattr(os, name, record)

    recording("fsync", os.fsync)
    recording("replace", os.replace)
    directory.write_json(path, {"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": None}})
    assert calls == [(name, path.read_bytes()) for name in ("fsync", "replace")]
    assert json.loads(path.read_text()) == {"a": None, "b": [None, 1.5], "c": {"d": None}}
    with pytest.raises(TypeError):
        directory.write_json(path, {"a": object()})
    assert json.loads(path.read_text())["b"] == [None, 1.5]
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
