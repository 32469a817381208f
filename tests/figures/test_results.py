"""What `figures.results` takes over, and what it keeps of earlier days."""

import json
from dataclasses import replace

import numpy as np
import pytest

from compgen_jax.claims import Claim, Condition, Evidence, from_rows, judge, rows
from compgen_jax.papers import robustness
from compgen_jax.runs import directory
from compgen_jax.runs.run import Run
from figures import committed, digests, results
from figures.make import run_directory

SUMMARIES = committed.RESULTS / "quick" / "runs"


def made(name, code="", value=1.0, compared=0.0, above=0.0):
    """A claim on two numbers, the second of which needs another network (NaN without)."""
    own = Condition("own", lambda e: np.full(3, value), above=above)
    beyond = Condition("less another's", lambda e: value - np.full(3, compared), above=above)
    return Claim(name, f"{name} holds", (own,), (own, beyond), code=code, trained=None)


def claim(*arguments, **fields):
    return judge(made(*arguments, **fields), Evidence({"net": Run.known((0, 1, 2))}))


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


def test_a_verdict_is_kept_only_while_its_criterion_is_the_same():
    before, changed = as_read([claim("C1", "bump", 1.0)]), as_read([claim("C1", above=0.5)])
    changed[0]["code"] = "bump"
    assert results.with_added(before, changed) == changed
    fewer = as_read([claim("C1", "bump", 2.0)])
    fewer[0]["stricter"]["conditions"].pop("less another's")  # as its networks are elsewhere
    assert results.with_added(before, fewer) == before
    assert results.with_added(fewer, before) == before


def test_the_same_numbers_are_taken_with_what_is_said_of_them_now():
    before, added = as_read([claim("C1", value=1.0)]), as_read([claim("C1", value=1.0 + 1e-9)])
    added[0]["stricter"]["reason"] = "one seed decides: reproduced without seed 0"
    assert results.with_added(before, added) == added
    other = as_read([claim("C1", value=1.0 + 1e-3)])
    assert results.with_added(before, other) == before


def test_a_claim_that_was_not_judged_again_is_kept_while_a_paper_makes_it(monkeypatch):
    """And while its criterion, as far as it can be told without the runs, is the same."""
    kept = as_read([claim("C1", "bump"), claim("C2", "bump")])
    gone = as_read([claim("C3", "bump"), claim("C1", "ramp", above=0.5)])
    by_runs = replace(made("C2"), stricter=lambda e: e.net.conditions)
    paper = committed.PAPERS[0]._replace(claims=(made("C1"), by_runs))
    monkeypatch.setattr(committed, "PAPERS", (paper,))
    assert results.still_judged(kept + gone) == kept
    changed = replace(by_runs, as_stated=made("C2", above=0.5).as_stated)
    monkeypatch.setattr(committed, "PAPERS", (paper._replace(claims=(made("C1"), changed)),))
    assert results.still_judged(kept) == kept[:1]


@pytest.fixture
def target(tmp_path, monkeypatch):
    """docs/results, for a while elsewhere; the papers claim what these tests judge."""
    monkeypatch.setattr(committed, "RESULTS", tmp_path / "results")
    first, *others = committed.PAPERS
    first = first._replace(claims=(made("C1"), made("C2")))
    monkeypatch.setattr(committed, "PAPERS", (first, *others))
    return tmp_path / "results" / "quick"


def finished(workdir, network, claims, figure):
    """A directory of figures.make in which one network was trained and one figure drawn."""
    config = committed.configs("quick")[network.removesuffix("_quick")]
    run = run_directory(workdir, config)
    directory.write_bytes(run / "summary.json", (SUMMARIES / f"{network}.json").read_bytes())
    directory.write_bytes(workdir / "figures" / f"{figure}.png", b"picture")
    summaries = {config.name: (run / "summary.json").read_bytes()}
    digests.note(workdir / "figures" / f"{figure}.png", committed.FIGURES[figure], summaries)
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
    assert values(committed.claims("quick")) == [("C1", "bump", 1.0), ("C1", "ramp", 2.0)]
    assert (target / "figures" / "fig1b.png").read_bytes() == b"picture"
    assert set(committed.runs("quick")) == {"bump_cnn", "ramp_cnn"}
    page = (target / "RESULTS.md").read_text()
    assert "| bump_cnn_quick | OOD |" in page and "| ramp_cnn_quick | OOD |" in page
    assert "--only=codes,fig1b\n" in page and "| onehot_cnn_quick | 1 |" in page
    assert "| ramp_cnn_quick |" not in page.partition("## Not run")[2]
    assert capsys.readouterr().out == ""
    results.take(second, add=False)
    assert [one["code"] for one in committed.claims("quick")] == ["ramp"]
    assert set(committed.runs("quick")) == {"ramp_cnn"}
    assert [path.name for path in (target / "figures").glob("*.png")] == ["codes.png"]
    assert list(digests.read(target / "figures")) == ["codes"]
    assert "bump_cnn_quick" not in (target / "RESULTS.md").read_text().partition("## Not run")[0]
    assert "removed runs/bump_cnn_quick.json (--add keeps what is there)" in capsys.readouterr().out


def test_a_summary_with_further_numbers_takes_the_place_of_the_old_one(tmp_path, target):
    claims = [claim("C1", "bump", 1.0)]
    first = finished(tmp_path / "a", "bump_cnn_quick", claims, "fig1b")
    results.take(first, add=False)
    (path,) = first.glob("trained/*/summary.json")
    summary = json.loads(path.read_text())
    for added, kept in (({}, True), ({"ood.new": {"value": 1, "ci95": [0, 2]}}, False)):
        newer = {"seeds": {"9": {}}, "mean": summary["mean"] | added}
        directory.write_json(path, newer)
        results.take(first, add=True)
        there = json.loads((target / "runs" / "bump_cnn_quick.json").read_text())
        assert (there != newer) == kept


def test_verdicts_at_settings_come_and_go_with_their_picture(tmp_path, target):
    """They say of each claim how far it holds, at the paper's size as well."""
    claims = [claim("C1", "bump", -1.0)]
    with_settings = finished(tmp_path / "a", "bump_cnn_quick", claims, "robustness")
    varied = robustness.at_base([claim("C1", "bump", 1.0)])[0]
    rows = [*robustness.at_base(claims), varied | {"setting": "upright"}]
    directory.write_json(with_settings / "settings.json", rows)
    results.take(with_settings, add=False)
    paper = finished(tmp_path / "b", "bump_cnn_quick", claims, "fig1b")
    directory.write_text(paper / "scale", "paper\n")
    results.take(paper, add=True)
    reason = lambda scale: committed.claims(scale)[0]["as_stated"]["reason"]
    assert (reason("quick"), reason("paper")) == ("depends on upright", "depends on quick: upright")
    assert "bump (0 of 1; depends on upright)" in (target / "RESULTS.md").read_text()
    other = finished(tmp_path / "c", "ramp_cnn_quick", claims, "codes")
    results.take(other, add=True)
    assert reason("quick") == "depends on upright"
    directory.write_json(with_settings / "settings.json", rows[:1])
    results.take(with_settings, add=False)
    assert reason("quick") == ""
    results.take(other, add=False)
    assert not (target / "settings.json").exists()


def test_settings_that_are_added_stand_beside_those_before(tmp_path, target):
    """The picture shows all of them, and no verdict is drawn a second time."""
    claims = [claim("C1", "bump", 1.0), claim("C1", "ramp", 1.0)]
    row, of_ramp = robustness.at_base(claims)
    upright, differing = row | {"setting": "upright"}, row | {"setting": "upright", "verdict": "no"}
    width = row | {"setting": "width 8"}
    for name, found in (
        ("a", [row | {"measured": 7.0}, upright, of_ramp]),
        ("b", [row, differing, width]),
    ):
        workdir = finished(tmp_path / name, "bump_cnn_quick", claims, "robustness")
        directory.write_json(workdir / "settings.json", found)
        results.take(workdir, add=True)
    assert committed.settings("quick") == [row, upright, of_ramp, width]
    assert committed.changes_since("quick") == {"robustness": []}
    picture = (target / "figures" / "robustness.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and digests.wrong(target / "figures") == []
    results.take(workdir, add=True)
    assert (target / "figures" / "robustness.png").read_bytes() == picture
    # rows of another criterion go, and what is said of the base is what claims.json says
    results.take(
        finished(tmp_path / "c", "bump_cnn_quick", [claim("C1", "bump", 1.0, above=0.5)], "codes"),
        add=True,
    )
    assert committed.settings("quick") == [of_ramp]
    assert committed.changes_since("quick") == {"codes": [], "robustness": []}


def test_a_sweep_was_run_if_its_figure_is_there(tmp_path, target):
    claims = [claim("C1", "bump", 1.0)]
    results.take(finished(tmp_path / "a", "bump_cnn_quick", claims, "fig1b"), add=False)
    assert "| data_scaling_quick | " in (target / "RESULTS.md").read_text()
    results.take(finished(tmp_path / "b", "bump_cnn_quick", claims, "fig4c"), add=True)
    page = (target / "RESULTS.md").read_text()
    assert "| data_scaling_quick | " not in page and "| holdout_map_quick | " in page


def test_the_longest_table_of_a_sweep_is_taken_or_that_of_its_config_today(tmp_path, target):
    sweep, taken = committed.configs("quick")["data_scaling"], []
    tables = "head\nold,1\n", "head\nold,1\nold,2\n", "head\nold,3\n", "head\nnew,1\n"
    for name, table in zip("abcd", tables, strict=True):
        workdir = finished(tmp_path / name, "bump_cnn_quick", [claim("C1", "bump", 1.0)], "fig1b")
        directory.write_text(run_directory(workdir, sweep) / "trials.csv", table)
        results.take(workdir, add=True)
        taken.append((target / "sweeps" / "data_scaling_quick.csv").read_text())
    assert taken == [tables[0], tables[1], tables[1], tables[3]]


def test_a_figure_is_older_than_runs_that_changed_since(tmp_path, target):
    claims = [claim("C1", "bump", 1.0)]
    first = finished(tmp_path / "a", "bump_cnn_quick", claims, "fig1d")
    results.take(first, add=False)
    assert committed.changes_since("quick") == {"fig1d": []}
    # the line goes where the picture goes, and another picture is none of it
    another = finished(tmp_path / "b", "bump_cnn_quick", claims, "fig1d")
    directory.write_bytes(another / "figures" / "fig1d.png", b"another picture")
    results.take(another, add=True)
    assert digests.wrong(target / "figures") == []
    # one that is older than its runs gives way
    numbers = json.loads((SUMMARIES / "bump_cnn_quick.json").read_text())["mean"]
    more = {"mean": numbers | {"ood.new": {}}}
    directory.write_json(target / "runs" / "bump_cnn_quick.json", more)
    assert committed.changes_since("quick") == {"fig1d": ["runs"]}
    results.take(another, add=True)
    assert digests.wrong(target / "figures") == [
        "fig1d.png is not the picture of its line in digests.json"
    ]
    # as does one that is older than what comes with it; a figure of a user's own stays where it is
    picture, third = b"a third picture", finished(tmp_path / "c", "bump_cnn_quick", claims, "fig1d")
    directory.write_bytes(third / "figures" / "fig1d.png", picture)
    directory.write_bytes(third / "figures" / "mine.png", picture)
    (summary,) = third.glob("trained/*/summary.json")
    directory.write_json(summary, {"mean": more["mean"] | {"ood.newer": {}}})
    results.take(third, add=True)
    assert [path.read_bytes() for path in (target / "figures").glob("*.png")] == [picture]
    (another / "figures" / "digests.json").unlink()
    results.take(another, add=False)
    assert committed.changes_since("quick") == {"fig1d": ["no digest"]}
