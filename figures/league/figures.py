"""Who composes what, and whether seen combinations tell."""

import numpy as np

from compgen_jax.analysis import prediction, text
from compgen_jax.claims.league import GEOMETRY
from figures import plotting
from figures.league import table
from figures.league.networks import HOLDOUTS, TASKS

FAMILY_MARKS = "os^Dv<>Pphd*X8"
AXIS_TITLES = {
    "interaction": "interaction share",
    "probe": "probe R²",
    "log10_volume_spread": "spread of log₁₀ volume",
}


def draw(studies):
    """Accuracy on held-out combinations of every model (rows) on every task and hold-out
    (columns): mean over seeds and half of the 95% interval; below, on seen ones. Bumps: the
    brightest pixel is the requested one; digits: angle within 5 degrees, the right digit, error
    below a twentieth of a blank image's. Dotted: seen combinations were not learnt (below .95). An
    asterisk: the error is no smaller than a trivial predictor's. Right: parameters of the first
    task. The hold-outs of a task leave out as many combinations each.
    """
    columns, cells = table.columns(studies), table.cells(studies)
    figure = plotting.new_figure(1.9 + 0.82 * len(columns), 0.9 + 0.42 * len(cells))
    axis = figure.subplots()
    values = np.full((len(cells), len(columns)), np.nan)
    for row, of_player in enumerate(cells.values()):
        for column, match in enumerate(columns):
            if match in of_player:
                values[row, column] = of_player[match].ood["value"]
                _write(axis, column, row, of_player[match])
    colors = plotting.plt.get_cmap("RdYlBu").with_extremes(bad="white")
    axis.imshow(values, cmap=colors, vmin=0, vmax=1, aspect="auto", alpha=0.75)
    axis.set_yticks(range(len(cells)), list(cells))
    axis.set_xticks(range(len(columns)), [HOLDOUTS[holdout] for _, holdout in columns])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
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


def _write(axis, column, row, cell):
    low, high = cell.ood["ci95"]
    half = "" if low is None else f" ± {(high - low) / 2:.2f}".replace("0.", ".")
    starred = "*" if cell.over_trivial >= 1 else ""
    number = f"{cell.ood['value']:.2f}".lstrip("0") if cell.ood["value"] < 1 else "1.0"
    axis.text(column, row - 0.1, f"{number}{half}{starred}", ha="center", va="center", fontsize=6.5)
    seen = f"seen {cell.seen['value']:.2f}".replace("0.", ".")
    style = {} if cell.learnt else {"style": "italic", "color": "0.3"}
    axis.text(column, row + 0.27, seen, ha="center", va="center", fontsize=5.2, **style)
    if not cell.learnt:
        axis.add_patch(plotting.plt.Rectangle(
            (column - 0.47, row - 0.46), 0.94, 0.92, fill=False, linestyle=":", color="0.3"
        ))  # fmt: skip


def draw_prediction(studies):
    """Does the last hidden layer, on seen combinations alone, tell who composes the others? A dot
    is a match of the league, its mark the model's family, its colour the task and hold-out; OOD
    accuracy against the share of variance that is in no factor alone, the R² of a linear probe of
    the factors, and the spread of the volume element. Above: Spearman's rank correlation inside a
    task and hold-out, with its 95% interval over families.
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
        number = prediction.rank_correlation(found, name, within=True)
        axis.set_title(f"rank correlation {text.with_interval(number, 2)}")
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
