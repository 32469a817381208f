"""C11 on tables whose exponents are known."""

import json
import math

import numpy as np
import pytest

from compgen_jax.claims import judge_all
from compgen_jax.config import Config, SearchConfig, SweepConfig, TrainingConfig
from compgen_jax.metrics import scaling
from compgen_jax.papers.forced_rendering import scaling as claims
from compgen_jax.papers.forced_rendering.scaling import COPIES, GRID, IMAGES, REGION, Reading
from compgen_jax.sweeps.sweep import FinishedSweep
from compgen_jax.tasks.bump import Bump, StripesConfig
from compgen_jax.tasks.supports import SupportConfig

R, C, U = "reproduced", "contradicted", "inconclusive"
BASE, PLACES, EPOCHS = (claim.name for claim in claims.CLAIMS)
RATE, SIDE = "training.learning_rate", "task.support.side"
MEASURES = (
    "train_loss",
    *(
        f"{where}.{name}"
        for where in ("seen", "unseen", "ood", "real")
        for name in ("exact_accuracy", "rendered", "mse", "blank_mse")
    ),
)
GRIDS = (24, 32, 40, 56)
UNSEEN = Reading("none", "unseen", 0.9)
PAPER = {"bumps": (3, 0.1), "stripes": (1, 1.5)}  # exponent, factor


def make_row(**changes):
    """A row of the table; `changes` by short names."""
    names = {"grid": GRID, "region": REGION, "images": IMAGES, "side": SIDE, "rate": RATE}
    changes = {names.get(name, name): value for name, value in changes.items()}
    scheme = claims.SCHEMES[changes.pop("scheme", "bumps")]
    case = {GRID: 8, COPIES: scheme.copies, REGION: "none", SIDE: 0.5, RATE: 1e-3}
    case |= {"seed": 0, IMAGES: 10, "status": "ok"}
    return case | dict.fromkeys(MEASURES, 1.0) | changes


def scored(share, **case):
    """A row whose share is rendered everywhere but on seen cells, of which all are, if any is."""
    shares = {f"{where}.rendered": share for where in ("unseen", "ood", "real")}
    alone = case.get("scheme") == "stripes" and case["images"] <= 2 * case["grid"]
    return make_row(**({"seen.rendered": math.nan if alone else 1.0} | shares | case))


def make_table(laws=PAPER, grids=GRIDS, seeds=3, multiples=None, alone=0.1, **more):
    """Rows whose share rendered is logistic in the log of what is counted and reaches 0.9 at
    factor N^exponent, a little more or less by seed; what is counted are multiples of that. Stripes
    come first, and then the bumps beside them; of N and of all 2N stripes,
    `alone` is rendered, unless that is None."""
    rows = []
    for scheme, (exponent, factor) in laws.items():
        for grid in grids:
            for seed in range(seeds):
                case = {"grid": grid, "scheme": scheme, "seed": seed} | more
                first = 2 * grid if scheme == "stripes" else 0
                if first and alone is not None:
                    rows += [scored(alone, images=images, **case) for images in (grid, first)]
                needed = factor * grid**exponent * 1.05 ** (seed - (seeds - 1) / 2)
                numbers = {
                    max(1, round(needed * m)) for m in multiples or (0.3, 0.6, 0.9, 1.2, 2.3, 4)
                }
                for number in sorted(numbers):
                    share = 1 / (1 + (number / needed) ** -3 / 9)
                    rows.append(scored(share, images=first + number, **case))
    return rows


def enough_stripes(exponent, factor, grids=GRIDS, seeds=3, **more):
    """Rows of which factor N^exponent stripes are enough, at most all 2N, and no bump is needed."""
    return [
        scored(float(images >= (1 + seed / 100) * factor * grid**exponent), scheme="stripes",
               grid=grid, seed=seed, images=images, **more)
        for grid in grids
        for seed in range(seeds)
        for images in (*range(grid // 2, 2 * grid + 1, 2), 4 * grid)
    ]  # fmt: skip


def sweep_of(rows, regions=("none",), grids=GRIDS):
    search = SearchConfig(field=IMAGES, start=(10,), scores=("rendered",), target=0.9)
    config = Config(
        task=Bump(
            support=SupportConfig(side=0.5, require_marginals=False),
            stripes=StripesConfig(order="shuffled"),
        ),
        training=TrainingConfig(steps=10, seeds=(0, 1, 2)),
        sweep=SweepConfig(axes={GRID: grids, COPIES: (0, 1), REGION: regions}, search=search),
    )
    return FinishedSweep(config, rows)


def judged(rows, epochs=None, name=BASE, **searched):
    """The rows of both schemes, by a claim's name."""
    runs = {"data_scaling": sweep_of(rows, **searched)}
    if epochs:
        runs["data_scaling_epochs"] = sweep_of(epochs)
    return [row for row in judge_all(claims.CLAIMS, runs) if row["claim"] == name]


def first(row):
    return next(iter(row["conditions"].values()))


def verdicts(rows, **searched):
    """Of bumps alone and of stripes, at the claim's places and everywhere."""
    by_claim = [judged(rows, name=name, **searched) for name in (BASE, PLACES)]
    return [tuple(row["verdict"] for row in of_scheme)
            for of_scheme in zip(*by_claim, strict=True)]  # fmt: skip


def number_of(row, title):
    """By the end of a detail's name, of the readings at unseen cells."""
    (found,) = [number["value"] for name, number in row["notes"].items()
                if name.endswith(title) and "unseen" in name]  # fmt: skip
    return found


IMAGES_AT_UNSEEN = "exponent of N (24 to 56), images, 0.9 rendered at unseen cells"
BEYOND_AT_UNSEEN = IMAGES_AT_UNSEEN.replace("images", "bumps beyond all 2N stripes")
DROPPED_AT_UNSEEN = IMAGES_AT_UNSEEN.replace("images", "stripes where some are dropped")


def test_the_papers_exponents_are_reproduced():
    rows = make_table()
    bumps, stripes = judged(rows)
    assert verdicts(rows) == [(R, R), (R, R)]
    assert first(bumps)["value"] == pytest.approx(3, abs=0.05)
    assert first(stripes)["value"] == pytest.approx(1, abs=0.1)
    assert bumps["statement"] == "bumps alone need images in proportion to N^3"
    assert bumps["criterion"] == f"{IMAGES_AT_UNSEEN} between 2.5 and 3.5"
    # stripes alone are never enough, so that their number is not asked for
    assert stripes["criterion"] == f"{BEYOND_AT_UNSEEN} below 1.5"
    # elsewhere, at the points between cells
    assert len(judged(rows, name=PLACES)[0]["conditions"]) == 2
    assert number_of(bumps, "thresholds reached") == 12
    number = scaling.exponent(claims.thresholds(rows, UNSEEN, "bumps", {}))
    assert first(bumps)["ci95"] == number["ci95"] and bumps["seeds"] == [0, 1, 2]
    json.dumps([bumps, stripes])


@pytest.mark.parametrize("grids", [GRIDS, (24, 40)])
@pytest.mark.parametrize(
    ("bumps", "stripes", "expected"), [(3, 1, (R, R)), (2, 2, (C, C)), (4, 0, (C, R))]
)
def test_exponents_near_the_papers_are_reproduced_and_no_others(grids, bumps, stripes, expected):
    """Of bumps beside stripes, fewer than in proportion to N are as good."""
    table = make_table({"bumps": (bumps, 0.1), "stripes": (stripes, 20)}, grids=grids)
    assert verdicts(table) == [(one, one) for one in expected]


@pytest.mark.parametrize(("exponent", "factor", "verdict"), [(1, 1.5, R), (0, 40, C)])
def test_stripes_that_are_enough_are_counted(exponent, factor, verdict):
    (row,) = judged(enough_stripes(exponent, factor))
    beyond, dropped = row["conditions"].values()
    assert list(row["conditions"]) == [BEYOND_AT_UNSEEN, DROPPED_AT_UNSEEN]
    assert (beyond["value"], beyond["ci95"], beyond["holds"]) == (0, [0, 0], True)  # no bump
    assert dropped["value"] == pytest.approx(exponent, abs=0.1)
    assert row["verdict"] == verdict


def test_what_is_counted():
    counts = {
        count: [count.of(images, 24) for images in (30, 48, 49, 60)]
        for count in (claims.EVERY_IMAGE, claims.BEYOND, claims.DROPPED)
    }
    assert list(counts.values()) == [[30, 48, 49, 60], [None, 1, 1, 12], [30, 48, None, None]]


def test_small_grids_are_a_preview_without_a_verdict():
    small = (8, 12, 16, 24)
    bumps, stripes = judged(make_table(grids=small), grids=small)
    assert bumps["verdict"] == stripes["verdict"] == U
    why = "a preview: N = 8 to 24, the paper's begin at 24: exponent of N (8 to 24), images"
    assert bumps["reason"].startswith(why) and first(bumps)["value"] == pytest.approx(3, abs=0.05)
    # with two that are large enough, the small ones are left out
    steep = make_table({"bumps": (5, 0.001), "stripes": (3, 0.1)}, grids=small[:-1])
    bumps, stripes = judged(make_table() + steep, grids=(*small, *GRIDS[1:]))
    assert "(24 to 56)" in bumps["criterion"] and stripes["verdict"] == R


def failed(rows):
    return [row | {"status": "failed"} for row in rows]


def unlearnt(rows):
    return [row | {"seen.rendered": 0.94} for row in rows]


COARSE = "thresholds known to a factor above 2 only"


@pytest.mark.parametrize(
    ("rows", "reason", "title", "count"),
    [
        # numbers of images a factor of 4 apart put thresholds where they are themselves
        (make_table(multiples=(0.5, 2)), "not resolved: 12 thresholds", COARSE, 12),
        (
            make_table(multiples=(0.1, 0.3)),
            "not identified: fewer than two grids have a threshold (12 above the most, 0 below",
            "thresholds above the most",
            12,
        ),
        (make_table(seeds=1), "no interval", "thresholds reached", 4),
        (failed(make_table()), "not identified", "thresholds unknown", 12),
        (unlearnt(make_table()), "not trained: share rendered of seen cells 0.94", "reached", 12),
    ],
)
def test_an_exponent_that_says_nothing_concludes_nothing(rows, reason, title, count):
    bumps, _ = judged(rows)
    assert bumps["verdict"] == U and bumps["reason"].startswith(reason)
    assert number_of(bumps, title) == count


def test_seen_cells_are_looked_at_where_the_thresholds_are():
    def share(unseen, seen, numbers=(10, 20, 40, 80)):
        rows = [
            make_row(images=n) | {"unseen.rendered": u, "seen.rendered": s}
            for n, u, s in zip(numbers, unseen, seen, strict=True)
        ]
        curve = claims.thresholds(rows, UNSEEN, "bumps", {})
        return float(claims.seen_share(rows, curve, claims.EVERY_IMAGE)[0, 0])

    seen = (0.1, 0.2, 0.3, 0.4)
    assert share((0, 0.5, 1, 1), seen) == 0.3  # between 20 and 40
    assert share((0, 0.9, 1, 1), seen) == 0.2  # at 20
    assert share((0, 0, 0, 0), seen) == 0.4  # above 80
    assert share((1, 1, 1, 1), seen) == 0.1  # at 10 or below
    assert share((1, 1, 1, 1), (np.nan, np.nan, 0.3, 0.4)) == 0.3  # stripes alone at first
    assert np.isnan(share((1, 1, 1, 1), [np.nan] * 4))
    assert np.isnan(share([np.nan] * 4, seen))  # unknown


def test_seen_cells_are_looked_at_for_every_grid():
    rows = [
        make_row(grid=grid, seed=seed) | {"seen.rendered": 0.1 * seed + 0.01 * grid}
        for grid in (8, 12)
        for seed in (0, 1)
    ]
    curve = claims.thresholds(rows, UNSEEN, "bumps", {})
    shares = claims.seen_share(rows, curve, claims.EVERY_IMAGE)
    np.testing.assert_allclose(shares, [[0.08, 0.12], [0.18, 0.22]])
    table = make_table()
    for row in table:
        row["seen.rendered"] = 0.82 if row[GRID] == GRIDS[-1] else 1.0
    (bumps, _) = judged(table)
    why = f"not trained: share rendered of seen cells 0.82 at N = {GRIDS[-1]}, 0.95 asked"
    assert bumps["reason"].startswith(why)


BOTH = {"regions": ("none", "corner")}


def test_the_claim_names_two_places_and_another_is_of_all():
    """Bumps need N^3 at both places, and N^2 at points between cells."""
    wide = {"multiples": np.geomspace(0.1, 4, 8).tolist()}
    rows = make_table(**wide) + make_table({"bumps": (3, 0.1)}, region="corner", **wide)
    of = {name: judged(rows, name=name, **BOTH)[0] for name in (BASE, PLACES)}
    assert [len(of[name]["conditions"]) for name in (BASE, PLACES)] == [2, 3]
    assert "0.9 rendered at the held-out corner" in of[BASE]["criterion"]
    assert verdicts(rows, **BOTH)[0] == (R, R)
    for row in rows:
        share = row[IMAGES] / (0.8 * row[GRID] ** 2)
        row["real.rendered"] = 1 / (1 + share**-3 / 9)
    assert verdicts(rows, **BOTH)[0] == (R, C)
    # without the claim's places, all others are asked
    donut = make_table({"bumps": (2, 1)}, region="donut")
    (base,), (places,) = (judged(donut, regions=("donut",), name=name) for name in (BASE, PLACES))
    assert base["conditions"] == places["conditions"] and base["verdict"] == C


def test_bumps_alone_need_not_be_enough_in_a_held_out_corner():
    """The claim of all places, which asks for a number there, stays open."""
    rows = make_table() + make_table({"bumps": (3, 0.1)}, region="corner", multiples=(0.1, 0.3))
    assert verdicts(rows, **BOTH)[0] == (R, U)
    assert "held-out corner" in judged(rows, name=PLACES, **BOTH)[0]["reason"]
    assert "held-out corner" not in judged(rows, **BOTH)[0]["criterion"]


@pytest.mark.parametrize(("exponent", "verdict"), [(3, R), (2, C)])
def test_decoders_of_as_many_epochs_have_a_claim(exponent, verdict):
    epochs = make_table({"bumps": (exponent, 2)}, grids=(24, 56))
    (bumps,) = judged(make_table(), epochs, EPOCHS)  # the other table has no stripes
    value = bumps["conditions"][f"{IMAGES_AT_UNSEEN}, as many epochs"]["value"]
    assert bumps["verdict"] == verdict and value == pytest.approx(exponent, abs=0.05)


def test_every_setting_of_the_other_axes_is_a_condition():
    rows = make_table() + make_table(PAPER | {"bumps": (2, 20)}, rate=2e-3)
    with pytest.raises(ValueError, match="several settings, such as {.*learning_rate"):
        claims.thresholds(rows, UNSEEN, "bumps", {})
    bumps, stripes = judged(rows)
    assert (bumps["verdict"], stripes["verdict"]) == (C, R)
    of = bumps["conditions"]
    for rate, exponent in ((0.001, 3), (0.002, 2)):
        value = of[f"{IMAGES_AT_UNSEEN}, learning rate {rate}"]["value"]
        assert value == pytest.approx(exponent, abs=0.05)
