"""The league's table as a picture."""

import numpy as np

from compgen_jax.metrics import text
from compgen_jax.papers.league.runs import HOLDOUTS, TASKS

from .. import plotting
from ..figure import figure
from . import tables


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
    a twentieth of a blank image's. Right of the table: parameters on the first task. Below it: how
    many of the models compose. All hold-outs
    of a task leave out as many combinations."""
    cells, columns = tables.cells(runs.values()), tables.columns(runs.values())
    drawn = plotting.new_figure(plotting.WIDTH, 1.7 + 0.42 * len(cells))
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
        axis.text(column, len(cells), _two(value), ha="center", va="center")
    colors = plotting.plt.get_cmap("RdYlBu").with_extremes(bad="white")
    axis.imshow(values, cmap=colors, vmin=0, vmax=1, aspect="auto", alpha=0.6)
    names = [name.replace(", ", ",\n") for name in cells]
    axis.set_yticks(range(len(cells) + 1), [*names, "best trivial\npredictor"])
    counts = [_composing(cells.values(), place) for place in columns]
    held_out = [HOLDOUTS[holdout].replace(" ", "\n") for _, holdout in columns]
    axis.set_xticks(range(len(columns)), held_out)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.axhline(len(cells) - 0.5, color="white", linewidth=4)
    for task, title in TASKS.items():
        own = [index for index, (name, _) in enumerate(columns) if name == task]
        if own:
            title = title.replace(": ", ":\n")
            axis.text(np.mean(own), -0.62, title, ha="center", va="bottom", fontweight="bold")
            axis.axvline(own[-1] + 0.5, color="white", linewidth=4)
    last = len(columns) - 0.4
    small = {"fontsize": plotting.SMALL, "va": "center"}
    axis.text(last, -0.75, "para-\nmeters", **small)
    for row, count in enumerate(tables.parameters(runs.values()).values()):
        axis.text(last, row, f"{count:,}", **small)
    for column, count in enumerate(counts):
        axis.text(column, len(cells) + 0.72, count, ha="center", **small)
    axis.text(-0.6, len(cells) + 0.72, "compose", ha="right", **small)
    axis.set_ylim(len(cells) + 1, -0.5)
    axis.set_xlabel("held out")
    learnt = plotting.plt.Rectangle((0, 0), 1, 1, fill=False, linestyle=":", color="0.3")
    place = {"loc": "upper center", "bbox_to_anchor": (0.4, -0.1)}
    axis.legend([learnt], ["fewer than 95% of the seen combinations are right"], **place)
    key = "In a cell: share composed; small, by interpolation; below, 95% interval. Bold: composes."
    axis.text(0.4, -0.17, key, transform=axis.transAxes, ha="center", va="top",
              fontsize=plotting.SMALL)  # fmt: skip
    return drawn


def _composing(models, place) -> str:
    """'4 of 12': how many of the models that have a run there compose."""
    composes = [of_model[place].composes for of_model in models if place in of_model]
    return f"{sum(composes)} of {len(composes)}"


def _two(value: float) -> str:
    """.97, 1.0, and a dash for what is not known."""
    if value != value:
        return text.UNKNOWN
    return f"{value:.2f}".lstrip("0") if value < 0.995 else "1.0"


def _write(axis, column, row, cell):
    low, high = cell.ood["ci95"]
    weight = "bold" if cell.composes else "normal"
    small = {"fontsize": plotting.SMALL, "va": "center"}
    axis.text(column + 0.02, row - 0.28, _two(cell.ood["value"]), fontweight=weight, ha="right",
              va="center")  # fmt: skip
    axis.text(column + 0.12, row - 0.27, _two(cell.interpolated), color="0.35", **small)
    axis.text(column, row + 0.03, f"[{_two(low)}, {_two(high)}]", ha="center", **small)
    if not cell.learnt:
        seen = f"seen {tables.floor(cell.seen['value'])}"
        axis.text(column, row + 0.33, seen, style="italic", ha="center", **small)
        axis.add_patch(plotting.plt.Rectangle(
            (column - 0.47, row - 0.47), 0.94, 0.94, fill=False, linestyle=":", color="0.3"
        ))  # fmt: skip
