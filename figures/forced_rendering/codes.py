"""Claims C1-C3 over all four codes: accuracy, success near the edge, superposed bumps."""

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering.figure1 import aligned_peaks
from compgen_jax.statistics import mean_with_interval
from figures import plotting


def draw(studies):
    """The claims that Figure 1 carries (C1 to C3), over four codes: means over seeds with 95%
    intervals, seeds as grey dots, criteria as grey lines. (c) Peaks are relative to an image's own
    maximum. (d) Where the drawn bump peaks at the right pixel."""
    results = {study.role.code: study.results for study in studies}
    figure = plotting.new_figure(7.4, 4.6)
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.05, 1])
    accuracy, distance, peaks = top.subplots(1, 3)
    _draw_accuracy(accuracy, results)
    _draw_distance(distance, results)
    _draw_peaks(peaks, results)
    for axis, letter in zip((accuracy, distance, peaks), "abc", strict=True):
        plotting.panel_label(axis, letter)
    _draw_maps(bottom, results)
    return figure


def _draw_accuracy(axis, results):
    for position, (code, cells) in enumerate(results.items()):
        for offset, mask, marker in ((-0.15, ~cells.held_out, "o"), (0.15, cells.held_out, "s")):
            per_seed = evaluation.mean_score(cells, "exact_accuracy", mask)
            plotting.point_with_interval(
                axis, position + offset, mean_with_interval(per_seed), per_seed,
                fmt=marker, markersize=4, color=plotting.CODE_COLORS[code],
                markerfacecolor=plotting.CODE_COLORS[code] if marker == "o" else "white",
            )  # fmt: skip
    axis.plot([], [], "o", color="0.3", markersize=4, label="ID (seen)")
    axis.plot([], [], "s", color="0.3", markerfacecolor="white", markersize=4, label="OOD")
    axis.axhline(0.5, color="0.8", linewidth=0.8, zorder=0)
    axis.set_xticks(range(len(results)), list(results))
    axis.set(ylabel="exact accuracy", ylim=(-0.04, 1.09), title="C1: accuracy")
    axis.legend(loc="center right", bbox_to_anchor=(1.0, 0.7))


def _draw_distance(axis, results):
    for code, cells in results.items():
        hits = cells.scores["exact_accuracy"]
        levels, means = evaluation.profile_by_distance(hits, cells)
        intervals = [mean_with_interval(column)["ci95"] for column in means.T]
        low, high = np.array(intervals).T
        color = plotting.CODE_COLORS[code]
        axis.plot(levels, means.mean(axis=0), "o-", markersize=3, color=color, label=code)
        axis.fill_between(levels, low, high, color=color, alpha=0.15, linewidth=0)
    axis.set(
        xlabel="distance to the nearest seen cell (pixels)",
        ylabel="exact accuracy OOD",
        ylim=(-0.02, None),
        title="C2: success near the edge",
    )
    axis.legend()


def _draw_peaks(axis, results):
    """Of OOD images, those with two peaks and with two in line with x or y; and, of misplaced
    peaks, those in line, beside what chance would give."""
    for index, (code, cells) in enumerate(results.items()):
        found = aligned_peaks(cells)
        shown = found.several, found.several_aligned, found.aligned
        chance = 2 + 0.15 * (index - 1.5), found.chance.mean()
        axis.plot(*chance, "_", color=plotting.CODE_COLORS[code], markersize=9)
        for position, values in enumerate(shown):
            plotting.show_number(
                axis, position + 0.15 * (index - 1.5), values, fmt="o",
                color=plotting.CODE_COLORS[code],
            )  # fmt: skip
    axis.axhline(0.5, color="0.8", linewidth=0.8, zorder=0)
    axis.text(2, found.chance.mean() - 0.04, "by chance", ha="center", va="top", fontsize=7)
    axis.set_xticks(range(3), ["images with\n2 peaks", "with 2\nin line", "peaks\nin line"])
    axis.set(ylabel="share", ylim=(-0.04, 1.08), title="C3: several peaks in line")


def _draw_maps(figure, results):
    axes = figure.subplots(1, len(results), sharey=True)
    for axis, (code, cells) in zip(axes, results.items(), strict=True):
        hits = cells.scores["exact_accuracy"]
        accuracy = hits.mean(axis=0).reshape(cells.grid, cells.grid)
        image = plotting.show_map(axis, accuracy, vmin=0, vmax=1, cmap="cividis")
        plotting.outline(axis, cells.held_out.reshape(accuracy.shape))
        axis.set_title(f"{code} code")
        axis.label_outer()
    figure.colorbar(image, ax=axes, label="exact accuracy", shrink=0.9, pad=0.01)
    plotting.panel_label(axes[0], "d")
