"""Figures 4, 7 and 15: decoders that saw every stripe of one factor and a few bumps."""

import jax
import numpy as np

from compgen_jax.metrics import tuning
from compgen_jax.papers.forced_rendering import remedies, signals
from compgen_jax.runs import recording, results
from compgen_jax.tasks import bump
from compgen_jax.training import loop

from .. import plotting
from ..figure import figure
from .draw_layers import draw_strip
from .lookup import bumps_of, by_bumps

LAYERS = 4  # of Figure 15, and its units of a layer's panel, which is by rising interaction
QUANTILES = {"middle": 0.5, "high": 1.0}
SHARES = {
    "one_factor": "One factor alone explains",
    "interaction": "x and y jointly explain",
    "product": "A product of x and y explains",
}
CURVES = {"x": plotting.VIOLET, "y": plotting.GREEN}
FEW = ("stripes_30_bumps", "stripes_50_bumps")  # the decoder that Figure 4 looks into, by scale
# of the corner's width and height, none on the border
POINTS = ((0.2, 0.2), (0.8, 0.4), (0.6, 0.8))
STRONG = 0.1  # of a layer's largest variance: units that Figure 4f may show
UNIT_COLUMNS = 4  # of the panel of Figure 4e
COLORS = {"bump": plotting.VIOLET, "plus": plotting.GOLD}
SCORES = {
    "exact_accuracy": (plotting.GREEN, "brightest pixel right"),
    "rendered": ("black", "rendered"),
}


def _name_of(run) -> str:
    return f"{bumps_of(run)} bumps" if bumps_of(run) else "stripes only"


def _show_unit(axis, map_NxN, held_out):
    """A unit's map on its own scale; below, the shares of its variance that x alone and y alone
    explain."""
    plotting.show_cells(axis, map_NxN, held_out, plotting.OOD_COLOR)
    x, y = tuning.tuning(map_NxN.reshape(-1, 1), map_NxN.shape[::-1]).main[:, 0]
    text = "dead" if np.isnan(x) else f"x {x:.2f}, y {y:.2f}"
    axis.set_xlabel(text, fontsize=plotting.SMALL, labelpad=2)


def _draw_curves(axis, map_NxN, held_out):
    """Mean over y as a function of x, and mean over x as a function of y."""
    curves = tuning.marginals(map_NxN[..., None])
    for (name, color), curve in zip(CURVES.items(), curves, strict=True):
        axis.plot(curve[:, 0], color=color, linewidth=1.2, label=f"against {name}")
    hidden = np.flatnonzero(held_out.any(axis=0))
    style = {"color": "0.93", "linewidth": 0, "zorder": 0, "label": "held-out rows or columns"}
    axis.axvspan(hidden[0] - 0.5, hidden[-1] + 0.5, **style)
    axis.set(xlim=(-0.5, len(map_NxN) - 0.5), xticks=[0, len(map_NxN) - 1])


@figure("fig15", runs=("corner_bumps", "stripes_*_bumps"))
def draw_tuning(runs):
    networks = by_bumps({name: run for name, run in runs.items() if name != "corner_bumps"})
    ends = networks[0], networks[-1]
    picture = plotting.new_figure(plotting.WIDTH, 7.2)
    maps, shares = picture.subfigures(2, 1, height_ratios=[4.9, 2.3])
    for side, run, letter in zip(maps.subfigures(1, 2), ends, "ab", strict=True):
        hidden, held_out = np.arange(1, len(run.layer_names) - 1), run.maps["held_out"]
        layers = hidden[np.linspace(0, len(hidden) - 1, LAYERS).round().astype(int)]
        axes = side.subplots(LAYERS, 2 * len(QUANTILES), width_ratios=[1, 1.2] * len(QUANTILES))
        for row, layer in zip(axes, layers, strict=True):
            units = run.maps[f"units.{run.layer_names[layer]}"]
            for pair, quantile in zip((row[:2], row[2:]), QUANTILES.values(), strict=True):
                if len(units):
                    unit = units[round(quantile * (len(units) - 1))]
                    _show_unit(pair[0], unit, held_out)
                    _draw_curves(pair[1], unit, held_out)
                pair[1].set_yticks([])
            row[0].set_ylabel(f"layer {layer}")
        for axis, name in zip(axes[0, ::2], QUANTILES, strict=True):
            axis.set_title(f"{name}\ninteraction", pad=3, fontsize=plotting.SMALL)
        for axis in axes[:-1, 1::2].flat:
            axis.tick_params(labelbottom=False)
        for axis in axes[-1, 1::2]:
            axis.set_xlabel("x or y (pixels)", fontsize=plotting.SMALL)
        title = f"Units with {_name_of(run)}, each on its own scale"
        plotting.panel(axes[0, 0], letter, title, up=26)
    plotting.legend_below(maps, *maps.subfigs[0].axes)
    axes = shares.subplots(1, len(SHARES), sharey=True)
    for axis, letter, (metric, title) in zip(axes, "cde", SHARES.items(), strict=True):
        for run, color, name in (
            (ends[0], plotting.GREY, _name_of(ends[0])),
            (ends[1], plotting.GREEN, f"stripes and {_name_of(ends[1])}"),
            (runs["corner_bumps"], plotting.VIOLET, "bumps alone"),
        ):
            values = run.layers(f"tuning.{metric}")
            plotting.draw_line(axis, values, values.shape[1] - 1, color, "-", name)
        plotting.name_layers(axis, values.shape[1])
        axis.set(xlabel="layer", ylim=(-0.02, 1.05))
        last = [run.layers(f"tuning.{metric}")[:, -2].mean() for run in ends]
        plotting.panel(axis, letter, title + " {:.2f}, with bumps {:.2f}".format(*last), wrap=32)
    axes[0].set_ylabel("share of a unit's variance")
    plotting.legend_below(shares)
    return picture


def _true_stripes(run):
    """(2N, N, N): N vertical stripes, x = 0 to N - 1, and then N horizontal ones; and (Q, N, N) the
    plus of each held-out cell, the sum of its two stripes."""
    true = results.truths_at(run.config.task.make(), bump.stripe_points(run.config.task.grid))
    return true, sum(signals.stripes_at(true, run.cells.held_out))


@figure("fig4", runs=("stripes_*_bumps",))
def draw_stripes(runs):
    run = next(runs[name] for name in FEW if name in runs)
    networks, held_out, names = by_bumps(runs), run.maps["held_out"], run.layer_names
    true, plus = _true_stripes(networks[0])
    picture = plotting.new_figure(plotting.WIDTH, 7.2)
    top, strip, bottom = picture.subfigures(3, 1, height_ratios=[3.4, 1.25, 2.5])
    training, drawn = top.subfigures(1, 2, width_ratios=[2.2, 4.6])
    _draw_training(training, run, true)
    _draw_held_out(drawn.subplots(len(POINTS), 2 + len(networks)), networks, plus)
    row = strip.subplots(1, len(names))
    image = draw_strip(row, run, "d", _name_of(run))
    plotting.volume_bar(strip, image, ax=row, pad=0.01, aspect=10, shrink=0.9)
    panel, chosen = bottom.subfigures(1, 2, width_ratios=[1.15, 1])
    tuning_of = lambda units: tuning.tuning(units.reshape(len(units), -1).T, held_out.shape[::-1])
    units = run.maps[f"units.{names[1]}"]
    axes = panel.subplots(-(-recording.PANEL // UNIT_COLUMNS), UNIT_COLUMNS).ravel()
    for axis in axes[len(units) :]:
        axis.set_axis_off()
    for axis, unit in zip(axes, units, strict=False):
        _show_unit(axis, unit, held_out)
    apart = plotting.span(tuning_of(units).main.sum(axis=0))
    plotting.panel(axes[0], "e", f"In layer 1, x alone and y alone explain {apart} of a unit")
    axes = chosen.subplots(2, 2, sharex="col")
    for row, number, name in zip(axes, (1, len(names) - 2), ("plus", "bump"), strict=True):
        units = run.unit_maps(names[number])
        shares = tuning_of(units)
        of_unit = shares.main.min(axis=0) if name == "plus" else shares.product
        varies = shares.variance > STRONG * shares.variance.max()
        unit = units[np.nanargmax(np.where(varies, of_unit, np.nan))]
        _show_unit(row[0], unit, held_out)
        row[0].set_ylabel(f"most like\na {name}", fontsize=plotting.SMALL)
        _draw_curves(row[1], unit, held_out)
        row[1].set_ylabel("activation")
    axes[-1, 1].set_xlabel("x or y (pixels)")
    plotting.panel(axes[0, 0], "f", f"A unit of layer 1 and one of layer {number}")
    plotting.legend_below(chosen, axes[0, 1], ncols=2)
    return picture


def _draw_training(picture, run, true):
    axes = picture.subplot_mosaic([["x", "y"], ["all", "all"]], height_ratios=[1, 1.7])
    task, held_out, axis = run.config.task, run.maps["held_out"], axes["all"]
    middle = task.grid // 2
    for name, stripe in (("x", true[middle]), ("y", true[task.grid + middle])):
        plotting.show_signal(axes[name], stripe, stripe.max())
        axes[name].set_title(f"{name} = {middle}", pad=3)
    key = loop.stream(jax.random.key(run.config.training.seeds[0]), "data")
    points = np.asarray(bump.training_points(key, task))
    points = points[~np.isnan(points).any(axis=1)]
    axis.plot(*points.T, ".", color=plotting.ID_COLOR, markersize=4)
    extent = (-0.5, task.grid - 0.5)
    axis.set(aspect="equal", xlim=extent, ylim=extent, title=f"and {_name_of(run)}")
    plotting.name_pixels(axis, task.grid - 1)
    plotting.outline(axis, held_out)
    plotting.name_region(axis, held_out, "held out\n(OOD)")
    plotting.panel(axes["x"], "a", "Shown: all stripes, such as", up=16)


def _draw_held_out(axes, networks, plus):
    """A row for each point: what is asked, the plus, and what every network's first seed draws."""
    cells, titles = networks[0].cells, ["asked", "plus", *map(_name_of, networks)]
    order = np.cumsum(cells.held_out) - 1  # of a cell among the held-out ones
    for row, index in zip(axes, plotting.held_out_cells(cells, POINTS), strict=True):
        drawn = [run.cells.predictions[0, index] for run in networks]
        for axis, image in zip(row, [cells.truths[index], plus[order[index]], *drawn], strict=True):
            _show_range(axis, image, cells, index)
        row[0].set_ylabel("({:.0f}, {:.0f})".format(*cells.factors[index]), labelpad=2)
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title, pad=3, fontsize=plotting.SMALL)
    shares = plotting.span([plotting.ood_share(run.late.cells) for run in networks])
    title = f"{shares} are rendered; images are scaled to the ends below them"
    plotting.panel(axes[0, 0], "b", title, up=16)


def _show_range(axis, image, cells, index):
    """An image of a held-out cell from its lowest value, white, to its highest, black; both are
    printed below in units of the amplitude. Stripes do not teach the level of the background, and
    above a low one the arms of a plus would not show."""
    low, high = float(np.min(image)), float(np.max(image))
    plotting.show_signal(axis, image, high, cells.factors[index], plotting.OOD_COLOR, lowest=low)
    text = " to ".join(f"{end / cells.amplitude:.1f}" for end in (low, high))
    text = text.replace("-0.0", "0.0").replace("-", plotting.MINUS)
    axis.set_xlabel(text, fontsize=plotting.SMALL, labelpad=2)


@figure("fig7", runs=("stripes_*_bumps",))
def draw_bumps(runs):
    networks = by_bumps(runs)
    cells, (true, plus) = networks[0].cells, _true_stripes(networks[0])
    rows = max(len(networks), 3)
    picture = plotting.new_figure(plotting.WIDTH, 1.2 + 0.95 * rows)
    top, below = picture.subfigures(2, 1, height_ratios=[1.1, 1.0 * rows])
    stripes = top.subplots(1, 2)
    colors = plotting.plt.get_cmap("gray_r").with_extremes(bad="0.7")
    style = {"cmap": colors, "interpolation": "nearest", "vmin": 0, "vmax": true.max()}
    for axis, images, name in zip(stripes, np.split(true, 2), ("Vertical stripes, x",
                                  "Horizontal stripes, y"), strict=True):  # fmt: skip
        axis.imshow(plotting.mosaic(images, -(-len(images) // 2)), origin="lower", **style)
        plotting.frame(axis)
        axis.set_title(f"{name} = 0 to {len(images) - 1}")
    drawn, numbers = below.subfigures(1, 2, width_ratios=[2.8, 3.9])
    axes = drawn.subplots(len(networks), len(POINTS))
    for row, run in zip(axes, networks, strict=True):
        for axis, index in zip(row, plotting.held_out_cells(run.cells, POINTS), strict=True):
            _show_range(axis, run.cells.predictions[0, index], run.cells, index)
        row[0].set_ylabel(_name_of(run).replace(" ", "\n"))
    error, accuracy = numbers.subplots(2, 1, sharex=True)
    places, means = range(len(networks)), {}
    for name, images in (("bump", cells.truths[cells.held_out]), ("plus", plus)):
        values = [np.square(run.cells.predictions[:, cells.held_out] - images).mean(axis=(1, 2, 3))
                  / np.square(images).mean() for run in networks]  # fmt: skip
        style = COLORS[name], f"to the {name}", plotting.geometric_mean
        plotting.show_numbers(error, places, values, *style, dots=COLORS[name])
        means[name] = [plotting.geometric_mean(each)["value"] for each in values]
    error.axhline(1, **plotting.DOTTED, label="(c) a blank image's")
    plotting.label_seeds(error)
    error.set(ylabel="relative MSE OOD")
    plotting.log_scale(error, "y")
    for name, style in SCORES.items():
        values = [plotting.ood_shares(run.late.cells, name) for run in networks]
        plotting.show_numbers(accuracy, places, values, *style, plotting.mean_share, dots=style[0])
    labels = [f"{bumps_of(run)}\n({len(run.seeds)} networks)" for run in networks]
    accuracy.set_xticks(places, labels)
    accuracy.axhline(remedies.ENOUGH, **plotting.DOTTED, label="(d) 90%")
    accuracy.set(xlabel="bumps beside the stripes", ylabel="share OOD", ylim=(-0.05, 1.05))
    nearer = [str(bumps_of(run)) for run, bump, plus in zip(networks, *means.values(), strict=True)
              if bump < plus]  # fmt: skip
    with_bumps = f"With {' and '.join(nearer)} bumps, images" if nearer else "No images"
    plotting.panel(error, "c", f"{with_bumps} are nearer to the bump", wrap=60)
    share = plotting.percent(values[-1].mean())
    title = f"With {bumps_of(networks[-1])} bumps, {share} are rendered"
    plotting.panel(accuracy, "d", title, wrap=60)
    plotting.legend_below(numbers, ncols=3)
    plotting.panel(stripes[0], "a")
    plotting.panel(axes[0, 0], "b", "Scaled to the ends below", up=6)
    return picture
