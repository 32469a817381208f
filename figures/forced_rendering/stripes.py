"""Figures 4 and 7: decoders that saw every stripe of one factor and a few bumps."""

import functools

import jax
import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering import remedies, signals
from compgen_jax.papers.forced_rendering.paper_units import PAPER_UNITS, paper_unit_maps
from compgen_jax.papers.forced_rendering.remedies import Stripes
from compgen_jax.papers.forced_rendering.runs import ALONE_TITLES
from compgen_jax.runs import recording, results
from compgen_jax.statistics import geometric_mean_with_interval, mean_with_interval
from compgen_jax.tasks import bump
from compgen_jax.training import loop
from figures import plotting
from figures.forced_rendering.layers import draw_strip
from figures.forced_rendering.units import by_bumps, draw_curves, name_of, show_unit

# of the corner's width and height, none on the border
POINTS = ((0.2, 0.2), (0.8, 0.4), (0.6, 0.8))
SEEDS = 3  # whose images Figure 7 shows
UNIT_COLUMNS = 4  # of the panel of Figure 4e
ERROR_COLORS = {"bump": plotting.CODE_COLORS["bump"], "plus": plotting.CODE_COLORS["ramp"]}


def stripes_of(run: results.FinishedRun) -> Stripes:
    """What its networks draw for one factor alone, at `tasks.bump.stripe_points`, and for none."""
    points = bump.stripe_points(run.config.task.grid)
    nothing = np.full((1, 2), np.nan, np.float32)
    drawn = run.predict(np.concatenate([points, nothing]))
    return Stripes(drawn[:, :-1], drawn[:, -1], results.truths_at(run.task, points))


@functools.cache
def _true_stripes(task: bump.Bump):
    """(2N, N, N), as in `stripes_of`."""
    return results.truths_at(task.make(), bump.stripe_points(task.grid))


def draw_stripes(studies):
    """Figure 4: (a) what training shows: every stripe, vertical and horizontal (one of each here),
    and a few bumps outside the corner (dots: the first seed's draw). (b) At held-out points
    (circles): the true bump, the sum of its two stripes, and what the first seed draws that saw so
    many bumps; each image from its lowest value to its largest. (d) Of the decoder that saw a
    few bumps: log10 volume element of every layer, mean over seeds, over the geometric mean of
    the cells outside the corner. (e) Of its first seed: units of the first hidden layer, by rising
    interaction, each on its own scale; below, the shares of its variance over the cells that x
    alone and y alone explain (1 and 0 for a stripe, 1/2 each for a plus). (f) Likewise the paper's
    two units, at the same place of the layer, with tuning curves: mean over y against x, mean over
    x against y, the corner's columns and rows shaded. Letters are the paper's; its (c), the data
    that are needed, is no matter of these networks."""
    study = next(study for study in studies if study.role.base)
    figure = plotting.new_figure(9.05, 7.4)
    top, strip, bottom = figure.subfigures(3, 1, height_ratios=[2.9, 1.25, 2.6])
    shown, asked = top.subfigures(1, 2, width_ratios=[3.2, 5.2])
    _draw_training(shown, study)
    columns = by_bumps(studies)
    grid = asked.subplots(len(POINTS), 2 + len(columns))
    _draw_held_out(grid, columns)
    row = strip.subplots(1, len(study.inspection.layers))
    draw_strip(strip, row, study, f"{name_of(study)}\nall seeds", "d")
    units, curves = bottom.subfigures(1, 2, width_ratios=[1.25, 1])
    _draw_panel(units, study)
    _draw_paper_units(curves, study)
    return figure


def _draw_training(figure, study):
    axes = figure.subplot_mosaic([["x", "all", "all"], ["y", "all", "all"]])
    task, true = study.config.task, _true_stripes(study.config.task)
    middle = task.grid // 2
    for name, stripe in (("x", true[middle]), ("y", true[task.grid + middle])):
        plotting.show_signal(axes[name], stripe, stripe.max())
        axes[name].set_title(f"stripe at {name} = {middle}", pad=3)
    key = loop.stream(jax.random.key(study.config.training.seeds[0]), "data")
    shown = np.asarray(bump.training_points(key, task))
    points = shown[~np.isnan(shown).any(axis=1)]
    axis, held_out = axes["all"], study.inspection.maps["held_out"]
    axis.plot(*points.T, ".", color=plotting.ID_COLOR, markersize=4)
    axis.set(
        aspect="equal", xlim=(-0.5, task.grid - 0.5), ylim=(-0.5, task.grid - 0.5),
        xlabel="x (pixels)", ylabel="y (pixels)", title=f"+ {name_of(study)}",
        xticks=[0, task.grid - 1], yticks=[0, task.grid - 1],
    )  # fmt: skip
    plotting.outline(axis, held_out)
    centre = np.argwhere(held_out).mean(axis=0)[::-1]
    axis.text(*centre, "held out\n(OOD)", ha="center", va="center", color=plotting.OOD_COLOR)
    plotting.panel_label(axes["x"], "a")


def _plus(study):
    """(Q, H, W) the sum of each held-out cell's two true stripes."""
    return signals.stripes_sum(_true_stripes(study.config.task), study.results.held_out)


def _draw_held_out(axes, columns):
    """Rows are points; what is asked, the plus, and the first seed of every study."""
    first, plus = columns[0].results, _plus(columns[0])
    order = np.cumsum(first.held_out) - 1  # of a cell among the held-out ones
    for row, cell in zip(axes, plotting.held_out_cells(first, POINTS), strict=True):
        drawn = [study.results.predictions[0, cell] for study in columns]
        images = [first.truths[cell], plus[order[cell]], *drawn]
        for axis, image in zip(row, images, strict=True):
            _show_range(axis, image, first.factors[cell], first.amplitude)
        row[0].set_ylabel("({:.0f}, {:.0f})".format(*first.factors[cell]), labelpad=2)
    names = [name_of(study).replace(" ", "\n") for study in columns]
    for axis, title in zip(
        axes[0], ["asked:\nthe bump", "the plus:\ntwo stripes", *names], strict=True
    ):
        axis.set_title(title, pad=3)
    plotting.panel_label(axes[0, 0], "b")


def _show_range(axis, signal_NxN, factors, amplitude: float):
    """A held-out signal from its lowest, white, to its highest, black; both are printed below in
    units of the amplitude. Stripes do not teach the level of the background, and above a low one
    the arms of a plus would not show."""
    low, high = float(np.min(signal_NxN)), float(np.max(signal_NxN))
    plotting.show_signal(axis, signal_NxN, high, factors, plotting.OOD_COLOR, lowest=low)
    ends = (f"{end / amplitude:.1f}".replace("-0.0", "0.0") for end in (low, high))
    text = " to ".join(ends).replace("-", "\N{MINUS SIGN}")
    axis.set_xlabel(text, fontsize=6, labelpad=2)


def _draw_panel(figure, study):
    maps, first = study.inspection.maps, study.inspection.layers[1]
    units = maps[f"units.{first}"]
    axes = figure.subplots(-(-recording.PANEL // UNIT_COLUMNS), UNIT_COLUMNS).ravel()
    for axis in axes[len(units) :]:
        axis.set_axis_off()
    for axis, unit in zip(axes, units, strict=False):
        show_unit(axis, unit, maps["held_out"])
    seed = study.results.seeds[0]
    figure.suptitle(
        f"units of layer 1, {name_of(study)}, seed {seed}: shares of x and of y below", fontsize=8
    )
    plotting.panel_label(axes[0], "e")


def _draw_paper_units(figure, study):
    maps, held_out = paper_unit_maps(study.run), study.inspection.maps["held_out"]
    if not len(maps):
        return
    axes = figure.subplots(len(maps), 2, width_ratios=[1, 1.6], squeeze=False)
    for row, unit, place in zip(axes, maps, PAPER_UNITS, strict=False):
        show_unit(row[0], unit, held_out)
        row[0].set_ylabel(f"layer {place[0]},\nchannel {place[1]}")
        draw_curves(row[1], unit, held_out)
        row[1].set_ylabel("mean activation")
    axes[-1, 1].set_xlabel("x or y (pixels)")
    plotting.legend_above(axes[0, 1])
    figure.suptitle("the paper's two units, likewise, and their tuning curves", fontsize=8)
    plotting.panel_label(axes[0, 0], "f")


def draw_bumps(studies):
    """Figure 7: (a) all stripes, as training shows them. (b) At held-out points (circles), what
    the seeds draw that saw so many bumps, each image from its lowest value to its largest.
    (c) Mean squared error over the corner to the true bump and to the plus, the sum of its two
    stripes, each over a blank image's error to it (dotted: as large, and the quarter that C10 asks
    for). (d) How often the brightest pixel, of a bump or of a plus, is the requested one, and
    within one pixel of it. Means, geometric ones of errors, 95% intervals, and seeds as dots."""
    columns = by_bumps(studies)
    seeds = columns[0].results.seeds[:SEEDS]
    rows = max(len(columns), 3)
    figure = plotting.new_figure(9.05, 1.3 + 0.9 * rows)
    top, below = figure.subfigures(2, 1, height_ratios=[1.25, 0.95 * rows])
    _draw_all_stripes(top.subplots(1, 2), columns[0])
    drawn, numbers = below.subfigures(1, 2, width_ratios=[6.2, 2.6])
    axes = drawn.subplots(len(columns), len(seeds) * len(POINTS))
    for row, study in zip(axes, columns, strict=True):
        _draw_seeds(row, study, len(seeds))
        row[0].set_ylabel(name_of(study).replace(" ", "\n"))
    for index, seed in enumerate(seeds):
        axes[0, len(POINTS) * index + len(POINTS) // 2].set_title(f"seed {seed}", pad=3)
    plotting.panel_label(axes[0, 0], "b")
    errors, accuracy = numbers.subplots(2, 1, sharex=True)
    _draw_errors(errors, columns)
    _draw_accuracy(accuracy, columns)
    return figure


def _draw_all_stripes(axes, study):
    true = _true_stripes(study.config.task)
    names = ("vertical stripes, x", "horizontal stripes, y")
    for axis, images, name in zip(axes, np.split(true, 2), names, strict=True):
        colors = plotting.plt.get_cmap("gray_r").with_extremes(bad="0.7")
        shown = plotting.mosaic(images, columns=-(-len(images) // 2))
        axis.imshow(
            shown, origin="lower", cmap=colors, vmin=0, vmax=true.max(), interpolation="nearest"
        )
        axis.set(xticks=[], yticks=[], title=f"{name} = 0 to {len(images) - 1}")
    plotting.panel_label(axes[0], "a")


def _draw_seeds(axes, study, seeds: int):
    found = study.results
    cells = plotting.held_out_cells(found, POINTS)
    wanted = [(seed, cell) for seed in range(seeds) for cell in cells]
    for axis, (seed, cell) in zip(axes, wanted, strict=True):
        image = found.predictions[seed, cell]
        _show_range(axis, image, found.factors[cell], found.amplitude)


def _draw_errors(axis, columns):
    held_out = columns[0].results.held_out
    wanted = {"bump": columns[0].results.truths[held_out], "plus": _plus(columns[0])}
    for name, images in wanted.items():
        blank = np.square(images).mean()
        values = [
            np.square(study.results.predictions[:, held_out] - images).mean(axis=(1, 2, 3)) / blank
            for study in columns
        ]
        label, mean = f"to the {name}", geometric_mean_with_interval
        _show_by_bumps(axis, columns, values, ERROR_COLORS[name], label, mean)
    for level in (1, remedies.QUARTER):
        axis.axhline(level, color="0.5", linewidth=0.8, linestyle=":", zorder=0)
    axis.set(yscale="log", ylabel="OOD MSE /\nblank image's")
    plotting.legend_above(axis)
    plotting.panel_label(axis, "c")


def _draw_accuracy(axis, columns):
    scores = {"position_accuracy": ("0.55", "within 1 pixel"), "exact_accuracy": ("black", "exact")}
    for name, (color, label) in scores.items():
        found = [study.results for study in columns]
        values = [evaluation.mean_score(one, name, one.held_out) for one in found]
        _show_by_bumps(axis, columns, values, color, label)
    axis.set(xlabel="bumps beside the stripes", ylabel="OOD accuracy", ylim=(0, 1.05))
    plotting.legend_above(axis)
    plotting.panel_label(axis, "d")


def _show_by_bumps(axis, columns, values_SxT, color, label, mean=mean_with_interval):
    plotting.show_numbers(axis, range(len(columns)), values_SxT, color, label, mean)
    axis.set_xticks(range(len(columns)), [study.role.bumps for study in columns])


def draw_additive(studies):
    """What stripes alone teach (claim C9), by how they were shown: the polarity of the images and
    the code of a missing factor. (a) Weights of both stripes and of their product, the bump, fitted
    to held-out images beside a level; (b) R2 of f(x) + f(y) - f() on them, all three the network's
    own (-1 stands for what is below), and accuracy within a pixel. Means over seeds with 95%
    intervals; grey dots are seeds."""
    figure = plotting.new_figure(7.4, 2.6)
    weights, scores = figure.subplots(1, 2)
    for row, study in enumerate(studies):
        stripes, found = stripes_of(study.run), study.results
        additive, product, _ = remedies.weights(found, stripes.true)
        own_sum_r2 = remedies.own_sum_r2(found, stripes)
        shown = (weights, additive, "plus", -0.12), (weights, product, "bump", 0.12)
        for axis, values, name, apart in shown:
            plotting.show_number(axis, row + apart, values, fmt="o", color=ERROR_COLORS[name])
        plotting.show_number(scores, row - 0.12, np.maximum(own_sum_r2, -1), fmt="o", color="black")
        within = evaluation.mean_score(found, "position_accuracy", found.held_out)
        plotting.show_number(scores, row + 0.12, within, fmt="s", color="0.55")
    names = [ALONE_TITLES[study.role.control].replace(", ", ",\n") for study in studies]
    for axis, labels, letter in (
        (weights, {"both stripes": ERROR_COLORS["plus"], "product": ERROR_COLORS["bump"]}, "a"),
        (scores, {"R$^2$ of its own sum": "black", "right within a pixel": "0.55"}, "b"),
    ):
        for label, color in labels.items():
            axis.plot([], [], "o", color=color, markersize=4, label=label)
        axis.axhline(0, color="0.85", linewidth=0.8, zorder=0)
        axis.set_xticks(range(len(names)), names, fontsize=6)
        axis.set_xlim(-0.6, max(len(names), 2) - 0.4)
        plotting.legend_above(axis)
        plotting.panel_label(axis, letter)
    weights.set_ylabel("weight in held-out images")
    scores.set_ylim(-1.1, 1.1)
    return figure
