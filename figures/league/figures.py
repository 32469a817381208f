"""The league's table as a picture, and whether layers on ID cells tell who composes."""

import numpy as np

from compgen_jax.metrics import prediction, text
from compgen_jax.papers.league.claims import GEOMETRY, networks_of
from compgen_jax.papers.league.runs import HOLDOUTS, TASKS

from .. import plotting
from ..figure import figure
from . import tables

MARKS = "os^Dv<>Pphd*X8"  # of architectures
AXIS_TITLES = {
    "interaction": "interaction share",
    "probe": "probe R²",
    "log10_volume_spread": "spread of log₁₀ volume",
}


@figure("league", runs=("league_*",), by_default=False, of_summaries=True)
def draw(runs):
    """The share of held-out combinations that every model (rows) composes, on every task and
    hold-out (columns): mean over seeds with its 95% interval. Small and grey, on its right: the
    share by interpolation, kernel ridge regression on the same codes. Bold: at least .95 of the
    seen combinations are right, and the share lies above .5, above that of interpolation and above
    that of every other trivial predictor, the best of which is the last row. Dotted: less than .95
    of the seen combinations are right; that accuracy is given below. Composed means: of bumps, that
    the image is rendered (at any level: correlation, gain, and more like it than like the nearest
    seen image); of digits, that the digit is right, the angle within 5 degrees, and the error below
    a twentieth of a blank image's. Right of the table: parameters on the first task. All hold-outs
    of a task leave out as many combinations."""
    cells, columns = tables.cells(runs.values()), tables.columns(runs.values())
    drawn = plotting.new_figure(1.9 + 0.86 * len(columns), 1.3 + 0.4 * len(cells))
    axis = drawn.subplots()
    trivial = [max(column.trivial.values()) for column in columns.values()]
    values = np.full((len(cells) + 1, len(columns)), np.nan)
    for row, of_model in enumerate(cells.values()):
        for column, place in enumerate(columns):
            if place in of_model:
                values[row, column] = of_model[place].ood["value"]
                _write(axis, column, row, of_model[place])
    values[-1] = trivial
    for column, value in enumerate(trivial):
        axis.text(column, len(cells), _two(value), ha="center", va="center", fontsize=6.5)
    colors = plotting.plt.get_cmap("RdYlBu").with_extremes(bad="white")
    axis.imshow(values, cmap=colors, vmin=0, vmax=1, aspect="auto", alpha=0.6)
    axis.set_yticks(range(len(cells) + 1), [*cells, "best trivial predictor"])
    axis.set_xticks(range(len(columns)), [HOLDOUTS[holdout] for _, holdout in columns])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.axhline(len(cells) - 0.5, color="white", linewidth=4)
    for task, title in TASKS.items():
        own = [index for index, (name, _) in enumerate(columns) if name == task]
        if own:
            axis.text(np.mean(own), -0.62, title, ha="center", va="bottom", fontweight="bold")
            axis.axvline(own[-1] + 0.5, color="white", linewidth=4)
    last = len(columns) - 0.4
    axis.text(last, -0.62, "parameters", va="bottom", fontsize=6.5)
    for row, count in enumerate(tables.parameters(runs.values()).values()):
        axis.text(last, row, f"{count:,}", va="center", fontsize=6.5)
    axis.set_xlabel("held out")
    return drawn


def _two(value: float) -> str:
    """.97, 1.0, and a dash for what is not known."""
    if value != value:
        return text.UNKNOWN
    return f"{value:.2f}".lstrip("0") if value < 0.995 else "1.0"


def _write(axis, column, row, cell):
    low, high = cell.ood["ci95"]
    weight = "bold" if cell.composes else "normal"
    place = {"ha": "center", "va": "center"}
    axis.text(column, row - 0.2, _two(cell.ood["value"]), fontsize=7, fontweight=weight, **place)
    axis.text(column + 0.34, row - 0.2, _two(cell.interpolated), fontsize=4.6, color="0.3", **place)
    axis.text(column, row + 0.12, f"[{_two(low)}, {_two(high)}]", fontsize=5.2, **place)
    if not cell.learnt:
        seen = f"seen {tables.floor(cell.seen['value'])}"
        axis.text(column, row + 0.37, seen, fontsize=4.6, style="italic", **place)
        axis.add_patch(plotting.plt.Rectangle(
            (column - 0.45, row - 0.46), 0.9, 0.92, fill=False, linestyle=":", color="0.3"
        ))  # fmt: skip


@figure("league_geometry", runs=("league_*",), by_default=False)
def draw_prediction(runs):
    """L1 (does the last hidden layer, on seen combinations alone, tell which networks compose?). A
    dot is a run of the league; its mark is the architecture, its colour the task and hold-out. The
    share composed OOD against (a) the share of variance that is in no factor alone, (b) the R² of a
    linear probe of the factors, and (c) the spread of the volume element, which one-hot codes lack.
    Above: Spearman's rank correlation inside a task and hold-out, with its 95% interval over
    architectures, and the number of runs."""
    networks = networks_of(runs.values())
    families, groups = (list(dict.fromkeys(labels)) for labels in networks[:2])
    colors = plotting.plt.get_cmap("tab10")
    drawn = plotting.new_figure(8.6, 3.3)
    axes = drawn.subplots(1, len(GEOMETRY), sharey=True)
    for axis, name, letter in zip(axes, GEOMETRY, "abc", strict=True):
        for family, group, x, y in zip(
            networks.family,
            networks.group,
            networks.predictors[name],
            networks.outcome,
            strict=True,
        ):
            mark = MARKS[families.index(family) % len(MARKS)]
            axis.plot(x, y, mark, markersize=4, color=colors(groups.index(group) % 10), alpha=0.8)
        number = prediction.rank_correlation(networks, name)
        axis.set_title(f"{text.with_interval(number, 2)}, {number['networks']} runs")
        axis.set(xlabel=AXIS_TITLES[name], ylim=(-0.04, 1.04))
        plotting.panel_label(axis, letter)
    axes[0].set_ylabel("share composed OOD")
    handles = [plotting.plt.Line2D([], [], marker=mark, linestyle="", color="0.3", markersize=4)
               for mark in MARKS[: len(families)]]  # fmt: skip
    handles += [plotting.plt.Line2D([], [], marker="o", linestyle="", color=colors(k % 10),
                                    markersize=4) for k in range(len(groups))]  # fmt: skip
    drawn.legend(
        handles, [*families, *groups], loc="outside lower center", ncols=7, fontsize=6.5,
        handletextpad=0.2, columnspacing=0.9,
    )  # fmt: skip
    return drawn
