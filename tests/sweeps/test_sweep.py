"""Sweeps: what they train and score, resumed, damaged, on one device and on two, padded or not."""

import json

import jax
import numpy as np
import pytest

from compgen_jax.config import ConfigError, changed, fingerprint
from compgen_jax.runs import directory, experiment
from compgen_jax.runs.directory import RunError
from compgen_jax.sweeps import plan, sweep, table, waves
from compgen_jax.training import loop


@pytest.fixture(scope="module")
def small(tiny):
    """Two grids, two regions, both schemes: 16 trials and what a round of refinement adds."""
    return changed(
        tiny,
        {
            "name": "small",
            "decoder.name": "mlp",  # which compiles in no time
            "decoder.width": 16,
            "training.steps": 60,
            "training.evaluate_every": 60,
            "training.learning_rate": 1e-2,
            "training.seeds": (0,),
            "execution.chunk_steps": 25,
            "sweep.grids": (8, 12),
            "sweep.regions": ("none", "corner"),
            "sweep.images_per_cell": (0.25, 2.0),
            "sweep.images_per_value": (1.0, 8.0),
            "sweep.scores": ("position",),
            "sweep.target": 0.06,
            "sweep.refinements": 1,
            "sweep.real_points": 20,
        },
    )


@pytest.fixture(scope="module")
def finished(small, tmp_path_factory):
    """The sweep, undisturbed, and how often each program's training step was traced."""
    workdir, traces, make_trainer = tmp_path_factory.mktemp("sweep") / "run", [], loop.make_trainer

    def counting(*args, **kwargs):
        trainer = make_trainer(*args, **kwargs)

        def advance(*arguments):
            traces.append(kwargs["grids"])
            return trainer.advance(*arguments)

        return trainer._replace(advance=advance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "make_trainer", counting)
        summary = sweep.run(small, workdir, progress=False)
    return workdir, summary, traces


def read(workdir):
    config = directory.read_config(workdir)
    return table.from_text((workdir / "trials.csv").read_text(), fingerprint(config))[0]


def test_the_table_holds_all_cases_and_those_around_crossings(small, finished):
    workdir, summary, _ = finished
    results = read(workdir)
    first = set(plan.first_cases(small))
    refined = set(plan.refined_cases(small, {case: results[case] for case in first}))
    assert refined and set(results) == first | refined
    assert summary == json.loads((workdir / "summary.json").read_text())
    assert summary["trials"] == len(results) and summary["failed"] == []
    keys = [(r["region"], r["where"], r["score"], r["scheme"]) for r in summary["readings"]]
    assert len(keys) == len(set(keys)) == 2 * 3 * (2 + 3)
    for reading in summary["readings"]:
        assert {t["grid"] for t in reading["thresholds"]} == {8, 12}
        assert sum(reading["exponent"][s] for s in ("reached", "above", "below", "unknown")) == 2


def test_one_trace_of_a_program_serves_every_data_set_of_its_grids(finished):
    _, _, traces = finished
    assert sorted(traces) == [(8,), (12,)]


def test_a_second_run_trains_nothing_and_changes_nothing(small, finished):
    workdir, summary, _ = finished
    before = {p: p.read_bytes() for p in workdir.iterdir() if p.name != ".lock"}
    assert sweep.run(small, workdir, progress=False) == summary
    assert {p: p.read_bytes() for p in workdir.iterdir() if p.name != ".lock"} == before


@pytest.mark.parametrize(
    ("scheme", "sampling", "decoder"),
    [
        ("bumps", "with_replacement", "conv"),
        ("stripes", "with_replacement", "mlp"),
        ("bumps", "without_replacement", "mlp"),
        ("stripes", "real", "mlp"),
    ],
)
def test_a_trial_is_the_single_run_of_its_config(small, tmp_path, scheme, sampling, decoder):
    """Trained by itself, the same decoder has the same errors; 9 images are less than stripes."""
    small = one_curve(small, task__support__sampling=sampling, decoder__name=decoder)
    values = {"sweep.schemes": (scheme,), "sweep.images_per_cell": (0.25, 0.5)}
    small = changed(small, values | {"sweep.images_per_value": (1.2, 3.0)})
    sweep.run(small, tmp_path / "sweep", progress=False)
    results = read(tmp_path / "sweep")
    case = min(results) if scheme == "stripes" and sampling != "real" else max(results)
    row = dict(zip(table.MEASURES, results[case].tolist(), strict=True))
    single = changed(plan.config_of(small, case), {"training.evaluate_every": 10})
    alone = experiment.train(single, tmp_path / "alone", progress=False)["seeds"]["0"]
    for name in ("mse", "blank_mse", "exact_accuracy", "position_accuracy"):
        assert row[f"ood.{name}"] == pytest.approx(alone[f"ood.{name}"], rel=1e-6)
    # ID cells are those drawn and those not drawn
    key = loop.stream(jax.random.key(0), "data")
    factors = np.asarray(loop.dataset.training_factors(key, single.task)).round()
    drawn = len({tuple(point) for point in factors[~np.isnan(factors).any(axis=1)]})
    total = int((~loop_held_out(single)).sum())
    unseen = (total - drawn) * row["unseen.mse"] if drawn < total else 0.0
    expected = ((drawn * row["seen.mse"] if drawn else 0.0) + unseen) / total
    assert alone["id.mse"] == pytest.approx(expected, rel=1e-5)


def loop_held_out(config):
    from compgen_jax.tasks import supports

    return supports.held_out_mask(config.task)


class Stop(Exception):
    pass


def test_a_sweep_that_was_stopped_ends_with_the_same_table(small, finished, tmp_path, monkeypatch):
    write, writes = directory.write_text, []

    def write_some(path, text):
        write(path, text)
        if path.name == "trials.csv":
            writes.append(path)
            if len(writes) in (2, 5):
                raise Stop

    monkeypatch.setattr(directory, "write_text", write_some)
    for _ in range(2):
        with pytest.raises(Stop):
            sweep.run(small, tmp_path / "run", progress=False)
        assert not (tmp_path / "run" / "summary.json").exists()
    sweep.run(small, tmp_path / "run", progress=False)
    for name in ("trials.csv", "summary.json"):
        assert (tmp_path / "run" / name).read_bytes() == (finished[0] / name).read_bytes()
    assert len(writes) == len(list(finished_waves(small, finished)))  # no wave was trained twice


def finished_waves(small, finished):
    results = read(finished[0])
    first = plan.first_cases(small)
    refined = plan.refined_cases(small, {case: results[case] for case in first})
    for cases in (first, refined):
        for bucket in waves.buckets(small, first):
            yield from waves.cut([case for case in cases if case.grid in bucket.grids], bucket)


def unfinished(finished, tmp_path, text):
    """A directory of the same sweep with this table and no summary."""
    workdir = tmp_path / "unfinished"
    workdir.mkdir()
    (workdir / "config.json").write_bytes((finished[0] / "config.json").read_bytes())
    (workdir / "trials.csv").write_text(text)
    return workdir


def test_a_table_cut_off_within_a_line_is_completed(small, finished, tmp_path, capsys):
    whole = (finished[0] / "trials.csv").read_text()
    workdir = unfinished(finished, tmp_path, whole[:-30])
    sweep.run(small, workdir, progress=False)
    assert (workdir / "trials.csv").read_text() == whole
    assert "ends within a line: its trial is trained again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace("grid,", "size,", 1), "is damaged: line 1 is not the header"),
        (lambda text: text.replace("\n", "\nx", 1), "is damaged: line 2 is of another config"),
        (lambda text: text.replace(",8,", ",16,", 1), "a trial that this sweep has not: grid=16"),
        (lambda text: text.replace(",0,128,ok", ",0,999,ok", 1), "sweep has not: .*n_data=999"),
    ],
)  # fmt: skip
def test_a_foreign_or_damaged_table_is_refused_and_kept(
    small, finished, tmp_path, damage, message, monkeypatch
):
    text = damage((finished[0] / "trials.csv").read_text())
    workdir = unfinished(finished, tmp_path, text)
    monkeypatch.setattr(waves, "train", lambda *_: pytest.fail("trained"))
    with pytest.raises(RunError, match=message):
        sweep.run(small, workdir, progress=False)
    assert (workdir / "trials.csv").read_text() == text


def test_a_directory_of_another_sweep_is_refused(small, finished):
    with pytest.raises(RunError, match=r"belongs to another config \(config.sweep.target is 0.06"):
        sweep.run(changed(small, {"sweep.target": 0.5}), finished[0], progress=False)


def test_a_single_run_is_no_sweep_and_a_sweep_no_single_run(small, tiny, tmp_path):
    with pytest.raises(ConfigError, match=r"config.sweep.grids=\(\): an empty sweep"):
        sweep.run(tiny, tmp_path / "run", progress=False)
    with pytest.raises(ConfigError, match="small is a sweep, not one run"):
        experiment.train(small, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("region", ["corner", "donut"])
def test_a_task_that_cannot_be_stops_before_anything_is_written(small, tmp_path, region):
    config = changed(small, {"sweep.shares": (0.02,), "sweep.regions": (region,)})
    with pytest.raises(ConfigError, match="config.sweep: .* share=0.02, .*holds out no cell of"):
        sweep.run(config, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def one_curve(small, **values):
    """Two trials of one seed and scheme."""
    base = {
        "sweep.grids": (8,),
        "sweep.schemes": ("bumps",),
        "sweep.regions": ("corner",),
        "sweep.refinements": 0,
        "training.steps": 10,
    }
    return changed(small, base | {name.replace("__", "."): v for name, v in values.items()})


def test_a_trial_that_diverges_is_recorded_and_stops_no_other(small, tmp_path):
    calm = one_curve(small)
    wild = changed(calm, {"sweep.learning_rates": (1e-2, 1e6)})
    alone = sweep.run(calm, tmp_path / "calm", progress=False)
    together = sweep.run(wild, tmp_path / "wild", progress=False)
    assert alone["failed"] == [] and len(together["failed"]) == 2
    assert all("learning_rate=1000000.0" in case for case in together["failed"])
    expected, found = read(tmp_path / "calm"), read(tmp_path / "wild")
    assert [table.status(values) for case, values in found.items() if case not in expected] == [
        "failed"
    ] * 2
    for case, values in expected.items():
        np.testing.assert_array_equal(found[case], values)


def test_one_device_and_two_give_the_same_bits(small, tmp_path, monkeypatch, capsys):
    config = one_curve(small, training__seeds=(0, 1, 2))  # three trials of a kind: one idle
    config = changed(config, {"sweep.images_per_cell": (1.0,)})
    assert len(jax.local_devices()) == 2
    sweep.run(config, tmp_path / "two")
    assert "1 of the last wave's 2 trials is idle" in capsys.readouterr().err
    first = jax.devices()[:1]
    monkeypatch.setattr(jax, "local_devices", lambda: first)
    sweep.run(config, tmp_path / "one")
    assert "idle" not in capsys.readouterr().err
    tables = [(tmp_path / name / "trials.csv").read_bytes() for name in ("one", "two")]
    assert tables[0] == tables[1]


def test_trials_side_by_side_are_padded_and_agree(small, tmp_path):
    """Both grids in one program of four trials: the numbers of each alone, to rounding."""
    config = changed(one_curve(small), {"sweep.grids": (8, 12), "decoder.name": "conv"})
    config = changed(config, {"decoder.width": 4, "training.steps": 30})
    padded = changed(config, {"execution.trials_per_device": 2, "execution.max_padding": 0.5})
    (bucket,) = waves.buckets(padded, plan.first_cases(padded))
    assert bucket.grids == (8, 12) and bucket.slots == 4
    sweep.run(config, tmp_path / "alone", progress=False)
    sweep.run(padded, tmp_path / "padded", progress=False)
    alone, together = read(tmp_path / "alone"), read(tmp_path / "padded")
    assert set(alone) == set(together)
    for case, values in alone.items():
        np.testing.assert_allclose(together[case], values, rtol=2e-3, atol=1e-4, err_msg=str(case))


@pytest.mark.parametrize(("gigabytes", "slots"), [(1000.0, 4), (0.0, 1)])
def test_an_accelerator_gets_as_many_trials_as_fit(small, monkeypatch, gigabytes, slots):
    """All of a bucket's, or as many as its memory holds; both grids in one program."""

    class Accelerator:
        platform = "gpu"

        def memory_stats(self):
            return {"bytes_limit": int(1e9 * gigabytes) + 1}

    config = changed(one_curve(small), {"sweep.grids": (8, 12), "decoder.name": "conv"})
    config = changed(config, {"decoder.width": 4, "execution.max_padding": 0.5})
    monkeypatch.setattr(jax, "local_devices", lambda: [Accelerator()])
    (bucket,) = waves.buckets(config, plan.first_cases(config))
    assert (bucket.grids, bucket.slots) == ((8, 12), slots)


def test_processes_agree_on_waves_that_train_and_are_scored_within_their_memory(small, monkeypatch):
    """This one could train three trials at once and score two; the other has room for one."""
    fits = []

    def fit(function, shared, pair, device):
        fits.append(function)
        return 4 - len(fits)

    config = changed(one_curve(small), {"training.seeds": (0, 1, 2)})
    monkeypatch.setattr(waves.trials, "trials_that_fit", fit)
    monkeypatch.setattr(waves.trials, "trials_side_by_side", lambda count, *_: count)
    monkeypatch.setattr(jax, "local_devices", lambda: jax.devices()[:1])
    (bucket,) = waves.buckets(config, plan.first_cases(config))
    assert len(set(fits)) == 2 and bucket.slots == 2
    fits.clear()
    monkeypatch.setattr(waves.processes, "gather", lambda own: np.stack([own, own * 0 + 1]))
    (bucket,) = waves.buckets(config, plan.first_cases(config))
    assert bucket.slots == 1


def test_waves_are_no_wider_than_their_number_needs():
    assert [waves._balanced(width, 525) for width in (256, 200, 525, 1)] == [175, 175, 525, 1]


def test_a_wave_that_memory_does_not_hold_names_the_flag(small, monkeypatch):
    def exhausted(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes")

    config = one_curve(small)
    cases = plan.first_cases(config)
    (bucket,) = waves.buckets(config, cases)
    with pytest.raises(
        RunError, match="out of memory with 1 trials of grids .8,. on a device; say"
    ):
        waves.train(bucket._replace(advance=exhausted), cases[:1], config, lambda _: None)


def test_a_map_has_one_data_set_per_share(small, tmp_path):
    config = one_curve(small, sweep__data="area", task__support__samples=40)
    config = changed(config, {"sweep.shares": (0.25, 0.5)})
    summary = sweep.run(config, tmp_path / "map", progress=False)
    results = read(tmp_path / "map")
    assert sorted(case.n_data for case in results) == [30, round(40 * (1 - 4 / 64))]
    assert [entry["share"] for entry in summary["errors"]] == [0.25, 0.5]
    for entry, (case, values) in zip(summary["errors"], sorted(results.items()), strict=True):
        row = dict(zip(table.MEASURES, values.tolist(), strict=True))
        assert entry["share"] == case.share and entry["images"] == case.n_data
        expected = row["ood.mse"] / row["ood.blank_mse"]
        assert entry["ood_relative_error"]["value"] == pytest.approx(expected)
