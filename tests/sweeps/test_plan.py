"""What a sweep is made of: trials, the single run that each is, and the table."""

import jax
import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError, SweepConfig, changed
from compgen_jax.sweeps import plan, sweep, table
from compgen_jax.sweeps.summary import describe_search
from compgen_jax.sweeps.table import Layout, SweepTrial
from compgen_jax.tasks import task as tasks

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


def sweep_of(*axes, search=None, **values) -> Config:
    search = SEARCH if search is None else search
    return changed(Config(), BASE | {"sweep.axes": axes} | search | values)


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
    config = sweep_of(
        GRIDS, COPIES, ("task.support.region", ("corner",)),
        **{"sweep.search.per": (("cell", (0.5, 2.0, 8.0)), ("value", (1.5, 2.0, 4.0)))},
    )  # fmt: skip
    measures = plan.layout(config).measures
    columns = [measures.index(f"ood.{score}_accuracy") for score in ("exact", "image")]

    def results(crossing, image_crossing=0):
        found = {}
        for trial in plan.first_trials(config):
            values = np.zeros(len(measures), np.float32)
            values[columns[0]] = 0.95 if trial.value > crossing else 0.2
            values[columns[1]] = 0.95 if trial.value > image_crossing else 0.2
            found[trial] = values
        return found

    def of_bumps(trials):
        return [c.value for c in trials if (c.axes[:2], c.seed) == ((8, 0), 0)]

    refined = plan.refined_trials(changed(config, {"sweep.search.refine_with": 2}), results(200))
    assert of_bumps(refined) == [round(128 * 4 ** (1 / 3)), round(128 * 4 ** (2 / 3))]
    assert not [c for c in refined if c.axes[1] == 1]  # never reached: nothing between
    assert not plan.refined_trials(config, results(0))  # reached by the smallest
    both = plan.refined_trials(config, results(200, 50))  # each score where it crosses
    assert of_bumps(both) == [64, 256]


def test_the_columns_are_the_axes_the_seed_the_search_and_all_scores_everywhere():
    layout = plan.layout(sweep_of(GRIDS, REGIONS))
    assert layout.header[:6] == (
        "config", "task.grid", "task.support.region", "seed", "task.images", "status"
    )  # fmt: skip
    names = tasks.score_names(Config().task.make())
    assert layout.measures == (
        "train_loss", *(f"{w}.{n}" for w in ("seen", "unseen", "ood", "real") for n in names)
    )  # fmt: skip
    assert plan.layout(sweep_of(GRIDS, search={})).names == ("task.grid", "seed")


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


def test_a_line_that_is_cut_off_is_left_out():
    lines = table.to_text(a_table(), LAYOUT, "abc").splitlines(keepends=True)
    for kept in (1, 40, -1):
        results, cut = table.from_text("".join(lines[:2]) + lines[2][:kept], LAYOUT, "abc")
        assert list(results) == TRIALS[:1] and cut == lines[2][:kept]


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        (3, "\n", "\nabc,8\n", "line 4: has 2 fields instead of"),
        (2, ",8,", ",x,", "line 2: task.grid=x: is no value of this axis"),
        (2, ",0.001,", ",x,", "line 2: could not conv"),
        (4, "abc", "abd", r"line 4: is of another config \(abd, not abc\)"),
    ],
)
def test_any_other_damage_is_named_by_its_line(line, old, new, message):
    lines = table.to_text(a_table(), LAYOUT, "abc").splitlines(keepends=True)
    with pytest.raises(ValueError, match="line 5: repeats a trial"):
        table.from_text("".join([*lines, lines[1]]), LAYOUT, "abc")
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    with pytest.raises(ValueError, match=message):
        table.from_text("".join(lines), LAYOUT, "abc")


# --- what is printed of a search -----------------------------------------------------------


def test_a_search_prints_thresholds_and_exponents_of_whole_numbers_alone():
    axes = (("task.grid", (8, 16)), ("task.image.sigma", (1.0, 2.0)))
    config = sweep_of(*axes, **{"sweep.search.scores": ("rendered",)})
    counts = {"reached": 4, "above": 1, "below": 0, "unknown": 1, "coarse": 0}
    power = {"value": 1.5, "ci95": [1.25, 1.75]} | counts
    of_seeds = lambda name, value, *seeds: [
        {name: value, "seed": seed, "value": number, "status": status}
        for seed, (number, status) in enumerate(seeds)
    ]
    eight = [(10.0, "reached"), (1000.0, "reached")], [(900.0, "above"), (None, "unknown")]
    reading = {"where": "ood", "score": "rendered", "target": 0.75, "exponent": power}
    along_grid = {"along": "task.grid", "task.image.sigma": 1.0}
    along_sigma = {"along": "task.image.sigma", "task.grid": 8}
    readings = [
        reading | along_grid | {"thresholds": [
            *of_seeds("task.grid", 8, *eight[0]), *of_seeds("task.grid", 16, *eight[1])]},
        reading | along_sigma | {"thresholds": of_seeds("task.image.sigma", 1.0, *eight[0])},
        reading | along_grid | {"score": "position_accuracy", "thresholds": []},
    ]  # fmt: skip
    first, second, third = describe_search(config, readings)
    place = ", task.image.sigma 1.0, ood rendered 0.75: task.images"
    assert first.startswith(f"task.grid 8{place} 100 [")  # the geometric mean
    assert second == f"task.grid 16{place} above 900 for 1 of 2 seeds, unknown for 1 of 2 seeds"
    assert third == f"{place[2:]} ~ (task.grid)^1.5 [1.25, 1.75]"


# --- impossible sweeps (fields, types and bounds of axes: tests/test_config.py) ----------


@pytest.mark.parametrize(
    ("axes", "values", "message"),
    [
        ((("task.grid", (8, 10)),), {}, r"task.grid=10: .*must be divisible by 4, not 10"),
        ((GRIDS,), {"sweep.search.scores": ("exact",)}, "'exact' is no score of the task; it has"),
        ((GRIDS,), {"sweep.search.per": (("sell", (1.0,)),), "sweep.search.start": (8,)},
         "config.sweep.search.per: 'sell' is no unit of the task; it has cell, value"),
        ((GRIDS,), {"sweep.search.target": 1.01}, "'exact_accuracy' is 1 for a perfect model, bel"),
    ],
)  # fmt: skip
def test_an_impossible_sweep_is_an_error(axes, values, message):
    with pytest.raises(ConfigError, match=message) as error:
        config = sweep_of(*axes, **values)
        sweep.check(config, plan.first_trials(config))
    assert "\n" not in str(error.value)


def test_a_target_may_be_a_perfect_score():
    config = sweep_of(GRIDS, **{"sweep.search.target": 1.0})
    sweep.check(config, plan.first_trials(config))
