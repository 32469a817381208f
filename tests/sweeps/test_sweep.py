"""Sweeps: what they train and score, resumed, damaged, on one device and on two, padded or not."""

import json
import shutil
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import numpy as np
import pytest

from compgen_jax.config import ConfigError, changed, fingerprint
from compgen_jax.runs import directory, experiment
from compgen_jax.runs.directory import RunError
from compgen_jax.runs.run import Run
from compgen_jax.sweeps import groups, plan, sweep, table
from compgen_jax.tasks import task as tasks
from compgen_jax.training import batch, loop


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
    workdir, traces, make_trainer = tmp_path_factory.mktemp("sweep") / "run", [], loop.make_trainer

    def counting(*args, **kwargs):
        trainer = make_trainer(*args, **kwargs)

        def advance(*arguments):
            traces.append(tuple(len(task.factors[0].values) for task in kwargs["members"]))
            return trainer.advance(*arguments)

        return trainer._replace(advance=advance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "make_trainer", counting)
        summary = sweep.run(small, workdir, progress=False)
    return workdir, summary, traces


def read(workdir):
    config = directory.read_config(workdir)
    text = (workdir / "trials.csv").read_text()
    return table.from_text(text, plan.layout(config), fingerprint(config))[0]


def row_of(config, values):
    return dict(zip(plan.layout(config).measures, values.tolist(), strict=True))


def test_the_table_holds_all_trials_and_those_around_crossings(small, finished):
    """One trace of a program serves every data set of its grids."""
    workdir, summary, traces = finished
    assert sorted(traces) == [(8,), (12,)]
    results = read(workdir)
    first = set(plan.first_trials(small))
    refined = set(plan.refined_trials(small, {trial: results[trial] for trial in first}))
    assert len(first) == 8 and refined and set(results) == first | refined
    assert summary == json.loads((workdir / "summary.json").read_text())
    assert summary["trials"] == len(results) and summary["failed"] == []
    names = ("where", "score", "task.stripes.copies")
    keys = [tuple(reading[name] for name in names) for reading in summary["readings"]]
    assert len(keys) == len(set(keys)) == 2 * 3 * 3
    for reading in summary["readings"]:
        assert reading["along"] == "task.grid"
        assert {t["task.grid"] for t in reading["thresholds"]} == {8, 12}
        assert sum(reading["exponent"][s] for s in ("reached", "above", "below", "unknown")) == 2
    rows = sweep.load(workdir).rows
    assert len(rows) == len(results) and {row["task.grid"] for row in rows} == {8, 12}


def test_a_second_run_trains_nothing_and_changes_nothing(small, finished):
    workdir, summary, _ = finished
    before = {p: p.read_bytes() for p in workdir.iterdir() if p.name != ".lock"}
    assert sweep.run(small, workdir, progress=False) == summary
    assert {p: p.read_bytes() for p in workdir.iterdir() if p.name != ".lock"} == before


def one_curve(small, copies=0, **values):
    """Two trials of one seed, of bumps or of stripes, around a corner."""
    base = {
        "sweep.axes": axes((8,), (copies,)), "sweep.search.refinements": 0, "training.steps": 10,
    }  # fmt: skip
    return changed(small, base | values)


@pytest.mark.parametrize(
    ("copies", "sampling", "model"), [(0, "with_replacement", "conv"), (1, "real", "mlp")]
)
def test_a_trial_is_the_single_run_of_its_config(small, tmp_path, copies, sampling, model):
    """Trained by itself, the same decoder has the same errors, whichever seed it is of; 9 images
    are less than stripes."""
    # a search's own images take the place of the config's, which must be possible too
    small = one_curve(small, copies, **{
        "task.images": 9, "task.support.sampling": sampling, "model.name": model,
        "model.width": 4, "training.seeds": (0, 5),
        "sweep.search.per": (("cell", (0.25, 0.5)), ("value", (1.2, 3.0))),
    })  # fmt: skip
    sweep.run(small, tmp_path / "sweep", progress=False)
    results = read(tmp_path / "sweep")
    compared = [max(results)] + ([min(results)] if copies else [])
    for trial in compared:
        row = row_of(small, results[trial])
        single = changed(plan.config_of(small, trial), {"training.evaluate_every": 10})
        workdir = tmp_path / str(trial.value)
        (alone,) = experiment.train(single, workdir, progress=False)["seeds"].values()
        for name in ("mse", "blank_mse", "exact_accuracy", "position_accuracy"):
            assert row[f"ood.{name}"] == pytest.approx(alone[f"ood.{name}"], rel=1e-6)
        shown = loop.dataset_of(single.task.make(), jax.random.key(0)).points
        assert len(shown) == trial.value
        assert alone["id.mse"] == pytest.approx(error_of_cells(single, row), rel=1e-5)


def error_of_cells(single, row) -> float:
    """The error over all cells that are not held out: those drawn and those not drawn."""
    task = single.task.make()
    points = np.asarray(loop.dataset_of(task, jax.random.key(single.training.seeds[0])).points)
    points = points.round()
    drawn = len({tuple(point) for point in points[~np.isnan(points).any(axis=1)]})
    total = int((~np.asarray(task.held_out(tasks.cells(task.factors)))).sum())
    unseen = (total - drawn) * row["unseen.mse"] if drawn < total else 0.0
    return ((drawn * row["seen.mse"] if drawn else 0.0) + unseen) / total


def test_a_sweep_that_was_stopped_ends_with_the_same_table(small, finished, tmp_path, monkeypatch):
    """No batch is trained twice, and a line that was cut off is trained again."""
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
            sweep.run(small, tmp_path / "run", progress=False)
        assert not (tmp_path / "run" / "summary.json").exists()
    sweep.run(small, tmp_path / "run", progress=False)
    for name in ("trials.csv", "summary.json"):
        assert (tmp_path / "run" / name).read_bytes() == (finished[0] / name).read_bytes()
    results, first = read(finished[0]), plan.first_trials(small)
    refined = plan.refined_trials(small, {trial: results[trial] for trial in first})
    compile_groups = groups.compile_groups(small, first)
    counts = [len(group.batches(some)) for some in (first, refined) for group in compile_groups]
    assert len(writes) == sum(counts)


def test_trials_of_as_many_epochs_are_the_single_runs_of_their_configs(small, tmp_path):
    """Their steps are as many as their data say, also for numbers of images found in later rounds;
    along a cosine, trials of other lengths are other programs."""
    config = one_curve(small, **{
        "training.steps": 0, "training.epochs": 120, "training.schedule": "cosine",
        "training.batch_size": 64, "execution.trials_per_device": 2,
        "sweep.search.per": (("cell", (0.1, 2.0)),), "sweep.search.refinements": 2,
        "sweep.search.target": 0.2, "sweep.axes": axes((8,), (0,), ("none",)),
    })  # fmt: skip
    sweep.run(config, tmp_path / "whole", progress=False)
    results = read(tmp_path / "whole")
    first = set(plan.first_trials(config))
    batches = {trial: -(-trial.value // config.training.batch_size) for trial in results}
    assert len(set(batches.values())) > 1
    trial = max(set(results) - first)
    # more images than any first one of as many batches
    assert trial.value > max(one.value for one in first if batches[one] == batches[trial])
    single = changed(plan.config_of(config, trial), {"training.evaluate_every": 120})
    assert loop.total_steps(single, single.task.make()) == 120 * batches[trial]
    experiment.train(single, tmp_path / "alone", progress=False)
    cells = directory.read_cells(tmp_path / "alone")
    expected = error_of_cells(single, row_of(config, results[trial]))
    assert cells["mse"].mean() == pytest.approx(expected, rel=4e-3)


def unfinished(whole, tmp_path, text):
    """A directory of the same sweep as `whole`, with this table and no summary."""
    workdir = tmp_path / "unfinished"
    workdir.mkdir()
    (workdir / "config.json").write_bytes((whole / "config.json").read_bytes())
    (workdir / "trials.csv").write_text(text)
    return workdir


def test_a_table_that_lacks_trials_is_not_loaded_and_completed(small, finished, tmp_path, capsys):
    whole = (finished[0] / "trials.csv").read_text()
    workdir = unfinished(finished[0], tmp_path, "")
    shutil.copy(finished[0] / "summary.json", workdir)
    for kept in ("", whole[:-30]):
        (workdir / "trials.csv").write_text(kept)
        with pytest.raises(RunError, match=r"csv has \d+ trials of \d+; remove summary.json"):
            sweep.load(workdir)
    (workdir / "summary.json").unlink()
    sweep.run(small, workdir, progress=False)
    assert (workdir / "trials.csv").read_text() == whole and sweep.load(workdir).rows
    assert "ends within a line: its trial is trained again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace("\n", "\nx", 1), "is damaged: line 2: is of another config"),
        (lambda text: text.replace(",0,128,ok", ",0,999,ok", 1), "sweep has not: .*images=999"),
    ],
)  # fmt: skip
def test_a_foreign_or_damaged_table_is_refused_and_kept(
    small, finished, tmp_path, damage, message, monkeypatch
):
    text = damage((finished[0] / "trials.csv").read_text())
    workdir = unfinished(finished[0], tmp_path, text)
    monkeypatch.setattr(groups.CompileGroup, "train", lambda *_: pytest.fail("trained"))
    with pytest.raises(RunError, match=message):
        sweep.run(small, workdir, progress=False)
    assert (workdir / "trials.csv").read_text() == text


def test_processes_with_different_configs_stop(small, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep.processes, "gather", lambda ours: np.stack([ours, ours + 1]))
    with pytest.raises(RunError, match="the processes have different configs"):
        sweep.run(small, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


IMPOSSIBLE = {  # what is changed of `small`, and the message
    "no axes": ({"sweep.axes": ()}, r"config.sweep.axes=\(\): an empty sweep"),
    "no cell": (
        {"task.support.side": 0.02, "sweep.search.field": ""},
        "^config.sweep: task.grid=8, .*holds out no cell of",
    ),
    "a draw without a value of a factor": (
        {"sweep.axes": axes((8,), (0,)), "sweep.search.field": "", "task.support.samples": 4,
         "task.support.require_marginals": True, "task.images": 0},
        "region='corner'.*: the draw of seed 0: no training point has x in",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("values", "message"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_sweep_that_cannot_be_is_one_line(small, tmp_path, values, message):
    """Before anything is written, if it shows before the data are drawn."""
    without_search = {"sweep.search.field": ""} if not values.get("sweep.axes", 1) else {}
    config = changed(small, values | without_search)
    with pytest.raises(ConfigError, match=message) as error:
        sweep.run(config, tmp_path / "run", progress=False)
    assert "\n" not in str(error.value)
    assert "draw" in message or not (tmp_path / "run").exists()


def test_a_directory_of_a_sweep_says_so_and_what_can_be_done(small, finished, tiny_run):
    workdir, _, _ = finished
    message = r"holds a sweep, which keeps no networks; .* To look into one trial: "
    command = r"'--config.sweep.axes=\(\)' --config.task.grid=8 --config.task.stripes.copies=0 "
    with pytest.raises(RunError, match=f"^[^\n]*{message}.*{command}[^\n]*$"):
        Run.load(workdir)
    with pytest.raises(RunError, match="holds one run, not a sweep"):
        sweep.load(tiny_run[0])
    with pytest.raises(RunError, match=r"another config \(config.sweep.search.target is 0.06"):
        sweep.run(changed(small, {"sweep.search.target": 0.5}), workdir, progress=False)


def test_a_trial_that_diverges_is_recorded_and_stops_no_other(small, tmp_path):
    calm = one_curve(small)
    rates = {"training.learning_rate": (1e-2, 1e6)}
    wild = changed(calm, {"sweep.axes": axes((8,), (0,), **rates)})
    alone = sweep.run(calm, tmp_path / "calm", progress=False)
    together = sweep.run(wild, tmp_path / "wild", progress=False)
    assert alone["failed"] == [] and len(together["failed"]) == 2
    assert all("training.learning_rate=1000000.0" in trial for trial in together["failed"])
    expected, results = read(tmp_path / "calm"), read(tmp_path / "wild")
    for trial, values in results.items():
        if trial.axes[-1] == 1e6:
            assert table.status(values) == "failed"
        else:
            np.testing.assert_array_equal(values, expected[trial._replace(axes=trial.axes[:-1])])
    assert len(results) == 2 * len(expected) == 4


def test_one_device_and_two_give_the_same_bits(small, tmp_path, monkeypatch):
    three = {"training.seeds": (0, 1, 2), "sweep.search.per": (("cell", (1.0,)),)}  # one idle
    config = one_curve(small, **three)
    assert len(jax.local_devices()) == 2
    sweep.run(config, tmp_path / "two", progress=False)
    first = jax.devices()[:1]
    monkeypatch.setattr(jax, "local_devices", lambda: first)
    sweep.run(config, tmp_path / "one", progress=False)
    tables = [(tmp_path / name / "trials.csv").read_bytes() for name in ("one", "two")]
    assert tables[0] == tables[1]


def two_grids(small, **values):
    base = {"sweep.axes": axes((8, 12), (0,)), "model.name": "conv", "model.width": 4}
    return one_curve(small, **(base | values))


def grids_of(group):
    return tuple(dict(program[:-1])["config.task.grid"] for program in group.programs)


def test_trials_side_by_side_are_padded_and_agree(small, tmp_path):
    """Both grids in one program of four trials: the numbers of each alone, to rounding."""
    config = two_grids(small)
    padded = changed(config, {"execution.trials_per_device": 2, "execution.max_padding": 0.5})
    (group,) = groups.compile_groups(padded, plan.first_trials(padded))
    assert grids_of(group) == (8, 12) and group.size == 4
    assert len(groups.compile_groups(config, plan.first_trials(config))) == 2
    sweep.run(config, tmp_path / "alone", progress=False)
    sweep.run(padded, tmp_path / "padded", progress=False)
    alone, together = read(tmp_path / "alone"), read(tmp_path / "padded")
    assert set(alone) == set(together)
    for trial, values in alone.items():
        np.testing.assert_allclose(
            together[trial], values, rtol=2e-3, atol=1e-4, err_msg=str(trial)
        )


@pytest.mark.parametrize(("limit", "slots"), [(10**12, 4), (1, 1)])
def test_an_accelerator_gets_as_many_trials_as_fit(small, monkeypatch, limit, slots):
    """All of a compile group's, or as many as its memory holds; both grids in one program."""
    device = SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_limit": limit})
    config = two_grids(small, **{"execution.max_padding": 0.5})
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    (group,) = groups.compile_groups(config, plan.first_trials(config))
    assert (grids_of(group), group.size) == ((8, 12), slots)


def test_processes_agree_on_batches_that_train_and_are_scored_within_their_memory(
    small, monkeypatch
):
    """This one could train three trials at once and score two; the other has room for one."""
    fits = []

    def fit(function, shared, pair, device):
        fits.append(function)
        return 4 - len(fits)

    config = changed(one_curve(small), {"training.seeds": (0, 1, 2)})
    monkeypatch.setattr(batch, "trials_that_fit", fit)
    monkeypatch.setattr(groups.trials, "trials_side_by_side", lambda count, *_: count)
    monkeypatch.setattr(jax, "local_devices", lambda: jax.devices()[:1])
    (group,) = groups.compile_groups(config, plan.first_trials(config))
    assert group.size == 2 and len(set(fits)) == 2
    fits.clear()
    monkeypatch.setattr(groups.processes, "gather", lambda array: np.stack([array, array * 0 + 1]))
    (group,) = groups.compile_groups(config, plan.first_trials(config))
    assert group.size == 1


def test_a_batch_that_memory_does_not_hold_says_what_to_lower(small, monkeypatch):
    exhausted = Mock(side_effect=jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory"))
    monkeypatch.setattr(batch.BatchProgram, "init", exhausted)
    values = {"training.seeds": tuple(range(16)), "execution.trials_per_device": 8}
    config = one_curve(small, **values)
    trials = plan.first_trials(config)
    (group,) = groups.compile_groups(config, trials)
    with pytest.raises(RunError, match="out of memory.*: say .*trials_per_device=4"):
        group.train(trials[:1], lambda _: None)


# --- over any field --------------------------------------------------------------------------


def test_a_search_along_a_float_field(small, tmp_path):
    """Of the learning rate, one program for all."""
    config = one_curve(small, **{
        "task.support.region": "corner", "task.images": 60, "training.seeds": (0, 1),
        "sweep.axes": (("task.stripes.copies", (0,)),),
        "sweep.search.field": "training.learning_rate", "sweep.search.per": (),
        "sweep.search.start": (1e-5, 1e-2), "sweep.search.refinements": 1,
    })  # fmt: skip
    first = plan.first_trials(config)
    assert [trial.value for trial in first] == [1e-5, 1e-2] * 2
    assert len(groups.compile_groups(config, first)) == 1
    measures = plan.layout(config).measures
    found = {trial: np.full(len(measures), trial.value > 1e-3, np.float32) for trial in first}
    refined = plan.refined_trials(config, found)
    assert [trial.value for trial in refined] == [pytest.approx((1e-5 * 1e-2) ** 0.5)] * 2
    assert sweep.run(config, tmp_path / "run", progress=False)["failed"] == []


def test_a_stream_sweeps_over_its_supports_and_a_model_and_reports_means(small, tmp_path):
    """A stream has no points that it did not draw: all that it may show are seen."""
    config = changed(small, {
        "sweep.search.field": "", "task.name": "modules", "task.modules": 4, "task.most": 2,
        "task.tests": 8, "model.name": "task_mlp", "model.depth": 1, "training.steps": 5,
        "training.seeds": (0, 1),
        "sweep.axes": (("model.width", (4, 8)), ("task.support.seed", (0, 1))),
    })  # fmt: skip
    assert plan.refined_trials(config, {}) == []
    compile_groups = groups.compile_groups(config, plan.first_trials(config))
    assert [len(group.sweep_trials) for group in compile_groups] == [4, 4]
    means = sweep.run(config, tmp_path / "run", progress=False)["means"]
    assert [mean["model.width"] for mean in means] == [4, 4, 8, 8]
    rows = sweep.load(tmp_path / "run").rows
    for index, mean in enumerate(means):
        errors = [row["ood.mse"] for row in rows[2 * index : 2 * index + 2]]
        assert mean["ood.mse"]["value"] == pytest.approx(np.mean(errors))
    for row in rows:
        assert np.isnan(row["unseen.mse"])
        assert np.isfinite(row["seen.mse"]) and np.isfinite(row["ood.mse"])


def test_a_users_task_sweeps_measured_at_its_own_points(own_task, tmp_path, small):
    """Two of them are seen, one lies between, one is held out. At all cells: test_own_task."""
    made, points = own_task[0].read_text(), "points=np.array([[0.0, 0], [1, 90], [2, 7], [3, 315]])"
    own_task[0].write_text(made.replace("held_out, example)", f"held_out, example, {points})"))
    config = changed(small, {
        "task.name": own_task[1], "sweep.search.field": "", "training.steps": 5,
        "sweep.axes": (("task.objects", (4, 5)),),
    })  # fmt: skip
    summary = sweep.run(config, tmp_path / "run", progress=False)
    assert summary["trials"] == 2 and (tmp_path / "run" / "task.npz").exists()
    rows = sweep.load(tmp_path / "run").rows
    assert [row["task.objects"] for row in rows] == [4, 5]
    for name in ("seen.mse", "ood.mse", "unseen.mse"):
        assert all(np.isfinite(row[name]) for row in rows), name
