"""C11 on tables whose exponents are known."""

import json

import numpy as np
import pytest

from compgen_jax.metrics import scaling
from compgen_jax.old_claims import CONTRADICTED, INCONCLUSIVE, REPRODUCED
from compgen_jax.papers.forced_rendering import figure1
from compgen_jax.papers.forced_rendering import scaling as claims
from compgen_jax.papers.forced_rendering.scaling import COPIES, GRID, IMAGES, REGION, Reading
from tests.papers.decoders import decoder, draw

R, C, U = REPRODUCED, CONTRADICTED, INCONCLUSIVE
RATE, SIDE = "training.learning_rate", "task.support.side"
MEASURES = (
    "train_loss",
    *(
        f"{where}.{name}"
        for where in ("seen", "unseen", "ood", "real")
        for name in ("exact_accuracy", "position_accuracy", "image_accuracy", "mse", "blank_mse")
    ),
)
GRIDS = (8, 12, 16, 24)
UNSEEN = Reading("none", "unseen", "exact", 0.9)
PAPER = {"bumps": (3, 0.1), "stripes": (1, 1.5)}  # exponent, factor


def make_row(**changes):
    """A row of the table; `changes` by short names."""
    names = {"grid": GRID, "region": REGION, "images": IMAGES, "side": SIDE, "rate": RATE}
    changes = {names.get(name, name): value for name, value in changes.items()}
    scheme = claims.SCHEMES[changes.pop("scheme", "bumps")]
    case = {GRID: 8, COPIES: scheme.copies, REGION: "none", SIDE: 0.5, RATE: 1e-3}
    case |= {"seed": 0, IMAGES: 10, "status": "ok"}
    return case | dict.fromkeys(MEASURES, 1.0) | changes


def make_table(laws=PAPER, grids=GRIDS, seeds=3, region="none", seen=1.0, multiples=None, **more):
    """Rows whose accuracies are logistic in log images and reach 0.9 at factor N^exponent, a
    little more or less by seed; numbers of images are multiples of that."""
    rows = []
    for scheme, (exponent, factor) in laws.items():
        for grid in grids:
            for seed in range(seeds):
                needed = factor * grid**exponent * 1.05 ** (seed - (seeds - 1) / 2)
                numbers = {
                    max(1, round(needed * m)) for m in multiples or (0.3, 0.6, 0.9, 1.2, 2.3, 4)
                }
                for images in sorted(numbers):
                    accuracy = 1 / (1 + (images / needed) ** -3 / 9)
                    row = make_row(
                        grid=grid, scheme=scheme, region=region, seed=seed, images=images, **more
                    )
                    for name in MEASURES:
                        if name.endswith("accuracy"):
                            row[name] = seen if name.startswith("seen") else accuracy
                    rows.append(row)
    return rows


def by_scheme(rows, reading=UNSEEN):
    found = claims.needs_images("bump", rows, [reading])
    assert [row["claim"] for row in found] == ["C11"] * len(found)
    return found


def test_the_papers_exponents_are_reproduced():
    bumps, stripes = by_scheme(make_table())
    assert bumps["stricter"]["measured"] == pytest.approx(3, abs=0.05)
    assert stripes["stricter"]["measured"] == pytest.approx(1, abs=0.1)
    assert (bumps["stricter"]["verdict"], stripes["stricter"]["verdict"]) == (R, R)
    assert bumps["statement"] == "bumps alone need images in proportion to N^3"
    of = "exponent of N (8 to 24), exact accuracy 0.9 at unseen cells"
    assert bumps["stricter"]["criterion"] == f"{of} between 2.5 and 3.5"
    assert stripes["stricter"]["criterion"] == f"{of} between 0.5 and 1.5"
    assert bumps["stricter"]["conditions"][of]["holds"] is True
    assert count_of(bumps, "thresholds reached") == 12


@pytest.mark.parametrize("grids", [(24, 32, 40, 56), (24, 40)])  # as at the paper's N
@pytest.mark.parametrize(("bumps", "stripes"), [(3, 1), (2, 0), (4, 2)])
def test_at_the_papers_sizes_its_exponents_are_reproduced_and_no_others(grids, bumps, stripes):
    table = make_table({"bumps": (bumps, 0.1), "stripes": (stripes, 20)}, grids=grids)
    expected = R if (bumps, stripes) == (3, 1) else C
    for row in by_scheme(table):
        assert row["as_stated"]["verdict"] == row["stricter"]["verdict"] == expected


def count_of(row, title):
    (found,) = [number["value"] for name, number in row["details"].items() if name.endswith(title)]
    return found


def test_rows_have_the_shape_of_every_other_claim():
    other = figure1.fails_ood("bump", decoder(draw))
    for row in by_scheme(make_table()):
        assert list(row) == list(other) and row["seeds"] == [0, 1, 2]
        numbers = [*row["stricter"]["conditions"].values(), *row["details"].values()]
        assert all({"value", "ci95"} <= set(number) for number in numbers)
        json.dumps(row)


def test_the_exponent_and_its_interval_are_the_analysis_own():
    rows = make_table({"bumps": (2.6, 0.3)})
    (row,) = by_scheme(rows)
    number = scaling.exponent(claims.thresholds(rows, UNSEEN, "bumps", {}))
    assert (
        row["stricter"]["measured"] == number["value"] and row["stricter"]["ci95"] == number["ci95"]
    )


@pytest.mark.parametrize(
    ("exponent", "verdict"), [(2.0, C), (2.6, R), (3.4, R), (4.0, C), (0.0, C)]
)
def test_other_exponents_of_bumps_are_contradicted(exponent, verdict):
    (row,) = by_scheme(make_table({"bumps": (exponent, 20)}))
    assert row["stricter"]["verdict"] == verdict
    assert row["stricter"]["measured"] == pytest.approx(exponent, abs=0.05)


@pytest.mark.parametrize(("exponent", "verdict"), [(0.4, C), (0.8, R), (1.7, C)])
def test_other_exponents_of_stripes_are_contradicted(exponent, verdict):
    (row,) = by_scheme(make_table({"stripes": (exponent, 20)}))
    assert row["stricter"]["verdict"] == verdict


def test_an_interval_across_the_bound_concludes_nothing():
    """Seeds of exponents 2.2 and 2.8."""
    low, high = (make_table({"bumps": (p, 1)}, seeds=1) for p in (2.2, 2.8))
    (row,) = by_scheme([*low, *(row | {"seed": 1} for row in high)])
    assert (
        row["stricter"]["verdict"] == U
        and row["stricter"]["ci95"][0] < 2.5 < row["stricter"]["ci95"][1]
    )


def test_what_is_not_resolved_concludes_nothing():
    """Numbers of images a factor of 4 apart put thresholds where they are themselves."""
    rows = make_table({"bumps": (3, 0.1)}, multiples=(0.5, 2))
    (row,) = by_scheme(rows)
    assert row["stricter"]["measured"] == pytest.approx(3, abs=0.1)  # the multiples' own law
    assert row["stricter"]["verdict"] == U
    assert count_of(row, "thresholds known to a factor above 2 only") == 12
    assert row["stricter"]["reason"].startswith("not resolved: 12 thresholds")


def test_what_is_not_identified_concludes_nothing_and_says_why():
    rows = make_table({"bumps": (3, 0.1)}, multiples=(0.1, 0.3))
    (row,) = by_scheme(rows)
    assert (
        row["stricter"]["verdict"] == U
        and np.isnan(row["stricter"]["measured"])
        and np.isnan(row["stricter"]["ci95"]).all()
    )
    assert row["stricter"]["reason"].startswith("not identified: fewer than two grids have a")
    assert "(12 above the most images, 0 below the fewest)" in row["stricter"]["reason"]
    assert [number["value"] for number in row["details"].values()] == [1, 0, 12, 0, 0, 0]
    (row,) = by_scheme(make_table({"bumps": (3, 0.1)}, seeds=1))  # a value without an interval
    assert row["stricter"]["verdict"] == U and row["stricter"]["measured"] == pytest.approx(
        3, abs=0.05
    )
    failed = [row | {"status": "failed"} for row in rows]
    (row,) = by_scheme(failed)
    assert row["stricter"]["verdict"] == U and count_of(row, "thresholds unknown") == 12


def test_decoders_that_cannot_draw_what_they_saw_conclude_nothing():
    for row in by_scheme(make_table(seen=0.94)):
        assert row["stricter"]["verdict"] == U
        assert row["stricter"]["reason"].startswith("not trained: accuracy on seen cells 0.94")
    assert {row["stricter"]["verdict"] for row in by_scheme(make_table(seen=0.96))} == {R}


def test_seen_accuracy_is_asked_at_the_thresholds():
    def accuracy(unseen, seen, numbers=(10, 20, 40, 80)):
        rows = [
            make_row(images=n) | {"unseen.exact_accuracy": u, "seen.exact_accuracy": s}
            for n, u, s in zip(numbers, unseen, seen, strict=True)
        ]
        curve = claims.thresholds(rows, UNSEEN, "bumps", {})
        return float(claims.seen_accuracy(rows, curve, UNSEEN, "bumps")[0, 0])

    seen = (0.1, 0.2, 0.3, 0.4)
    assert accuracy((0, 0.5, 1, 1), seen) == 0.3  # between 20 and 40
    assert accuracy((0, 0.9, 1, 1), seen) == 0.2  # at 20
    assert accuracy((0, 0, 0, 0), seen) == 0.4  # above 80
    assert accuracy((1, 1, 1, 1), seen) == 0.1  # at 10 or below
    assert accuracy((1, 1, 1, 1), (np.nan, np.nan, 0.3, 0.4)) == 0.3  # stripes alone at first
    assert np.isnan(accuracy((1, 1, 1, 1), [np.nan] * 4))
    assert np.isnan(accuracy([np.nan] * 4, seen))  # unknown


def test_seen_accuracy_is_asked_at_every_grid():
    rows = [
        make_row(grid=grid, seed=seed) | {"seen.exact_accuracy": 0.1 * seed + 0.01 * grid}
        for grid in (8, 12)
        for seed in (0, 1)
    ]
    curve = claims.thresholds(rows, UNSEEN, "bumps", {})
    found = claims.seen_accuracy(rows, curve, UNSEEN, "bumps")
    np.testing.assert_allclose(found, [[0.08, 0.12], [0.18, 0.22]])
    table = make_table()
    for row in table:
        row["seen.exact_accuracy"] = 0.82 if row[GRID] == GRIDS[-1] else 1.0
    (bumps, _) = claims.needs_images("bump", table, [UNSEEN])
    assert bumps["as_stated"]["verdict"] == U
    why = f"not trained: accuracy on seen cells 0.82 at N = {GRIDS[-1]}, 0.95 asked"
    assert bumps["as_stated"]["reason"].startswith(why)


CORNER = Reading("corner", "ood", "exact", 0.9)


def test_the_paper_names_two_places_and_the_stricter_sense_is_all_readings():
    """By the right pixel bumps need N^3 at both places, by a good image N^2 around the corner."""
    rows = make_table() + make_table({"bumps": (3, 0.1)}, region="corner")
    readings = [UNSEEN, CORNER, CORNER._replace(score="image")]
    bumps, stripes = claims.needs_images("ramp", rows, readings)
    assert bumps["code"] == stripes["code"] == "ramp"
    assert [len(bumps[sense]["conditions"]) for sense in ("as_stated", "stricter")] == [2, 3]
    assert len(stripes["stricter"]["conditions"]) == 1  # there are none around the corner
    assert "exact accuracy 0.9 at the held-out corner" in bumps["as_stated"]["criterion"]
    assert bumps["as_stated"]["verdict"] == bumps["stricter"]["verdict"] == R
    for row in rows:
        if row[REGION] == "corner":
            share = row[IMAGES] / (0.8 * row[GRID] ** 2)
            row["ood.image_accuracy"] = 1 / (1 + share**-3 / 9)
    (bumps, _) = claims.needs_images("ramp", rows, readings)
    assert (bumps["as_stated"]["verdict"], bumps["stricter"]["verdict"]) == (R, C)
    # the paper's places are not all that there is
    one = claims.needs_images("ramp", rows, readings[2:])[0]
    assert one["as_stated"] == one["stricter"] and one["as_stated"]["verdict"] == C


def test_one_reading_of_which_nothing_is_concluded_leaves_the_claim_open():
    rows = make_table() + make_table({"bumps": (3, 0.1)}, region="corner", multiples=(0.1, 0.3))
    bumps, stripes = claims.needs_images("bump", rows, [UNSEEN, CORNER])
    assert bumps["as_stated"]["verdict"] == U and stripes["as_stated"]["verdict"] == R
    assert "held-out corner" in bumps["as_stated"]["reason"]


@pytest.mark.parametrize(("exponent", "verdict"), [(3, R), (2, C)])
def test_decoders_of_as_many_epochs_enter_the_stricter_sense(exponent, verdict):
    epochs = make_table({"bumps": (exponent, 2)}, grids=(8, 24))
    bumps, stripes = claims.needs_images("bump", make_table(), [UNSEEN], epochs=epochs)
    assert bumps["as_stated"]["verdict"] == R and bumps["stricter"]["verdict"] == verdict
    name = "exponent of N (8 to 24), exact accuracy 0.9 at unseen cells, as many epochs"
    assert bumps["stricter"]["conditions"][name]["value"] == pytest.approx(exponent, abs=0.05)
    assert len(stripes["stricter"]["conditions"]) == 1  # the other table has none


def test_a_table_of_several_settings_needs_one_stated():
    rows = make_table() + make_table(rate=2e-3)
    with pytest.raises(ValueError, match="several settings, such as {.*learning_rate"):
        by_scheme(rows)
    found = claims.needs_images("bump", rows, [UNSEEN], {SIDE: 0.5, RATE: 2e-3})
    assert [row["stricter"]["verdict"] for row in found] == [R, R]
    assert found[0]["statement"].endswith("in proportion to N^3 (learning rate 0.002)")


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [((1.1, 1.9), R), ((0.5, 1.0), C), ((2.0, 2.1), C), ((0.9, 1.5), U), ((1.5, 2.1), U),
     ((0.0, 3.0), U), ((np.nan, np.nan), U)],
)  # fmt: skip
def test_a_condition_between_two_bounds(ends, verdict):
    number = {"value": 1.5, "ci95": list(ends)}
    between = {"x": claims.Condition(number, "between", (1.0, 2.0))}
    assert claims.judge(between).verdict == verdict
    reasoned = {"x": claims.Condition(number | {"unless": "why"}, "between", (1.0, 2.0))}
    assert claims.judge(reasoned) == claims.Verdict(U, "why: x")


def test_readings_that_were_searched():
    names = lambda region, *scores: [
        each.column for each in claims.searched(region, 0.9, [f"{s}_accuracy" for s in scores])
    ]
    assert names("none", "image") == ["unseen.image_accuracy", "real.image_accuracy"]
    assert names("corner", "exact", "image") == ["ood.exact_accuracy", "ood.image_accuracy"]


def test_a_condition_takes_an_interval_as_it_is():
    number = lambda low, high: {"value": 1.0, "ci95": [low, high]}
    verdict = lambda low, high, side: (
        claims.judge({"exponent": claims.Condition(number(low, high), side, 1.0)}).verdict
    )
    assert verdict(1.1, 1.2, "above") == R and verdict(1.1, 1.2, "below") == C
    assert verdict(0.9, 1.0, "above") == C and verdict(0.9, 1.1, "above") == U
    assert verdict(np.nan, np.nan, "above") == verdict(np.nan, np.nan, "below") == U
