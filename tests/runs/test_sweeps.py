"""Sweeps: what they train and score, resumed, damaged, on one device and on two, padded or not."""

import json
import shutil
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import numpy as np
import pandas
import pytest

from compgen_jax.config import ConfigError, changed
from compgen_jax.runs import directory, logs, study, sweep_table, sweeps
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from compgen_jax.tasks import task as tasks
from compgen_jax.training import loop, program
from tests.runs.test_directory import contents


def axes(grids=(8, 12), copies=(0, 1), regions=("corner",), **others):
    ours = {"task.grid": grids, "task.stripes.copies": copies, "task.support.region": regions}
    return tuple((ours | others).items())


@pytest.fixture(scope="module")
def small(tiny):
    """Two grids, bumps and stripes: 8 trials and what a round of refinement adds."""
    return changed(tiny, {
        "name": "small", "model.depth": 2, "model.width": 16,
        "task.support.side": 16 / 28, "task.support.require_marginals": False,
        "task.stripes.order": "shuffled",
        "training.steps": 60, "training.evaluate_every": 60, "training.learning_rate": 1e-2,
        "training.seeds": (0,), "execution.chunk_steps": 25, "sweep.axes": axes(),
        "sweep.search.field": "task.images",
        "sweep.search.per": (("cell", (0.25, 2.0)), ("value", (1.0, 8.0))),
        "sweep.search.scores": ("position_accuracy",), "sweep.search.target": 0.06,
        "sweep.search.refinements": 1, "sweep.real_points": 20,
    })  # fmt: skip


@pytest.fixture(scope="module")
def finished(small, tmp_path_factory):
    """The sweep, undisturbed, and how often each program's training step was traced."""
    workdir, steps, make_trainer = tmp_path_factory.mktemp("sweep") / "run", [], loop.make_trainer

    def counting(*args, **kwargs):
        trainer = make_trainer(*args, **kwargs)
        steps.append(Mock(wraps=trainer.advance))
        return trainer._replace(advance=steps[-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "make_trainer", counting)
        return workdir, run(small, workdir), [step.call_count for step in steps]


def run(config, workdir):
    return sweeps.run(config, workdir, progress=False)


def read(workdir):
    config = directory.read_config(workdir)
    text = (workdir / "trials.csv").read_text()
    return sweep_table.from_text(config, text)


def test_the_table_holds_all_trials_and_those_around_crossings_and_a_second_run_changes_nothing(
    small, finished
):
    """One trace of a program serves every data set of its grids."""
    workdir, summary, traces = finished
    assert traces == [1, 1]  # of each grid
    results = read(workdir)
    first = set(sweep_table.first_trials(small))
    refined = set(sweep_table.refined_trials(small, {trial: results[trial] for trial in first}))
    assert len(first) == 8 and refined and set(results) == first | refined
    assert summary == json.loads((workdir / "summary.json").read_text())
    assert summary["trials"] == len(results) and summary["failed"] == []
    readings = pandas.DataFrame(summary["readings"])
    assert len(readings.value_counts(["where", "score", "task.stripes.copies"])) == 18
    assert len(sweeps.load(workdir).rows) == len(results)
    before = contents(workdir)
    assert run(small, workdir) == summary and contents(workdir) == before


def one_curve(small, copies=0, **values):
    """Two trials of one seed, of bumps or of stripes, around a corner. Only a perfect model reaches
    the target."""
    base = {"sweep.axes": axes((8,), (copies,)), "sweep.search.refinements": 0,
            "training.steps": 10, "sweep.search.target": 1.0}  # fmt: skip
    return changed(small, base | values)


@pytest.mark.parametrize(
    ("copies", "sampling", "values"),
    [
        (0, "with_replacement", {"model.name": "conv"}),
        (1, "real", {"training.seeds": (0, 5)}),
        (0, "with_replacement", {"training.steps": 0, "training.epochs": 5,
                                 "training.schedule": "cosine", "training.batch_size": 24}),
    ],
)  # fmt: skip
def test_a_trial_is_the_single_run_of_its_config(small, tmp_path, copies, sampling, values):
    """Trained by itself, in a program of its own, the same decoder has the same errors but for
    rounding, whichever seed it is of; 9 images are less than stripes. Of epochs, trials of more
    images take more steps, in other programs."""
    # a search's own images take the place of the config's, which must be possible too
    small = one_curve(small, copies, **{
        "task.images": 9, "task.support.sampling": sampling, "model.width": 4,
        "sweep.search.per": (("cell", (0.25, 0.5)), ("value", (1.2, 3.0))),
    } | values)  # fmt: skip
    run(small, tmp_path / "sweep")
    results = read(tmp_path / "sweep")
    every = {"training.evaluate_every": 10 if small.training.steps else 5}
    for trial in (max(results), min(results)):
        row = dict(zip(sweep_table.measures(small), results[trial].tolist(), strict=True))
        single = changed(sweep_table.config_of(small, trial), every)
        (alone,) = study.train(single, tmp_path / f"{trial.value}")["seeds"].values()
        for name in ("mse", "blank_mse", "exact_accuracy", "position_accuracy"):
            assert row[f"ood.{name}"] == pytest.approx(alone[f"ood.{name}"], rel=1e-4)
        task = single.task.make()
        points = loop.dataset_of(task, jax.random.key(single.training.seeds[0])).points
        assert len(points) == trial.value
        # the error over all cells that are not held out: those drawn and those not drawn
        drawn = len(np.unique(points[~np.isnan(points).any(axis=1)].round(), axis=0))
        total = int(tasks.regions(task)["id"].sum())
        weighted = ((drawn, row["seen.mse"]), (total - drawn, row["unseen.mse"]))
        error = sum(count * value for count, value in weighted if count) / total
        assert alone["id.mse"] == pytest.approx(error, rel=1e-4)


def test_a_sweep_that_was_stopped_ends_with_the_same_table(small, finished, tmp_path, monkeypatch):
    """No batch is trained twice."""
    write, writes = directory.write_text, []

    def write_some(path, text):
        write(path, text)
        if path.name == "trials.csv":
            writes.append(path)
            if len(writes) in (2, 5):
                raise KeyboardInterrupt

    monkeypatch.setattr(directory, "write_text", write_some)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(small, tmp_path / "run")
        assert not (tmp_path / "run" / "summary.json").exists()
    run(small, tmp_path / "run")
    for name in ("trials.csv", "summary.json"):
        assert (tmp_path / "run" / name).read_bytes() == (finished[0] / name).read_bytes()
    results, first = read(finished[0]), sweep_table.first_trials(small)
    refined = sweep_table.refined_trials(small, {trial: results[trial] for trial in first})
    groups = sweeps.trial_groups(small, first)
    counts = [len(group.batches(some)) for some in (first, refined) for group in groups]
    assert len(writes) == sum(counts)


@pytest.fixture
def unfinished(finished, tmp_path):
    """A directory of the finished sweep without its summary."""
    shutil.copytree(finished[0], tmp_path / "unfinished")
    (tmp_path / "unfinished" / "summary.json").unlink()
    return tmp_path / "unfinished"


def test_a_table_that_lacks_trials_is_not_loaded_and_completed(small, finished, unfinished):
    whole = (finished[0] / "trials.csv").read_text()
    shutil.copy(finished[0] / "summary.json", unfinished)
    for kept in ("", whole[:-30]):
        (unfinished / "trials.csv").write_text(kept)
        with pytest.raises(RunError, match=r"csv has \d+ trials of \d+; remove summary.json"):
            sweeps.load(unfinished)
    (unfinished / "summary.json").unlink()
    run(small, unfinished)
    assert (unfinished / "trials.csv").read_text() == whole and sweeps.load(unfinished).rows


def test_a_foreign_or_damaged_table_is_refused_and_kept(small, unfinished, monkeypatch):
    whole, path = (unfinished / "trials.csv").read_text(), unfinished / "trials.csv"
    monkeypatch.setattr(sweeps.TrialGroup, "train", lambda *_: pytest.fail("trained"))
    for text, message in (
        (whole.replace("\n", "\nx", 1), "is damaged: line 2 is no line of"),
        (whole.replace(",0,128,ok", ",0,999,ok", 1), "is damaged: line "),
    ):
        path.write_text(text)
        with pytest.raises(RunError, match=message):
            run(small, unfinished)
        assert path.read_text() == text


def test_processes_with_different_configs_stop(small, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps.processes, "gather", lambda ours: np.stack([ours, ours + 1]))
    with pytest.raises(RunError, match="the processes have different configs"):
        run(small, tmp_path / "run")
    assert not (tmp_path / "run").exists()


NO_SEARCH = {"sweep.search.field": ""}
A_DRAW = {"task.support.samples": 4, "task.support.require_marginals": True, "task.images": 0}
IMPOSSIBLE = [  # what is changed of `small`, and the message
    ({"sweep.axes": ()} | NO_SEARCH, r"config.sweep.axes=\(\): an empty sweep"),
    ({"task.support.side": 0.02} | NO_SEARCH, "^config.sweep: task.grid=8, .*out all or none"),
    ({"sweep.axes": (("task.bumps", (2, 1)),)} | NO_SEARCH, "task.bumps=1.*: has other scores"),
    ({"sweep.axes": axes((8,), (0,))} | A_DRAW | NO_SEARCH, "the draw of seed 0: .*no training"),
    ({"sweep.axes": axes((8, 10)), "model.name": "conv"}, "grid=10,.* side divisible by 4"),
    ({"sweep.search.scores": ("exact",)}, "'exact' is no score of the task; it has"),
    ({"sweep.search.scores": ("mse",)}, "'mse' falls when a model gets better"),
    ({"sweep.search.per": (("sell", (1.0,)),)}, "per: 'sell' is no unit of the task; it has cell"),
    ({"sweep.search.per": (("value", (1.0,)),), "sweep.axes": axes(copies=(0,))},
     "config.sweep.search.per: the task has a size for none of value"),
    ({"task.support.sampling": "every_cell"}, "config.task.images=.*'every_cell' takes each cell"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "message"), IMPOSSIBLE)
def test_a_sweep_that_cannot_be_is_one_line(small, tmp_path, values, message):
    """Before anything is written, if it shows before the data are drawn. Fields, types and bounds
    of axes: tests/test_config.py."""
    with pytest.raises(ConfigError, match=message) as error:
        run(changed(small, values), tmp_path / "run")
    assert "\n" not in str(error.value)
    assert "draw" in message or not (tmp_path / "run").exists()


def test_a_directory_of_a_sweep_says_so_and_what_can_be_done(small, finished, tiny_run, tmp_path):
    message = r"holds a sweep, which keeps no networks; .* To look into one trial: "
    command = r"'--config.sweep.axes=\(\)'"
    with pytest.raises(RunError, match=f"^[^\n]*{message}.*{command}[^\n]*$"):
        Run.load(finished[0])
    with pytest.raises(RunError, match="holds one run, not a sweep"):
        sweeps.load(tiny_run[0])
    with pytest.raises(RunError, match=r"holds \d+ runs, each in a directory of its own, such as"):
        sweeps.load(tiny_run[0].parent.parent)
    with pytest.raises(ConfigError, match="small is a sweep, not one run"):
        study.train(small, tmp_path / "run")
    with pytest.raises(RunError, match=r"another config \(config.sweep.search.target is 0.06"):
        run(changed(small, {"sweep.search.target": 0.5}), finished[0])


def test_a_trial_that_diverges_is_recorded_and_stops_no_other(small, tmp_path):
    calm = one_curve(small)
    rates = {"training.learning_rate": (1e-2, 1e6)}
    wild = changed(calm, {"sweep.axes": axes((8,), (0,), **rates)})
    assert run(calm, tmp_path / "calm")["failed"] == []
    failed = run(wild, tmp_path / "wild")["failed"]
    assert len(failed) == 2 and all("training.learning_rate=1000000.0" in each for each in failed)
    expected, results = read(tmp_path / "calm"), read(tmp_path / "wild")
    for trial, values in results.items():
        if trial.axes[-1] == 1e6:
            assert sweep_table.status(values) == "failed"
        else:
            np.testing.assert_array_equal(values, expected[trial._replace(axes=trial.axes[:-1])])
    assert len(results) == 2 * len(expected) == 4


@pytest.fixture(scope="module")
def two_grids(small):
    return one_curve(small, **{
        "sweep.axes": axes((8, 12), (0,)), "model.name": "conv", "model.width": 4,
        "execution.max_padding": 0.5,
    })  # fmt: skip


def grids_and_size(config):
    (group,) = sweeps.trial_groups(config, sweep_table.first_trials(config))
    grids = [dict(program[:-1])["config.task.grid"] for program in group.programs]
    return grids, group.size


def test_trials_side_by_side_are_padded_and_agree(two_grids, tmp_path):
    """Both grids in one program of four trials: the numbers of each alone, to rounding."""
    padded = changed(two_grids, {"execution.trials_per_device": 2})
    assert grids_and_size(padded) == ([8, 12], 4)
    assert len(sweeps.trial_groups(two_grids, sweep_table.first_trials(two_grids))) == 2
    run(two_grids, tmp_path / "alone")
    run(padded, tmp_path / "padded")
    alone, together = read(tmp_path / "alone"), read(tmp_path / "padded")
    assert set(alone) == set(together)
    for trial, values in alone.items():
        np.testing.assert_allclose(together[trial], values, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(("needed", "slots"), [((10, 10), 4), ((100, 150), 2), ((1000, 10), 1)])
def test_an_accelerator_trains_as_many_trials_as_fit(two_grids, monkeypatch, needed, slots):
    """By what a trial needs that trains, and that is scored; both grids in one program. Processes
    agree on the one with the least memory."""
    device = SimpleNamespace(memory_stats=lambda: {"bytes_limit": 8 / 7 * 300})
    monkeypatch.setattr(program, "needed_memory", Mock(side_effect=needed * 2))
    monkeypatch.setattr(program, "check_room", lambda *_: None)
    monkeypatch.setattr(sweeps, "trials_side_by_side", lambda count, *_: count)
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert grids_and_size(two_grids) == ([8, 12], slots)
    monkeypatch.setattr(sweeps.processes, "gather", lambda array: np.stack([array, array * 0 + 1]))
    assert grids_and_size(two_grids) == ([8, 12], 1)


def test_a_batch_that_memory_does_not_hold_says_what_to_lower(small, monkeypatch):
    exhausted = Mock(side_effect=jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory"))
    monkeypatch.setattr(program.Program, "init", exhausted)
    many = {"training.seeds": tuple(range(16)), "execution.trials_per_device": 8}
    config = one_curve(small, **many)
    trials = sweep_table.first_trials(config)
    (group,) = sweeps.trial_groups(config, trials)
    with pytest.raises(RunError, match="out of memory.*: say .*trials_per_device=4"):
        group.train(trials[:1], logs.Bar(disable=True), 1)


def test_the_training_loss_of_a_trial_is_the_mean_over_its_last_50_steps(small):
    """A program that loses n at step n is at 61 to 110 then."""
    config = one_curve(small)
    trials = sweep_table.first_trials(config)
    (group,) = sweeps.trial_groups(config, trials)
    trained = Mock()
    group.program_and_width = trained, 1
    trained.advance.return_value = None, np.ones((group.size, 1)) * np.arange(1, 111)
    trained.score.return_value = np.zeros((group.size, len(group.measures) - 1))
    assert group.measures[0] == "train_loss"
    np.testing.assert_array_equal(group.train(trials[:1], logs.Bar(disable=True), 1)[:, 0], 85.5)


# --- over any field --------------------------------------------------------------------------


def test_a_search_along_a_float_field_is_one_program_and_refined_between_in_equal_ratios(small):
    config = one_curve(small, **{
        "sweep.axes": (("task.stripes.copies", (0,)),), "sweep.search.target": 0.001,
        "sweep.search.field": "training.learning_rate", "sweep.search.per": (),
        "sweep.search.start": (1e-5, 1e-2), "task.images": 60,
    })  # fmt: skip
    first = sweep_table.first_trials(config)
    assert [trial.value for trial in first] == [1e-5, 1e-2]
    assert len(sweeps.trial_groups(config, first)) == 1
    results = {trial: np.zeros(len(sweep_table.measures(config))) + trial.value for trial in first}
    (refined,) = sweep_table.refined_trials(config, results)
    assert refined.value == pytest.approx((1e-5 * 1e-2) ** 0.5)


def test_a_stream_sweeps_over_its_supports_and_a_model_and_reports_means(small, tmp_path):
    """A stream has no points that it did not draw: all that it may show are seen."""
    config = changed(small, {
        "sweep.search.field": "", "task.name": "modules", "task.modules": 4, "task.most": 2,
        "task.tests": 8, "model.name": "task_mlp", "model.depth": 1, "training.steps": 5,
        "training.seeds": (0, 1),
        "sweep.axes": (("model.width", (4, 8)), ("task.support.seed", (0, 1))),
    })  # fmt: skip
    assert sweep_table.refined_trials(config, {}) == []
    groups = sweeps.trial_groups(config, sweep_table.first_trials(config))
    assert [len(group.trials) for group in groups] == [4, 4]
    means = run(config, tmp_path / "run")["means"]
    assert [mean["model.width"] for mean in means] == [4, 4, 8, 8]
    rows = pandas.DataFrame(sweeps.load(tmp_path / "run").rows)
    errors = rows.groupby(["model.width", "task.support.seed"])["ood.mse"].mean()
    np.testing.assert_allclose([mean["ood.mse"]["value"] for mean in means], errors, rtol=1e-6)
    assert rows["unseen.mse"].isna().all()
    assert np.isfinite(rows[["seen.mse", "ood.mse"]].values).all()


def test_a_users_task_sweeps_measured_at_its_own_points(own_task, tmp_path, small):
    """Two of them are seen, one lies between, one is held out. At all cells: test_own_task."""
    points = "points=np.array([[0.0, 0], [1, 90], [2, 7], [3, 315]])"
    made = own_task[0].read_text().replace("held_out, example)", f"held_out, example, {points})")
    own_task[0].write_text(made)
    axes = (("task.objects", (4, 5)),)
    values = {"task.name": own_task[1], "sweep.axes": axes, "training.steps": 5}
    run(changed(small, values | NO_SEARCH), tmp_path / "run")
    for row in sweeps.load(tmp_path / "run").rows:
        assert np.isfinite([row["seen.mse"], row["ood.mse"], row["unseen.mse"]]).all()
