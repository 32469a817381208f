"""Figure 9: decoders of a turned object, of which a gap of angles is held out."""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics import circle, evaluation
from compgen_jax.metrics.circle import Gap
from compgen_jax.metrics.evaluation import CellResults

from .. import plotting
from ..figure import figure
from .lookup import first_seed_layers, flat, in_order

TITLES = {"rotation": "one object", "rotation_objects": "several objects"}
COLORS = {"rotation": plotting.VIOLET, "rotation_objects": plotting.GREEN}
SHOWN = 10  # angles of the gap whose images are drawn
AROUND = 25.0  # degrees beside the gap in the enlarged part of panel a
UMAP = {"n_neighbors": 15, "min_dist": 0.1, "random_state": 42}  # the authors'
# sizes in inches
HEIGHT, IMAGE, LEFT = 6.9, 0.41, 0.95


class Turned(NamedTuple):
    """One network: the gap of the first object that has one, and all cells of that object by rising
    angle, from 0; their errors (T, A), that of a blank image being 1."""

    cells: CellResults
    gap: Gap
    indices: np.ndarray
    angles: np.ndarray
    errors: np.ndarray
    blank: float


@figure("fig9", runs=tuple(TITLES), by_default=False)
def draw(runs):
    runs, networks = in_order(TITLES, runs), {}
    for name, run in runs.items():
        cells = run.cells
        gap = circle.gaps(cells.factors, cells.held_out)[0]
        same = (cells.factors[:, 1:] == np.array(gap.label)[None]).all(axis=1)
        indices, angles = np.flatnonzero(same), cells.factors[same, 0] % circle.PERIOD
        order = np.argsort(angles)
        indices, blank = indices[order], np.square(cells.truths[indices]).mean()
        errors = evaluation.errors(cells)[:, indices] / blank
        networks[name] = Turned(cells, gap, indices, angles[order], errors, blank)
    picture = plotting.new_figure(plotting.WIDTH, HEIGHT)
    _draw_errors(picture, networks)
    name, run = next(iter(runs.items()))
    _draw_layers(picture, run, TITLES[name], networks[name])
    _draw_images(picture, networks)
    return picture


def _draw_errors(picture, networks):
    whole = plotting.axis_at(picture, 0.7, 5.25, 3.0, 1.35)
    part = plotting.axis_at(picture, 3.95, 5.25, 1.55, 1.35)
    cells, gap, _, _, _, blank = next(iter(networks.values()))
    edges = list(gap.edges)
    low, high = cells.factors[edges, 0] % circle.PERIOD
    high += circle.PERIOD * (high <= low)
    true = cells.truths.astype(np.float64)
    for axis in (whole, part):
        axis.axvspan(low, high, color=plotting.OOD_COLOR, alpha=0.12, linewidth=0)
        for name, network in networks.items():
            # a circle: once more to either side
            angles = np.concatenate([network.angles + k * circle.PERIOD for k in (-1, 0, 1)])
            logs = np.log(np.maximum(np.tile(network.errors, 3), plotting.SMALLEST))
            style = {"linewidth": 1.2, "label": TITLES[name]}
            plotting.draw_band(axis, angles, logs, "-", COLORS[name], np.exp, **style)
        for label, at, style, color in (
            ("edges' cross-fade", gap.place, ":", "black"),
            ("nearer edge", np.round(gap.place), ":", "0.6"),
        ):
            images = circle.cross_fade(*true[edges], at)
            errors = np.square(images - true[gap.cells]).mean(axis=(1, 2)) / blank
            angles = low + (high - low) * gap.place
            axis.plot(angles, errors, style, color=color, linewidth=1.2, label=label)
        axis.set(xlabel="angle (degrees)")
        plotting.log_scale(axis, "y")
    whole.set(xlim=(0, circle.PERIOD), ylabel=plotting.RELATIVE)
    whole.set_xticks(np.arange(0, circle.PERIOD + 1, 60))
    part.set(xlim=(low - AROUND, high + AROUND), ylim=whole.get_ylim())
    part.set_title("Around the gap")
    part.tick_params(labelleft=False)
    whole.axvspan(0, 0, color=plotting.OOD_COLOR, alpha=0.12, linewidth=0, label="gap")
    keys = whole.get_legend_handles_labels()
    part.legend(*keys, loc="center left", bbox_to_anchor=(1.0, 0.5), **plotting.LEGEND)
    ratios = []
    for network in networks.values():
        inside = network.cells.held_out[network.indices]
        ratios.append(network.errors[:, inside].mean() / network.errors[:, ~inside].mean())
    times = plotting.span(ratios, "{:.0f}".format)
    plotting.panel(whole, "a", f"Errors in the gap are {times} times those outside")


def _draw_layers(picture, run, title: str, network: Turned):
    layers = first_seed_layers(run, network.indices)
    pitch = min(1.6, (plotting.WIDTH - 0.95) / len(layers))
    size = min(1.25, pitch - 0.15)
    hidden = network.cells.held_out[network.indices]
    axes = plotting.row_at(picture, 0.3, 3.1, size, len(layers), pitch - size)
    for index, (axis, layer) in enumerate(zip(axes, layers.values(), strict=True)):
        plane, method = flattened(flat(np.asarray(layer)))
        style = {"c": network.angles, "cmap": plotting.ANGLES, "vmin": 0, "vmax": 360}
        points = axis.scatter(*plane.T, s=7, linewidths=0, **style)
        # beneath the others, as a rim
        axis.scatter(*plane[hidden].T, s=28, color=plotting.OOD_COLOR, linewidths=0, zorder=0)
        name = f"layer {index}" if index else "code"
        axis.set_title(f"{name}\n{method}", pad=3, fontsize=plotting.SMALL)
        axis.set_aspect("equal", adjustable="datalim")
        plotting.frame(axis)
    axes[0].set_ylabel(title)
    title = "Every layer holds the angles on a loop; the gap has a red rim"
    plotting.panel(axes[0], "b", title, up=26)
    right = 0.3 + len(layers) * pitch - pitch + size
    bar = plotting.axis_at(picture, right + 0.08, 3.1, 0.08, size)
    picture.colorbar(points, cax=bar, label="angle (degrees)", ticks=[0, 90, 180, 270, 360])


def flattened(layer_BxD):
    """(B, 2) coordinates of a layer and their method: UMAP, with the authors' settings, where
    `umap-learn` is installed, else the first two principal components."""
    try:
        import umap
    except ImportError:
        centred = np.asarray(layer_BxD, np.float64) - np.mean(layer_BxD, axis=0, keepdims=True)
        left, values, _ = np.linalg.svd(centred, full_matrices=False)
        plane = np.zeros((len(centred), 2))
        plane[:, : values[:2].size] = (left * values[None])[:, :2]
        total = np.square(values).sum()
        share = np.square(values[:2]).sum() / total if total > 0 else 1.0
        return plane, f"PCA, {share:.0%} of variance"
    return umap.UMAP(n_jobs=1, **UMAP).fit_transform(layer_BxD), "UMAP"


def _draw_images(picture, networks):
    rows, outside = [], []
    for name, network in networks.items():
        cells, gap = network.cells, network.gap
        chosen = np.linspace(0, len(gap.cells) - 1, SHOWN).round().astype(int)
        chosen, (before, after) = np.unique(chosen), gap.edges
        columns = np.array([before, *gap.cells[chosen], after])
        if not rows:
            rows.append(("asked", cells, columns, cells.truths[columns], gap))
            at = [0.0, *gap.place[chosen], 1.0]
            images = circle.cross_fade(cells.truths[before], cells.truths[after], at)
            fade = "cross-fade", cells, columns, images, gap
        rows.append(
            (TITLES[name].replace(" ", "\n"), cells, columns, cells.predictions[0, columns], gap)
        )
    rows.append(fade)
    pitch_x = min(IMAGE + 0.06, (plotting.WIDTH - LEFT - 0.1) / len(columns))
    pitch_y = min(IMAGE + 0.16, 2.8 / len(rows))
    size = min(pitch_x - 0.05, pitch_y - 0.13)
    for row, (label, cells, columns, images, gap) in enumerate(rows):
        is_fade = row == len(rows) - 1
        bottom = 2.62 - (row + 1) * pitch_y - 0.16 * is_fade
        axes = plotting.row_at(picture, LEFT, bottom, size, len(columns), pitch_x - size)
        edges = flat(cells.truths[list(gap.edges)])
        residuals = circle.residual_share(flat(np.asarray(images, np.float64)), *edges)
        for axis, index, image, residual in zip(axes, columns, images, residuals, strict=True):
            color = plotting.OOD_COLOR if cells.held_out[index] else plotting.ID_COLOR
            plotting.show_signal(axis, image, cells.amplitude, None, color)
            if row == 0:
                axis.set_title(f"{cells.factors[index, 0]:.0f}°", pad=2, color=color)
            if not is_fade:
                axis.set_xlabel(f"{residual:.2f}", fontsize=plotting.SMALL, labelpad=1.5)
        axes[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=plotting.SMALL)
        outside.append(residuals[cells.held_out[columns]].mean())
        if row == 0:
            top = axes[0]
    plotting.panel(axes[0], "d", "This is a cross-fade of the edges' images", up=3)
    drawn = plotting.span(outside[1:-1], "{:.2f}".format)
    plotting.panel(top, "c", "This share is outside the span of the edges' images: "
                   f"{outside[0]:.2f} asked, {drawn} drawn", up=16)  # fmt: skip
