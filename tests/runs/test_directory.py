"""The run directory: what is written, resumed, refused and never lost."""

import json
import os
import shutil
import subprocess
import sys

import chex
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
from compgen_jax.tasks import baselines, bump
from compgen_jax.tasks import task as tasks
from compgen_jax.training import checkpoints, loop
from tests.interrupts import interrupted_after_a_save


def contents(path):
    files = [p for p in sorted(path.rglob("*")) if p.is_file()]
    return {p: p.read_bytes() for p in files if p.name not in (".lock", "train.log")}


def test_a_run_writes_what_the_readme_promises(tiny, tiny_run):
    config, (workdir, summary) = tiny, tiny_run
    assert configs.from_dict(json.loads((workdir / "config.json").read_text())) == config
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


def test_parameters_along_training_and_scores_of_cells_are_kept(run, copy):
    config, workdir = run.config, run.path
    assert directory.kept_steps(workdir) == [1, 2, 3, 6, 12]
    template = loop.template(config).params
    chex.assert_trees_all_equal(directory.kept_parameters(workdir, 12, template), run.params)
    early = directory.kept_parameters(workdir, 1, template)
    init = jax.jit(jax.vmap(loop.make_trainer(config).init))
    start = init(jax.vmap(jax.random.key)(jnp.array([0, 7])))
    moved = jax.tree.map(lambda a, b: np.abs(a - b).max(), early, start.params)
    assert 0 < max(jax.tree.leaves(moved)) < 2e-3  # one step of AdamW
    with pytest.raises(RunError, match="parameters/5 is missing"):
        directory.kept_parameters(workdir, 5, template)
    cells, held_out = directory.read_arrays(workdir / "cells.npz"), tasks.regions(run.task)["ood"]
    of_seed = cells["mse"][1, held_out].mean()
    assert of_seed == pytest.approx(run.summary["seeds"]["7"]["ood.mse"], rel=2e-3)
    (copy / "cells.npz").write_bytes((workdir / "cells.npz").read_bytes()[:-20])
    with pytest.raises(RunError, match="cells.npz is damaged"):
        directory.read_arrays(copy / "cells.npz")


def test_a_finished_run_is_not_changed_by_a_second_run_nor_by_one_of_another_config(
    tiny, tiny_run, copy
):
    before = contents(copy)
    assert study.train(tiny, copy, progress=False) == tiny_run[1]
    assert contents(copy) == before
    with pytest.raises(RunError, match=r"learning_rate is 0.001 there, 0.5 here"):
        study.train(changed(tiny, {"training.learning_rate": 0.5}), copy, progress=False)
    assert contents(copy) == before


def test_interrupted_run_is_not_loaded_and_ends_with_the_same_bits(tiny, tiny_run, tmp_path):
    config, workdir = tiny, tiny_run[0]
    resumed = tmp_path / "run"
    for _ in range(2):
        with interrupted_after_a_save():
            # other chunks: how a run is carried out may change between its parts
            study.train(changed(config, {"execution.chunk_steps": 3}), resumed, False)
    assert not directory.is_finished(resumed)
    with pytest.raises(RunError, match="not finished; compgen-jax train resumes it"):
        Run.load(resumed)
    study.train(config, resumed, progress=False)
    for name in ("metrics.csv", "summary.json", "cells.npz"):
        assert (resumed / name).read_bytes() == (workdir / name).read_bytes()
    template = loop.template(config).params
    for step in directory.kept_steps(workdir):
        chex.assert_trees_all_equal(
            *(directory.kept_parameters(path, step, template) for path in (workdir, resumed))
        )
    chex.assert_trees_all_equal(Run.load(resumed).params, Run.load(workdir).params)


def test_a_damaged_file_is_named_and_kept(tiny, copy):
    """And a checkpoint: tests/runs/test_damage.py."""
    for name in ("summary.json", "config.json"):
        (copy / name).write_text("{")
        before = contents(copy)
        with pytest.raises(RunError, match=f"{name} is damaged"):
            study.train(tiny, copy, progress=False)
        assert contents(copy) == before
        (copy / name).unlink()


def test_what_is_said_of_a_damaged_late_checkpoint_mends_it(tiny, tiny_run, copy):
    config, (workdir, summary) = tiny, tiny_run
    before = contents(copy / "parameters")
    *_, damaged, _ = steps = checkpoints.steps(copy / "checkpoints")
    (copy / "checkpoints" / str(damaged) / "record.json").write_text("x")
    with pytest.raises(RunError, match="remove it, all later ones and summary.json, and the same"):
        directory.restore(copy, loop.template(config), damaged)
    for step in steps[steps.index(damaged) :]:
        shutil.rmtree(copy / "checkpoints" / str(step))
    (copy / "summary.json").unlink()
    assert study.train(config, copy, progress=False) == summary
    assert checkpoints.steps(copy / "checkpoints") == steps
    assert contents(copy / "parameters") == before
    chex.assert_trees_all_equal(Run.load(copy).params, Run.load(workdir).params)


def test_directory_claimed_by_another_config_at_the_last_moment_is_left_alone(
    tiny, tmp_path, monkeypatch
):
    """The other process writes its config between our first look and our lock."""
    other, flock = changed(tiny, {"training.learning_rate": 0.5}), directory.fcntl.flock

    def flock_late(*args):
        directory.write_json(tmp_path / "run" / "config.json", configs.to_dict(other))
        return flock(*args)

    monkeypatch.setattr(directory.fcntl, "flock", flock_late)
    with (
        pytest.raises(RunError, match="belongs to another config"),
        directory.claim(tmp_path / "run", tiny),
    ):
        pass
    assert directory.read_config(tmp_path / "run") == other


def test_two_processes_cannot_share_a_directory(tiny, tmp_path):
    code = f"""
from pathlib import Path
from compgen_jax import config
from compgen_jax.runs import directory
with directory.claim(Path({str(tmp_path)!r}), config.from_dict({configs.to_dict(tiny)!r})):
    print("claimed")
"""
    with directory.claim(tmp_path, tiny):
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert other.returncode == 1 and other.stdout == ""
    error = other.stderr.splitlines()[-1]
    assert "RunError: " in error and "another process is at work in it" in error


def test_loss_that_is_not_finite_ends_the_run_and_keeps_the_last_good(tiny, tmp_path, monkeypatch):
    workdir = tmp_path / "run"
    with interrupted_after_a_save():
        study.train(tiny, workdir, progress=False)
    before = contents(workdir)
    hyper = loop.hyper_of(tiny) | {"training.learning_rate": jnp.float32(1e30)}
    with monkeypatch.context() as patch, pytest.raises(RunError) as error:
        patch.setattr(loop, "hyper_of", lambda config: hyper)
        study.train(tiny, workdir, progress=False)
    # step 4 still has finite weights; its update makes the loss of step 5 overflow
    assert "the loss of seed 0 is " in str(error.value) and " at step 5; " in str(error.value)
    assert f"the last good checkpoint is {workdir / 'checkpoints' / '4'}" in str(error.value)
    assert contents(workdir) == before and not directory.is_finished(workdir)


def test_impossible_tasks_stop_before_anything_is_written(tiny, tmp_path):
    config = changed(tiny, {"task.support.samples": 3})
    with pytest.raises(ConfigError, match="the draw of seed 0: .*no training point has x in"):
        study.train(config, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_what_is_reported_is_the_median_over_the_last_evaluations(tiny, tmp_path):
    """The networks of these evaluations are kept, resumed or not, and cells are scored at all."""
    config = changed(tiny, {"training.steps": 100, "training.evaluate_every": 50})
    whole = study.train(config, tmp_path / "whole", progress=False)
    late = pd.read_csv(tmp_path / "whole" / "metrics.csv").query("step > 90")
    assert len(late) == 5 * len(config.training.seeds)
    for seed, numbers in whole["seeds"].items():
        values = sorted(late["ood.mse"][late.seed == int(seed)])
        assert numbers["ood.mse"] == values[2] and values[0] < values[4]
    with interrupted_after_a_save(lambda workdir, step: step == 96):
        study.train(config, tmp_path / "killed", progress=False)
    assert study.train(config, tmp_path / "killed", progress=False) == whole
    paths, every = [tmp_path / name for name in ("whole", "killed")], []
    for path in paths:
        assert checkpoints.steps(path / "checkpoints") == [92, 94, 96, 98, 100]
    # also the scores of checkpoints that the resumed process did not train
    cells = [directory.read_arrays(path / "cells.npz") for path in paths]
    chex.assert_trees_all_equal(*cells)
    points, template = tasks.points(config.task.make()), loop.template(config)
    keys = jax.vmap(jax.random.key)(jnp.array(config.training.seeds))
    of_seeds = jax.jit(jax.vmap(loop.make_trainer(config).score, (0, 0, None)))
    for step in checkpoints.steps(paths[0] / "checkpoints"):
        states = [directory.restore(path, template, step).state for path in paths]
        chex.assert_trees_all_equal(*states)
        every.append(jax.device_get(of_seeds(keys, states[0].params, points)))
    for name, reduce in (("mse", np.median), ("position_accuracy", np.mean)):
        expected = reduce([scores[name] for scores in every], axis=0)
        np.testing.assert_allclose(cells[0][name], expected, rtol=4e-3, atol=1e-3 * (name != "mse"))


def test_trivial_predictors_of_a_summary_are_those_of_the_points_of_each_seed(run):
    """Those from codes are fitted to the points that the seed was shown."""
    task = run.task
    points, regions = tasks.points(task), tasks.regions(task)
    code, image = jax.vmap(lambda point: bump.example(point, run.config.task))(points)
    nearest = image[tasks.nearest_seen(task, regions["ood"])[0], ...]
    for seed, numbers in run.summary["seeds"].items():
        shown = np.unique(loop.dataset_of(task, jax.random.key(int(seed))).points, axis=0)
        assert len(shown) < regions["id"].sum()  # of those seen, few were drawn
        index = [int(np.flatnonzero((points == point).all(axis=1))[0]) for point in shown]
        found = {"nearest_seen": nearest}
        for name, predict in baselines.FROM_CODES.items():
            found[name] = predict(code[index, :], image[index, :], code)
        for name, predictions in found.items():
            errors = np.square(predictions - image).mean(axis=(1, 2))
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
    summary = study.train(config, tmp_path / "run", progress=False)
    rows = pd.read_csv(tmp_path / "run" / "metrics.csv")
    for seed, numbers in summary["seeds"].items():
        late = rows[(rows["seed"] == int(seed)) & rows["step"].isin([19, 20])]
        for region in ("id", "ood"):
            expected = late[f"{region}.inverse"].median()
            assert numbers[f"{region}.inverse"] == pytest.approx(expected, rel=1e-6)
            assert 1 / late[f"{region}.mse"].median() < 0.999 * expected


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
