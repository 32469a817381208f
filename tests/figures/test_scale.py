"""The second paper's runs, and its claims and figures on committed summaries."""

import numpy as np
import pytest

from compgen_jax.claims import judge_all, rows
from compgen_jax.papers.scale import neurons, runs
from compgen_jax.papers.scale.claims import CLAIMS
from compgen_jax.runs import experiment
from compgen_jax.runs.run import Run
from compgen_jax.statistics import mean_with_interval
from compgen_jax.tasks import task as tasks
from figures.papers import FIGURES
from figures.scale import tables
from tests.figures import committed

LAYERS = ("decode.ood_r2", "decode.untrained.ood_r2", "decode.shuffled.ood_r2")
OUTPUTS = ("decode.recovery", "decode.active_recovery")
SCALES = "quick", "paper"


SCORES = ("r2", "gain", "mse", "variance", "bilinear_mse", "sum_of_singles_mse",
          "nearest_seen_mse", "task_accuracy", "step_accuracy", "episode_accuracy", "majority_miss",
          "nearest_seen_miss")  # fmt: skip


@pytest.fixture(scope="module")
def finished():
    there = {path.stem for path in (committed.RESULTS / "runs").glob("*.json")}
    configs = {name: one for name, one in runs.runs("quick").items() if one.name in there}
    return committed.finished(configs, LAYERS, OUTPUTS)


@pytest.fixture(scope="module")
def all_runs(finished):
    """Those, and made-up numbers for runs whose summaries are not committed."""
    rng, found = np.random.default_rng(0), {}
    for name, config in runs.runs("quick").items():
        seeds = {
            str(seed): {f"{region}.{score}": rng.uniform(0.5, 1)
                        for region in ("id", "ood") for score in SCORES}
            for seed in config.training.seeds
        }  # fmt: skip
        columns = next(iter(seeds.values()))
        mean = {key: mean_with_interval([one[key] for one in seeds.values()]) for key in columns}
        summary = {"seeds": seeds, "mean": mean, "task": {"sets": 92, "code_r2": 1.0}}
        layers = {metric: rng.random((len(seeds), 4)) for metric in LAYERS}
        outputs = {metric: rng.random(len(seeds)) for metric in OUTPUTS}
        own = config.training.seeds, None, layers, outputs
        found[name] = finished.get(name) or Run.known(*own, config=config, summary=summary)
    return found


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
    groups = (runs.sets_and_widths, runs.codes, runs.supports, runs.more_modules, runs.sets_needed,
              runs.architectures, runs.preferences, runs.middle)  # fmt: skip
    assert [len(group("quick")) for group in groups] == [12, 5, 6, 12, 10, 6, 2, 84]
    assert [len(runs.runs(scale)) for scale in SCALES] == [140, 85]
    # No support is easier for having more sets.
    assert {runs.sets_seen(config) for config in runs.supports("quick").values()} == {44}
    code = lambda config: (config.task.code.name, config.task.code.std)
    steps = {code(config): config.training.steps for config in runs.codes("quick").values()}
    assert steps["orthogonal", 1.5] == steps["invertible", 0.1] == 6000
    assert steps["invertible", 1.5] == 24_000 and set(steps.values()) == {6000, 24_000}
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
    """Of S1, S2 and S3c, which need nothing but summaries, where the criterion is the same."""
    summaries = [claim for claim in CLAIMS if claim.name[:2] in ("S1", "S2") or claim.name == "S3c"]
    key = lambda row: tuple(row[name] for name in ("claim", "code", "reading", "criterion"))
    judged = {key(row): row for row in rows(judge_all(summaries, finished), "quick")}
    expected = {key(row): row for row in committed.claims() if key(row) in judged}
    assert len(expected) >= 22
    for name, other in expected.items():
        for field in ("verdict", "reason", "statement"):
            assert judged[name][field] == other[field]
        assert judged[name]["measured"] == pytest.approx(other["measured"], rel=1e-6)


def test_every_claim_and_figure_of_finished_runs(drawn, all_runs, constructed):
    judged = judge_all(CLAIMS, all_runs)
    assert {row["claim"] for row in judged} == {claim.name for claim in CLAIMS}
    middle = [row for row in judged if row["figure"] == "scale_middle"]
    assert len(middle) == 10 and all(row["seeds"] == [0, 1, 2, 3, 4, 5] for row in middle)
    assert all("middle scale" in row["code"] for row in middle)
    for name in ("scale1", "scale1d", "gridworld", "scale2", "scale3", "scale4", "scale_middle",
                 "bridge"):  # fmt: skip
        figure = FIGURES[name]
        assert not figure.by_default
        drawn(figure.draw, {each: all_runs[each] for each in figure.shows(all_runs, "quick")})


def test_figures_show_the_runs_that_they_draw():
    names = {scale: [*runs.runs(scale), "bump_cnn", "random_cells"] for scale in SCALES}
    figures = ("scale1", "scale1d", "gridworld", "scale2", "scale3", "scale4", "bridge",
               "scale_middle")  # fmt: skip
    shown = {name: [len(FIGURES[name].shows(names[scale], scale)) for scale in SCALES]
             for name in figures}  # fmt: skip
    assert shown == {
        "scale1": [18, 52], "scale1d": [6, 8], "gridworld": [2, 2], "scale2": [12, 19],
        "scale3": [22, 40], "scale4": [12, 40], "bridge": [20, 8], "scale_middle": [84, 0],
    }  # fmt: skip


def test_the_table_has_the_committed_scores_of_students(finished):
    page = (committed.RESULTS / "RESULTS.md").read_text().splitlines()
    students = [line for line in tables.table(finished) if line.startswith("| modules_")]
    assert len(students) == 2 * 48 and set(students) <= set(page)


def test_the_table_has_draws_together_and_students_of_preferences(all_runs):
    lines = [line.split(" | ")[0] for line in tables.table(all_runs)]
    assert sum(line.startswith("| middle_") for line in lines) == 2 * 14
    assert lines.count("| preference_seen_69_quick") == 2
    assert "| middle_seen_522_width_512_popular" in lines
    assert not any("_draw_" in line for line in lines)
