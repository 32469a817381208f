"""Parts of figures; no training, and no metrics but means over seeds. All figures share one style.

A figure is as wide as a page, `WIDTH`, or as a column, `COLUMN`, and no text in it is smaller than
`SMALL`. Every figure keeps to these conventions:

- Blue (`ID_COLOR`) is ID, red (`OOD_COLOR`) is OOD; nothing else has these two colours. Codes,
  networks and metrics have colours of `TONES`. What has an order, such as depth or width, runs from
  light to dark (`shades`). A map of signed values runs from purple over white, 0, to green.
- A filled circle is OOD, an open square is ID (`SEEN`). Without regions, marks are filled circles.
- A solid line is OOD, a dashed line is ID. Without regions, lines are solid.
- A bar with caps or a band is the 95% interval over seeds; a small grey dot is one seed.
- A diamond is interpolation from the codes, a triangle a wide network that learns no features
  (`FROM_CODES`), a cross a trivial predictor or a control (`TRIVIAL`); an arrow is a bound.
- A dotted line is a reference that no network drew: a criterion, a blank image, a predictor.
- Images run from white, 0, to black, the amplitude. One that is scaled has its factor below it:
  "scale ×9" (`show_scaled`); if its white is moved, both ends stand there.
- The red circle in an image is at the requested position, and the red frame of a map around the
  held-out cells.
- A panel's title (`panel`) is one plain sentence that says what to see, with a capital and without
  a full stop; numbers are means over seeds. A claim's number stands in brackets after its name.
- A figure's caption (captions.md) begins with a sentence that says what to see.

T is the number of networks (seeds), B of points, N the side of a grid of cells, L of layers. Images
are drawn with y upwards.
"""

import io
import sys
import textwrap
import tomllib
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.ticker import FuncFormatter, NullFormatter

from compgen_jax.claims import median_over_checkpoints
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.runs import directory
from compgen_jax.statistics import geometric_mean_with_interval, mean_band, mean_with_interval

if "ipykernel" not in sys.modules:  # a notebook shows figures by a backend of its own
    matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

WIDTH, COLUMN = 6.75, 3.25  # inches, as printed
SMALLEST = 1e-12  # of an error on a logarithmic axis
SMALL = 7  # points, of the smallest text
DOTS = 200  # to an inch
AXES = tomllib.loads(Path(__file__).with_name("axes.toml").read_text(encoding="utf-8"))
ID_COLOR, OOD_COLOR = "#2b7bba", "#e34a33"
TONES = VIOLET, GREEN, GOLD, PINK, GREY = "#54278f", "#1b9e77", "#b8860b", "#cc79a7", "0.35"
CODE_COLORS = {"bump": VIOLET, "ramp": GREEN, "onehot": GOLD, "positional": PINK}
DOTTED = {"color": "0.5", "linestyle": ":", "linewidth": 0.8, "zorder": 0}
FAINT = {"color": "0.85", "linewidth": 0.8, "zorder": 0}
SEEN = {"fmt": "s", "markerfacecolor": "white"}  # how a mean over ID points is marked
RELATIVE = "MSE relative to\na blank image"
TRIVIAL = "X"  # the mark of a trivial predictor
SIGNED = "PRGn"  # the colours of signed values
MINUS = "\N{MINUS SIGN}"


def shades(count: int):
    """Colours of so many things in order, from light to dark."""
    return plt.get_cmap("YlGn")(np.linspace(0.45, 1, count))


# --- figures and axes --------------------------------------------------------------------------


def new_figure(width: float, height: float):
    """A figure of this size in inches whose layout keeps labels apart."""
    plt.rcParams.update(AXES["style"])
    return plt.figure(figsize=(width, height), layout="constrained")


def panel(axis, letter: str, title: str = "", wrap: int = 0, up: float = 6, **style):
    """A panel's letter and, beside it, its title, `up` points above the axis: in lines of at most
    `wrap` letters or, with 0, as it is and without a place in the layout."""
    position = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
    bold = {"fontweight": "bold", "fontsize": 10, "ha": "right"}
    title = textwrap.fill(title, wrap) if wrap else title
    first_line = up + 1.2 * plt.rcParams["axes.titlesize"] * title.count("\n") - 1
    axis.annotate(letter, (0, 1), xytext=(-4, first_line), **bold, **position)
    if wrap:
        axis.set_title(title, pad=up, **style)
    elif title:
        axis.annotate(title, (0, 1), xytext=(0, up), **position, **style).set_in_layout(False)


def set_panels(name: str, letters: str, axes, **words):
    """Letters, titles, labels and ends of a figure's panels as in axes.toml; `words` stand in for
    their names in titles."""
    for letter, axis in zip(letters, axes, strict=True):
        fields = AXES[name].get("every", {}) | AXES[name].get(letter, {})
        layout = {key: fields.pop(key) for key in ("wrap", "up") if key in fields}
        panel(axis, letter, fields.pop("title", "").format(**words), **layout)
        log_scale(axis, fields.pop("log", ""))
        axis.set(**fields)


def log_scale(axis, along: str):
    """Logarithmic x, y or both ('xy'), with plain numbers at powers of ten."""
    for direction in along:
        axis.set(**{f"{direction}scale": "log"})
        ticks = getattr(axis, f"{direction}axis")
        ticks.set_major_formatter("{x:g}")
        ticks.set_minor_formatter(NullFormatter())


def label_mark(axis, label: str, mark: str = "o", color="0.3", **style):
    """An entry for a legend: a mark or a line, as `axis.plot` has it."""
    mark = () if "marker" in style else (mark,)
    axis.plot([], [], *mark, label=label, **{"color": color, "markersize": 4} | style)


def label_seeds(axis):
    label_mark(axis, "one seed", ".", "0.6", markersize=3)


def label_regions(axis, held_out="0.3", seen="0.3"):
    """Entries for a legend: held-out and ID points, and one seed."""
    label_mark(axis, "held out (OOD)", color=held_out)
    label_mark(axis, "seen (ID)", "s", seen, markerfacecolor="white")
    label_seeds(axis)


LEGEND = {"handlelength": 1.4, "handletextpad": 0.4, "columnspacing": 0.9, "labelspacing": 0.25}


def legend_below(figure, *axes, ncols: int = 4, **kwargs):
    """One legend for all entries of these axes (by default of all), under a (sub)figure."""
    entries = {}
    for axis in axes or figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    style = {"loc": "outside lower center", "ncols": ncols} | LEGEND | kwargs
    figure.legend(entries.values(), entries.keys(), **style)


# --- maps over the factor plane ----------------------------------------------------------------


def show_map(axis, values_MxM, grid=0, **kwargs):
    """A quantity over the factor plane, in M steps to a side from 0 to `grid` - 1 pixels."""
    last = (grid or len(values_MxM)) - 1
    half = last / (len(values_MxM) - 1) / 2
    kwargs["extent"] = (-half, last + half, -half, last + half)
    image = axis.imshow(values_MxM, origin="lower", interpolation="nearest", **kwargs)
    axis.set(xticks=[0, last], yticks=[0, last], xlabel="x (pixels)", ylabel="y (pixels)")
    return image


def show_share(axis, cells, score: str):
    """The share of seeds of which a score is true, by cell, with the held-out region outlined."""
    share = cells.scores[score].mean(axis=0)
    image = show_map(axis, over_grid(share, cells), vmin=0, vmax=1, cmap="cividis")
    outline(axis, over_grid(cells.held_out, cells))
    return image


def over_grid(values_B, cells):
    """(B,) values of all cells as a map (y, x)."""
    return values_B.reshape(cells.sizes[::-1])


def outline(axis, mask_NxN, **kwargs):
    """Draws the border of a region of cells of any shape."""
    kwargs = {"color": OOD_COLOR, "linewidth": 1.2, **kwargs}
    padded = np.pad(np.asarray(mask_NxN, bool), 1)
    below, beside = np.diff(padded[:, 1:-1], axis=0), np.diff(padded[1:-1], axis=1).T
    for draw, edges in ((axis.hlines, below), (axis.vlines, beside)):
        lines, starts = np.nonzero(edges)
        draw(lines - 0.5, starts - 0.5, starts + 0.5, **kwargs)


# --- images ------------------------------------------------------------------------------------


def is_image(shape) -> bool:
    """(H, W), or (H, W, 3) in RGB."""
    return len(shape) in (2, 3) and shape[2:] in ((), (3,)) and min(shape[:2]) >= 4


def frame(axis, color="0.7"):
    """A frame instead of ticks."""
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set(visible=True, color=color, linewidth=0.8)


def show_signal(axis, signal_NxN, amplitude: float, factors=None, edge=None, lowest: float = 0):
    """An image from white, `lowest` or less, to black, `amplitude`, with the requested position."""
    style = {"cmap": "gray_r", "interpolation": "nearest"}
    axis.imshow(signal_NxN, origin="lower", vmin=lowest, vmax=amplitude, **style)
    if factors is not None:
        axis.plot(*factors, "o", color=edge, fillstyle="none", markersize=9, markeredgewidth=0.8)
    frame(axis, edge or "0.7")


def show_scaled(axis, signal_NxN, factors=None, amplitude: float = 1.0, edge=OOD_COLOR):
    """An image on its own scale, the factor to the amplitude below."""
    top = max(float(np.max(signal_NxN)), 1e-6)
    show_signal(axis, signal_NxN, top, factors, edge)
    factor = amplitude / top
    text = "blank" if factor > 100 else f"scale ×{factor:.{0 if factor > 9.95 else 1}f}"
    axis.set_xlabel(text.removesuffix("scale ×1.0"), fontsize=SMALL, labelpad=1)


def show_rows(figure, rows: dict, cells, indices, show=show_scaled):
    """{label: (B, H, W) images of all cells}: a row for each label. Returns the axes."""
    axes = figure.subplots(len(rows), len(indices), squeeze=False)
    for row, (label, images_B) in zip(axes, rows.items(), strict=True):
        row[0].set_ylabel(label)
        for axis, index in zip(row, indices, strict=True):
            color = OOD_COLOR if cells.held_out[index] else ID_COLOR
            show(axis, images_B[index], cells.factors[index, :2], cells.amplitude, color)
    return axes


def held_out_cells(cells, points):
    """Indices of the held-out cells nearest to points in shares of the held-out region's extent."""
    region = cells.factors[cells.held_out]
    low, high = region.min(axis=0), region.max(axis=0)
    wanted = np.round(low + (high - low) * np.array(points))
    return [nearest_cell(cells, cells.held_out, point) for point in wanted]


def nearest_cell(cells, allowed_B, point) -> int:
    """The index of the allowed cell nearest to a point."""
    indices = np.flatnonzero(allowed_B)
    return indices[np.argmin(np.square(cells.factors[indices] - point).sum(axis=1))]


def spread(mask_B, count: int) -> np.ndarray:
    """Indices of so many of the cells, evenly spread, without the first and the last."""
    indices = np.flatnonzero(mask_B)
    return indices[np.linspace(0, len(indices) - 1, count + 2).round().astype(int)[1:-1]]


def median_seed(cells, score: str = "rendered") -> int:
    """The index of the seed whose mean score OOD is the median."""
    score_T = ood_shares(cells, score)
    return int(np.argsort(score_T)[(len(score_T) - 1) // 2])


# --- numbers over seeds ------------------------------------------------------------------------


def remember(axis, positions, values_TxK, color="none", mark: str = ""):
    """Keeps numbers by seed, drawn at K positions or one, for `numbers_of`."""
    values_TxK = np.reshape(values_TxK, (len(values_TxK), -1))
    positions_TxK = np.broadcast_to(positions, values_TxK.shape)
    numbers = vars(axis).setdefault("numbers", [])
    numbers.append((positions_TxK, values_TxK, to_hex(color, True), mark))


def numbers_of(figure) -> pd.DataFrame:
    """The numbers by seed that a figure draws, a row for each: its panel, the name of its colour in
    a legend, its mark, where it stands, the seed's index and the value."""
    names, rows, letter = {}, [], ""
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            if isinstance(handle, plt.Line2D):
                names.setdefault(to_hex(handle.get_color(), True), " ".join(label.split()))
    for axis in figure.axes:
        letters = [text.get_text() for text in axis.texts if text.get_fontweight() == "bold"]
        letter = letters[0] if letters else letter
        panel = " ".join(f"{letter} {axis.get_label()}".split())
        words = [along.get_major_formatter() for along in (axis.xaxis, axis.yaxis)]
        words = [ticks for ticks in words if isinstance(ticks, FuncFormatter)]
        for positions_TxK, values_TxK, color, mark in getattr(axis, "numbers", ()):
            for (seed, k), value in np.ndenumerate(values_TxK):
                point = positions_TxK[seed, k]
                if words and not isinstance(point, str):
                    point = " ".join(str(words[0](round(float(point)), 0)).split()) or point
                rows.append((panel, names.get(color, ""), mark, point, seed, value))
    columns = "panel", "series", "mark", "point", "seed", "value"
    return pd.DataFrame(rows, columns=columns).dropna(subset="value")


def point_with_interval(axis, position, number, per_seed=(), across=False, dots="0.6", **kwargs):
    """A mean with its 95% interval, and the seeds as dots; `across`: the number is along x."""
    value, (low, high) = number["value"], number["ci95"]
    positions = np.full(len(per_seed), position)
    sides, style = [[value - low], [high - value]], {"capsize": 3} | kwargs
    if across:
        axis.errorbar(value, position, xerr=sides, **style)
        axis.plot(per_seed, positions - 0.25, ".", color=dots, markersize=3)
    else:
        axis.errorbar(position, value, yerr=sides, **style)
        axis.plot(positions + 0.12, per_seed, ".", color=dots, markersize=3, zorder=0)


def show_number(axis, position, values_T, mean=mean_with_interval, **kwargs):
    """Mean, interval and seeds of one number; nothing where no seed has a value."""
    finite = np.asarray(values_T)[np.isfinite(values_T)]
    style = {"markersize": 4} | kwargs
    if len(finite):
        point_with_interval(axis, position, mean(finite), finite, **style)
        remember(axis, position, values_T, style.get("color", "none"), style.get("fmt", ""))


def geometric_mean(values_T) -> dict:
    """Mean and interval of errors; what rounds to no error is `SMALLEST`."""
    return geometric_mean_with_interval(np.maximum(values_T, SMALLEST))


def mean_share(values_T) -> dict:
    """Mean and interval of shares: it ends at 0 and 1."""
    number = mean_with_interval(values_T)
    return number | {"ci95": np.clip(number["ci95"], 0, 1)}


def show_numbers(axis, positions, values_SxT, color, label, mean=mean_with_interval, **kwargs):
    """Numbers at several positions, their means joined by a line."""
    means = [mean(values)["value"] for values in values_SxT]
    axis.plot(positions, means, "-", color=color, linewidth=1, label=label)
    for position, values in zip(positions, values_SxT, strict=True):
        show_number(axis, position, values, mean, fmt="o", color=color, **kwargs)


# {attribute of a run: (what pictures call it, mark)} of predictors from codes
FROM_CODES = {"interpolator": ("interpolation", "D"), "wide_network": ("wide network", "^")}
PREDICTED = {"color": GREY, "markersize": 3.5}


def ood_shares(cells, score: str = "rendered"):
    """(S,) the share of held-out cells at which a score is true; of late checkpoints the median."""
    return median_over_checkpoints(mean_score(cells, score, cells.held_out))


def show_shares(axis, runs: dict):
    """The share rendered OOD and ID of runs by label; below, by predictors from the code."""
    for row, run in enumerate(runs.values()):
        cells, style = run.late.cells, {"across": True, "markersize": 4}
        id_share = median_over_checkpoints(mean_score(cells, "rendered", ~cells.held_out))
        show_number(axis, -row, ood_shares(cells), mean_share, **style, fmt="o", color=OOD_COLOR)
        style |= SEEN | {"color": ID_COLOR}
        point_with_interval(axis, 0.25 - row, mean_share(id_share), **style)
        for name, (_, mark) in FROM_CODES.items():
            share = ood_shares(getattr(run.late, name)).mean()
            axis.plot(share, -row - 0.4, mark, **PREDICTED)
    axis.set_yticks([-row for row in range(len(runs))], list(runs))
    axis.axvline(0.5, **DOTTED)
    axis.set(xlim=(-0.04, 1.04), ylim=(0.4 - len(runs), 0.6), xlabel="share rendered")
    label_regions(axis, OOD_COLOR, ID_COLOR)
    for title, mark in FROM_CODES.values():
        label_mark(axis, f"{title}, OOD", mark, **PREDICTED)


def draw_band(axis, x_K, values_TxK, line: str, color, log: bool = False, **kwargs):
    """Mean, with `log` the geometric one, and interval, which ends at 1 where no value is above, as
    a line and a band. Returns (3, K)."""
    band = np.exp(mean_band(np.log(values_TxK))) if log else mean_band(values_TxK)
    if not (log or np.any(np.greater(values_TxK, 1))):
        band = np.minimum(band, 1)
    axis.plot(x_K, band[0], line, color=color, **kwargs)
    axis.fill_between(x_K, *band[1:], color=color, alpha=0.15, linewidth=0)
    remember(axis, x_K, values_TxK, color, line)
    return band


def draw_line(axis, values_TxL, end, color, linestyle, label):
    """One network's number by layer up to the last hidden one; apart, the image's, of layer
    `end`."""
    values_TxL = np.asarray(values_TxL)
    inner = np.arange(values_TxL.shape[1] - 1)
    style = {"marker": ".", "markersize": 4, "linewidth": 1.2, "label": label}
    draw_band(axis, inner, values_TxL[:, :-1], linestyle, color, **style)
    end += 1  # a gap between
    image, low, high = draw_band(axis, [end], values_TxL[:, -1:], linestyle, color)[:, 0]
    style = {"fmt": "D"} if linestyle == "-" else SEEN
    style = {"color": color, "markersize": 4, "capsize": 2, "linewidth": 0.8} | style
    point_with_interval(axis, end, {"value": image, "ci95": (low, high)}, **style)


def name_layers(axis, count: int, every: int = 1):
    """Ticks at all layers; `every` second is named, say, and the image."""
    names = [str(index) if index % every == 0 else "" for index in range(count)]
    axis.set_xticks([*range(count - 1), count], ["code", *names[1:-1], "image"])
    axis.axvline(count - 1, **FAINT)


# --- files -------------------------------------------------------------------------------------


def write(figure, stem, about=None):
    """Writes STEM.png, with texts `about` it, STEM.pdf, without a date, and, if any are kept, its
    numbers, STEM.csv; closes the figure."""
    png, pdf, table = io.BytesIO(), io.BytesIO(), numbers_of(figure)
    figure.savefig(png, format="png", dpi=DOTS, metadata=about)
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    directory.write_bytes(Path(f"{stem}.png"), png.getvalue())
    directory.write_bytes(Path(f"{stem}.pdf"), pdf.getvalue())
    if len(table):
        directory.write_text(Path(f"{stem}.csv"), table.to_csv(index=False, float_format="%.6g"))
    plt.close(figure)
