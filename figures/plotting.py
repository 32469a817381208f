"""Axis helpers for figures; no training, no metrics."""

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

STYLE = {
    "figure.dpi": 150,
    "savefig.dpi": 200,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "image.cmap": "viridis",
    "pdf.fonttype": 42,  # text stays text in the PDF
}
CODE_COLORS = {"bump": "#0072b2", "ramp": "#d55e00", "onehot": "#009e73", "positional": "#cc79a7"}
ID_COLOR, OOD_COLOR = "#2b7bba", "#e34a33"


def new_figure(width: float, height: float):
    """A figure of so many inches whose layout keeps labels apart."""
    plt.rcParams.update(STYLE)
    return plt.figure(figsize=(width, height), layout="constrained")


def axis_at(figure, left: float, bottom: float, width: float, height: float):
    """An axis placed in inches, for figures made of many equal images."""
    figure.set_layout_engine("none")
    total_width, total_height = figure.get_size_inches()
    return figure.add_axes(
        (left / total_width, bottom / total_height, width / total_width, height / total_height)
    )


def panel_label(axis, letter: str):
    axis.annotate(
        letter, (0, 1), xytext=(-4, 6), xycoords="axes fraction", textcoords="offset points",
        fontweight="bold", fontsize=10, ha="right", va="bottom",
    )  # fmt: skip


def show_map(axis, values_MxM, grid: int | None = None, **kwargs):
    """A quantity over the factor plane, x to the right and y upwards, in M steps to a side that
    run from 0 to `grid` - 1 pixels (`grid` is M by default: one step per cell)."""
    last = (grid or len(values_MxM)) - 1
    half = last / (len(values_MxM) - 1) / 2
    extent = (-half, last + half, -half, last + half)
    image = axis.imshow(
        values_MxM, origin="lower", interpolation="nearest", extent=extent, **kwargs
    )
    axis.set(xlabel="x (pixels)", ylabel="y (pixels)")
    axis.set_xticks([0, last])
    axis.set_yticks([0, last])
    return image


def mosaic(images_BxHxW, columns: int, gap=np.nan):
    """Images in rows of `columns`, the first at the top, y upwards, with lines of `gap` between."""
    blank = -len(images_BxHxW) % columns
    padded = np.pad(images_BxHxW, ((0, blank), (0, 1), (0, 1)), constant_values=gap)
    padded[len(images_BxHxW) :] = gap
    rows = padded.reshape(-1, columns, *padded.shape[1:])[::-1]
    return np.concatenate(np.concatenate(rows, axis=1), axis=1)[:-1, :-1]


def outline(axis, mask_NxN, **kwargs):
    """Draws the border of a region of cells, of whatever shape."""
    kwargs = {"color": OOD_COLOR, "linewidth": 1.2, **kwargs}
    padded = np.pad(np.asarray(mask_NxN, bool), 1)
    rows, columns = np.nonzero(padded[1:, 1:-1] != padded[:-1, 1:-1])
    axis.hlines(rows - 0.5, columns - 0.5, columns + 0.5, **kwargs)
    rows, columns = np.nonzero(padded[1:-1, 1:] != padded[1:-1, :-1])
    axis.vlines(columns - 0.5, rows - 0.5, rows + 0.5, **kwargs)


def show_signal(axis, signal_NxN, amplitude: float, factors=None, edge=None, lowest: float = 0):
    """A signal as a dark bump on white, `lowest` or less, y upwards; a circle marks the requested
    position."""
    axis.imshow(signal_NxN, origin="lower", cmap="gray_r", vmin=lowest, vmax=amplitude)
    if factors is not None:
        axis.plot(*factors, "o", color=edge, fillstyle="none", markersize=9, markeredgewidth=0.8)
    axis.set(xticks=[], yticks=[])
    for spine in axis.spines.values():
        spine.set(visible=True, color=edge or "0.7", linewidth=0.8)


def point_with_interval(axis, position, numbers, per_seed=(), **kwargs):
    """A mean with its 95% interval, and the seeds as small dots beside it."""
    low, high = (numbers["value"] if end is None or np.isnan(end) else end
                 for end in numbers["ci95"])  # fmt: skip
    value = numbers["value"]
    axis.errorbar(position, value, yerr=[[value - low], [high - value]], capsize=2, **kwargs)
    axis.plot(np.full(len(per_seed), position + 0.12), per_seed, ".", color="0.6", markersize=3,
              zorder=0)  # fmt: skip


def close(figure):
    plt.close(figure)
