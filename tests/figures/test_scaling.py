"""Figures of sweeps, drawn from tables whose exponents are known."""

import json
import math

import numpy as np
import pytest

from compgen_jax.claims import judge_all
from compgen_jax.config import Config, SearchConfig, SweepConfig, TrainingConfig
from compgen_jax.papers.forced_rendering.scaling import COPIES, GRID, IMAGES, NEEDS_IMAGES, REGION
from compgen_jax.runs import directory
from compgen_jax.sweeps.sweep import FinishedSweep
from compgen_jax.tasks.bump import Bump, StripesConfig
from compgen_jax.tasks.supports import SupportConfig
from figures.forced_rendering import holdout, scaling, tables
from tests.figures.panels import lines_of, title_of
from tests.papers.test_scaling import GRIDS, MEASURES, SIDE, make_row, make_table

BLUE, ORANGE = scaling.COLORS["bumps"], scaling.COLORS["stripes"]


def make_config(regions=("none", "corner"), grids=GRIDS, target=0.9):
    search = SearchConfig(field=IMAGES, start=(10,), scores=("rendered",), target=target)
    return Config(
        task=Bump(
            support=SupportConfig(side=0.5, require_marginals=False),
            stripes=StripesConfig(order="shuffled"),
        ),
        training=TrainingConfig(steps=10),
        sweep=SweepConfig(axes={GRID: grids, COPIES: (0, 1), REGION: regions}, search=search),
    )


def shown(rows, config):
    """The sweep as a figure's only run."""
    return {"sweep": FinishedSweep(config, rows)}


def test_a_table_says_which_readings_decide():
    """Bumps need N^3 at unseen cells; what they need around a corner is not resolved."""
    rows = make_table() + make_table({"bumps": (2, 2)}, region="corner", multiples=(0.5, 2))
    judged = judge_all([NEEDS_IMAGES], {"data_scaling": FinishedSweep(make_config(), rows)})
    head, _, *lines = tables.exponents(json.loads(json.dumps(directory.clean(judged))))
    assert head == (
        "| | bumps alone need images in proportion to N^3 "
        "| stripes and bumps need images in proportion to N |"
    )
    cells = {each[1].strip(): each[2:4] for each in (line.split("|") for line in lines)}
    rendered = "exponent of N (24 to 56), {}, 0.9 rendered at {}".format
    bumps, stripes = cells[rendered("images", "unseen cells")]
    assert bumps.endswith("] reproduced ") and not stripes.strip()
    bumps, stripes = cells[rendered("bumps beyond all 2N stripes", "unseen cells")]
    assert not bumps.strip() and stripes.endswith("] reproduced ")
    bumps, stripes = cells[rendered("images", "the held-out corner")]
    assert bumps.endswith("] inconclusive: not resolved ") and not stripes.strip()
    assert tables.exponents([{"claim": "C1"}]) == []


def make_map_config(in_proportion=True):
    """A sweep of bumps alone around a donut, whose scheme and region are no axes."""
    support = SupportConfig(
        region="donut", side=0.2, samples=700, sampling="real", in_proportion=in_proportion
    )
    axes = {GRID: (8, 12), SIDE: (0.2, 0.5)}
    return Config(
        task=Bump(support=support), training=TrainingConfig(steps=10), sweep=SweepConfig(axes=axes)
    )


def bounds_of(axis, color, marker):
    """(N, images) of the open arrows that point this way."""
    return np.concatenate([line.get_xydata() for line in lines_of(axis, marker, color)])


def seeds_of(axis, color):
    return bounds_of(axis, color, ".")


def legend_of(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def visible(figure):
    return [axis for axis in figure.axes if axis.axison]


def test_thresholds_are_drawn_where_they_are(drawn):
    rows = make_table() + make_table({"stripes": (1, 2)}, region="corner")
    figure = drawn(scaling.draw_thresholds, shown(rows, make_config()))
    unseen, real, corner = visible(figure)
    titles = [title_of(axis) for axis in visible(figure)]
    assert titles == ["unseen cells", "points between cells", "the held-out corner"]
    assert legend_of(unseen)[0].startswith("bumps alone: N^3.0 [")
    assert legend_of(unseen)[1].startswith("stripes and bumps: N^1.0 [")
    assert [text.split(":")[0] for text in legend_of(corner)] == ["stripes and bumps"]
    assert unseen.get_ylabel() == "images to render 0.9"
    assert unseen.get_xscale() == unseen.get_yscale() == "log"
    assert [tick.get_text() for tick in unseen.get_xticklabels()] == ["24", "32", "40", "56"]
    for axis in (unseen, real):
        dots = seeds_of(axis, BLUE)
        assert dots.shape == (12, 2) and len(bounds_of(axis, BLUE, "^")) == 0
        np.testing.assert_allclose(dots[:, 1] / (0.1 * dots[:, 0] ** 3), 1, atol=0.35)
        (line,) = [line for line in axis.lines if line.get_label().startswith("bumps")]
        np.testing.assert_allclose(line.get_xdata(), GRIDS)
        np.testing.assert_allclose(line.get_ydata(), 0.1 * np.array(GRIDS) ** 3, rtol=0.1)


def test_the_mean_over_seeds_is_geometric(drawn):
    """Seeds render 0.9 half-way, in log images, between 10 and 40, and between 40 and 160."""
    rows = []
    for grid in (8, 16):
        for seed, numbers in enumerate(((10, 40), (40, 160))):
            for images, share in zip(numbers, (0.8, 1.0), strict=True):
                row = make_row(grid=grid, seed=seed, images=images)
                rows.append(row | {"unseen.rendered": share})
    figure = drawn(scaling.draw_thresholds, shown(rows, make_config(regions=("none",))))
    axis = figure.axes[0]
    (line,) = [line for line in axis.lines if line.get_label().startswith("bumps")]
    np.testing.assert_allclose(sorted(seeds_of(axis, BLUE)[:, 1]), [20, 20, 80, 80], rtol=1e-6)
    np.testing.assert_allclose(line.get_ydata(), 40, rtol=1e-6)


def test_references_start_at_the_first_mean(drawn):
    figure = drawn(scaling.draw_thresholds, shown(make_table(), make_config(regions=("none",))))
    axis = figure.axes[0]
    cubic, linear = [line for line in axis.lines if line.get_linestyle() == "--"]
    means = {line.get_label()[:5]: line for line in axis.lines if line.get_linestyle() == "-"}
    for line, exponent, scheme in ((cubic, 3, "bumps"), (linear, 1, "strip")):
        assert line.get_ydata()[0] == means[scheme].get_ydata()[0]
        slope = np.polyfit(np.log(line.get_xdata()), np.log(line.get_ydata()), 1)[0]
        assert slope == pytest.approx(exponent)
    (stripes,) = [line for line in axis.lines if line.get_linestyle() == ":"]
    np.testing.assert_allclose(stripes.get_ydata(), 2 * np.array(GRIDS))
    names = {text.get_text() for text in axis.texts}
    assert names >= {"∝ N³", "∝ N"}


def test_no_bound_is_dropped(drawn):
    """Bumps are never enough, stripes are from the start at the two largest N."""
    corner = {"region": "corner", "alone": None}
    few = make_table({"bumps": (3, 0.1)}, multiples=(0.1, 0.3), **corner)
    small = make_table({"stripes": (1, 2)}, GRIDS[:2], **corner)
    large = make_table({"stripes": (1, 2)}, GRIDS[2:], multiples=(2, 4), **corner)
    figure = drawn(
        scaling.draw_thresholds, shown(few + small + large, make_config(regions=("corner",)))
    )
    (axis,) = figure.axes
    up, down = bounds_of(axis, BLUE, "^"), bounds_of(axis, ORANGE, "v")
    assert up.shape == (12, 2) and down.shape == (6, 2)
    assert len(np.unique(up, axis=0)) == 12  # side by side
    most = {
        (row[GRID], row["seed"]): row[IMAGES] for row in sorted(few, key=lambda row: row[IMAGES])
    }
    np.testing.assert_allclose(sorted(up[:, 1]), sorted(most.values()))
    assert len(seeds_of(axis, BLUE)) == 0 and len(seeds_of(axis, ORANGE)) == 6
    assert legend_of(axis)[0] == "bumps alone: no exponent"
    (low, high), (left, right) = axis.get_ylim(), axis.get_xlim()
    inside = np.concatenate([up, down])
    assert (inside > (left, low)).all() and (inside < (right, high)).all()
    (line,) = [line for line in axis.lines if line.get_label().startswith("stripes")]
    assert list(np.isfinite(line.get_ydata())) == [True, True, False, False]


def test_one_grid_one_seed_and_failures_are_drawn(drawn):
    config = make_config(grids=(8,), regions=("none",))
    rows = make_table(grids=(8,), seeds=1)
    failed = [row | {"status": "failed", "seed": 1} for row in rows]
    for table_rows in (rows, rows + failed, failed):
        figure = drawn(scaling.draw_thresholds, shown(table_rows, config))
        assert legend_of(figure.axes[0])[0] == "bumps alone: no exponent"
        count = 0 if table_rows is failed else 1
        assert len(seeds_of(figure.axes[0], BLUE)) == count
        drawn(scaling.draw_exponents, shown(table_rows, config))
    single = drawn(
        scaling.draw_thresholds, shown(make_table(seeds=1), make_config(regions=("none",)))
    )
    assert legend_of(single.axes[0])[0] == "bumps alone: N^3.0 no interval"


def test_every_setting_has_a_panel_that_says_which(drawn):
    rows = make_table() + make_table(rate=2e-3)
    figure = drawn(scaling.draw_thresholds, shown(rows, make_config(regions=("none",))))
    titles = [title_of(axis) for axis in visible(figure)]
    rates = ["learning rate 0.001", "learning rate 0.002"] * 2
    assert all(map(str.endswith, titles, rates)) and len(titles) == len(rates)


def test_exponents_follow_the_share_asked_for(drawn):
    """Of points between cells .5 is rendered from N^2 images on, and .9 from N^3."""
    rows = make_table({"bumps": (3, 0.1)}, multiples=np.geomspace(0.02, 4, 12).tolist())
    for row in rows:
        needed = math.log(0.1 * row[GRID] ** 3), math.log(0.1 * row[GRID] ** 2)
        share = (math.log(row[IMAGES]) - needed[1]) / (needed[0] - needed[1])
        row["real.rendered"] = float(np.clip(0.5 + 0.4 * share, 0, 1))
    figure = drawn(scaling.draw_exponents, shown(rows, make_config(regions=("none",))))
    unseen, real = visible(figure)
    unseen_line, real_line = (exponents_of(axis) for axis in (unseen, real))
    np.testing.assert_allclose(unseen_line.get_xdata(), scaling.TARGETS)
    np.testing.assert_allclose(unseen_line.get_ydata()[2:], 3, atol=0.1)
    exponents = dict(zip(scaling.TARGETS, real_line.get_ydata(), strict=True))
    assert exponents[0.9] == pytest.approx(3, abs=0.1)
    assert exponents[0.7] == pytest.approx(2.5, abs=0.1)
    assert unseen.get_ylim()[0] < 0 and unseen.get_ylim()[1] > 3.2
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["bumps alone", "searched share"]


def exponents_of(axis):
    return next(line for line in axis.lines if line.get_marker() == "o")


def test_what_is_not_identified_is_marked_at_the_bottom(drawn):
    """The share rendered stays below 0.72."""
    rows = make_table({"stripes": (1, 2)}, region="corner")
    for row in rows:
        row["ood.rendered"] = min(row["ood.rendered"], 0.72)
    figure = drawn(scaling.draw_exponents, shown(rows, make_config(regions=("corner",))))
    axis, *_ = visible(figure)
    assert title_of(axis).startswith("the held-out corner: +")
    (missing,) = [line for line in axis.lines
                  if line.get_marker() == "o" and line.get_fillstyle() == "none"]  # fmt: skip
    low = missing.get_ydata()
    assert (low < -0.3).all() and (low > axis.get_ylim()[0]).all()
    np.testing.assert_allclose(missing.get_xdata(), [0.75, 0.8, 0.85, 0.9, 0.95])
    values = exponents_of(axis).get_ydata()
    assert list(np.isfinite(values)) == [target < 0.72 for target in scaling.TARGETS]


def make_map(schemes=("bumps",), grids=(8, 12), shares=(0.2, 0.5), seeds=2, without=()):
    """The error outside is grid / 1000, that on held-out cells the share, times 1 + 2 seed."""
    rows = []
    for scheme in schemes:
        for grid in grids:
            for share in shares:
                for seed in range(seeds):
                    row = make_row(grid=grid, scheme=scheme, region="donut", side=share, seed=seed)
                    for name in without:
                        del row[name]
                    for where, error in (("ood", share), ("unseen", grid / 1000), ("seen", 1e-3)):
                        row[f"{where}.blank_mse"] = 0.5
                        row[f"{where}.mse"] = 0.5 * error * (1 + 2 * seed)
                    rows.append(row)
    return rows


def written(axis):
    """Texts by the column and row of the map's cell."""
    return {text.get_position(): text.get_text() for text in axis.texts
            if text.get_transform() == axis.transData}  # fmt: skip


def test_the_map_shows_relative_errors_by_grid_and_share(drawn):
    rows = make_map(without=(COPIES, REGION))
    figure = drawn(holdout.draw_holdout_map, shown(rows, make_map_config()))
    held_out, outside = figure.axes[:2]
    np.testing.assert_allclose(held_out.images[0].get_array(), [[0.4, 0.4], [1, 1]])
    np.testing.assert_allclose(outside.images[0].get_array(), [[0.016, 0.024]] * 2)
    assert written(held_out) == {(0, 0): "0.4", (0, 1): "1", (1, 0): "0.4", (1, 1): "1"}
    assert written(outside)[1, 0] == "0.024"
    assert title_of(held_out) == "bumps alone, donut held out: held-out cells, 0.4 to 1"
    assert title_of(outside) == "unseen cells outside, 0.016 to 0.024"
    assert [t.get_text() for t in held_out.get_xticklabels()] == ["8", "12"]
    assert [t.get_text() for t in held_out.get_yticklabels()] == ["0.2", "0.5"]
    assert figure.get_suptitle() == (
        "training sets: 700 bumps times the share of the area not held out"
    )
    fixed = make_map_config(in_proportion=False)
    figure = drawn(holdout.draw_holdout_map, shown(make_map(("bumps", "stripes")), fixed))
    assert figure.get_suptitle() == "training sets: 700 bumps at every N"
    titles = [title_of(axis).split(",")[0] for axis in figure.axes[:4:2]]
    assert titles == ["bumps alone", "stripes and bumps"]


def test_the_map_says_which_numbers_are_of_fewer_seeds_or_of_seen_cells(drawn):
    rows = make_map()
    for row in rows:
        if row[GRID] == 8:
            row["unseen.mse"] = math.nan
        if row[SIDE] == 0.2 and (row["seed"] == 1 or row[GRID] == 12):
            row |= dict.fromkeys(MEASURES, math.nan) | {"status": "failed"}
    figure = drawn(holdout.draw_holdout_map, shown(rows, make_map_config()))
    held_out, outside = figure.axes[:2]
    assert written(held_out) == {(0, 0): "0.2\n1 of 2", (0, 1): "1", (1, 1): "1"}
    assert written(outside) == {(0, 0): "0.001*\n1 of 2", (0, 1): "0.002*", (1, 1): "0.024"}
    assert title_of(outside) == "unseen cells outside (* seen cells), 0.001 to 0.024"


def test_a_map_of_seen_cells_alone_needs_no_stars(drawn):
    rows = [row | {"unseen.mse": math.nan} for row in make_map()]
    outside = drawn(holdout.draw_holdout_map, shown(rows, make_map_config())).axes[1]
    assert title_of(outside) == "seen cells outside, 0.002"
    assert not any("*" in text for text in written(outside).values())


def test_a_map_needs_one_data_set_for_each_cell():
    with pytest.raises(ValueError, match="no search of 'task.images'"):
        holdout.draw_holdout_map(shown(make_map(), make_config()))
    with pytest.raises(ValueError, match="no held-out region"):
        holdout.draw_holdout_map(shown(make_table(), make_map_config()))
