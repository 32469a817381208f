"""C11 on tables whose exponents are known."""

import json

import numpy as np
import pytest

from compgen_jax.claims import CONTRADICTED, INCONCLUSIVE, REPRODUCED, judge_all
from compgen_jax.config import Config, SearchConfig, SweepConfig, TrainingConfig
from compgen_jax.metrics import scaling
from compgen_jax.papers.forced_rendering import scaling as claims
from compgen_jax.papers.forced_rendering.scaling import COPIES, GRID, IMAGES, REGION, Reading
from compgen_jax.sweeps.sweep import FinishedSweep
from compgen_jax.tasks.bump import Bump, StripesConfig
from compgen_jax.tasks.supports import SupportConfig

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


def sweep_of(rows, regions=("none",), scores=("exact",), grids=GRIDS):
    search = SearchConfig(
        field=IMAGES, start=(10,), scores=tuple(f"{score}_accuracy" for score in scores), target=0.9
    )
    config = Config(
        task=Bump(
            support=SupportConfig(side=0.5, require_marginals=False),
            stripes=StripesConfig(order="shuffled"),
        ),
        training=TrainingConfig(steps=10, seeds=(0, 1, 2)),
        sweep=SweepConfig(axes={GRID: grids, COPIES: (0, 1), REGION: regions}, search=search),
    )
    return FinishedSweep(config, rows)


def judged(rows, epochs=None, **searched):
    """Of both schemes."""
    runs = {"data_scaling": sweep_of(rows, **searched)}
    if epochs:
        runs["data_scaling_epochs"] = sweep_of(epochs)
    return judge_all(claims.CLAIMS, runs)


def verdicts(row):
    return row["as_stated"]["verdict"], row["stricter"]["verdict"]


def number_of(row, title):
    """By the end of a detail's name, of the readings at unseen cells."""
    (found,) = [number["value"] for name, number in row["details"].items()
                if name.endswith(title) and "unseen" in name]  # fmt: skip
    return found


AT_UNSEEN = "exponent of N (8 to 24), exact accuracy 0.9 at unseen cells"


def test_the_papers_exponents_are_reproduced():
    rows = make_table()
    bumps, stripes = judged(rows)
    assert verdicts(bumps) == verdicts(stripes) == (R, R)
    assert bumps["as_stated"]["measured"] == pytest.approx(3, abs=0.05)
    assert stripes["as_stated"]["measured"] == pytest.approx(1, abs=0.1)
    assert bumps["statement"] == "bumps alone need images in proportion to N^3"
    assert bumps["as_stated"]["criterion"] == f"{AT_UNSEEN} between 2.5 and 3.5"
    assert stripes["as_stated"]["criterion"] == f"{AT_UNSEEN} between 0.5 and 1.5"
    # stricter, at the points between cells too
    assert len(bumps["stricter"]["conditions"]) == 2
    assert number_of(bumps, "thresholds reached") == 12
    number = scaling.exponent(claims.thresholds(rows, UNSEEN, "bumps", {}))
    assert bumps["as_stated"]["ci95"] == number["ci95"]
    assert (bumps["code"], bumps["seeds"]) == ("bump", [0, 1, 2])
    json.dumps([bumps, stripes])


@pytest.mark.parametrize("grids", [GRIDS, (24, 32, 40, 56), (24, 40)])  # also the paper's N
@pytest.mark.parametrize(
    ("bumps", "stripes", "expected"),
    [(3, 1, (R, R)), (2, 0, (C, C)), (4, 2, (C, C)), (2.6, 0.6, (R, R)), (3.4, 1.3, (R, R))],
)
def test_exponents_near_the_papers_are_reproduced_and_no_others(grids, bumps, stripes, expected):
    table = make_table({"bumps": (bumps, 0.1), "stripes": (stripes, 20)}, grids=grids)
    assert tuple(verdicts(row) for row in judged(table)) == tuple((one, one) for one in expected)


def test_an_interval_across_the_bound_concludes_nothing():
    """Seeds of exponents 2.2 and 2.8."""
    low, high = (make_table({"bumps": (p, 1), "stripes": (1, 1)}, seeds=1) for p in (2.2, 2.8))
    bumps, stripes = judged([*low, *(row | {"seed": 1} for row in high)])
    assert verdicts(bumps) == (U, U)
    assert bumps["as_stated"]["ci95"][0] < 2.5 < bumps["as_stated"]["ci95"][1]


def failed(rows):
    return [row | {"status": "failed"} for row in rows]


COARSE = "thresholds known to a factor above 2 only"


@pytest.mark.parametrize(
    ("rows", "reason", "title", "count"),
    [
        # numbers of images a factor of 4 apart put thresholds where they are themselves
        (make_table(multiples=(0.5, 2)), "not resolved: 12 thresholds", COARSE, 12),
        (
            make_table(multiples=(0.1, 0.3)),
            "not identified: fewer than two grids have a threshold (12 above the most images, 0 be",
            "thresholds above the most images",
            12,
        ),
        (make_table(seeds=1), "no interval", "thresholds reached", 4),
        (failed(make_table()), "not identified", "thresholds unknown", 12),
        (make_table(seen=0.94), "not trained: accuracy on seen cells 0.94", "reached", 12),
    ],
)
def test_an_exponent_that_says_nothing_concludes_nothing(rows, reason, title, count):
    bumps, _ = judged(rows)
    assert verdicts(bumps) == (U, U)
    assert bumps["as_stated"]["reason"].startswith(reason)
    assert number_of(bumps, title) == count


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
    (bumps, _) = judged(table)
    why = f"not trained: accuracy on seen cells 0.82 at N = {GRIDS[-1]}, 0.95 asked"
    assert bumps["as_stated"]["reason"].startswith(why)


BOTH = {"regions": ("none", "corner")}


def test_the_paper_names_two_places_and_the_stricter_reading_is_all():
    """By the right pixel bumps need N^3 at both places, by a good image N^2 around the corner."""
    rows = make_table() + make_table({"bumps": (3, 0.1)}, region="corner")
    searched = BOTH | {"scores": ("exact", "image")}
    bumps, stripes = judged(rows, **searched)
    assert [len(bumps[name]["conditions"]) for name in ("as_stated", "stricter")] == [2, 6]
    assert len(stripes["stricter"]["conditions"]) == 4  # there are none around the corner
    assert "exact accuracy 0.9 at the held-out corner" in bumps["as_stated"]["criterion"]
    assert verdicts(bumps) == (R, R)
    for row in rows:
        if row[REGION] == "corner":
            share = row[IMAGES] / (0.8 * row[GRID] ** 2)
            row["ood.image_accuracy"] = 1 / (1 + share**-3 / 9)
    bumps, _ = judged(rows, **searched)
    assert verdicts(bumps) == (R, C)
    # without the paper's places, all others are as stated
    bumps, _ = judged(rows, regions=("corner", "none"), scores=("image",))
    assert bumps["as_stated"] == bumps["stricter"] and verdicts(bumps) == (C, C)


def test_one_reading_of_which_nothing_is_concluded_leaves_the_claim_open():
    rows = make_table() + make_table({"bumps": (3, 0.1)}, region="corner", multiples=(0.1, 0.3))
    bumps, stripes = judged(rows, **BOTH)
    assert bumps["as_stated"]["verdict"] == U and stripes["as_stated"]["verdict"] == R
    assert "held-out corner" in bumps["as_stated"]["reason"]


@pytest.mark.parametrize(("exponent", "verdict"), [(3, R), (2, C)])
def test_decoders_of_as_many_epochs_enter_the_stricter_reading(exponent, verdict):
    epochs = make_table({"bumps": (exponent, 2)}, grids=(8, 24))
    bumps, stripes = judged(make_table(), epochs)
    assert verdicts(bumps) == (R, verdict)
    name = f"{AT_UNSEEN}, as many epochs"
    assert bumps["stricter"]["conditions"][name]["value"] == pytest.approx(exponent, abs=0.05)
    assert len(stripes["stricter"]["conditions"]) == 2  # the other table has none


def test_every_setting_of_the_other_axes_is_a_condition():
    rows = make_table() + make_table(PAPER | {"bumps": (2, 20)}, rate=2e-3)
    with pytest.raises(ValueError, match="several settings, such as {.*learning_rate"):
        claims.thresholds(rows, UNSEEN, "bumps", {})
    bumps, stripes = judged(rows)
    assert verdicts(bumps) == (C, C) and verdicts(stripes) == (R, R)
    of = bumps["as_stated"]["conditions"]
    assert of[f"{AT_UNSEEN}, learning rate 0.001"]["value"] == pytest.approx(3, abs=0.05)
    assert of[f"{AT_UNSEEN}, learning rate 0.002"]["value"] == pytest.approx(2, abs=0.05)


def test_readings_that_were_searched():
    names = lambda region, *scores: [
        each.column for each in claims.searched(region, 0.9, [f"{s}_accuracy" for s in scores])
    ]
    assert names("none", "image") == ["unseen.image_accuracy", "real.image_accuracy"]
    assert names("corner", "exact", "image") == ["ood.exact_accuracy", "ood.image_accuracy"]
