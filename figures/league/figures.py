"""Who composes what, and whether seen combinations tell."""

import numpy as np

from compgen_jax.metrics import prediction, text
from compgen_jax.papers.league.claims import GEOMETRY
from compgen_jax.papers.league.runs import HOLDOUTS, TASKS
from figures import plotting
from figures.league import table

FAMILY_MARKS = "os^Dv<>Pphd*X8"
AXIS_TITLES = {
    "interaction": "interaction share",
    "probe": "probe R²",
    "log10_volume_spread": "spread of log₁₀ volume",
}


def draw(studies):
    """Accuracy on held-out combinations of every model (rows) on every task and hold-out (columns),
    mean over seeds and its 95% interval; bold where .95 of seen ones are right and it lies
    above .5 and above every trivial predictor, whose best is the last row. Bumps: the brightest
    pixel, and of three factors the size, are those that are asked for; digits: the digit, the
    angle within 5 degrees, and an error below a twentieth of a blank image's. Dotted: seen
    combinations were not learnt (accuracy on them, below, under .95). Right: parameters on the
    first task. The hold-outs of a task leave out as many combinations each.
    """
    cells, columns = table.cells(studies), table.columns(studies)
    figure = plotting.new_figure(1.9 + 0.86 * len(columns), 1.3 + 0.4 * len(cells))
    axis = figure.subplots()
    trivial = [max(column.trivial.values()) for column in columns.values()]
    values = np.full((len(cells) + 1, len(columns)), np.nan)
    for row, of_player in enumerate(cells.values()):
        for column, match in enumerate(columns):
            if match in of_player:
                values[row, column] = of_player[match].ood["value"]
                _write(axis, column, row, of_player[match])
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
    for row, count in enumerate(table.parameters(studies).values()):
        axis.text(last, row, f"{count:,}", va="center", fontsize=6.5)
    axis.set_xlabel("held out")
    return figure


def _two(value: float) -> str:
    """.97, 1.0"""
    return f"{value:.2f}".lstrip("0") if value < 0.995 else "1.0"


def _write(axis, column, row, cell):
    low, high = cell.ood["ci95"]
    weight = "bold" if cell.composes else "normal"
    place = {"ha": "center", "va": "center"}
    axis.text(column, row - 0.2, _two(cell.ood["value"]), fontsize=7, fontweight=weight, **place)
    axis.text(column, row + 0.12, f"[{_two(low)}, {_two(high)}]", fontsize=5.2, **place)
    if not cell.learnt:
        seen = f"seen {table.floor(cell.seen['value'])}"
        axis.text(column, row + 0.37, seen, fontsize=4.6, style="italic", **place)
        axis.add_patch(plotting.plt.Rectangle(
            (column - 0.45, row - 0.46), 0.9, 0.92, fill=False, linestyle=":", color="0.3"
        ))  # fmt: skip


def draw_prediction(studies):
    """Does the last hidden layer, on seen combinations alone, tell who composes the others? A dot
    is a match of the league, its mark the model's family, its colour the task and hold-out; OOD
    accuracy against the share of variance that is in no factor alone, the R² of a linear probe of
    the factors, and the spread of the volume element (none of one-hot codes). Above: Spearman's
    rank correlation inside a task and hold-out, with its 95% interval over families, and of how
    many matches.
    """
    found = table.networks(studies)
    families, groups = list(dict.fromkeys(found.family)), list(dict.fromkeys(found.group))
    colors = plotting.plt.get_cmap("tab10")
    figure = plotting.new_figure(8.6, 3.3)
    axes = figure.subplots(1, len(GEOMETRY), sharey=True)
    for axis, name, letter in zip(axes, GEOMETRY, "abc", strict=True):
        for family, group, x, y in zip(
            found.family, found.group, found.predictors[name], found.outcome, strict=True
        ):
            mark = FAMILY_MARKS[families.index(family) % len(FAMILY_MARKS)]
            axis.plot(x, y, mark, markersize=4, color=colors(groups.index(group) % 10), alpha=0.8)
        number = prediction.rank_correlation(found, name)
        axis.set_title(f"{text.with_interval(number, 2)}, {number['networks']} matches")
        axis.set(xlabel=AXIS_TITLES[name], ylim=(-0.04, 1.04))
        plotting.panel_label(axis, letter)
    axes[0].set_ylabel("accuracy OOD")
    handles = [plotting.plt.Line2D([], [], marker=mark, linestyle="", color="0.3", markersize=4)
               for mark in FAMILY_MARKS[: len(families)]]  # fmt: skip
    handles += [plotting.plt.Line2D([], [], marker="o", linestyle="", color=colors(k % 10),
                                    markersize=4) for k in range(len(groups))]  # fmt: skip
    figure.legend(
        handles, [*families, *groups], loc="outside lower center", ncols=7, fontsize=6.5,
        handletextpad=0.2, columnspacing=0.9,
    )  # fmt: skip
    return figure
