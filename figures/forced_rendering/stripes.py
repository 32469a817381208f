"""Figures 4, 7 and 15: decoders that saw every stripe of one factor and a few bumps."""

from operator import itemgetter

import jax
import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import tuning
from compgen_jax.papers.forced_rendering import remedies, signals
from compgen_jax.runs import measure, results
from compgen_jax.tasks import bump
from compgen_jax.training import loop

from .. import plotting
from ..figure import figure
from . import draw_scaling, factor_maps
from .lookup import median_images, median_maps, median_seed

LAYERS = 4  # of Figure 15
QUANTILES = 0, 0.5, 1  # of its units of a layer, which are by rising interaction
SHARES = "one_factor", "interaction", "product"
FEW = ("stripes_30_bumps", "stripes_50_bumps")  # the decoder that Figure 4 looks into, by scale
# of the corner's width and height, none on the border
POINTS = ((0.2, 0.2), (0.8, 0.4), (0.6, 0.8))
STRONG = 0.1  # of a layer's largest variance: units that Figure 4f may show
UNIT_COLUMNS = 4  # of the panel of Figure 4e
SCORES = {
    "exact_accuracy": (plotting.GREEN, "brightest pixel right"),
    "rendered": ("black", "rendered"),
}


def _by_bumps(runs: dict) -> dict:
    """{'30 bumps': run} of those that saw stripes, by how many bumps they saw beside them."""
    by_count = {run.config.task.support.samples: run for run in runs.values()}
    names = {count: f"{count} bumps" for count in sorted(by_count)} | {0: "stripes only"}
    return {name: by_count[count] for count, name in names.items() if count in by_count}


def _tuning(units_UxNxN):
    return tuning.tuning(units_UxNxN.reshape(len(units_UxNxN), -1).T, units_UxNxN.shape[:0:-1])


def _show_unit(axis, map_NxN, held_out):
    """A unit's map on its own scale; below, the shares of its variance that x alone and y alone
    explain."""
    factor_maps.show_cells(axis, map_NxN, held_out, plotting.OOD_COLOR)
    x, y = _tuning(map_NxN[None]).main[:, 0]
    text = "dead" if np.isnan(x) else f"x {x:.2f}, y {y:.2f}"
    axis.set_xlabel(text, fontsize=plotting.SMALL, labelpad=2)


@figure("fig15", runs=("corner_bumps", "stripes_*_bumps"))
def draw_tuning(runs):
    networks = _by_bumps({name: run for name, run in runs.items() if name != "corner_bumps"})
    (few, first), *_, (many, last) = networks.items()
    picture = plotting.new_figure(plotting.WIDTH, 7)
    maps, shares = picture.subfigures(2, 1, height_ratios=[4.6, 2.3])
    for block, letter, name in zip(maps.subfigures(1, 2), "ab", (few, many), strict=True):
        run, of_units = networks[name], median_maps(networks[name])
        axes = block.subplots(LAYERS, len(QUANTILES))
        hidden = np.linspace(1, len(run.layer_names) - 2, LAYERS).round().astype(int)
        for row, layer in zip(axes, hidden, strict=True):
            units = of_units[f"units.{run.layer_names[layer]}"]
            row[0].set_ylabel(f"layer {layer}")
            for axis, quantile in zip(row, QUANTILES, strict=True):
                if len(units):
                    unit = units[round(quantile * (len(units) - 1))]
                    _show_unit(axis, unit, run.maps["held_out"])
        plotting.panel(axes[0, 0], letter, f"Units by rising interaction, {name}")
    axes = shares.subplots(1, len(SHARES), sharey=True)
    for axis, metric in zip(axes, SHARES, strict=True):
        for beside, name, run, color in (
            (-0.2, few, first, plotting.GREY),
            (0, f"stripes and {many}", last, plotting.GREEN),
            (0.2, "bumps alone", runs["corner_bumps"], plotting.VIOLET),
        ):
            values = run.layers(f"tuning.{metric}")
            plotting.draw_line(axis, values, values.shape[1] - 1 + beside, color, "-", name)
        plotting.name_layers(axis, values.shape[1])
    plotting.set_panels("fig15", "cde", axes)
    plotting.legend_below(shares)
    return picture


def _true_stripes(run):
    """(2N, N, N): N vertical stripes, x = 0 to N - 1, and then N horizontal ones; and (B, N, N) the
    plus of each cell, the sum of its two stripes."""
    true = results.truths_at(run.config.task.make(), bump.stripe_points(run.config.task.grid))
    return true, sum(signals.stripes_at(true, np.ones(len(run.cells.truths), bool)))


@figure("fig4", runs=("stripes_*_bumps",), also=("data_scaling",))
def draw_stripes(runs):
    run, sweep = next(runs[name] for name in FEW if name in runs), runs.get("data_scaling")
    networks = {name: network for name, network in runs.items() if network is not sweep}
    held_out, names, (true, plus) = run.maps["held_out"], run.layer_names, _true_stripes(run)
    picture = plotting.new_figure(plotting.WIDTH, 7.4)
    top, strip, bottom = picture.subfigures(3, 1, height_ratios=[3.6, 1.25, 2.5])
    training, images = top.subfigures(1, 2, width_ratios=[1.6, 4.6])
    _draw_training(training, run, true)
    _draw_outputs(images, _by_bumps(networks), {"asked": run.cells.truths, "plus": plus})
    row = strip.subplots(1, len(names))
    factor_maps.volume_bar(
        strip, factor_maps.show_volumes([row], [run]), ax=row, pad=0.01, aspect=10
    )
    widths = [2.95, 1, 2.8] if sweep else [3, 1.1]
    first_layer, pair, *others = bottom.subfigures(1, len(widths), width_ratios=widths)
    for needed in others:
        axis = needed.subplots()
        draw_scaling.draw_reading(axis, "c", sweep)
        keys = needed.add_axes((0, 0, 0, 0), visible=False)
        draw_scaling.name_marks(keys)
        plotting.legend_below(needed, keys, ncols=2)
    units = median_maps(run)[f"units.{names[1]}"]
    axes = first_layer.subplots(-(-measure.PANEL // UNIT_COLUMNS), UNIT_COLUMNS).ravel()
    for axis in axes[len(units) :]:
        axis.set_axis_off()
    for axis, unit in zip(axes, units, strict=False):
        _show_unit(axis, unit, held_out)
    images = pair.subplots(2, 1)
    grid = measure.recorder(run, "grid")
    network = jax.tree.map(itemgetter(median_seed(run)), run.params)
    likest = (1, "plus"), (len(names) - 2, "bump")
    for image, (layer, name) in zip(images, likest, strict=True):
        features = grid.features(network, grid.inputs)[names[layer]]
        units = np.moveaxis(grids.over_grid(np.asarray(features), grid.sizes), -1, 0)
        explained = _tuning(units)
        likeness = explained.main.min(axis=0) if name == "plus" else explained.product
        varies = explained.variance > STRONG * explained.variance.max()
        unit = units[np.nanargmax(np.where(varies, likeness, np.nan))]
        _show_unit(image, unit, held_out)
        image.set_ylabel(f"layer {layer}, most\nlike a {name}", fontsize=plotting.SMALL)
    plotting.set_panels("fig4", "def", (row[0], axes[0], images[0]))
    return picture


def _draw_training(picture, run, true):
    axes = picture.subplot_mosaic([["x", "y"], ["all", "all"]], height_ratios=[1, 1.7])
    task, axis, held_out = run.config.task, axes["all"], run.maps["held_out"]
    middle = task.grid // 2
    for name, stripe in (("x", true[middle]), ("y", true[task.grid + middle])):
        plotting.show_signal(axes[name], stripe, stripe.max())
        axes[name].set_title(f"{name} = {middle}", pad=3)
    key = loop.stream(jax.random.key(run.config.training.seeds[0]), "data")
    points = np.asarray(bump.training_points(key, task))
    axis.plot(*points[~np.isnan(points).any(axis=1)].T, ".", color=plotting.ID_COLOR, markersize=4)
    extent, title = (-0.5, task.grid - 0.5), f"and {task.support.samples} bumps"
    axis.set(aspect="equal", xlim=extent, ylim=extent, title=title)
    ticks = [0, task.grid - 1]
    axis.set(xticks=ticks, yticks=ticks, xlabel="x (pixels)", ylabel="y (pixels)")
    plotting.outline(axis, held_out)
    factor_maps.name_region(axis, held_out, "held out\n(OOD)")
    plotting.panel(axes["x"], "a", "All stripes", up=16)


def _draw_outputs(picture, networks: dict, others: dict):
    """Images at held-out cells, of every network's median seed below others."""
    cells = next(iter(networks.values())).cells
    rows = {name.replace(" ", "\n"): median_images(run) for name, run in networks.items()}
    indices = plotting.held_out_cells(cells, POINTS)
    axes = plotting.show_rows(picture, others | rows, cells, indices, _show_range)
    plotting.panel(axes[0, 0], "b", "Held-out images")


def _show_range(axis, image, factors, amplitude, color):
    """An image from its lowest value, white, to its highest, black, as a plus would not show above
    a low background; both are printed below in units of the amplitude."""
    low, high = float(np.min(image)), float(np.max(image))
    plotting.show_signal(axis, image, high, factors, color, lowest=low)
    text = f"{low / amplitude:.1f} to {high / amplitude:.1f}"
    text = text.replace("-0.0", "0.0").replace("-", plotting.MINUS)
    axis.set_xlabel(text, fontsize=plotting.SMALL, labelpad=2)


@figure("fig7", runs=("stripes_*_bumps",))
def draw_bumps(runs):
    networks = _by_bumps(runs)
    run = next(iter(runs.values()))
    ood, (true, plus) = run.cells.held_out, _true_stripes(run)
    picture = plotting.new_figure(plotting.WIDTH, 1.4 + 0.95 * max(len(networks), 3))
    training, images, numbers = picture.subfigures(1, 3, width_ratios=[1.1, 2.6, 3.1])
    stripes = training.subplots()
    plotting.show_signal(stripes, factor_maps.mosaic(true, 4, gap=true.max() / 3), true.max())
    _draw_outputs(images, networks, {})
    error, accuracy = numbers.subplots(2, 1, sharex=True)
    positions = range(len(networks))
    for name, color, targets in (
        ("bump", plotting.VIOLET, run.cells.truths[ood]),
        ("plus", plotting.GOLD, plus[ood]),
    ):
        errors = [
            np.square(run.cells.predictions[:, ood] - targets).mean(axis=(1, 2, 3))
            / np.square(targets).mean()
            for run in networks.values()
        ]
        style = color, f"(c) to the {name}", plotting.geometric_mean
        plotting.show_numbers(error, positions, errors, *style, dots=color)
    error.axhline(1, **plotting.DOTTED, label="(c) a blank image's")
    plotting.label_seeds(error)
    for name, (color, label) in SCORES.items():
        shares = [plotting.ood_shares(run.late.cells, name) for run in networks.values()]
        style = color, label, plotting.mean_share
        plotting.show_numbers(accuracy, positions, shares, *style, dots=color)
    accuracy.set_xticks(positions, [name.replace(" ", "\n") for name in networks])
    accuracy.axhline(remedies.ENOUGH, **plotting.DOTTED, label="(d) 90%")
    plotting.set_panels("fig7", "acd", (stripes, error, accuracy))
    plotting.legend_below(numbers, ncols=2)
    return picture
