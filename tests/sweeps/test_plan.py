"""What a sweep is made of: cases, the single run that each is, and the table they are kept in."""

import numpy as np
import pytest

from compgen_jax.config import Config, ConfigError, SweepConfig, changed
from compgen_jax.sweeps import plan, table
from compgen_jax.sweeps.table import Case, TableError
from compgen_jax.tasks import dataset, supports


def sweep_of(**values) -> Config:
    base = {"sweep.grids": (8, 12), "training.steps": 10, "training.seeds": (0, 5)}
    return changed(Config(), base | {f"sweep.{name}": value for name, value in values.items()})


def test_a_search_begins_with_every_combination_and_ladder():
    config = sweep_of(
        regions=("none", "corner"),
        shares=(0.25, 0.5),
        learning_rates=(1e-3, 1e-2),
        images_per_cell=(0.5, 2.0),
        images_per_value=(1.5, 2.0, 4.0),
    )
    cases = plan.first_cases(config)
    # seeds, rates, 'none' and two corners, and the numbers of both schemes, at two grids
    assert len(cases) == len(set(cases)) == 2 * 2 * (1 + 2) * (2 + 3) * 2
    assert cases == sorted(cases) and {case.weight_decay for case in cases} == {0.01}
    numbers = {
        (grid, scheme): {c.n_data for c in cases if (c.grid, c.scheme) == (grid, scheme)}
        for grid in (8, 12)
        for scheme in ("bumps", "stripes")
    }
    assert numbers == {
        (8, "bumps"): {32, 128},
        (12, "bumps"): {72, 288},
        (8, "stripes"): {12, 16, 32},
        (12, "stripes"): {18, 24, 48},
    }


@pytest.mark.parametrize(
    ("data", "expected"), [("fixed", [1000, 1000]), ("area", [750, round(1000 * (1 - 36 / 144))])]
)
def test_a_map_has_a_data_set_as_large_as_its_area_or_fixed(data, expected):
    config = changed(
        sweep_of(data=data, schemes=("bumps",), regions=("donut",), shares=(0.5,)),
        {"task.support.samples": 1000, "training.seeds": (0,)},
    )
    cases = plan.first_cases(config)
    assert [case.n_data for case in cases] == expected
    assert plan.refined_cases(config, {case: np.zeros(21) for case in cases}) == []


@pytest.mark.parametrize("share", [0.2, 0.5, 16 / 28])
@pytest.mark.parametrize("region", ["donut", "corner"])
@pytest.mark.parametrize("grid", [8, 12])
def test_the_held_out_square_has_the_share_as_its_side(grid, region, share):
    case = Case(grid, "bumps", region, share, 1e-3, 0.01, 0, 40)
    mask = supports.held_out_mask(plan.config_of(sweep_of(), case).task)
    side = round(share * grid)
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    assert mask.sum() == side**2 and len(rows) == len(columns) == side
    if region == "corner":
        assert rows[-1] == columns[-1] == grid - 1
    else:  # centred, to half a cell
        assert abs(rows.mean() - (grid - 1) / 2) <= 0.5 and list(rows) == list(columns)


def test_a_case_is_a_single_run_with_its_number_of_images():
    config = sweep_of(regions=("corner",))
    for n_data, stripes, bumps in ((9, 9, 0), (16, 16, 0), (30, 16, 14)):
        case = Case(8, "stripes", "corner", 0.5, 3e-3, 0.2, 5, n_data)
        single = plan.config_of(config, case)
        assert dataset.size(single.task) == n_data and single.sweep == SweepConfig()
        assert single.task.support.samples == bumps
        assert 16 - single.task.stripes.left_out == stripes
        assert single.training.learning_rate == 3e-3 and single.training.weight_decay == 0.2
        assert single.training.seeds == (5,) and single.training.steps == 10


def test_refined_cases_lie_between_the_numbers_around_the_crossing():
    config = sweep_of(regions=("corner",), images_per_cell=(0.5, 2.0, 8.0))
    columns = [table.MEASURES.index(f"ood.{score}_accuracy") for score in ("exact", "image")]

    def results(crossing, image_crossing=0):
        found = {}
        for case in plan.first_cases(config):
            values = np.zeros(len(table.MEASURES), np.float32)
            values[columns[0]] = 0.95 if case.n_data > crossing else 0.2
            values[columns[1]] = 0.95 if case.n_data > image_crossing else 0.2
            found[case] = values
        return found

    refined = plan.refined_cases(changed(config, {"sweep.refine_with": 2}), results(200))
    of_bumps = [c for c in refined if (c.grid, c.seed, c.scheme) == (8, 0, "bumps")]
    assert [c.n_data for c in of_bumps] == [round(128 * 4 ** (1 / 3)), round(128 * 4 ** (2 / 3))]
    assert not [c for c in refined if c.scheme == "stripes"]  # never reached: nothing between
    assert not plan.refined_cases(config, results(0))  # reached by the smallest
    both = plan.refined_cases(config, results(200, 50))  # each score where it crosses
    of_bumps = [c.n_data for c in both if (c.grid, c.seed, c.scheme) == (8, 0, "bumps")]
    assert of_bumps == [64, 256]


def test_readings_score_every_place_that_a_region_leaves():
    config = sweep_of(regions=("none", "donut"), target=0.8)
    found = [(reading.region, reading.where) for reading in plan.readings(config, ("image",))]
    assert found == [
        ("none", "unseen"),
        ("none", "real"),
        ("donut", "ood"),
        ("donut", "unseen"),
        ("donut", "real"),
    ]
    every = plan.readings(config)
    assert len(every) == 3 * len(found)
    assert {(reading.score, reading.target) for reading in every} == {
        ("exact", 0.8),
        ("position", 0.8),
        ("image", 0.8),
    }


CASES = [
    Case(8, "bumps", "none", 0.0, 1e-3, 0.01, 0, 4),
    Case(8, "stripes", "corner", 16 / 28, 0.1, 1 / 3, 7, 40),
    Case(12, "bumps", "none", 0.0, 1e-3, 0.01, 0, 4),
]


def a_table():
    generator = np.random.default_rng(0)
    values = generator.lognormal(0, 20, (3, len(table.MEASURES))).astype(np.float32)
    values[0, 3:6] = np.nan  # nothing to score
    values[2] = np.nan  # failed
    return dict(zip(CASES, values, strict=True))


def test_a_table_reads_back_exactly_in_one_order():
    whole = a_table()
    text = table.to_text(whole, "abc")
    assert text == table.to_text(dict(reversed(whole.items())), "abc")
    found, cut = table.from_text(text, "abc")
    assert list(found) == CASES and not cut
    for case in CASES:
        np.testing.assert_array_equal(found[case], whole[case])
    rows = table.rows(whole)
    assert [row["status"] for row in rows] == ["ok", "ok", "failed"]
    assert rows[1]["share"] == 16 / 28 and rows[1]["train_loss"] == float(whole[CASES[1]][0])


@pytest.mark.parametrize("kept", [0.2, 0.55, 0.9])
def test_a_line_that_is_cut_off_is_left_out(kept):
    text = table.to_text(a_table(), "abc")
    lines = text.splitlines(keepends=True)
    piece = lines[2][: int(kept * len(lines[2]))]
    found, cut = table.from_text("".join(lines[:2]) + piece, "abc")
    assert list(found) == CASES[:1] and cut == piece
    assert table.from_text("", "abc") == ({}, "")
    assert table.from_text(lines[0][:9], "abc") == ({}, lines[0][:9])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: ["a,b\n", *lines[1:]], "line 1 is not the header"),
        (lambda lines: [*lines, lines[1]], "line 5 repeats a trial"),
        (lambda lines: [*lines, "8,bumps\n"], "line 5 has 2 fields instead of"),
        (lambda lines: [lines[0], lines[1].replace(",8,", ",x,", 1)], "line 2: invalid literal"),
        (lambda lines: [lines[0], lines[1].replace("ok", "failed")], "line 2: status 'failed'"),
        (
            lambda lines: [*lines[:3], lines[3].replace("abc", "abd")],
            r"line 4 is of another config \(abd, not abc\)",
        ),
    ],
)
def test_any_other_damage_is_named_by_its_line(damage, message):
    lines = table.to_text(a_table(), "abc").splitlines(keepends=True)
    with pytest.raises(TableError, match=message):
        table.from_text("".join(damage(lines)), "abc")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"grids": (8, 10)}, r"config.sweep.grids=\(8, 10\): must be divisible by 4"),
        ({"grids": (8, 8)}, "must not repeat a value"),
        ({"grids": (4,)}, "must be integers from 8 to 128"),
        ({"grids": (8.0,)}, "must be integers from 8 to 128"),
        ({"schemes": ()}, r"config.sweep.schemes=\(\): an empty sweep"),
        ({"schemes": ("lines",)}, "must be some of bumps, stripes"),
        ({"regions": ("cross",)}, "must be some of none, donut, corner"),
        ({"shares": (1.5,)}, "must be numbers from 0.01 to 0.99"),
        ({"images_per_cell": ()}, "an empty sweep"),
        ({"images_per_value": (-1.0,)}, "must be numbers from 0"),
        ({"learning_rates": ("fast",)}, "must be numbers from 1e-12"),
        ({"learning_rates": (0,)}, "must be numbers from 1e-12"),
        ({"target": 0.0}, "config.sweep.target=0.0: must be at most 1 and greater than 0"),
        ({"target": 1.1}, "config.sweep.target=1.1: must be at most 1 and greater than 0"),
        ({"scores": ("mse",)}, "must be some of exact, position, image"),
    ],
)
def test_a_sweep_that_cannot_be_is_an_error(values, message):
    with pytest.raises(ConfigError, match=message):
        sweep_of(**values)


def test_a_sweep_chooses_its_numbers_of_images():
    with pytest.raises(ConfigError, match="'every_cell': a sweep chooses the number of images"):
        changed(sweep_of(), {"task.support.sampling": "every_cell"})


def test_numbers_are_floats_whatever_the_flag_was():
    """So that a table that is read back has the same keys."""
    (case, *_) = plan.first_cases(sweep_of(learning_rates=(1,), weight_decays=(0,)))
    assert repr(case.learning_rate) == "1.0" and repr(case.weight_decay) == "0.0"


@pytest.mark.parametrize("region", ["donut", "corner"])
def test_the_area_of_real_points_is_that_of_their_square(region):
    """Against the share of many real points that are not held out."""
    config = sweep_of(data="area", schemes=("bumps",), regions=(region,), shares=(0.5,), grids=(8,))
    values = {"task.support.samples": 10**6, "task.support.sampling": "real"}
    (case, _) = plan.first_cases(changed(config, values))
    points = np.random.default_rng(0).uniform(0, 7, (10**6, 2)).T
    held_out = supports.is_held_out(*points, plan.config_of(config, case).task)
    assert case.n_data / 10**6 == pytest.approx(1 - held_out.mean(), abs=2e-3)


def test_a_sweep_needs_its_length_in_steps():
    with pytest.raises(ConfigError, match="config.training.steps=0: a sweep's trials"):
        changed(sweep_of(), {"training.steps": 0})
