"""What `figures.results` takes over, and what it keeps of earlier days."""

import json

import numpy as np
import pytest

from compgen_jax.calibration import KnownRun
from compgen_jax.claims import Claim, Condition, Evidence, from_rows, judge, rows
from compgen_jax.runs import directory
from figures import digests, results
from figures.make import run_directory

SUMMARIES = results.RESULTS / "quick" / "runs"


def claim(name, code, value, compared=0.0):
    """A claim on two numbers, the second of which needs another network (NaN without)."""
    own = Condition("own", lambda e: np.full(3, value), above=0.0)
    beyond = Condition("less another's", lambda e: value - np.full(3, compared), above=0.0)
    row = Claim(name, f"{name} holds", (own,), (own, beyond), code=code, trained=None)
    return judge(row, Evidence({"net": KnownRun((0, 1, 2))}))


def as_read(judged):
    """As claims.json gives them."""
    written = json.dumps(directory.clean(rows(judged, "quick")), allow_nan=False)
    return from_rows(json.loads(written))


def values(found):
    return [(one["claim"], one["code"], one["stricter"]["measured"]) for one in found]


def test_added_claims_stand_in_order_and_no_verdict_is_drawn_again():
    before = as_read([claim("C1", "bump", 1.0), claim("C2", "bump", 1.0)])
    added = as_read([claim("C1", "bump", 2.0), claim("C1", "ramp", 3.0), claim("C3", "ramp", 4.0)])
    found = results.with_added(before, added)
    assert values(found) == [
        ("C1", "bump", 1.0), ("C1", "ramp", 3.0), ("C2", "bump", 1.0), ("C3", "ramp", 4.0)
    ]  # fmt: skip
    assert results.with_added([], added) == added and results.with_added(before, []) == before
    alone = as_read([claim("C1", "ramp", 5.0)])
    assert values(results.with_added(before, alone))[:2] == [("C1", "bump", 1), ("C1", "ramp", 5)]
    first = as_read([claim("C1", "onehot", 5.0), claim("C1", "bump", 2.0)])
    assert values(results.with_added(before, first))[:2] == [("C1", "onehot", 5), ("C1", "bump", 1)]


def test_a_claim_whose_comparison_was_not_at_hand_gives_way_to_one_that_has_it():
    whole, partly = as_read([claim("C6", "bump", 1.0)]), as_read([claim("C6", "bump", 2.0, np.nan)])
    assert partly[0]["stricter"]["reason"] == "not known: less another's"
    assert results.with_added(whole, partly) == whole
    assert results.with_added(partly, whole) == whole
    again = as_read([claim("C6", "bump", 3.0, np.nan)])
    assert results.with_added(partly, again) == partly


@pytest.fixture
def target(tmp_path, monkeypatch):
    """docs/results, for a while elsewhere."""
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    return tmp_path / "results" / "quick"


def finished(workdir, network, claims, figure):
    """A directory of figures.make in which one network was trained and one figure drawn."""
    config = results.configs("quick")[network.removesuffix("_quick")]
    run = run_directory(workdir, config)
    directory.write_bytes(run / "summary.json", (SUMMARIES / f"{network}.json").read_bytes())
    directory.write_bytes(workdir / "figures" / f"{figure}.png", b"picture")
    summaries = {config.name: (run / "summary.json").read_bytes()}
    digests.note(workdir / "figures" / f"{figure}.png", results.FIGURES[figure], summaries)
    directory.write_text(workdir / "scale", "quick\n")
    directory.write_json(workdir / "claims.json", rows(claims, "quick"))
    return workdir


def test_results_grow_where_they_are_added_to(tmp_path, target, capsys):
    first = finished(tmp_path / "a", "bump_cnn_quick", [claim("C1", "bump", 1.0)], "fig1b")
    again = finished(tmp_path / "c", "bump_cnn_quick", [claim("C1", "bump", 9.0)], "fig1b")
    directory.write_bytes(again / "figures" / "fig1b.png", b"another picture")
    second = finished(tmp_path / "b", "ramp_cnn_quick", [claim("C1", "ramp", 2.0)], "codes")
    assert results.take(first, add=False) == target
    results.take(second, add=True)
    results.take(again, add=True)
    assert values(results.claims("quick")) == [("C1", "bump", 1.0), ("C1", "ramp", 2.0)]
    assert (target / "figures" / "fig1b.png").read_bytes() == b"picture"
    assert set(results.runs("quick")) == {"bump_cnn", "ramp_cnn"}
    page = (target / "RESULTS.md").read_text()
    assert "| bump_cnn_quick | OOD |" in page and "| ramp_cnn_quick | OOD |" in page
    assert "--only=codes,fig1b\n" in page and "- onehot_cnn_quick: " in page
    assert "- ramp_cnn_quick: " not in page.partition("## Not run")[2]
    assert capsys.readouterr().out == ""
    results.take(second, add=False)
    assert [one["code"] for one in results.claims("quick")] == ["ramp"]
    assert set(results.runs("quick")) == {"ramp_cnn"}
    assert [path.name for path in (target / "figures").glob("*.png")] == ["codes.png"]
    assert list(digests.read(target / "figures")) == ["codes"]
    assert "bump_cnn_quick" not in (target / "RESULTS.md").read_text().partition("## Not run")[0]
    assert "removed runs/bump_cnn_quick.json (--add keeps what is there)" in capsys.readouterr().out


def test_a_sweep_was_run_if_its_figure_is_there(tmp_path, target):
    claims = [claim("C1", "bump", 1.0)]
    results.take(finished(tmp_path / "a", "bump_cnn_quick", claims, "fig1b"), add=False)
    assert "- data_scaling_quick: " in (target / "RESULTS.md").read_text()
    results.take(finished(tmp_path / "b", "bump_cnn_quick", claims, "fig4c"), add=True)
    page = (target / "RESULTS.md").read_text()
    assert "- data_scaling_quick: " not in page and "- holdout_map_quick: " in page


def test_a_figure_is_older_than_runs_that_changed_since(tmp_path, target):
    claims = [claim("C1", "bump", 1.0)]
    first = finished(tmp_path / "a", "bump_cnn_quick", claims, "fig1d")
    results.take(first, add=False)
    assert results.changes_since("quick") == {"fig1d": []}
    directory.write_json(target / "runs" / "bump_cnn_quick.json", {"seeds": {}})
    assert results.changes_since("quick") == {"fig1d": ["runs"]}
    # the line goes where the picture goes, and another picture is none of it
    another = finished(tmp_path / "b", "bump_cnn_quick", claims, "fig1d")
    directory.write_bytes(another / "figures" / "fig1d.png", b"another picture")
    results.take(another, add=True)
    assert digests.wrong(target / "figures") == []
    results.take(another, add=False)
    assert digests.wrong(target / "figures") == [
        "fig1d.png is not the picture of its line in digests.json"
    ]
    (another / "figures" / "digests.json").unlink()
    results.take(another, add=False)
    assert results.changes_since("quick") == {"fig1d": ["no digest"]}
