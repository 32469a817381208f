"""C11 on tables whose exponents are known."""

import math

import numpy as np
import pytest

from compgen_jax.config import changed
from compgen_jax.papers.forced_rendering import scaling_claims as claims
from compgen_jax.papers.forced_rendering.bump_presets import SCALING, runs
from compgen_jax.papers.forced_rendering.scaling_claims import COPIES, GRID, IMAGES, REGION, Reading
from compgen_jax.papers.verdicts import judge_all
from compgen_jax.runs.sweeps import FinishedSweep

R, C, U = "reproduced", "contradicted", "inconclusive"
BASE, RENDERED, PLACES, EPOCHS = (claim.name for claim in claims.CLAIMS)
GRIDS = (24, 32, 40, 56)
UNSEEN = Reading("none", "unseen", 0.9)
PAPER = {"bumps": (3, 0.1), "stripes": (1, 1.5)}  # exponent, factor
AT = "exponent of N (24 to 56), {}, 0.9 with the right x and y at points between cells"


def scored(share, grid, images, scheme="bumps", seed=0, **more):
    """A row whose share is rendered, with the right x and y, everywhere but on seen cells, of which
    all are, if any is."""
    alone = scheme == "stripes" and images <= 2 * grid
    case = {GRID: grid, COPIES: claims.SCHEMES[scheme].copies, REGION: "none"}
    shares = {"unseen": share, "ood": share, "real": share, "seen": math.nan if alone else 1.0}
    scores = {f"{where}.{name}": value for where, value in shares.items() for name in claims.SCORES}
    return {**case, "seed": seed, IMAGES: images, "status": "ok", **scores, **more}


def make_table(laws=PAPER, grids=GRIDS, seeds=3, multiples=(0.3, 0.6, 0.9, 1.2, 2.3, 4), **more):
    """Rows whose share rendered is logistic in the log of what is counted and reaches 0.9 at
    factor N^exponent, a little more or less by seed; what is counted are multiples of that. Stripes
    come first, and then the bumps beside them; a tenth is rendered of N and of all 2N stripes."""
    rows = []
    for scheme, (exponent, factor) in laws.items():
        for grid in grids:
            for seed in range(seeds):
                case = {"grid": grid, "scheme": scheme, "seed": seed} | more
                first = 2 * grid if scheme == "stripes" else 0
                rows += [scored(0.1, images=images, **case) for images in (grid, first) if first]
                needed = factor * grid**exponent * 1.05 ** (seed - (seeds - 1) / 2)
                for number in sorted({max(1, round(needed * m)) for m in multiples}):
                    share = 1 / (1 + (number / needed) ** -3 / 9)
                    rows.append(scored(share, images=first + number, **case))
    return rows


def enough_stripes(exponent, factor):
    """Rows of which factor N^exponent stripes are enough, at most all 2N, and no bump is needed."""
    return [
        scored(float(images >= (1 + seed / 100) * factor * grid**exponent), grid, images,
               "stripes", seed)
        for grid in GRIDS
        for seed in range(3)
        for images in (*range(grid // 2, 2 * grid + 1, 2), 4 * grid)
    ]  # fmt: skip


def sweep_of(rows, regions=("none",)):
    axes = {GRID: GRIDS, COPIES: (0, 1), REGION: regions}
    return FinishedSweep(changed(SCALING, {"sweep.axes": axes, "sweep.search.target": 0.9}), rows)


def judged(rows, epochs=None, name=BASE, regions=("none",)):
    """The rows of both schemes, by a claim's name."""
    runs = {"data_scaling": sweep_of(rows, regions)}
    if epochs:
        runs["data_scaling_epochs"] = sweep_of(epochs)
    return [row for row in judge_all(claims.CLAIMS, runs) if row["claim"] == name]


def first(row):
    return next(iter(row["conditions"].values()))


@pytest.mark.parametrize(
    ("bumps", "stripes", "expected"), [(3, 1, (R, R)), (2, 2, (C, C)), (4, 0, (C, R))]
)
def test_exponents_near_the_papers_are_reproduced_and_no_others(bumps, stripes, expected):
    """Of bumps beside stripes, fewer than in proportion to N are as good."""
    table = make_table({"bumps": (bumps, 0.1), "stripes": (stripes, 20)})
    for name in (PLACES, BASE):
        rows = judged(table, name=name)
        assert tuple(row["verdict"] for row in rows) == expected
    for row, exponent in zip(rows, (bumps, stripes), strict=True):
        assert first(row)["value"] == pytest.approx(exponent, abs=0.1)
    # stripes alone are never enough, so that their number is not asked for
    assert len(rows[1]["conditions"]) == 1


@pytest.mark.parametrize(("exponent", "factor", "verdict"), [(1, 1.95, R), (0, 40, C)])
def test_stripes_that_are_enough_are_counted(exponent, factor, verdict):
    (row,) = judged(enough_stripes(exponent, factor))
    titles = "bumps beyond all 2N stripes", "stripes where some are dropped"
    assert list(row["conditions"]) == [AT.format(title) for title in titles]
    beyond, dropped = row["conditions"].values()
    assert (beyond["value"], beyond["ci95"], beyond["holds"]) == (0, [0, 0], True)  # no bump
    assert dropped["value"] == pytest.approx(exponent, abs=0.1)
    assert row["verdict"] == verdict


def test_small_grids_are_a_preview_without_a_verdict():
    small = (8, 12, 16, 24)
    bumps, stripes = judged(make_table(grids=small))
    assert bumps["verdict"] == stripes["verdict"] == U
    why = "a preview: N = 8 to 24, the paper's begin at 24: exponent of N (8 to 24), images"
    assert bumps["reason"].startswith(why) and first(bumps)["value"] == pytest.approx(3, abs=0.05)
    # with two that are large enough, the small ones are left out
    steep = make_table({"bumps": (5, 0.001), "stripes": (3, 0.1)}, grids=small[:-1])
    bumps, stripes = judged(make_table() + steep)
    assert "(24 to 56)" in bumps["criterion"] and stripes["verdict"] == R


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        # numbers of images a factor of 4 apart put thresholds where they are themselves
        (make_table(multiples=(0.5, 2)), "not resolved: 12 thresholds"),
        (
            make_table(multiples=(0.1, 0.3)),
            "not identified: fewer than two grids have a threshold (12 above the most, 0 below",
        ),
        (make_table(seeds=1), "no interval"),
        (make_table(status="failed"), "not identified"),
        (
            make_table(**{"seen.exact_accuracy": 0.94}),
            "not trained: share of seen cells with the right",
        ),
    ],
)
def test_an_exponent_that_says_nothing_concludes_nothing(rows, reason):
    bumps, _ = judged(rows)
    assert bumps["verdict"] == U and bumps["reason"].startswith(reason)


SEEN = (0.1, 0.2, 0.3, 0.4)


@pytest.mark.parametrize(
    ("unseen", "seen", "expected"),
    [
        ((0, 0.5, 1, 1), SEEN, 0.3),  # between 20 and 40
        ((0, 0.9, 1, 1), SEEN, 0.2),  # at 20
        ((0, 0, 0, 0), SEEN, 0.4),  # above 80
        ((1, 1, 1, 1), SEEN, 0.1),  # at 10 or below
        ((1, 1, 1, 1), (np.nan, np.nan, 0.3, 0.4), 0.3),  # stripes alone at first
        ((1, 1, 1, 1), [np.nan] * 4, np.nan),
        ([np.nan] * 4, SEEN, np.nan),  # unknown
    ],
)
def test_seen_cells_are_looked_at_where_the_thresholds_are(unseen, seen, expected):
    rows = [
        scored(u, 8, n, **{"seen.rendered": s})
        for n, u, s in zip((10, 20, 40, 80), unseen, seen, strict=True)
    ]
    curve = claims.thresholds(rows, UNSEEN, "bumps")
    share = claims.seen_share(rows, curve, claims.EVERY_IMAGE)[0, 0]
    np.testing.assert_equal(float(share), expected)


def test_seen_cells_count_on_the_grid_where_they_are_lowest():
    table = make_table()
    for row in table:
        row["seen.rendered"] = 0.82 if row[GRID] == GRIDS[-1] else 1.0
    why = f"not trained: share of seen cells rendered 0.82 at N = {GRIDS[-1]}, 0.95 asked"
    assert judged(table, name=RENDERED)[0]["reason"].startswith(why)
    assert judged(table)[0]["verdict"] == R


def test_each_claim_has_its_score_and_places():
    """Rendering takes N^3 bumps everywhere, and the right x and y N^2."""
    both, wide = ("none", "corner"), {"multiples": np.geomspace(0.1, 4, 8).tolist()}
    rows = make_table(**wide) + make_table({"bumps": (3, 0.1)}, **{REGION: "corner"}, **wide)
    for row in rows:
        share = row[IMAGES] / (0.8 * row[GRID] ** 2)
        row["real.exact_accuracy"] = 1 / (1 + share**-3 / 9)
    bumps = [judged(rows, name=name, regions=both)[0] for name in (BASE, RENDERED, PLACES)]
    assert [(row["verdict"], len(row["conditions"])) for row in bumps] == [(C, 1), (R, 1), (R, 3)]
    assert {case["run"] for case in claims.OF_SETTINGS} <= runs("paper").keys()
    # in a held-out corner bumps alone need not be enough, and the claim of all places stays open
    corner = {REGION: "corner"}
    rows = make_table() + make_table({"bumps": (3, 0.1)}, multiples=(0.1, 0.3), **corner)
    assert judged(rows, name=PLACES, regions=both)[0]["verdict"] == U


@pytest.mark.parametrize(("exponent", "verdict"), [(3, R), (2, C)])
def test_decoders_of_as_many_epochs_have_a_claim(exponent, verdict):
    epochs = make_table({"bumps": (exponent, 2)}, grids=(24, 56))
    (bumps,) = judged(make_table(), epochs, EPOCHS)  # the other table has no stripes
    value = bumps["conditions"][f"{AT.format('images')}, as many epochs"]["value"]
    assert bumps["verdict"] == verdict and value == pytest.approx(exponent, abs=0.05)
