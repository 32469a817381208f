"""The second paper's runs, and its claims and figures on committed summaries."""

import pytest

from compgen_jax.claims import judge_all, rows
from compgen_jax.papers.scale import neurons, runs
from compgen_jax.papers.scale.claims import CLAIMS
from compgen_jax.runs import experiment
from compgen_jax.tasks import task as tasks
from figures import plotting
from figures.papers import FIGURES
from figures.scale import figures, tables
from tests.figures import committed

LAYERS = ("decode.ood_r2", "decode.untrained.ood_r2", "decode.shuffled.ood_r2")
OUTPUTS = ("decode.recovery", "decode.active_recovery")
SCALES = "quick", "paper"


@pytest.fixture(scope="module")
def finished():
    return committed.finished(runs.runs("quick"), LAYERS, OUTPUTS)


@pytest.fixture
def constructed(monkeypatch):
    """Tables of networks that are written down, by a law; the real ones are in the tests of
    claims."""
    table = [
        {"modules": modules, "knots": knots, "neurons": 10 * knots + modules, "seed": seed,
         "max_error": 1e-6, "rmse": knots**-2, "r2": 1 - knots**-4}
        for modules in (4, 8, 32) for knots in (4, 8, 16) for seed in neurons.Constructed.seeds
    ]  # fmt: skip
    for name in ("exact", "graded", "graded_own"):
        monkeypatch.setitem(vars(neurons.CONSTRUCTED), name, table)


def test_quick_runs_are_those_of_the_presets():
    groups = runs.sets_and_widths, runs.codes, runs.supports, runs.more_modules, runs.sets_needed
    assert [len(group("quick")) for group in groups] == [12, 4, 6, 12, 10]
    assert [len(runs.runs(scale)) for scale in SCALES] == [47, 89]
    # No support is easier for having more sets.
    assert {runs.sets_seen(config) for config in runs.supports("quick").values()} == {44}
    steps = {c.task.code.name: c.training.steps for c in runs.codes("quick").values()}
    assert steps["orthogonal"] == 6000 and set(steps.values()) == {6000, 24_000}
    wide = [config for name, config in runs.sets_and_widths("quick").items() if "256" in name]
    assert len({experiment.schedule(config, config.task.make()) for config in wide}) == 1


@pytest.mark.parametrize("scale", SCALES)
def test_decoders_of_bumps_hold_out_as_many_cells_in_either_way(scale):
    counts = {}
    for name, config in runs.bridge(scale).items():
        if name.startswith("bump_"):
            task = config.task.make()
            count = int(task.held_out(tasks.points(task)).sum())
            counts.setdefault(name.split("_")[2], set()).add(count / config.task.grid**2)
    assert len(counts) == 2
    for share, found in counts.items():
        assert len(found) == 1 and found.pop() == pytest.approx(float(share), abs=0.02)


def test_committed_summaries_give_the_committed_verdicts(finished):
    """Of S1, S2 and S3c, which need nothing but summaries."""
    summaries = [claim for claim in CLAIMS if claim.name[:2] in ("S1", "S2") or claim.name == "S3c"]
    judged = rows(judge_all(summaries, finished), "quick")
    names = {claim.name for claim in summaries}
    expected = [row for row in committed.claims() if row["claim"] in names]
    assert [(row["claim"], row["code"]) for row in judged] == [
        (row["claim"], row["code"]) for row in expected
    ]
    for row, other in zip(judged, expected, strict=True):
        for field in ("verdict", "reason", "criterion", "statement"):
            assert row[field] == other[field]
        assert row["measured"] == pytest.approx(other["measured"], rel=1e-6)


def test_every_claim_and_figure_of_finished_runs(finished, constructed):
    judged = judge_all(CLAIMS, finished)
    assert {row["claim"] for row in judged} == {claim.name for claim in CLAIMS} - {"S1d"}
    for name, draw in (
        ("scale1", figures.draw_scale),
        ("scale2", figures.draw_codes_and_supports),
        ("scale3", figures.draw_neurons),
        ("scale4", figures.draw_decodability),
        ("bridge", figures.draw_bridge),
    ):
        assert FIGURES[name].draw is draw and not FIGURES[name].by_default
        shown = FIGURES[name].shows(finished, "quick")
        drawn = draw({each: finished[each] for each in shown})
        drawn.draw_without_rendering()
        plotting.close(drawn)


def test_figures_show_the_runs_that_they_draw():
    names = {scale: [*runs.runs(scale), "bump_cnn", "random_cells"] for scale in SCALES}
    shown = {name: [len(FIGURES[name].shows(names[scale], scale)) for scale in SCALES]
             for name in ("scale1", "scale2", "scale3", "scale4", "bridge")}  # fmt: skip
    assert shown == {
        "scale1": [18, 68], "scale2": [11, 17], "scale3": [22, 40], "scale4": [12, 40],
        "bridge": [20, 8],
    }  # fmt: skip


def test_the_table_has_the_committed_scores_of_students(finished):
    page = (committed.RESULTS / "RESULTS.md").read_text().splitlines()
    students = [line for line in tables.table(finished) if line.startswith("| modules_")]
    assert len(students) == 2 * 41 and set(students) <= set(page)
