"""Parts of figures; no training, and no metrics but means over seeds.

T is the number of networks (seeds), B of points, N the side of a grid of cells, L of layers. Images
are drawn with y upwards.
"""

import io
import sys

import matplotlib
import numpy as np

from compgen_jax.statistics import mean_band, mean_with_interval

if "ipykernel" not in sys.modules:  # a notebook shows figures by a backend of its own
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
DOTTED = {"color": "0.5", "linestyle": ":", "linewidth": 0.8, "zorder": 0}
FAINT = {"color": "0.85", "linewidth": 0.8, "zorder": 0}
SEEN = {"fmt": "s", "markerfacecolor": "white"}  # how a mean over ID points is marked
MINUS = "\N{MINUS SIGN}"


# --- figures and axes --------------------------------------------------------------------------


def new_figure(width: float, height: float):
    """A figure of this size in inches whose layout keeps labels apart."""
    plt.rcParams.update(STYLE)
    return plt.figure(figsize=(width, height), layout="constrained")


def axis_at(figure, left: float, bottom: float, width: float, height: float):
    """An axis placed in inches, for figures made of many equal images."""
    figure.set_layout_engine("none")
    total_width, total_height = figure.get_size_inches()
    return figure.add_axes(
        (left / total_width, bottom / total_height, width / total_width, height / total_height)
    )


def row_at(figure, left: float, bottom: float, size: float, count: int, gap: float) -> list:
    """A row of square axes placed in inches."""
    lefts = (left + column * (size + gap) for column in range(count))
    return [axis_at(figure, each, bottom, size, size) for each in lefts]


def canvas_of(figure):
    """An invisible axis over the whole figure, in inches, for text and arrows."""
    width, height = figure.get_size_inches()
    canvas = axis_at(figure, 0, 0, width, height)
    canvas.set(xlim=(0, width), ylim=(0, height))
    canvas.set_axis_off()
    return canvas


def panel_label(axis, letter: str):
    axis.annotate(
        letter, (0, 1), xytext=(-4, 6), xycoords="axes fraction", textcoords="offset points",
        fontweight="bold", fontsize=10, ha="right", va="bottom",
    )  # fmt: skip


def panel_labels(axes, letters: str):
    for axis, letter in zip(axes, letters, strict=True):
        panel_label(axis, letter)


def title_left(axis, text: str, **style):
    """A title that begins where the axis does, on the height of its panel's letter."""
    axis.annotate(
        text, (0, 1), xytext=(0, 6), xycoords="axes fraction", textcoords="offset points", **style
    )


def below(axis, place: float, text: str, down: float, **style):
    """Text under the axis, centred at a place along x, `down` points below its lower edge."""
    axis.annotate(
        text, (place, 0), xytext=(0, -down), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="center", va="top", **style,
    )  # fmt: skip


def label_regions(axis):
    """Entries for a legend: the marks of held-out and of ID points."""
    axis.plot([], [], "o", color="0.3", markersize=4, label="held out")
    axis.plot([], [], "s", color="0.3", markerfacecolor="white", markersize=4, label="seen")


def label_colors(axis, colors: dict[str, str]):
    """Entries for a legend: dots of these colours, by label."""
    for label, color in colors.items():
        axis.plot([], [], "o", color=color, markersize=4, label=label)


def legend_above(axis, **kwargs):
    """The legend in one row above the axis, where no line can meet it."""
    axis.legend(
        loc="lower center", bbox_to_anchor=(0.5, 0.98), ncols=4, borderaxespad=0.1,
        handlelength=1.4, handletextpad=0.4, columnspacing=0.8, **kwargs,
    )  # fmt: skip


# --- maps over the factor plane ----------------------------------------------------------------


def show_map(axis, values_MxM, grid: int | None = None, **kwargs):
    """A quantity over the factor plane, x to the right and y upwards, in M steps to a side that
    run from 0 to `grid` - 1 pixels (`grid` is M by default: one step per cell)."""
    last = (grid or len(values_MxM)) - 1
    half = last / (len(values_MxM) - 1) / 2
    extent = (-half, last + half, -half, last + half)
    image = axis.imshow(
        values_MxM, origin="lower", interpolation="nearest", extent=extent, **kwargs
    )
    name_pixels(axis, last)
    return image


def name_pixels(axis, last: int):
    axis.set(xlabel="x (pixels)", ylabel="y (pixels)")
    axis.set_xticks([0, last])
    axis.set_yticks([0, last])


def show_share(axis, cells, score: str, **kwargs):
    """The share of seeds of which a score is true, by cell, with the held-out region outlined."""
    share = cells.scores[score].mean(axis=0)
    image = show_map(axis, over_grid(share, cells), vmin=0, vmax=1, **kwargs)
    outline(axis, over_grid(cells.held_out, cells))
    return image


def show_cells(axis, values_NxN, held_out, color="black", **kwargs):
    """A small map with the held-out region outlined, without ticks."""
    image = axis.imshow(values_NxN, origin="lower", interpolation="nearest", **kwargs)
    outline(axis, held_out, color=color, linewidth=0.8)
    axis.set(xticks=[], yticks=[])
    return image


def over_grid(values_B, cells):
    """(B,) values of all cells as a map (y, x)."""
    return values_B.reshape(cells.sizes[::-1])


def mosaic(images_BxHxW, columns: int, gap=np.nan):
    """Images in rows of `columns`, the first at the top, with lines of `gap` between."""
    blank = -len(images_BxHxW) % columns
    padded = np.pad(images_BxHxW, ((0, blank), (0, 1), (0, 1)), constant_values=gap)
    padded[len(images_BxHxW) :] = gap
    rows = padded.reshape(-1, columns, *padded.shape[1:])[::-1]
    return np.concatenate(np.concatenate(rows, axis=1), axis=1)[:-1, :-1]


def outline(axis, mask_NxN, **kwargs):
    """Draws the border of a region of cells of any shape."""
    kwargs = {"color": OOD_COLOR, "linewidth": 1.2, **kwargs}
    padded = np.pad(np.asarray(mask_NxN, bool), 1)
    rows, columns = np.nonzero(padded[1:, 1:-1] != padded[:-1, 1:-1])
    axis.hlines(rows - 0.5, columns - 0.5, columns + 0.5, **kwargs)
    rows, columns = np.nonzero(padded[1:-1, 1:] != padded[1:-1, :-1])
    axis.vlines(columns - 0.5, rows - 0.5, rows + 0.5, **kwargs)


# --- images ------------------------------------------------------------------------------------


def show_signal(axis, signal_NxN, amplitude: float, factors=None, edge=None, lowest: float = 0):
    """An image from white, `lowest` or less, to black, `amplitude`. A circle marks the requested
    position."""
    axis.imshow(signal_NxN, origin="lower", cmap="gray_r", vmin=lowest, vmax=amplitude)
    if factors is not None:
        axis.plot(*factors, "o", color=edge, fillstyle="none", markersize=9, markeredgewidth=0.8)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set(visible=True, color=edge or "0.7", linewidth=0.8)


def show_scaled(axis, signal_NxN, factors=None, amplitude: float = 1.0):
    """A held-out image on its own scale, as most are far fainter than a bump. Its largest value, in
    units of the amplitude, is printed below."""
    top = float(np.max(signal_NxN)) + 0.0  # no minus zero
    show_signal(axis, signal_NxN, max(top, 1e-6), factors, OOD_COLOR)
    axis.set_xlabel(f"max {top / amplitude:#.2g}", fontsize=6, labelpad=2)


def show_held_out(axes, images_B, cells, indices):
    """Images of held-out cells, one on each axis; `images_B` has those of all cells."""
    for axis, index in zip(axes, indices, strict=True):
        show_scaled(axis, images_B[index], cells.factors[index, :2], cells.amplitude)


def show_signed(axis, values, limit=None):
    """Blue below and red above 0, which is white."""
    limit = limit or max(np.nanmax(np.abs(values)), 1e-12)
    colors = plt.get_cmap("RdBu_r").with_extremes(bad="0.75")
    axis.imshow(
        values, origin="lower", cmap=colors, vmin=-limit, vmax=limit, interpolation="nearest"
    )
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set(visible=True, color="0.7", linewidth=0.8)


def held_out_cells(cells, points):
    """Indices of the held-out cells nearest to points given in shares of the held-out region's
    extent along each factor: the same places for every network."""
    region = cells.factors[cells.held_out]
    low, high = region.min(axis=0), region.max(axis=0)
    wanted = np.round(low + (high - low) * np.array(points))
    return [nearest_cell(cells, cells.held_out, point) for point in wanted]


def nearest_cell(cells, allowed_B, point) -> int:
    """The index of the allowed cell nearest to a point."""
    indices = np.flatnonzero(allowed_B)
    return indices[np.argmin(np.square(cells.factors[indices] - point).sum(axis=1))]


# --- numbers over seeds ------------------------------------------------------------------------


def point_with_interval(axis, position, number, per_seed=(), across: bool = False, **kwargs):
    """A mean with its 95% interval, and the seeds as small dots beside it (`across`: below it, the
    number along x)."""
    value = number["value"]
    low, high = (value if end is None or np.isnan(end) else end for end in number["ci95"])
    bar = {"xerr" if across else "yerr": [[value - low], [high - value]]}
    places = np.full(len(per_seed), position - 0.25 if across else position + 0.12)
    points = (value, position) if across else (position, value)
    axis.errorbar(*points, **bar, capsize=2, **kwargs)
    dots = (per_seed, places) if across else (places, per_seed)
    axis.plot(*dots, ".", color="0.6", markersize=3, zorder=2 if across else 0)


def show_number(axis, position, values_T, mean=mean_with_interval, **kwargs):
    """Mean, by default the arithmetic one, interval and seeds of one number; nothing where no seed
    has a value."""
    finite = np.asarray(values_T)[np.isfinite(values_T)]
    if len(finite):
        kwargs = {"markersize": 4, **kwargs}
        point_with_interval(axis, position, mean(finite), finite, **kwargs)


def show_numbers(axis, positions, values_SxT, color, label, mean=mean_with_interval):
    """Numbers at several positions, their means joined by a line."""
    means = [mean(values)["value"] for values in values_SxT]
    axis.plot(positions, means, "-", color=color, linewidth=1, label=label)
    for position, values in zip(positions, values_SxT, strict=True):
        show_number(axis, position, values, mean, fmt="o", color=color)


def show_regions(axis, position, apart: float, held_out_T, seen_T, **kwargs):
    """A number of held-out points (filled), and beside it that of ID points (open)."""
    show_number(axis, position - apart, held_out_T, fmt="o", **kwargs)
    show_number(axis, position + apart, seen_T, **kwargs, **SEEN)


def draw_band(axis, places_K, values_TxK, line: str, color, undo=lambda value: value, **kwargs):
    """Mean over seeds as a line with its interval as a band; `undo` takes a logarithm back."""
    middle, low, high = (undo(each) for each in mean_band(values_TxK))
    axis.plot(places_K, middle, line, color=color, **kwargs)
    axis.fill_between(places_K, low, high, color=color, alpha=0.15, linewidth=0)


def draw_line(axis, values_TxL, end, color, linestyle, label):
    """One network's number by layer; the last layer, the image, at position `end`."""
    middle, low, high = mean_band(values_TxL)
    inner = np.arange(len(middle) - 1)
    last = [len(middle) - 2, end]
    axis.plot(
        inner, middle[:-1], linestyle, marker=".", markersize=4, color=color, linewidth=1.2,
        label=label,
    )  # fmt: skip
    axis.fill_between(inner, low[:-1], high[:-1], color=color, alpha=0.15, linewidth=0)
    axis.plot(last, middle[-2:], ":", color=color, linewidth=0.8, alpha=0.7)
    axis.errorbar(
        end, middle[-1], yerr=[[middle[-1] - low[-1]], [high[-1] - middle[-1]]],
        fmt="s", markersize=3, capsize=1.5, linewidth=0.8, color=color,
        markerfacecolor="white" if linestyle == "--" else color,
    )  # fmt: skip


def layer_names(count: int):
    return ["code", *(str(index) for index in range(1, count - 1)), "image"]


def name_layers(axis, count: int):
    axis.set_xticks(range(count), layer_names(count))


# --- files -------------------------------------------------------------------------------------


def saved(figure) -> dict[str, bytes]:
    """The figure as png and as pdf. No date is in the file: the same runs give the same bytes."""
    files = {}
    for suffix in ("png", "pdf"):
        content, undated = io.BytesIO(), {"CreationDate": None} if suffix == "pdf" else {}
        figure.savefig(content, format=suffix, metadata=undated)
        figure.set_layout_engine("none")  # the layout stays, and is not computed twice
        files[suffix] = content.getvalue()
    return files


def close(figure):
    plt.close(figure)
