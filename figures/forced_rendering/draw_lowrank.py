"""Figures 3 and 6: decoders of low-rank embeddings, with and without penalties (section 4.1)."""

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering import lowrank_claims

from .. import plotting
from ..figure import figure
from . import factor_maps
from .lookup import median_images, median_layers, median_seed

TITLES = {
    "lowrank_none": "no penalty",
    "lowrank_entropy": "entropy only",
    "lowrank_variance": "variance only",
    "lowrank_both": "both penalties",
}
COLORS = dict(
    zip(TITLES, (plotting.GREY, plotting.VIOLET, plotting.GOLD, plotting.GREEN), strict=True)
)
COMPARED = ("lowrank_none", "lowrank_both")  # whose embeddings and images are drawn
# of the held-out region's width and height
POINT = (0.35, 0.6)  # of panel a
POINTS = ((0.1, 0.1), (0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (0.9, 0.9))
PERCENTILE = 95  # of an embedding's |entries|: where the colours end
COLUMNS = 8  # of tokens
TICKS = (1, 2, 4, 8, 16, 32)


@figure("fig3", runs=tuple(TITLES))
def draw_low_rank(runs):
    compared = {TITLES[name]: runs[name] for name in COMPARED}
    cells = runs["lowrank_both"].cells
    held_out = plotting.over_grid(cells.held_out, cells)
    picture = plotting.new_figure(plotting.WIDTH, 7.3)
    top, middle, bottom = picture.subfigures(3, 1, height_ratios=[1.7, 2.4, 1.9])
    _draw_architecture(top, runs["lowrank_both"])
    rows = {name.replace(" ", "\n"): median_images(run) for name, run in compared.items()}
    indices = plotting.held_out_cells(cells, POINTS)
    axes = plotting.show_rows(middle, {"asked": cells.truths} | rows, cells, indices)
    for axis, (x, y) in zip(axes[0], cells.factors[indices], strict=True):
        axis.set_title(f"({x:.0f}, {y:.0f})", pad=3, fontsize=plotting.SMALL)
    volumes, numbers = bottom.subfigures(1, 2, width_ratios=[1.5, 1])
    maps = volumes.subplots(1, 2)
    logs = [lowrank_claims.log_volumes(run.cells) for run in compared.values()]
    relative = [volume.mean(axis=0) - volume[:, ~held_out].mean() for volume in logs]
    colors = factor_maps.volume_colors(relative)
    for axis, name, volume in zip(maps, compared, relative, strict=True):
        image = factor_maps.show_cells(axis, volume, held_out, **colors)
        axis.set_title(name, pad=3)
    factor_maps.volume_bar(volumes, image, ax=maps, shrink=0.8)
    error = numbers.subplots()
    for name, run in runs.items():
        errors = run.cells.scores[run.cells.error]
        by_region = [errors[:, mask].mean(axis=1) for mask in (~cells.held_out, cells.held_out)]
        (seen, unseen), color = map(plotting.geometric_mean, by_region), COLORS[name]
        style = {"fmt": "o", "color": color}
        plotting.point_with_interval(error, seen["value"], unseen, **style)
        style = {"across": True, "fmt": "none", "color": color}
        plotting.point_with_interval(error, unseen["value"], seen, **style)
        error.plot(*by_region, ".", color=color, label=TITLES[name], alpha=0.6)
        plotting.remember(error, ("MSE ID", "MSE OOD"), np.transpose(by_region), color)
    blank = np.square(cells.truths).mean(axis=(1, 2))
    error.axvline(blank[~cells.held_out].mean(), **plotting.DOTTED)
    error.axhline(blank[cells.held_out].mean(), **plotting.DOTTED, label="blank image")
    plotting.set_panels("fig3", "cde", (axes[0, 0], maps[0], error))
    plotting.legend_below(numbers, ncols=2)
    return picture


def _show_signed(axis, values, limit=None):
    """Purple below and green above 0, which is white."""
    limit = limit or max(np.nanmax(np.abs(values)), 1e-12)
    colors = plotting.plt.get_cmap(plotting.SIGNED).with_extremes(bad="0.75")
    style = {"vmin": -limit, "vmax": limit, "cmap": colors, "interpolation": "nearest"}
    axis.imshow(values, origin="lower", **style)
    plotting.frame(axis)


def _draw_architecture(picture, run):
    """Two channels of every layer at a held-out point, what is drawn and what is asked."""
    cells = run.cells
    (index,) = indices = plotting.held_out_cells(cells, [POINT])
    _, *layers = median_layers(run, indices).values()
    *columns, images = picture.subplots(2, len(layers) + 1).T
    for number, (column, layer) in enumerate(zip(columns, layers, strict=True)):
        channels = np.moveaxis(np.asarray(layer[0]), -1, 0)
        for axis in column[len(channels) :]:
            axis.set_axis_off()
        for axis, channel in zip(column, channels, strict=False):
            _show_signed(axis, channel)
        column[0].set_title(f"after conv {number}" if number else "embeddings", pad=3)
    for axis, name in zip(columns[0], "xy", strict=True):
        axis.set_ylabel(f"of {name}")
    words = {"drawn": median_images(run), "asked": cells.truths}
    for axis, (word, image) in zip(images, words.items(), strict=True):
        plotting.show_scaled(axis, image[index], cells.factors[index], cells.amplitude)
        axis.set_ylabel(word)
    plotting.panel(columns[0][0], "a", "One held-out point, with both penalties", up=16)


@figure("fig6", runs=tuple(TITLES))
def draw_embeddings(runs):
    grid = runs["lowrank_both"].config.task.grid
    height = 2 * -(-grid // COLUMNS) * (plotting.WIDTH / 2 - 0.3) / COLUMNS + 0.6
    picture = plotting.new_figure(plotting.WIDTH, height + 2.4)
    top, bottom = picture.subfigures(2, 1, height_ratios=[height, 2.4])
    for block, name, letter in zip(top.subfigures(1, 2), COMPARED, "ab", strict=True):
        axes, run = block.subplots(2, 1), runs[name]
        embeddings = [
            of_seeds[median_seed(run)] for of_seeds in lowrank_claims.embedding_matrices(run)
        ]
        limit = np.percentile(np.abs(embeddings), PERCENTILE)
        held_out = plotting.over_grid(run.cells.held_out, run.cells)
        bands = held_out.T[:, :, None], held_out[:, None, :]
        title = f"With {TITLES[name]}, from {plotting.MINUS}{limit:.2g} to {limit:.2g}"
        plotting.panel(axes[0], letter, title)
        for axis, factor, images, band in zip(axes, "xy", embeddings, bands, strict=True):
            _show_signed(axis, factor_maps.mosaic(images, COLUMNS), limit)
            framed = factor_maps.mosaic(np.broadcast_to(band, images.shape), COLUMNS, gap=False)
            plotting.outline(axis, framed, color="black", linewidth=0.5)
            axis.set_ylabel(f"of {factor}")
    ranks, constancy, errors = axes = bottom.subplots(1, 3)
    for index, (name, run) in enumerate(runs.items()):
        numbers, color, cells = lowrank_claims.embedding_numbers(run), COLORS[name], run.cells
        for offset, mark, metric in (
            (-0.2, "s", "lambda_entropy"),
            (0.15, "o", "spectrum_entropy"),
        ):
            style = {"mean": plotting.geometric_mean, "fmt": mark, "color": color}
            plotting.show_number(ranks, index + offset, numbers[metric], **style)
        constant = numbers["constant_share"]
        plotting.show_number(constancy, index, constant, plotting.mean_share, fmt="o", color=color)
        error_T = evaluation.mean_score(cells, cells.error, cells.held_out)
        errors.plot(1 - constant, error_T, "o", markersize=4, color=color, label=TITLES[name])
        plotting.remember(errors, 1 - constant[:, None], error_T, color, "o")
    constancy.axhline(1 / grid, **plotting.DOTTED, label="(d) noise, (e) blank image")
    errors.axhline(np.square(cells.truths[cells.held_out]).mean(), **plotting.DOTTED)
    plotting.label_mark(ranks, "(c) λ²", "s")
    plotting.label_mark(ranks, "(c) squared singular values")
    plotting.label_seeds(ranks)
    ranks.set(yscale="log", ylim=(0.85, None))
    ranks.set_yticks(TICKS, TICKS)
    ranks.minorticks_off()
    plotting.set_panels("fig6", "cde", axes)
    errors.set_xlim(min(0.05, errors.get_xlim()[0]), 1.1)
    names = [name.removeprefix("lowrank_") for name in runs]
    for axis in axes[:2]:
        axis.set_xticks(range(len(names)), names, rotation=20)
        axis.set_xlim(-0.5, len(names) - 0.4)
    plotting.legend_below(bottom)
    return picture
