"""The league's table as a picture."""

import numpy as np

from compgen_jax.metrics import text
from compgen_jax.studies.benchmark.benchmark_presets import HOLDOUTS, TASKS

from .. import plotting
from ..figure import figure
from . import benchmark_tables as tables


@figure("league", runs=("league_*",), by_default=False, of_summaries=True)
def draw(runs):
    """Models are mostly right on combinations held out at random, as kernel ridge regression (KRR)
    often is. Few generalize compositionally to a block, none to a corner. In a cell: the share of
    held-out combinations that are right ("composed"), mean over seeds; below, its 95% interval.
    Small: KRR on the same encoding, or NTK regression where it is run and higher. Bold: the model
    generalizes compositionally. At least .95 of ID combinations are right, and the interval lies
    above .5 and above every baseline. The last row has the best baseline besides these two. Dotted
    frame: fewer than .95 of ID combinations are right; this share stands below. Columns of a task
    hold out as many combinations; parameters are those on the first task. Right means, of bumps and
    sprites: rendered; of digits: the right digit, an angle within 5 degrees, and an error below a
    twentieth of a blank image's."""
    cells, columns = tables.cells(runs.values()), tables.columns(runs.values())
    counts = tables.parameters(runs.values())
    bottom, last = len(cells), len(columns) - 0.4
    picture, by_holdout = plotting.new_figure(plotting.WIDTH, 1.6 + 0.42 * bottom), {}
    axis, values = picture.subplots(), np.full((bottom + 1, len(columns)), np.nan)
    small = {"fontsize": plotting.SMALL, "va": "center"}
    for row, (model, of_model) in enumerate(cells.items()):
        axis.text(last, row, f"{counts[model]:,}", **small)
        for column, place in enumerate(columns):
            if place in of_model:
                values[row, column] = of_model[place].ood["value"]
                _write(axis, column, row, of_model[place])
    for column, (place, of_column) in enumerate(columns.items()):
        values[-1, column] = max(of_column.trivial.values())
        axis.text(column, bottom, _two(values[-1, column]), ha="center", va="center")
        composes = [of_model[place].composes for of_model in cells.values() if place in of_model]
        axis.text(column, bottom + 0.72, _count(composes), ha="center", **small)
        by_holdout.setdefault(HOLDOUTS[place[1]], []).extend(composes)
    colors = plotting.plt.get_cmap("YlGn").with_extremes(bad="white")
    axis.imshow(values, cmap=colors, vmin=0, vmax=1.6, aspect="auto", alpha=0.7)
    names = [name.replace(", ", ",\n") for name in cells]
    axis.set_yticks(range(bottom + 1), [*names, "best trivial\npredictor"])
    held_out = [HOLDOUTS[holdout].replace(" ", "\n") for _, holdout in columns]
    axis.set_xticks(range(len(columns)), held_out)
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.axhline(bottom - 0.5, color="white", linewidth=4)
    for task, title in TASKS.items():
        places = [index for index, (name, _) in enumerate(columns) if name == task]
        if places:
            style = {"ha": "center", "va": "bottom", "fontweight": "bold"}
            axis.text(np.mean(places), -1.25, title.replace(": ", ":\n"), **style)
            axis.axvline(places[-1] + 0.5, color="white", linewidth=4)
    axis.text(-0.6, -0.85, "held out", ha="right", **small)
    axis.text(last, -0.85, "para-\nmeters", **small)
    axis.text(-0.6, bottom + 0.72, "models that\ncompose", ha="right", **small)
    axis.set_ylim(bottom + 1, -0.5)
    learnt = plotting.plt.Rectangle((0, 0), 1, 1, fill=False, linestyle=":", color="0.3")
    key = "fewer than 95% of the seen combinations are right"
    picture.legend([learnt], [key], loc="outside lower center")
    counts = (f"{holdout} {_count(composes)}" for holdout, composes in by_holdout.items())
    picture.suptitle(
        f"Models that compose, by what is held out: {', '.join(counts)}\nIn a cell: the share "
        "composed (bold: composes) and, small, by kernels; below, its 95% interval",
        x=0.01, ha="left",
    )  # fmt: skip
    return picture


def _count(truths: list) -> str:
    return f"{sum(truths)} of {len(truths)}"


def _two(value: float) -> str:
    """.97, 1.0, and a dash for what is not known."""
    if np.isnan(value):
        return text.UNKNOWN
    return f"{value:.2f}".lstrip("0") if value < 0.995 else "1.0"


def _write(axis, column, row, cell):
    small = {"fontsize": plotting.SMALL, "va": "center"}
    bold = {"fontweight": "bold" if cell.composes else "normal", "ha": "right", "va": "center"}
    interval = ", ".join(map(_two, cell.ood["ci95"]))
    axis.text(column + 0.02, row - 0.28, _two(cell.ood["value"]), **bold)
    of_kernels = np.fmax(cell.interpolated, cell.wide_network)
    axis.text(column + 0.12, row - 0.27, _two(of_kernels), color="0.35", **small)
    axis.text(column, row + 0.03, f"[{interval}]", ha="center", **small)
    if not cell.learnt:
        seen = f"seen {_two(int(cell.seen['value'] * 100 + 1e-9) / 100)}"  # .9499 is not .95
        axis.text(column, row + 0.33, seen, style="italic", ha="center", **small)
        dotted = {"fill": False, "linestyle": ":", "color": "0.3"}
        corner = column - 0.47, row - 0.47
        axis.add_patch(plotting.plt.Rectangle(corner, 0.94, 0.94, **dotted))
