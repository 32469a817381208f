"""Figure 9: decoders of a turned object, of which a gap of angles is held out."""

import numpy as np

from compgen_jax.metrics import circle

from .. import plotting
from ..figure import figure
from .lookup import flat, median_images, median_layers

TITLES = {"rotation": "one object", "rotation_objects": "several objects"}
COLORS = {"rotation": plotting.VIOLET, "rotation_objects": plotting.GREEN}
ANGLES = 10  # of the gap whose images are drawn
UMAP = {"n_neighbors": 15, "min_dist": 0.1, "random_state": 42}  # the authors'


@figure("fig9", runs={"quick": tuple(TITLES), "paper": ("rotation",)}.get, by_default=False)
def draw(runs):
    heights = 1.8, 2, 0.75 * (2 + len(runs))
    picture = plotting.new_figure(plotting.WIDTH, sum(heights) + 0.1)
    top, middle, bottom = picture.subfigures(3, 1, height_ratios=heights)
    axis, first = top.subplots(), next(iter(runs.values()))
    for name, run in runs.items():
        _, indices = _gap_and_cells(run)
        errors = run.cells.scores[run.cells.error][:, indices]
        errors = np.maximum(errors / np.square(run.cells.truths[indices]).mean(), plotting.SMALLEST)
        angles = run.cells.factors[indices, 0] % circle.PERIOD
        style = {"linewidth": 1.2, "label": TITLES[name]}
        plotting.draw_band(axis, angles, errors, "-", COLORS[name], log=True, **style)
    _draw_edges(axis, first)
    plotting.set_panels("fig9", "a", [axis])
    _draw_layers(middle, first)
    _draw_images(bottom, runs)
    return picture


def _gap_and_cells(run):
    """The gap of the first object that has one, and all cells of that object by rising angle."""
    cells = run.cells
    gap = circle.gaps(cells.factors, cells.held_out)[0]
    indices = np.flatnonzero((cells.factors[:, 1:] == np.array(gap.label)[None]).all(axis=1))
    return gap, indices[np.argsort(cells.factors[indices, 0] % circle.PERIOD)]


def _draw_edges(axis, run):
    """The gap, and in it the errors of the edges' cross-fade and of the nearer edge's image."""
    cells, (gap, indices) = run.cells, _gap_and_cells(run)
    true = cells.truths.astype(np.float64)
    low, high = cells.factors[list(gap.edges), 0] % circle.PERIOD
    high += circle.PERIOD * (high <= low)
    for label, weights, color in (
        ("edges' cross-fade", gap.place, "black"),
        ("nearer edge", np.round(gap.place), "0.6"),
    ):
        images = circle.cross_fade(*true[list(gap.edges)], weights)
        errors = np.square(images - true[gap.cells]).mean(axis=(1, 2))
        angles, blank = low + (high - low) * gap.place, np.square(true[indices]).mean()
        axis.plot(angles, errors / blank, ":", color=color, linewidth=1.2, label=label)
    axis.axvspan(low, high, color=plotting.OOD_COLOR, alpha=0.12, linewidth=0, label="gap")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), **plotting.LEGEND)


def _draw_layers(picture, run):
    _, indices = _gap_and_cells(run)
    layers = median_layers(run, indices)
    held_out, angles = run.cells.held_out[indices], run.cells.factors[indices, 0] % circle.PERIOD
    axes = picture.subplots(1, len(layers))
    for index, (axis, layer) in enumerate(zip(axes, layers.values(), strict=True)):
        plane, method = flattened(flat(np.asarray(layer)))
        style = {"c": angles, "cmap": "hsv", "vmin": 0, "vmax": circle.PERIOD}
        points = axis.scatter(*plane.T, s=7, linewidths=0, **style)
        # beneath the others, as a rim
        axis.scatter(*plane[held_out].T, s=28, color=plotting.OOD_COLOR, linewidths=0, zorder=0)
        name = f"layer {index}" if index else "code"
        axis.set_xlabel(f"{name}\n{method}".replace(", ", "\n"), fontsize=plotting.SMALL)
        axis.set_aspect("equal", adjustable="datalim")
        plotting.frame(axis)
    plotting.panel(axes[0], "b", "Layers; the gap has a red rim")
    ticks = np.arange(0, circle.PERIOD + 1, 90)
    picture.colorbar(points, ax=axes, label="angle (degrees)", ticks=ticks, pad=0.01)


def flattened(layer_BxD):
    """(B, 2) coordinates of a layer and their method: UMAP, with the authors' settings, where
    `umap-learn` is installed, else the first two principal components."""
    try:
        import umap
    except ImportError:
        centred = np.asarray(layer_BxD, np.float64) - np.mean(layer_BxD, axis=0, keepdims=True)
        vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
        plane = np.zeros((len(centred), 2))
        plane[:, : values[:2].size] = (vectors * values[None])[:, :2]
        total = np.square(values).sum()
        share = np.square(values[:2]).sum() / total if total > 0 else 1.0
        return plane, f"PCA, {share:.0%} of variance"
    return umap.UMAP(n_jobs=1, **UMAP).fit_transform(layer_BxD), "UMAP"


def _draw_images(picture, runs):
    """Targets, every network's outputs and the edges' cross-fade, from edge to edge of the gap."""
    axes = picture.subplots(2 + len(runs), ANGLES + 2)
    labels = {"": "asked"} | {name: TITLES[name].replace(" ", "\n") for name in runs}
    for row, (name, label) in zip(axes, labels.items(), strict=False):
        run = runs.get(name) or next(iter(runs.values()))
        cells, (gap, _) = run.cells, _gap_and_cells(run)
        inner = np.linspace(0, len(gap.cells) - 1, ANGLES).round().astype(int)
        columns = np.array([gap.edges[0], *gap.cells[inner], gap.edges[1]])
        images = median_images(run)[columns] if name else cells.truths[columns]
        edges = cells.truths[list(gap.edges)]
        residuals, _ = circle.edge_fit(flat(images), *flat(edges))
        for axis, index, image, residual in zip(row, columns, images, residuals, strict=True):
            color = plotting.OOD_COLOR if cells.held_out[index] else plotting.ID_COLOR
            plotting.show_signal(axis, image, cells.amplitude, None, color)
            axis.set_xlabel(f"{residual:.2f}", fontsize=plotting.SMALL, labelpad=1.5)
            if not name:
                axis.set_title(f"{cells.factors[index, 0]:.0f}°", pad=2, color=color)
        row[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=plotting.SMALL)
    images = circle.cross_fade(*edges, [0.0, *gap.place[inner], 1.0])
    for axis, image in zip(axes[-1], images, strict=True):
        plotting.show_signal(axis, image, cells.amplitude)
    plotting.set_panels("fig9", "cd", (axes[0, 0], axes[-1, 0]))
