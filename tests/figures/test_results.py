"""What `figures.take_results` takes over, and what it keeps of earlier days."""

import json

import pytest

from compgen_jax.runs import directory
from figures import committed
from figures import take_results as results
from figures.make import run_directory
from tests.figures.test_pages import row as row_of

SUMMARIES = committed.RESULTS / "quick" / "runs"


def row(claim, case, **fields):
    return row_of(claim=claim, case=case, **fields)


def test_added_rows_stand_in_order_and_no_verdict_is_drawn_again():
    before = [row("C1", "bump"), row("C2", "bump")]
    added = [row("C1", "bump", reason="new"), row("C1", "ramp"), row("C3", "ramp")]
    assert results.with_added(before, added) == [before[0], added[1], before[1], added[2]]
    assert results.with_added([], added) == added and results.with_added(before, []) == before
    # a criterion that changed since; a claim that no paper makes
    newer = row("C1", "bump", criterion="another")
    assert results.with_added(before, [newer]) == [newer, before[1]]
    assert results.with_added([row("X9", "bump")], []) == []
    # settings stay while the base has their criterion
    upright = row("C1", "bump", setting="upright")
    assert results.with_added([*before, upright], []) == [before[0], upright, before[1]]
    assert results.with_added([*before, upright], [newer]) == [newer, before[1]]


@pytest.fixture
def target(tmp_path, monkeypatch):
    """docs/results/quick in a temporary folder."""
    monkeypatch.setattr(committed, "RESULTS", tmp_path / "results")
    return tmp_path / "results" / "quick"


def finished(workdir, network, rows, figure):
    """A directory as `figures.make` leaves it, of one network and one figure."""
    run = run_directory(workdir, committed.configs("quick")[network])
    summary = (SUMMARIES / f"{network}_quick.json").read_bytes()
    directory.write_bytes(run / "summary.json", summary)
    directory.write_bytes(workdir / "figures" / f"{figure}.png", b"picture")
    directory.write_text(workdir / "scale", "quick\n")
    directory.write_json(workdir / "claims.json", rows)
    return workdir


def test_results_grow_run_by_run(tmp_path, target):
    rows = [row("C1", "bump")], [row("C1", "bump", reason="new")], [row("C1", "ramp")]
    first = finished(tmp_path / "a", "bump_cnn", rows[0], "fig1b")
    again = finished(tmp_path / "c", "bump_cnn", rows[1], "fig1b")
    directory.write_bytes(again / "figures" / "fig1b.png", b"another picture")
    second = finished(tmp_path / "b", "ramp_cnn", rows[2], "codes")
    directory.write_text(second / "figures" / "codes.csv", "run\n")
    for workdir in (first, second, again):
        assert results.take(workdir) == target
    assert committed.rows("quick") == rows[0] + rows[2]
    assert (target / "figures" / "fig1b.png").read_bytes() == b"picture"
    assert set(committed.runs("quick")) == {"bump_cnn", "ramp_cnn"}
    names = {path.name for path in (target / "figures").iterdir()}
    assert names == {"codes.csv", "codes.png", "fig1b.png"}


def test_a_summary_with_further_numbers_takes_the_place_of_the_old_one(tmp_path, target):
    first = finished(tmp_path / "a", "bump_cnn", [row("C1", "bump")], "fig1b")
    results.take(first)
    (path,) = first.glob("trained/*/summary.json")
    summary = json.loads(path.read_text())
    for added, kept in (({}, True), ({"ood.new": {"value": 1, "ci95": [0, 2]}}, False)):
        newer = {"seeds": {"9": {}}, "mean": summary["mean"] | added}
        directory.write_json(path, newer)
        results.take(first)
        there = json.loads((target / "runs" / "bump_cnn_quick.json").read_text())
        assert (there != newer) == kept
