"""What a sweep is made of: trials, the single run that each is, and the table."""

import chex
import jax
import numpy as np
import pytest

from compgen_jax.config import Config, SweepConfig, changed, fingerprint
from compgen_jax.runs import sweep_table
from compgen_jax.runs.sweep_summary import describe, summarize
from compgen_jax.runs.sweep_table import SweepTrial

GRIDS = ("task.grid", (8, 12))
REGIONS = ("task.support.region", ("none", "corner"))
COPIES = ("task.stripes.copies", (0, 1))
RATES = ("training.learning_rate", (1e-3, 3e-3))
BASE = {
    "training.steps": 10, "training.seeds": (0, 5), "task.support.side": 0.5,
    "task.support.require_marginals": False, "task.stripes.order": "shuffled",
    "sweep.search.field": "task.images",
    "sweep.search.scores": ("exact_accuracy", "image_accuracy"),
    "sweep.search.per": (("cell", (0.5, 2.0)), ("value", (1.5, 2.0, 4.0))),
}  # fmt: skip


def sweep_of(*axes, **values) -> Config:
    return changed(Config(), BASE | {"sweep.axes": axes} | values)


def zeros(config) -> dict:
    """The table of a sweep's first trials, all of whose numbers are 0."""
    names = sweep_table.measures(config)
    return {trial: np.zeros(len(names)) for trial in sweep_table.first_trials(config)}


def test_a_search_begins_with_every_combination_and_ladder():
    config = sweep_of(GRIDS, COPIES, REGIONS, RATES)
    trials = sweep_table.first_trials(config)
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
    config = sweep_of(GRIDS, COPIES, ("task.support.region", ("corner",)), RATES)
    for images, points in ((9, 0), (16, 0), (30, 14)):
        trial = SweepTrial((8, 1, "corner", 3e-3), 5, images)
        single = sweep_table.config_of(config, trial)
        assert single.sweep == SweepConfig() and single.training.seeds == (5,)
        assert single.training.learning_rate == 3e-3 and single.training.steps == 10
        shown = np.asarray(single.task.make().dataset(jax.random.key(0)).points)
        assert len(shown) == images and (~np.isnan(shown).any(axis=1)).sum() == points
        assert single.name == f"unnamed_8_1_corner_0.003_{images}"


def test_refined_trials_lie_between_the_numbers_around_the_crossing():
    per = (("cell", (0.5, 2.0, 8.0)), ("value", (1.5, 2.0, 4.0)))
    values = {"task.support.region": "corner", "sweep.search.refine_with": 2}
    config = sweep_of(GRIDS, COPIES, **values, **{"sweep.search.per": per})
    names = sweep_table.measures(config)
    columns = [names.index(f"ood.{score}_accuracy") for score in ("exact", "image")]

    def numbers_between(*crossings):
        """The new numbers of bumps where each score crosses the target after its number."""
        results = zeros(config)
        for trial, values in results.items():
            values[columns] = [0.95 if trial.value > crossing else 0.2 for crossing in crossings]
        refined = sweep_table.refined_trials(config, results)
        assert {trial.axes[1] for trial in refined} <= {0}  # of stripes nothing lies between
        return [trial.value for trial in refined if trial[:2] == ((8, 0), 0)]

    assert numbers_between(200, 200) == [round(128 * 4 ** (1 / 3)), round(128 * 4 ** (2 / 3))]
    assert numbers_between(0, 0) == []  # reached by the smallest
    config = changed(config, {"sweep.search.refine_with": 1})
    assert numbers_between(200, 50) == [64, 256]  # each score where it crosses


# --- the table -------------------------------------------------------------------------------

SENTENCES = "random(0.3, seed=0)", "random(0.3, seed=1)"  # text with a comma
SHAPES = ("square", "heart"), ("square", "ellipse")
SPRITES = changed(Config(), {
    "task.name": "sprites", "training.steps": 10, "training.seeds": (0, 7),
    "sweep.axes": (("task.held_out", SENTENCES), ("task.shapes", SHAPES)),
    "sweep.search.field": "training.learning_rate", "sweep.search.start": (1e-3, 1.0),
    "sweep.search.scores": ("exact_accuracy",),
})  # fmt: skip
TRIALS = [
    SweepTrial((SENTENCES[0], SHAPES[0]), 0, 1e-3),
    SweepTrial((SENTENCES[0], SHAPES[1]), 7, 1 / 3),
    SweepTrial((SENTENCES[1], SHAPES[0]), 0, 1e-3),
]


def a_table():
    generator = np.random.default_rng(0)
    size = 3, len(sweep_table.measures(SPRITES))
    values = generator.lognormal(0, 20, size).astype(np.float32)
    values[0, 3:6] = np.nan  # nothing to score
    values[2] = np.nan  # failed
    return dict(zip(TRIALS, values, strict=True))


def test_a_table_reads_back_exactly_in_one_order():
    """Also values that are tuples, or text with a comma, and a searched number of many digits."""
    whole = a_table()
    text = sweep_table.to_text(SPRITES, whole)
    assert text == sweep_table.to_text(SPRITES, dict(reversed(whole.items())))
    again = sweep_table.from_text(SPRITES, text)
    assert list(again) == sorted(TRIALS)
    chex.assert_trees_all_equal(again, whole)
    rows = sweep_table.rows(SPRITES, whole)
    assert [row["status"] for row in rows] == ["ok", "ok", "failed"]
    assert rows[0]["training.learning_rate"] == 1 / 3 and rows[0]["task.shapes"] == SHAPES[1]
    assert rows[0]["train_loss"] == float(whole[TRIALS[1]][0])
    assert rows[2]["task.held_out"] == SENTENCES[1]


FINGERPRINT = fingerprint(SPRITES)


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (2, "", ""),
        (1, "task.shapes", "task.size"),
        (4, FINGERPRINT, f"{FINGERPRINT},8\n{FINGERPRINT}"),
        (2, "square", "round"),
        (3, ",0,", ",x,"),
        (3, ",0.001,", ",x,"),
        (3, "ok", "failed"),
        (4, FINGERPRINT, "abd"),
    ],
)
def test_any_other_damage_is_named_by_its_line(line, old, new):
    """A repeated line by itself or the next one, which is missing then."""
    lines = sweep_table.to_text(SPRITES, a_table()).splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(old, new, 1) if old else lines[line - 1] * 2
    with pytest.raises(ValueError, match=f"line {line if old else line + 1} is no line"):
        sweep_table.from_text(SPRITES, "".join(lines))


# --- what is told of a search ----------------------------------------------------------------


def test_a_search_prints_the_threshold_of_each_seed_once():
    thresholds = [{"seed": 0, "status": "above", "value": 10.0},
                  {"seed": 1, "status": "reached", "value": 6.5}]  # fmt: skip
    reading = {"where": "ood", "score": "exact_accuracy", "target": 0.9, "thresholds": thresholds}
    expected = ["ood exact_accuracy 0.9: task.images above 10, reached 6.5"]
    assert describe(sweep_of(GRIDS), {"readings": [reading, reading]}) == expected


def test_thresholds_are_those_of_their_grid_and_seed():
    config = sweep_of(GRIDS)
    column = sweep_table.measures(config).index("ood.exact_accuracy")
    results = zeros(config)
    for trial, values in results.items():
        values[column] = trial.axes == (8,) and trial.seed == 5 and trial.value > 50
    readings = summarize(config, results)["readings"]
    (reading,) = (r for r in readings if (r["where"], r["score"]) == ("ood", "exact_accuracy"))
    status = {(t["task.grid"], t["seed"]): t["status"] for t in reading["thresholds"]}
    assert status == {(8, 5): "reached", **dict.fromkeys([(8, 0), (12, 0), (12, 5)], "above")}
