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
COLORS = {"rotation": "#0072b2", "rotation_objects": "#009e73"}
SHOWN = 10  # angles of the gap whose images are drawn
AROUND = 25.0  # degrees beside the gap in the enlarged part of panel a
UMAP = {"n_neighbors": 15, "min_dist": 0.1, "random_state": 42}  # the authors'
# sizes in inches
HEIGHT, IMAGE, LEFT = 6.9, 0.41, 0.95


class Turned(NamedTuple):
    """One network: the gap of one object, and all cells of that object by rising angle, from 0."""

    cells: CellResults
    gap: Gap
    indices: np.ndarray
    angles: np.ndarray

    @property
    def blank(self) -> float:
        """The error of a blank image."""
        return np.square(self.cells.truths[self.indices]).mean()

    @property
    def edges(self) -> list[int]:
        """The ID cells beside the gap."""
        return list(self.gap.edges)


@figure("fig9", runs=tuple(TITLES))
def draw(runs):
    """Figure 9: decoders of a turned object without a gap of angles (shaded): one of a single
    object, and one of several, whose other objects are seen in the gap. (a) Error against the
    angle over a blank image's, on the whole circle and around the gap; geometric mean and range of
    the seeds. In the gap: the errors of the edges' images, cross-faded by the angle, and of the
    nearer edge's image. (b) Every layer of the first network's first seed: one point for each
    angle, rimmed in red in the gap. Above: the method, and for PCA the share of variance. (c) At
    angles of the gap (red) and at its edges, the nearest ID angles (blue): what is asked, and what
    the first seeds draw. Below: the share of the image's energy outside the span of both edges'
    images. (d) The edges' images cross-faded linearly by the angle. White is 0 or less, black the
    largest true value."""
    runs = in_order(TITLES, runs)
    shown = {name: turned(run.cells) for name, run in runs.items()}
    picture = plotting.new_figure(plotting.WIDTH, HEIGHT)
    _draw_errors(picture, shown)
    name, run = next(iter(runs.items()))
    _draw_layers(picture, run, TITLES[name], shown[name])
    _draw_images(picture, shown)
    return picture


def turned(cells: CellResults) -> Turned:
    """The first object that has a gap. ValueError as `circle.gaps`."""
    gap = circle.gaps(cells.factors, cells.held_out)[0]
    same = (cells.factors[:, 1:] == np.array(gap.label)[None]).all(axis=1)
    angles = cells.factors[:, 0] % circle.PERIOD
    indices = np.flatnonzero(same)
    indices = indices[np.argsort(angles[indices])]
    return Turned(cells, gap, indices, angles[indices])


# --- a: errors -------------------------------------------------------------------------------


def _draw_errors(picture, shown):
    whole = plotting.axis_at(picture, 0.6, 5.25, 3.1, 1.35)
    part = plotting.axis_at(picture, 3.95, 5.25, 1.65, 1.35)
    first = next(iter(shown.values()))
    low, high = first.cells.factors[first.edges, 0] % circle.PERIOD
    high += circle.PERIOD * (high <= low)
    true = first.cells.truths.astype(np.float64)
    for axis in (whole, part):
        axis.axvspan(low, high, color=plotting.OOD_COLOR, alpha=0.12, linewidth=0)
        for name, network in shown.items():
            _draw_curve(axis, network, COLORS[name], TITLES[name])
        place = first.gap.place
        for label, at, style, color in (
            ("edges' cross-fade", place, "--", "0.25"),
            ("nearer edge", np.round(place), ":", "0.55"),
        ):
            images = circle.cross_fade(*true[first.edges], at)
            errors = np.square(images - true[first.gap.cells]).mean(axis=(1, 2)) / first.blank
            angles = low + (high - low) * place
            axis.plot(angles, errors, style, color=color, linewidth=1.2, label=label)
        axis.set(xlabel="angle (degrees)")
        plotting.log_scale(axis, "y")
    whole.set(xlim=(0, circle.PERIOD), ylabel="MSE / blank image's")
    whole.set_xticks(np.arange(0, circle.PERIOD + 1, 60))
    part.set(xlim=(low - AROUND, high + AROUND), ylim=whole.get_ylim())
    part.set_title("around the gap")
    part.tick_params(labelleft=False)
    whole.axvspan(0, 0, color=plotting.OOD_COLOR, alpha=0.12, linewidth=0, label="gap")
    keys = whole.get_legend_handles_labels()
    part.legend(*keys, loc="center left", bbox_to_anchor=(1.0, 0.5), **plotting.LEGEND)
    ratios = [_in_gap_over_outside(network) for network in shown.values()]
    times = plotting.span(ratios, "{:.0f}".format)
    plotting.panel(whole, "a", f"errors in the gap are {times} times those outside")


def _in_gap_over_outside(network: Turned) -> float:
    errors = evaluation.errors(network.cells)[:, network.indices]
    inside = network.cells.held_out[network.indices]
    return errors[:, inside].mean() / errors[:, ~inside].mean()


def _draw_curve(axis, network: Turned, color, label):
    errors_TxA = evaluation.errors(network.cells)[:, network.indices] / network.blank
    # a circle: once more to either side
    angles = np.concatenate([network.angles + turn * circle.PERIOD for turn in (-1, 0, 1)])
    low, high = (np.tile(ends, 3) for ends in (errors_TxA.min(axis=0), errors_TxA.max(axis=0)))
    axis.fill_between(angles, low, high, color=color, alpha=0.2, linewidth=0)
    mean = np.exp(np.log(np.maximum(errors_TxA, 1e-12)).mean(axis=0))
    axis.plot(angles, np.tile(mean, 3), color=color, linewidth=1.2, label=label)


# --- b: layers -------------------------------------------------------------------------------


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
        axis.set(xticks=[], yticks=[])
        axis.set_aspect("equal", adjustable="datalim")
        axis.spines[:].set(visible=True, color="0.7", linewidth=0.8)
    axes[0].set_ylabel(f"{title}, seed {network.cells.seeds[0]}")
    axes[0].plot([], [], "o", color=plotting.OOD_COLOR, markersize=5, label="rim: in the gap")
    plotting.panel(axes[0], "b", up=22)
    plotting.legend_in_row(axes[0], bbox_to_anchor=(0, 1.2))
    right = 0.3 + len(layers) * pitch - pitch + size
    bar = plotting.axis_at(picture, right + 0.08, 3.1, 0.08, size)
    picture.colorbar(points, cax=bar, label="angle (degrees)", ticks=[0, 90, 180, 270, 360])


def flattened(layer_BxD):
    """(B, 2) coordinates of a layer and their method: UMAP, with the authors' settings, where
    `umap-learn` is installed, else the first two principal components."""
    try:
        import umap
    except ImportError:
        return _principal(layer_BxD)
    return umap.UMAP(n_jobs=1, **UMAP).fit_transform(layer_BxD), "UMAP"


def _principal(layer_BxD):
    centred = np.asarray(layer_BxD, np.float64) - np.mean(layer_BxD, axis=0, keepdims=True)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    plane = np.zeros((len(centred), 2))
    plane[:, : values[:2].size] = (left * values[None])[:, :2]
    total = np.square(values).sum()
    share = np.square(values[:2]).sum() / total if total > 0 else 1.0
    return plane, f"PCA, {share:.0%} of variance"


# --- c, d: images ----------------------------------------------------------------------------


def _columns(gap: Gap):
    """Cells of both edges and, evenly, of the gap between them; and their places, from 0 to 1."""
    last = len(gap.cells) - 1
    chosen = np.unique(np.linspace(0, last, SHOWN).round().astype(int))
    before, after = gap.edges
    return np.array([before, *gap.cells[chosen], after]), [0.0, *gap.place[chosen], 1.0]


def _draw_images(picture, shown):
    first = next(iter(shown.values()))
    columns, places = _columns(first.gap)
    truths = first.cells.truths
    rows, outside = [("asked", first, columns, truths[columns])], []
    for name, network in shown.items():
        indices, _ = _columns(network.gap)
        label = f"{TITLES[name]},\nseed {network.cells.seeds[0]}"
        rows.append((label, network, indices, network.cells.predictions[0, indices]))
    fade = circle.cross_fade(*truths[first.edges], places)
    rows.append(("cross-fade\nof the edges", first, columns, fade))
    pitch_x = min(IMAGE + 0.06, (plotting.WIDTH - LEFT - 0.1) / len(columns))
    pitch_y = min(IMAGE + 0.16, 2.8 / len(rows))
    size = min(pitch_x - 0.05, pitch_y - 0.13)
    for row, (label, network, indices, images) in enumerate(rows):
        is_fade = images is fade
        bottom = 2.62 - (row + 1) * pitch_y - 0.12 * is_fade
        axes = plotting.row_at(picture, LEFT, bottom, size, len(indices), pitch_x - size)
        cells = network.cells
        edges = flat(cells.truths[network.edges])
        residuals = circle.residual_share(flat(np.asarray(images, np.float64)), *edges)
        for axis, index, image, residual in zip(axes, indices, images, residuals, strict=True):
            color = plotting.OOD_COLOR if cells.held_out[index] else plotting.ID_COLOR
            plotting.show_signal(axis, image, cells.amplitude, None, color)
            if row == 0:
                axis.set_title(f"{cells.factors[index, 0]:.0f}°", pad=2, color=color)
            if not is_fade:
                axis.set_xlabel(f"{residual:.2f}", fontsize=plotting.SMALL, labelpad=1.5)
                outside.append(residuals[cells.held_out[indices]].mean())
        axes[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=plotting.SMALL)
        if row == 0:
            top = axes[0]
        if is_fade:
            plotting.panel(axes[0], "d", up=-2)
    drawn = plotting.span(outside[1:], "{:.2f}".format)
    plotting.panel(top, "c", "below: share outside the span of both edges' images, in the gap "
                   f"{outside[0]:.2f} asked, {drawn} drawn", up=16)  # fmt: skip
