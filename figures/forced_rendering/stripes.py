"""Figures 4 and 7: decoders that saw every stripe of one factor and a few bumps."""

import functools

import jax
import numpy as np

from compgen_jax.metrics import evaluation, tuning
from compgen_jax.papers.forced_rendering import remedies, signals
from compgen_jax.runs import recording, results
from compgen_jax.tasks import bump
from compgen_jax.training import loop

from .. import plotting
from ..figure import figure
from .layers import draw_strip
from .lookup import bumps_of, by_bumps
from .units import draw_curves, name_of, show_unit

FEW = ("stripes_30_bumps", "stripes_50_bumps")  # the decoder that Figure 4 looks into, by scale
# how stripes alone are shown: the polarity of the images, the code of a missing factor
SHOWN_ALONE = {
    "stripes_0_bumps": "inverted,\ncode zero",
    "stripes_0_bumps_upright": "upright,\ncode zero",
    "stripes_0_bumps_off_grid": "inverted,\ncode off the grid",
    "stripes_0_bumps_upright_off_grid": "upright,\ncode off the grid",
    "stripes_0_bumps_off_canvas": "inverted, label\noff the canvas",
}
# of the corner's width and height, none on the border
POINTS = ((0.2, 0.2), (0.8, 0.4), (0.6, 0.8))
SEEDS = 2  # whose images Figure 7 shows
STRONG = 0.1  # of a layer's largest variance: units that Figure 4f may show
UNIT_COLUMNS = 4  # of the panel of Figure 4e
COLORS = {"bump": plotting.CODE_COLORS["bump"], "plus": plotting.CODE_COLORS["ramp"]}


@functools.cache
def _true_stripes(task: bump.Bump):
    """(2N, N, N): N vertical stripes, x = 0 to N - 1, and then N horizontal ones."""
    return results.truths_at(task.make(), bump.stripe_points(task.grid))


def _plus(run):
    """(Q, N, N) the sum of each held-out cell's two true stripes."""
    return sum(signals.stripes_at(_true_stripes(run.config.task), run.cells.held_out))


@figure("fig4", runs=("stripes_*_bumps",))
def draw_stripes(runs):
    """Figure 4, with the paper's letters; its (c), how much data is needed, is figure fig4c. (a)
    What training shows: every vertical and horizontal stripe (one of each here), and a few bumps
    outside the held-out corner (dots: those of the first seed). (b) At held-out points (circles):
    the true bump, the sum of its two stripes, and what first seeds draw that saw so many bumps.
    Each image runs from its lowest value, white, to its largest, black; both are printed below. (d)
    For the decoder that saw a few bumps: log10 of every layer's volume element over the mean of its
    ID cells, mean over seeds. (e) Its first seed: units of the first hidden layer by rising
    interaction of x and y, each on its own scale; below, the shares of a unit's variance over cells
    that x alone and y alone explain (1 and 0 for a stripe, 1/2 each for a plus). (f) The
    same for two units that are chosen by their shares, among those with a tenth of the largest
    variance: of the first hidden layer the one with the largest lesser of both shares, as in a
    plus, and of the last hidden layer the one of the largest share by a product of x and y, as in
    a bump; with tuning curves: mean over y against x, and
    mean over x against y; the corner's columns and rows are shaded."""
    run = next(runs[name] for name in FEW if name in runs)
    networks = by_bumps(runs)
    picture = plotting.new_figure(plotting.WIDTH, 7.2)
    top, strip, bottom = picture.subfigures(3, 1, height_ratios=[3.4, 1.25, 2.5])
    shown, asked = top.subfigures(1, 2, width_ratios=[2.2, 4.6])
    _draw_training(shown, run)
    _draw_held_out(asked.subplots(len(POINTS), 2 + len(networks)), networks)
    row = strip.subplots(1, len(run.layer_names))
    image = draw_strip(row, run, "d", name_of(run))
    plotting.volume_bar(strip, image, ax=row, pad=0.01, aspect=10, shrink=0.9)
    panel, chosen = bottom.subfigures(1, 2, width_ratios=[1.25, 1])
    _draw_panel(panel, run)
    _draw_chosen_units(chosen, run)
    return picture


def _draw_training(picture, run):
    axes = picture.subplot_mosaic([["x", "y"], ["all", "all"]], height_ratios=[1, 1.7])
    task, true = run.config.task, _true_stripes(run.config.task)
    middle = task.grid // 2
    for name, stripe in (("x", true[middle]), ("y", true[task.grid + middle])):
        plotting.show_signal(axes[name], stripe, stripe.max())
        axes[name].set_title(f"{name} = {middle}", pad=3)
    key = loop.stream(jax.random.key(run.config.training.seeds[0]), "data")
    points = np.asarray(bump.training_points(key, task))
    points = points[~np.isnan(points).any(axis=1)]
    axis, held_out = axes["all"], run.maps["held_out"]
    axis.plot(*points.T, ".", color=plotting.ID_COLOR, markersize=4)
    extent = (-0.5, task.grid - 0.5)
    axis.set(aspect="equal", xlim=extent, ylim=extent, title=f"and {name_of(run)}")
    plotting.name_pixels(axis, task.grid - 1)
    plotting.outline(axis, held_out)
    centre = np.argwhere(held_out).mean(axis=0)[::-1]
    axis.text(*centre, "held out\n(OOD)", ha="center", va="center", color=plotting.OOD_COLOR)
    plotting.panel(axes["x"], "a", "all stripes, such as", up=16)


def _draw_held_out(axes, networks):
    """A row for each point: what is asked, the plus, and what every network's first seed draws."""
    cells, plus = networks[0].cells, _plus(networks[0])
    order = np.cumsum(cells.held_out) - 1  # of a cell among the held-out ones
    for row, index in zip(axes, plotting.held_out_cells(cells, POINTS), strict=True):
        drawn = [run.cells.predictions[0, index] for run in networks]
        for axis, image in zip(row, [cells.truths[index], plus[order[index]], *drawn], strict=True):
            _show_range(axis, image, cells, index)
        row[0].set_ylabel("({:.0f}, {:.0f})".format(*cells.factors[index]), labelpad=2)
    titles = ["asked", "plus", *(name_of(run) for run in networks)]
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title, pad=3, fontsize=plotting.SMALL)
    rendered = [evaluation.mean_score(run.cells, "rendered", run.cells.held_out).mean()
                for run in networks]  # fmt: skip
    title = f"rendered OOD: {', '.join(map(plotting.percent, rendered))}"
    plotting.panel(axes[0, 0], "b", title, up=16)


def _show_range(axis, image, cells, index):
    """An image of a held-out cell from its lowest value, white, to its highest, black; both are
    printed below in units of the amplitude. Stripes do not teach the level of the background, and
    above a low one the arms of a plus would not show."""
    low, high = float(np.min(image)), float(np.max(image))
    plotting.show_signal(axis, image, high, cells.factors[index], plotting.OOD_COLOR, lowest=low)
    ends = (f"{end / cells.amplitude:.1f}".replace("-0.0", "0.0") for end in (low, high))
    text = " to ".join(ends).replace("-", plotting.MINUS)
    axis.set_xlabel(text, fontsize=plotting.SMALL, labelpad=2)


def _draw_panel(picture, run):
    units, held_out = run.maps[f"units.{run.layer_names[1]}"], run.maps["held_out"]
    axes = picture.subplots(-(-recording.PANEL // UNIT_COLUMNS), UNIT_COLUMNS).ravel()
    for axis in axes[len(units) :]:
        axis.set_axis_off()
    for axis, unit in zip(axes, units, strict=False):
        show_unit(axis, unit, held_out)
    main = tuning.tuning(units.reshape(len(units), -1).T, held_out.shape[::-1]).main.sum(axis=0)
    title = f"layer 1: x and y apart explain {plotting.span(main)} of a unit"
    plotting.panel(axes[0], "e", title)


def _draw_chosen_units(picture, run):
    held_out, names = run.maps["held_out"], run.layer_names
    axes = picture.subplots(2, 2, width_ratios=[1, 1.4])
    for row, number, name in zip(axes, (1, len(names) - 2), ("plus", "product"), strict=True):
        units = run.unit_maps(names[number])
        shares = tuning.tuning(units.reshape(len(units), -1).T, held_out.shape[::-1])
        of_unit = shares.main.min(axis=0) if name == "plus" else shares.product
        varies = shares.variance > STRONG * shares.variance.max()
        unit = units[np.nanargmax(np.where(varies, of_unit, np.nan))]
        show_unit(row[0], unit, held_out)
        row[0].set_ylabel(f"layer {number}:\n{name}-like", fontsize=plotting.SMALL)
        draw_curves(row[1], unit, held_out)
        row[1].set_ylabel("activation")
        row[1].set_xlabel("x or y (pixels)")
    plotting.panel(axes[0, 0], "f", "chosen by tuning")
    plotting.legend_below(picture, axes[0, 1], ncols=2)


@figure("fig7", runs=("stripes_*_bumps",))
def draw_bumps(runs):
    """Figure 7. (a) All stripes, as training shows them. (b) At held-out points (circles), what
    two seeds draw that saw so many bumps beside the stripes. Each image runs from its lowest
    value, white, to its largest, black; both are printed below. (c) Error over the held-out corner
    to the true bump and to the plus, the sum of its two stripes, each over a blank image's error to
    the same; dotted, 1. (d) The share of held-out images that are rendered, and of those whose
    brightest pixel is the requested one; dotted, the share that claim C10 asks for. Means
    (geometric for errors) with 95% intervals; grey dots are seeds."""
    networks = by_bumps(runs)
    seeds = networks[0].cells.seeds[:SEEDS]
    rows = max(len(networks), 3)
    picture = plotting.new_figure(plotting.WIDTH, 1.2 + 0.95 * rows)
    top, below = picture.subfigures(2, 1, height_ratios=[1.1, 1.0 * rows])
    stripes = top.subplots(1, 2)
    _draw_all_stripes(stripes, networks[0])
    drawn, numbers = below.subfigures(1, 2, width_ratios=[4.6, 2.2])
    axes = drawn.subplots(len(networks), len(seeds) * len(POINTS))
    for row, run in zip(axes, networks, strict=True):
        indices = plotting.held_out_cells(run.cells, POINTS) * len(seeds)
        for place, (axis, index) in enumerate(zip(row, indices, strict=True)):
            _show_range(axis, run.cells.predictions[place // len(POINTS), index], run.cells, index)
        row[0].set_ylabel(name_of(run).replace(" ", "\n"))
    for index, seed in enumerate(seeds):
        axes[0, len(POINTS) * index + len(POINTS) // 2].set_title(f"seed {seed}", pad=3)
    error, accuracy = numbers.subplots(2, 1, sharex=True)
    titles = _draw_errors(error, networks), _draw_accuracy(accuracy, networks)
    for axis, letter, title in zip((error, accuracy), "cd", titles, strict=True):
        plotting.panel(axis, letter, title)
    plotting.legend_below(numbers, ncols=2)
    plotting.panel(stripes[0], "a")
    plotting.panel(axes[0, 0], "b")
    return picture


def _draw_all_stripes(axes, run):
    true = _true_stripes(run.config.task)
    names = ("vertical stripes, x", "horizontal stripes, y")
    for axis, images, name in zip(axes, np.split(true, 2), names, strict=True):
        colors = plotting.plt.get_cmap("gray_r").with_extremes(bad="0.7")
        shown = plotting.mosaic(images, columns=-(-len(images) // 2))
        limits = {"vmin": 0, "vmax": true.max()}
        axis.imshow(shown, origin="lower", cmap=colors, interpolation="nearest", **limits)
        axis.set(xticks=[], yticks=[], title=f"{name} = 0 to {len(images) - 1}")


def _draw_errors(axis, networks) -> str:
    """Returns the panel's title."""
    held_out = networks[0].cells.held_out
    means = []
    wanted = {"bump": networks[0].cells.truths[held_out], "plus": _plus(networks[0])}
    for name, images in wanted.items():
        blank = np.square(images).mean()
        values = [
            np.square(run.cells.predictions[:, held_out] - images).mean(axis=(1, 2, 3)) / blank
            for run in networks
        ]
        style = COLORS[name], f"to the {name}", plotting.geometric_mean
        plotting.show_numbers(axis, range(len(networks)), values, *style)
        means.append([plotting.geometric_mean(each)["value"] for each in values])
    ratios = np.divide(*means)  # to the bump, over to the plus
    axis.axhline(1, **plotting.DOTTED)
    plotting.label_seeds(axis)
    axis.set(ylabel="OOD MSE /\nblank image's")
    plotting.log_scale(axis, "y")
    bumps = list(map(bumps_of, networks))
    nearer = [str(count) for count, one in zip(bumps, ratios, strict=True) if one < 1]
    return f"nearer bump: {', '.join(nearer) or 'none'}"


def _draw_accuracy(axis, networks) -> str:
    """Returns the panel's title."""
    scores = {"exact_accuracy": ("0.55", "brightest pixel"), "rendered": ("black", "rendered")}
    for name, style in scores.items():
        values = [evaluation.mean_score(run.cells, name, run.cells.held_out) for run in networks]
        plotting.show_numbers(axis, range(len(networks)), values, *style)
    axis.set_xticks(range(len(networks)), [bumps_of(run) for run in networks])
    axis.axhline(remedies.ENOUGH, **plotting.DOTTED)
    axis.set(xlabel="bumps beside the stripes", ylabel="share OOD", ylim=(0, 1.05))
    shares = ", ".join(plotting.percent(each.mean()).removesuffix("%") for each in values)
    return f"rendered: {shares}%"


@figure("additive", runs=("stripes_0_bumps*",), scale="paper")
def draw_additive(runs):
    """What stripes alone teach (claim C9), by how they are shown: the polarity of the images, and
    the code of a missing factor. (a) Weights of the two stripes, of which the lesser is shown, and
    of their product, the bump, fitted to held-out images beside a constant level. (b) R² of
    f(x) + f(y) - f() on held-out images, where all three are the network's own outputs (-1 stands
    for what is below), and the share rendered. Means over seeds with 95% intervals; grey dots are
    seeds."""
    picture = plotting.new_figure(plotting.WIDTH, 3.2)
    weights, scores = picture.subplots(1, 2)
    lessers, sums = [], []
    for place, run in enumerate(runs.values()):
        stripes, cells = remedies.stripes_of(run), run.cells
        lesser, product, _ = remedies.weights(cells, stripes.true)
        sum_r2 = np.maximum(remedies.own_sum_r2(cells, stripes), -1)
        share = evaluation.mean_score(cells, "rendered", cells.held_out)
        plotting.show_number(weights, place - 0.12, lesser, fmt="o", color=COLORS["plus"])
        plotting.show_number(weights, place + 0.12, product, fmt="o", color=COLORS["bump"])
        plotting.show_number(scores, place - 0.12, sum_r2, fmt="o", color="black")
        plotting.show_number(scores, place + 0.12, share, fmt="s", color="0.55")
        lessers.append(lesser.mean())
        sums.append(sum_r2.mean())
    plotting.label_colors(weights, {"lesser stripe": COLORS["plus"], "product": COLORS["bump"]})
    labels = {"R² of its own sum": "black", "share rendered": "0.55"}
    plotting.label_colors(scores, labels)
    for axis in (weights, scores):
        axis.axhline(0, **plotting.FAINT)
        axis.set_xticks(range(len(runs)), [SHOWN_ALONE[name] for name in runs], rotation=40,
                        ha="right")  # fmt: skip
        axis.set_xlim(-0.6, max(len(runs), 2) - 0.4)
    plotting.label_seeds(weights)
    plotting.legend_below(picture)
    weights.set_ylabel("weight in held-out images")
    scores.set(ylim=(-1.1, 1.1), ylabel="R² or share OOD")
    two = "{:.2g}".format
    plotting.panel(weights, "a", f"the lesser stripe weighs {plotting.span(lessers, two)}")
    plotting.panel(scores, "b", f"own sums explain R² {plotting.span(sums, two)}")
    return picture
