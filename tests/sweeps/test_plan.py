"""What a sweep is made of: trials, the single run that each is, and the table."""

import jax
import numpy as np
import pytest

from compgen_jax.config import Config, SweepConfig, changed
from compgen_jax.sweeps import plan, table
from compgen_jax.sweeps.summary import describe_search, summarize
from compgen_jax.sweeps.table import Layout, SweepTrial

GRIDS = ("task.grid", (8, 12))
REGIONS = ("task.support.region", ("none", "corner"))
COPIES = ("task.stripes.copies", (0, 1))
BASE = {
    "training.steps": 10,
    "training.seeds": (0, 5),
    "task.support.side": 0.5,
    "task.support.require_marginals": False,
    "task.stripes.order": "shuffled",
}
SEARCH = {
    "sweep.search.field": "task.images",
    "sweep.search.scores": ("exact_accuracy", "image_accuracy"),
    "sweep.search.per": (("cell", (0.5, 2.0)), ("value", (1.5, 2.0, 4.0))),
}


def sweep_of(*axes, **values) -> Config:
    return changed(Config(), BASE | {"sweep.axes": axes} | SEARCH | values)


def test_a_search_begins_with_every_combination_and_ladder():
    rates = ("training.learning_rate", (1e-3, 1e-2))
    config = sweep_of(GRIDS, COPIES, REGIONS, rates)
    trials = plan.first_trials(config)
    # seeds, rates, regions, and the numbers with and without stripes, at two grids
    assert len(trials) == len(set(trials)) == 2 * 2 * 2 * (2 + 3) * 2
    assert trials == sorted(trials) and {trial.seed for trial in trials} == {0, 5}
    numbers = {}
    for trial in trials:
        numbers.setdefault(trial.axes[:2], set()).add(trial.value)
    assert numbers == {
        (8, 0): {32, 128}, (12, 0): {72, 288}, (8, 1): {12, 16, 32}, (12, 1): {18, 24, 48},
    }  # fmt: skip


def test_a_case_is_a_single_run_with_its_fields():
    rates = ("training.learning_rate", (1e-3, 3e-3))
    config = sweep_of(GRIDS, COPIES, ("task.support.region", ("corner",)), rates)
    for images, points in ((9, 0), (16, 0), (30, 14)):
        trial = SweepTrial((8, 1, "corner", 3e-3), 5, images)
        single = plan.config_of(config, trial)
        assert single.sweep == SweepConfig() and single.training.seeds == (5,)
        assert single.training.learning_rate == 3e-3 and single.training.steps == 10
        shown = np.asarray(single.task.make().dataset(jax.random.key(0)).points)
        assert len(shown) == images and (~np.isnan(shown).any(axis=1)).sum() == points
        assert single.name == f"unnamed_8_1_corner_0.003_{images}"


def test_refined_trials_lie_between_the_numbers_around_the_crossing():
    per = (("cell", (0.5, 2.0, 8.0)), ("value", (1.5, 2.0, 4.0)))
    values = {"task.support.region": "corner", "sweep.search.refine_with": 2}
    config = sweep_of(GRIDS, COPIES, **values, **{"sweep.search.per": per})
    names = plan.layout(config).measures
    columns = [names.index(f"ood.{score}_accuracy") for score in ("exact", "image")]

    def numbers_between(*crossings):
        """The new numbers of bumps where each score crosses the target after its number."""
        results = {trial: np.zeros(len(names)) for trial in plan.first_trials(config)}
        for trial, values in results.items():
            values[columns] = [0.95 if trial.value > crossing else 0.2 for crossing in crossings]
        refined = plan.refined_trials(config, results)
        assert {trial.axes[1] for trial in refined} <= {0}  # of stripes nothing lies between
        return [trial.value for trial in refined if trial[:2] == ((8, 0), 0)]

    assert numbers_between(200, 200) == [round(128 * 4 ** (1 / 3)), round(128 * 4 ** (2 / 3))]
    assert numbers_between(0, 0) == []  # reached by the smallest
    config = changed(config, {"sweep.search.refine_with": 1})
    assert numbers_between(200, 50) == [64, 256]  # each score where it crosses


# --- the table -------------------------------------------------------------------------------

LAYOUT = Layout(
    {"task.grid": (8, 12), "model.name": ("conv", "a, b"), "some.pair": ((1, "x"), (2, "y"))},
    "training.learning_rate",
    float,
    ("train_loss", *(f"m{k}" for k in range(20))),
)
TRIALS = [
    SweepTrial((8, "conv", (1, "x")), 0, 1e-3),
    SweepTrial((8, "conv", (2, "y")), 7, 1 / 3),
    SweepTrial((12, "a, b", (1, "x")), 0, 1e-3),
]


def a_table():
    generator = np.random.default_rng(0)
    values = generator.lognormal(0, 20, (3, len(LAYOUT.measures))).astype(np.float32)
    values[0, 3:6] = np.nan  # nothing to score
    values[2] = np.nan  # failed
    return dict(zip(TRIALS, values, strict=True))


def test_a_table_reads_back_exactly_in_one_order():
    """Also values that are tuples, or text with a comma, and a searched number of many digits."""
    whole = a_table()
    text = table.to_text(whole, LAYOUT, "abc")
    assert text == table.to_text(dict(reversed(whole.items())), LAYOUT, "abc")
    again, cut = table.from_text(text, LAYOUT, "abc")
    assert list(again) == TRIALS and not cut
    for trial in TRIALS:
        np.testing.assert_array_equal(again[trial], whole[trial])
    rows = table.rows(whole, LAYOUT)
    assert [row["status"] for row in rows] == ["ok", "ok", "failed"]
    assert rows[1]["training.learning_rate"] == 1 / 3 and rows[1]["some.pair"] == (2, "y")
    assert rows[1]["train_loss"] == float(whole[TRIALS[1]][0]) and rows[2]["task.grid"] == 12


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        (2, "", "", "line 3: repeats a trial"),
        (1, "task.grid", "task.size", "line 1: is not the header"),
        (3, "\n", "\nabc,8\n", "line 4: has 2 fields instead of"),
        (2, ",8,", ",x,", "line 2: task.grid=x: is no value of this axis"),
        (2, ",0,", ",x,", "line 2: invalid literal"),
        (2, ",0.001,", ",x,", "line 2: could not conv"),
        (2, "ok", "failed", "line 2: status 'failed'"),
        (4, "abc", "abd", r"line 4: is of another config \(abd, not abc\)"),
    ],
)
def test_any_other_damage_is_named_by_its_line(line, old, new, message):
    lines = table.to_text(a_table(), LAYOUT, "abc").splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(old, new, 1) if old else lines[line - 1] * 2
    with pytest.raises(ValueError, match=message):
        table.from_text("".join(lines), LAYOUT, "abc")


# --- what is told of a search ----------------------------------------------------------------


def test_a_search_prints_bounds_that_hold_of_each_seed_they_count():
    found = [("above", 10.0), ("above", 20.0), ("below", 6.0), ("below", 3.0), ("unknown", np.nan)]
    thresholds = [{"seed": s, "status": status, "value": value}
                  for s, (status, value) in enumerate(found)]  # fmt: skip
    reading = {"where": "ood", "score": "exact_accuracy", "target": 0.9, "thresholds": thresholds}
    counts = "above 10 for 2 of 5 seeds, below 6 for 2 of 5 seeds, unknown for 1 of 5 seeds"
    expected = [f"ood exact_accuracy 0.9: task.images {counts}"]
    assert describe_search(sweep_of(GRIDS), [reading]) == expected


def test_thresholds_are_those_of_their_grid_and_seed():
    config = sweep_of(GRIDS)
    names = plan.layout(config).measures
    column = names.index("ood.exact_accuracy")
    results = {trial: np.zeros(len(names)) for trial in plan.first_trials(config)}
    for trial, values in results.items():
        values[column] = trial.axes == (8,) and trial.seed == 5 and trial.value > 50
    readings = summarize(config, results)["readings"]
    (reading,) = (r for r in readings if (r["where"], r["score"]) == ("ood", "exact_accuracy"))
    status = {(t["task.grid"], t["seed"]): t["status"] for t in reading["thresholds"]}
    assert status == {(8, 5): "reached", **dict.fromkeys([(8, 0), (12, 0), (12, 5)], "above")}


def test_no_mean_share_ends_above_1_and_an_error_has_its_whole_interval():
    seeds = {"training.seeds": (0, 1, 2), "sweep.search.field": ""}
    config = sweep_of(GRIDS, **seeds)
    names = plan.layout(config).measures
    results = {
        trial: np.full(len(names), 0.5 if trial.seed == 2 else 1.0)
        for trial in plan.first_trials(config)
    }
    for mean in summarize(config, results)["means"]:
        assert mean["ood.exact_accuracy"]["ci95"] == pytest.approx([0.1162, 1], abs=1e-4)
        assert mean["ood.mse"]["ci95"][1] > 1.5
