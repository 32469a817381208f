"""What figures and tables show, of networks whose answers are known."""

import math
import sys

import numpy as np
import pytest

from compgen_jax.metrics import circle
from compgen_jax.papers.forced_rendering.scaling_claims import GRID, IMAGES, REGION
from figures import plotting
from figures.figure import FIGURES
from figures.forced_rendering import draw_scaling, fig9, figure1, lookup
from figures.real_factors import real_factors_tables as sprites_tables
from figures.why_not import why_not_figures
from tests.figures import stand_ins
from tests.figures.panels import axis_of, lines_of, means, title_of
from tests.papers.test_scaling import GRIDS, make_table, scored

EDGE = 8 / 9  # of the hole, which the edge map draws rightly
BUMPS, STRIPES = draw_scaling.COLORS["bumps"], draw_scaling.COLORS["stripes"]
UP, DOWN = (mark for mark, _ in draw_scaling.BOUNDS.values())


def marks(axis, mark="D"):
    return [line.get_xydata()[0] for line in lines_of(axis, mark) if len(line.get_xydata())]


def test_the_share_rendered_stands_beside_that_of_interpolation(drawn):
    runs = {"bump_cnn": stand_ins.mapped("plus", "bump"),
            "ramp_cnn": stand_ins.mapped("edge", "plus", "ramp")}  # fmt: skip
    for run, wide in zip(runs.values(), ("edge", "bump"), strict=True):
        run.wide_network = stand_ins.mapped(wide, "blank").cells

    def draw_errors(runs):
        picture = plotting.new_figure(plotting.WIDTH, 4)
        figure1._draw_errors(picture, runs)
        return picture

    by_code = {run.config.task.code.name: run for run in runs.values()}
    titles = [title_of(axis) for axis in drawn(draw_errors, by_code).axes]
    shares = "With the {} code, {:.0%} of held-out positions are rendered; by interpolation {:.0%}"
    assert shares.format("bump", 0, 1) in titles and shares.format("ramp", EDGE, 0) in titles
    codes = drawn(FIGURES["codes"].draw, runs)
    np.testing.assert_allclose(marks(axis_of(codes, "a")), [[1, -0.4], [0, -1.4]])
    np.testing.assert_allclose(marks(axis_of(codes, "a"), "^"), [[EDGE, -0.4], [1, -1.4]])
    assert [x for x, _ in means(axis_of(codes, "a"))] == pytest.approx([0, EDGE])
    by_distance = lines_of(axis_of(codes, "b"), "D")
    assert [line.get_ydata().tolist() for line in by_distance] == [[1, 1], [0, 0]]
    others = dict.fromkeys(FIGURES["controls"].runs, stand_ins.mapped("bump", "edge"))
    share = axis_of(drawn(FIGURES["controls"].draw, others | {"bump_cnn": runs["bump_cnn"]}), "a")
    assert [x for x, _ in marks(share)] == pytest.approx([1, *[EDGE] * (len(others) - 1)])


def test_figure_1_compares_held_out_with_id_images_of_the_median_seed(drawn, workdir):
    run = stand_ins.trained("bump_cnn", workdir)
    cells, held_out = run.cells, run.cells.held_out
    axes = drawn(FIGURES["fig1b"].draw, {"bump_cnn": run}).axes
    kernels = {title_of(axis): axis.images[0].get_array() for axis in axes if axis.images}
    shared = [
        [np.mean(ood == seen) for seen in cells.factors[~held_out]]
        for ood in cells.factors[held_out]
    ]
    np.testing.assert_allclose(kernels["Binary kernel"], shared)
    lower = np.argmin([np.mean(errors[held_out]) for errors in cells.scores["mse"]])  # of two
    images = cells.predictions[lower].reshape(64, -1).astype(float)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    expected = images[held_out] @ images[~held_out].T
    np.testing.assert_allclose(kernels["Drawn, bump code"], expected, atol=1e-6)


def test_shares_are_counted_by_distance_to_the_nearest_id_cell():
    """The edge map draws the 8 cells next to ID ones, of a hole of 3 by 3."""
    levels, shares = lookup.shares_by_distance(stand_ins.mapped("edge", "bump").cells)
    assert levels.tolist() == [1, 2] and shares.tolist() == [[1, 0], [1, 0]]


def test_figure_9_has_the_errors_of_all_angles(drawn, workdir):
    runs = {name: stand_ins.trained(name, workdir) for name in fig9.TITLES}
    figure, cells = drawn(fig9.draw, runs), runs["rotation"].cells
    curves = {line.get_label(): line for line in axis_of(figure, "a").lines}
    angles, error = curves["one object"].get_data()
    order = np.argsort(cells.factors[:, 0] % 360)
    expected = np.exp(np.log(cells.scores["mse"].astype(float)).mean(axis=0))[order]
    inside = (angles >= 0) & (angles < 360)
    np.testing.assert_allclose(error[inside], expected / np.square(cells.truths).mean(), rtol=1e-5)
    # in the middle of the gap, half of each edge's image
    (gap,) = circle.gaps(cells.factors, cells.held_out)
    middle = np.argmin(abs(gap.place - 0.5))
    before, after = (cells.truths[edge].astype(float) for edge in gap.edges)
    image = before + gap.place[middle] * (after - before)
    expected = np.square(image - cells.truths[gap.cells[middle]]).mean()
    ideal = curves["edges' cross-fade"].get_ydata()[middle]
    assert ideal == pytest.approx(expected / np.square(cells.truths).mean(), rel=1e-4)


def test_volumes_and_tuning_are_means(drawn, workdir):
    run = stand_ins.trained("bump_cnn", workdir)
    axes = drawn(FIGURES["fig11"].draw, {"bump_cnn": run}).axes
    images = [axis.images[0].get_array() for axis in axes if axis.images]
    held_out, code = run.maps["held_out"], np.log10(run.maps["volume"][:, 0]).mean(axis=0)
    np.testing.assert_allclose(images[0], code - code[~held_out].mean(), atol=1e-3)
    means = [image[~held_out].mean() for image in images[: len(run.layer_names)]]
    np.testing.assert_allclose(means, 0, atol=1e-6)


def test_layers_are_laid_out_by_their_principal_components(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)  # as if it were not there
    layer = np.random.default_rng(0).normal(size=(30, 5)) * [3, 2, 1, 1, 1]
    plane, method = fig9.flattened(layer)
    values, vectors = np.linalg.eigh(np.cov(layer.T))
    expected = (layer - layer.mean(axis=0)) @ vectors[:, :-3:-1]
    signs = np.sign((plane * expected).sum(axis=0))
    np.testing.assert_allclose(plane, expected * signs, atol=1e-9)
    assert method == f"PCA, {values[-2:].sum() / values.sum():.0%} of variance"
    plane, method = fig9.flattened(np.ones((30, 1)))
    assert not plane.any() and method == "PCA, 100% of variance"


def test_the_numbers_of_a_figure_are_those_by_seed():
    figure = plotting.new_figure(plotting.COLUMN, 2)
    layers, shares = figure.subplots(1, 2)
    plotting.panel(layers, "a")
    plotting.draw_line(layers, [[1.0, 0.5, 0.2]], 2, "red", "-", "depth\n1")
    plotting.name_layers(layers, 3)
    plotting.panel(shares, "b")
    plotting.show_number(shares, 1.1, np.array([0.3, np.nan, 0.4]), fmt="X", color="red")
    shares.set_xticks([0, 1], ["no", "yes"])
    table = plotting.numbers_of(figure).sort_values(["panel", "value"], ascending=[True, False])
    assert table.to_numpy().tolist() == [
        ["a", "depth 1", "-", "code", 0, 1.0],
        ["a", "depth 1", "-", "1", 0, 0.5],
        ["a", "depth 1", "-", "image", 0, 0.2],
        ["b", "depth 1", "X", "yes", 2, 0.4],
        ["b", "depth 1", "X", "yes", 0, 0.3],
    ]
    plotting.plt.close(figure)


# --- sweeps ------------------------------------------------------------------------------------


def points_of(axis, color, marker):
    """(N, images) of seeds ('.'), or of the arrows that point this way."""
    return np.concatenate([line.get_xydata() for line in lines_of(axis, marker, color)])


def test_thresholds_are_drawn_where_they_are(drawn):
    figure = drawn(draw_scaling.draw_thresholds, stand_ins.sweep())
    shown = [axis for axis in figure.axes if axis.axison and axis.get_visible()]
    unseen, _, rendered, corner, *_ = shown  # of x and y right, but for the third
    title = "For bumps rendered at 0.9 of points between cells"  # x and y right are in fig4
    assert [title_of(axis) for axis in shown if "between" in title_of(axis)] == [title]
    legends = [[text.get_text() for text in axis.get_legend().get_texts()]
               for axis in (unseen, corner)]  # fmt: skip
    assert legends[0][0].startswith("bumps: $N^{3.0}$ [") and len(legends[1]) == 1
    assert legends[0][1].startswith("stripes: $N^{1.0}$ [")
    for axis in (unseen, rendered):
        dots = points_of(axis, BUMPS, ".")
        assert dots.shape == (12, 2) and len(points_of(axis, BUMPS, UP)) == 0
        np.testing.assert_allclose(dots[:, 1] / (0.1 * dots[:, 0] ** 3), 1, atol=0.35)
        (line,) = [line for line in axis.lines if line.get_label().startswith("bumps")]
        np.testing.assert_allclose(line.get_ydata(), 0.1 * np.array(GRIDS) ** 3, rtol=0.1)
    reference = next(line for line in unseen.lines if line.get_linestyle() == ":")
    slope = np.polyfit(np.log(reference.get_xdata()), np.log(reference.get_ydata()), 1)[0]
    assert slope == pytest.approx(3)


def test_figure_4_has_the_images_needed_if_their_sweep_is_there(drawn, workdir):
    stripes_and_bumps = stand_ins.trained("stripes_30_bumps", workdir)
    runs = {"stripes_30_bumps": stripes_and_bumps, "data_scaling": stand_ins.sweep()["sweep"]}
    figure = drawn(FIGURES["fig4"].draw, runs)
    (bumps,) = [line for line in axis_of(figure, "c").lines if line.get_label().startswith("bumps")]
    np.testing.assert_allclose(bumps.get_ydata(), 0.1 * np.array(GRIDS) ** 3, rtol=0.1)
    table = plotting.numbers_of(figure)
    assert len(table[(table.panel == "c") & (table.mark == ".")]) == 24


def test_the_mean_over_seeds_is_geometric(drawn):
    """Seeds render 0.9 half-way, in log images, between 10 and 40, and between 40 and 160."""
    table = (0.8, 10, 0), (1.0, 40, 0), (0.8, 40, 1), (1.0, 160, 1)
    rows = [scored(share, grid, images, seed=seed)
            for grid in (8, 16) for share, images, seed in table]  # fmt: skip
    axis = drawn(draw_scaling.draw_thresholds, stand_ins.sweep(rows, ("none",))).axes[0]
    (line,) = [line for line in axis.lines if line.get_label().startswith("bumps")]
    np.testing.assert_allclose(sorted(points_of(axis, BUMPS, ".")[:, 1]), [20, 20, 80, 80], 1e-6)
    np.testing.assert_allclose(line.get_ydata(), 40, rtol=1e-6)


def test_no_bound_is_dropped(drawn):
    """Bumps are never enough, stripes are from the start at the two largest N."""
    corner = {REGION: "corner"}
    few = make_table({"bumps": (3, 0.1)}, multiples=(0.1, 0.3), **corner)
    law = {"stripes": (1, 2)}
    by_stripes = make_table(law, GRIDS[:2], **corner)
    by_stripes += make_table(law, GRIDS[2:], multiples=(2, 4), **corner)
    beyond = [row for row in by_stripes if row[IMAGES] > 2 * row[GRID]]
    sweep = stand_ins.sweep(few + beyond, ("corner",))
    axis = drawn(draw_scaling.draw_thresholds, sweep).axes[0]
    up, down = points_of(axis, BUMPS, UP), points_of(axis, STRIPES, DOWN)
    assert down.shape == (6, 2) and len(np.unique(up, axis=0)) == 12  # side by side
    most = {(row[GRID], row["seed"]): row[IMAGES]
            for row in sorted(few, key=lambda row: row[IMAGES])}  # fmt: skip
    np.testing.assert_allclose(sorted(up[:, 1]), sorted(most.values()))
    (line,) = [line for line in axis.lines if line.get_label().startswith("stripes")]
    assert list(np.isfinite(line.get_ydata())) == [True, True, False, False]


def test_the_map_shows_relative_errors_by_grid_and_share(drawn):
    """And says how many trials failed, and which are of seen cells."""
    written = lambda axis: {text.get_position(): text.get_text() for text in axis.texts
                            if text.get_transform() == axis.transData}  # fmt: skip
    maps = lambda *change: drawn(why_not_figures.draw_holdout_map,
                                 stand_ins.holdout_map(*change)).axes[:2]  # fmt: skip
    held_out, outside = maps()
    np.testing.assert_allclose(held_out.images[0].get_array(), [[0.4, 0.4], [1, 1]])
    np.testing.assert_allclose(outside.images[0].get_array(), [[0.016, 0.024]] * 2)
    assert written(held_out) == {(0, 0): "0.4", (0, 1): "1", (1, 0): "0.4", (1, 1): "1"}

    def change(row):
        if row[GRID] == 8:
            row["unseen.mse"] = math.nan
        failed = row[stand_ins.SIDE] == 0.2 and (row["seed"] == 1 or row[GRID] == 12)
        return row | ({"status": "failed"} if failed else {})

    held_out, outside = maps(change)
    assert written(held_out) == {(0, 0): "0.2", (0, 1): "1", (1, 1): "1"}
    assert written(outside) == {(0, 0): "0.001*", (0, 1): "0.002*", (1, 1): "0.024"}
    assert title_of(outside) == "Unseen ID cells (*: seen ones)"
    assert held_out.figure.get_suptitle().endswith("3 trials failed")


# --- tables ------------------------------------------------------------------------------------


def test_sprites_have_their_numbers(drawn):
    """One of three decoders of a range draws the nearest ID image, and so do all remedies but
    slices."""
    for figure, runs, right in (
        ("sprites", stand_ins.hold_outs(), {"range, upsampled": 0, "range, per pixel": 1}),
        ("sprites_remedies", stand_ins.remedies(), {"slices": 1, "low rank": 0}),
    ):
        axes = drawn(FIGURES[figure].draw, runs).axes
        (axis,) = (axis for axis in axes if axis.get_xlabel().startswith("share"))
        labels = [label.get_text() for label in axis.get_yticklabels()]
        shares = {labels[round(y)]: x for x, y in means(axis)}
        assert shares | right == shares
    for known, words in (("follows", "1 [1, 1]"), ("all-alike", "rendered alike")):
        (axis,) = drawn(FIGURES["sprites_pairs"].draw, stand_ins.pairs(known)).axes
        assert words in title_of(axis)
    assert "| shape2tx | 50 [50, 50] | 140 [140, 140] | 46.8 | 139 |" in sprites_tables.montero(
        stand_ins.montero()
    )
