"""Two runs of one task, seed by seed."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from compgen_jax.config import changed, to_dict
from compgen_jax.runs import directory, study
from compgen_jax.runs.run import Run
from compgen_jax.statistics import LEAST_CELLS, seeds_to_settle
from compgen_jax.tasks import task as tasks
from launch import compare
from tests.command import call, drawn_by, refused, snippets


def run_compare(*paths):
    call(compare, *map(str, paths), positional=(compare.A, compare.B))


@pytest.fixture(scope="module")
def other_run(tiny, tmp_path_factory):
    """The tiny run at another learning rate, of seeds 7 and 1."""
    workdir = tmp_path_factory.mktemp("other") / "run"
    config = changed(tiny, {"training.learning_rate": 0.01, "training.seeds": (7, 1, 0)})
    study.train(config, workdir, progress=False)
    return workdir


def test_differences_are_paired_by_seed(tiny_run, other_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_compare(tiny_run[0], other_run)
    output = capsys.readouterr().out
    assert "configs differ in: training.learning_rate 0.001 | 0.01, training.seeds" in output
    assert "2 common seeds: 0, 7" in output
    # both are called run, in directories of their own
    (path,) = tmp_path.glob("compare_tiny*-run_other*-run/compare.json")
    row = json.loads(path.read_text())["scores"]["ood.mse"]
    of_a, of_b = tiny_run[1]["seeds"], directory.read_json(other_run / "summary.json")["seeds"]
    apart = np.array([of_b[seed]["ood.mse"] - of_a[seed]["ood.mse"] for seed in ("0", "7")])
    expected = stats.t.interval(0.95, 1, apart.mean(), stats.sem(apart))
    assert row["difference"]["value"] == pytest.approx(apart.mean())
    assert row["difference"]["ci95"] == pytest.approx(expected)
    assert row["settled"] == (expected[0] > 0 or expected[1] < 0)
    assert row["a"]["value"] == pytest.approx(np.mean([of_a[s]["ood.mse"] for s in ("0", "7")]))


def test_the_page_maps_where_runs_differ(tiny_run, other_run, tmp_path, monkeypatch):
    for name, path in (("bump_cnn", tiny_run[0]), ("bump_cnn_depth6", other_run)):
        shutil.copytree(path, tmp_path / "runs" / name)
    monkeypatch.chdir(tmp_path)
    names = drawn_by(*snippets("compare"))
    errors = [Run.load(path).cells.scores["mse"].mean(axis=0) for path in (tiny_run[0], other_run)]
    expected = (errors[1] - errors[0]).reshape(8, 8)  # x varies fastest
    np.testing.assert_allclose(names["difference"], expected, rtol=1e-4, atol=1e-7)
    assert Path("runs/compare.png").exists()


def test_the_number_of_seeds_is_the_least_whose_interval_leaves_out_0():
    several = [[0.1, 0.2, 0.0, 0.3], [1, -0.9, 1.2, -1.1, 0.4], [5, 5.1], [-1e-4, 3e-4, 2e-4]]
    for values in several:
        mean, spread = abs(np.mean(values)), np.std(values, ddof=1)
        count = seeds_to_settle(values)
        counts = np.array([count - 1, count])
        before, half = stats.t.ppf(0.975, counts - 1) * spread / np.sqrt(counts)
        assert half < mean and (count == 2 or before >= mean)
    # a mean of 0 but for rounding; one seed; a seed that is not known
    for values in ([0.1, 0.2, -0.3], [0.3], [0.3, np.nan]):
        assert seeds_to_settle(values) is None
    assert seeds_to_settle([0.1, 0.2], least=0.2) is None
    assert seeds_to_settle([0.3, 0.3]) == 2


OTHERS = {
    "they hold out other cells": {"task.support.low": 2, "task.support.high": 4},
    "they ask for other outputs": {"task.image.sigma": 1.5},
    "they have other cells": {"task.grid": 12},
    "no seed in common: 0, 7 and 3, 4": {"training.seeds": (3, 4)},
    "holds a sweep, which keeps no networks": {"sweep.axes": (("model.width", (4, 8)),)},
}


def test_what_cannot_be_compared_is_one_line(tiny, tiny_run, copy):
    for message, values in OTHERS.items():
        directory.write_json(copy / "config.json", to_dict(changed(tiny, values)))
        with refused(message):
            run_compare(tiny_run[0], copy)
    directory.write_json(copy / "config.json", to_dict(tiny))
    (copy / "summary.json").unlink()
    with refused("its run is not finished"):
        run_compare(tiny_run[0], copy)
    with refused("--b is missing"):
        run_compare(tiny_run[0])


def test_a_score_stays_a_share_where_late_checkpoints_disagree(tiny_run, tmp_path, monkeypatch):
    """So that the interval of its difference has at least the width that the note promises."""
    places = [shutil.copytree(tiny_run[0], tmp_path / name) for name in "ab"]
    ood = tasks.regions(Run.load(tiny_run[0]).task)["ood"]
    zeros = np.zeros((2, len(ood)))
    for place, right in zip(places, (0, 1), strict=True):
        rendered = np.repeat(zeros[:, None], 5, axis=1)
        rendered[:, -1] = right
        scores = {"rendered": rendered, "mse": np.full_like(rendered, 0.1)}
        directory.keep_scores(place, "late", scores)
        summary = directory.read_json(place / "summary.json")
        for numbers in summary["seeds"].values():
            numbers["ood.rendered"] = right / 8  # less than 1.5 of the 9 cells
        directory.write_json(place / "summary.json", summary)
    monkeypatch.chdir(tmp_path)
    run_compare(*places)
    scores = json.loads((tmp_path / "compare_a_b" / "compare.json").read_text())["scores"]
    row = scores["ood.rendered"]
    assert row["difference"]["value"] == pytest.approx(1 / 8) and row["seeds"] is None
    low, high = row["difference"]["ci95"]
    assert high - low == pytest.approx(2 * LEAST_CELLS / ood.sum())


@pytest.mark.parametrize("given", [{"0": 0.5}, {"0": 0.5, "7": None}])
def test_what_one_seed_or_a_missing_score_leaves_unknown_is_said(tiny, given):
    task = tiny.task.make()
    names = [f"{where}.{name}" for where in ("id", "ood") for name in tasks.number_names(task)]
    a, b = ({"seeds": {seed: dict.fromkeys(names, value) for seed, value in values.items()}}
            for values in (given, dict.fromkeys(given, 0.25)))  # fmt: skip
    _, *rows = compare.table(compare.compare(a, b, list(given), task, set()))
    assert len(rows) == len(names) and all(row.endswith("unknown") for row in rows)
