"""Bumps of three factors, x, y and size: which held-out combinations are composed?"""

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import evaluation
from compgen_jax.metrics.coverage import pairs_seen
from compgen_jax.metrics.readout import drawn_size
from compgen_jax.papers.forced_rendering.controls import trivial_errors
from compgen_jax.statistics import mean_band
from figures import plotting
from figures.forced_rendering.controls import PREDICTORS as OF_TWO_FACTORS

PREDICTORS = OF_TWO_FACTORS | {"line_mean": "along each factor"}
REGIONS = ("box", "xy", "xs", "random")
COLORS = {"box": "#0072b2", "xy": "#d55e00", "xs": "#cc79a7", "random": "#009e73"}
NAMES = {
    "box": "a box of x, y and size",
    "xy": "(x, y), at every size",
    "xs": "(x, size), at every y",
    "random": "combinations at random",
}
ASIDE = dict(zip(REGIONS, (-0.3, -0.1, 0.1, 0.3), strict=True))
SCORES = {"image_accuracy": "good image", "exact_accuracy": "exact\nposition"}
PAIR_COLORS = ("#6a51a3", "#238b45", "#d94801")
PLACES = ((0.25, 0.3), (0.7, 0.6))  # of the hole's width and height, for each of three sizes


def draw(studies):
    """Networks of three factors by what is held out of them: a box of combinations (of whose values
    each pair is seen), a square of x and y at every size (no pair (x, y) of it is seen), one of x
    and size at every y, or as many combinations as in the box at random. Means over seeds with 95%
    intervals; grey dots are seeds. (a) Share of images that are good (an error of at most a quarter
    of a blank image's) and of exact positions, held out (filled) and seen (open). (b) Error over
    the held-out combinations, that of a blank image being 1, beside that of predictors that only
    know the seen images (diamonds; no seeds). (c) Good images of held-out combinations by how many
    of their three pairs of values, (x, y), (x, size) and (y, size), some seen combination has. (d)
    The same by the distance to the nearest seen combination, in cells. (e) By layer, mean |cosine|
    of the angle between the tangents of two factors, of the box and of the square of x and y, over
    held-out (solid) and seen combinations (dashed). (f) Of these two, by layer, log10 of the
    held-out combinations' volume element over the seen ones', geometric means. (g) What the first
    seeds draw of combinations that are held out of the box, from three sizes, each on its own
    scale. (h) Held-out images with the right position, with the right size (that of the nearest
    true image at the position that is drawn), and with both; open, seen ones."""
    studies = {study.role.region: study for study in studies}
    results = {name: study.results for name, study in studies.items()}
    figure = plotting.new_figure(9.05, 8.2)
    rows = figure.subfigures(3, 1, height_ratios=[2.5, 2.2, 3.5])
    accuracy, error, pairs, distance = rows[0].subplots(1, 4, width_ratios=[1.1, 1.2, 1, 1])
    _draw_accuracy(accuracy, results)
    _draw_error(error, results)
    _draw_pairs(pairs, results)
    _draw_distance(distance, results)
    layers = rows[1].subplots(1, 3)
    for axis, name in zip(layers, ("box", "xy"), strict=False):
        _draw_angles(axis, studies[name].inspection, f"held out: {NAMES[name]}")
    _draw_volume(layers[2], {name: studies[name] for name in ("box", "xy")})
    examples, read = rows[2].subfigures(1, 2, width_ratios=[6.4, 2.6])
    _draw_examples(examples, results)
    readout = read.subplots(1, 1)
    _draw_readout(readout, results)
    handles = [
        plotting.plt.Line2D([], [], linestyle="none", marker="o", color=COLORS[name], label=text)
        for name, text in NAMES.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, title="held out")
    labelled = accuracy, error, pairs, distance, layers[0], layers[2], examples.axes[0], readout
    for axis, letter in zip(labelled, "abcdefgh", strict=True):
        plotting.panel_label(axis, letter)
    return figure


def _pair(axis, position, seen_T, held_out_T, name):
    """A number of held-out combinations (filled) beside that of seen ones (open)."""
    color, aside = COLORS[name], ASIDE[name]
    plotting.show_number(axis, position + aside - 0.04, held_out_T, fmt="o", color=color)
    hollow = {"fmt": "s", "color": color, "markerfacecolor": "white"}
    plotting.show_number(axis, position + aside + 0.04, seen_T, **hollow)


def _draw_accuracy(axis, results):
    for position, score in enumerate(SCORES):
        for name, cells in results.items():
            seen, held_out = (
                evaluation.mean_score(cells, score, mask)
                for mask in (~cells.held_out, cells.held_out)
            )
            _pair(axis, position, seen, held_out, name)
    axis.set_xticks(range(len(SCORES)), list(SCORES.values()))
    axis.set(ylabel="share of combinations", ylim=(-0.04, 1.06), xlim=(-0.5, len(SCORES) - 0.5))
    axis.plot([], [], "o", color="0.3", markersize=4, label="held out")
    axis.plot([], [], "s", color="0.3", markerfacecolor="white", markersize=4, label="seen")
    axis.legend(loc="lower left")


def _draw_error(axis, results):
    for index, (name, cells) in enumerate(results.items()):
        relative = evaluation.relative_error(cells, cells.held_out)
        plotting.show_number(axis, -index, relative, across=True, fmt="o", color=COLORS[name])
        errors = trivial_errors(cells)
        for row, predictor in enumerate(PREDICTORS, start=len(results)):
            height = -row - 0.18 * (index - 1.5)
            axis.plot(errors[predictor], height, "D", color=COLORS[name], markersize=3)
    axis.axhline(0.5 - len(results), color="0.7", linewidth=0.8)
    axis.axvline(1, color="0.85", linewidth=0.8, zorder=0)
    names = [*NAMES.values(), *PREDICTORS.values()]
    axis.set_yticks([-row for row in range(len(names))], names, fontsize=6.5)
    axis.set(xscale="log", xlabel="MSE OOD / blank image's")


def _draw_pairs(axis, results):
    for index, (name, cells) in enumerate(results.items()):
        counts = pairs_seen(cells.held_out, cells.sizes)
        for count in range(4):
            chosen = cells.held_out & (counts == count)
            if chosen.any():
                values = evaluation.mean_score(cells, "image_accuracy", chosen)
                position = count + 0.2 * (index - 1.5)
                plotting.show_number(axis, position, values, fmt="o", color=COLORS[name])
    axis.set_xticks(range(4))
    axis.set(xlabel="pairs of values seen", ylabel="good images, held out", ylim=(-0.04, 1.06),
             xlim=(-0.5, 3.5))  # fmt: skip


def _draw_distance(axis, results):
    for name, cells in results.items():
        levels, means = evaluation.profile_by_distance(cells.scores["image_accuracy"], cells)
        middle, low, high = mean_band(means)
        axis.plot(levels, middle, "o-", color=COLORS[name], markersize=3, linewidth=1)
        axis.fill_between(levels, low, high, color=COLORS[name], alpha=0.15, linewidth=0)
    axis.set(xlabel="distance to the nearest\nseen combination (cells)", ylim=(-0.04, 1.06))


def _draw_angles(axis, inspection, title):
    """Of the pairs that the inspection measured."""
    names = [name for name in inspection.numbers if name.startswith("angle.")]
    pairs = dict.fromkeys(name.removeprefix("angle.").rpartition(".")[0] for name in names)
    end = len(inspection.layers) - 1
    for pair, color in zip(pairs, PAIR_COLORS, strict=False):
        for region, dash, label in (("ood", "-", pair.replace("-", ", ")), ("id", "--", None)):
            values = inspection.numbers[f"angle.{pair}.{region}"]
            plotting.draw_line(axis, values, end, color, dash, label)
    axis.set_xticks(range(end + 1), plotting.layer_names(end + 1))
    axis.set(ylabel="|cosine| of tangents", ylim=(0, None), xlabel="layer")
    axis.set_title(title, pad=16)
    if pairs:
        plotting.legend_above(axis)


def _draw_volume(axis, studies):
    for name, study in studies.items():
        values = study.inspection.numbers["volume.log10_ratio"]
        end = values.shape[1] - 1
        plotting.draw_line(axis, values, end, COLORS[name], "-", None)
    axis.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axis.set_xticks(range(end + 1), plotting.layer_names(end + 1))
    axis.set(xlabel="layer", ylabel="$\\log_{10}$ volume, OOD / ID")


def example_cells(box) -> list[int]:
    """Held-out cells of its smallest, middle and largest size, the nearest to each of `PLACES`."""
    places = grids.indices(box.sizes)
    hole = np.flatnonzero(box.held_out)
    low, high = places[hole].min(axis=0), places[hole].max(axis=0)
    found = []
    for size in (low[2], (low[2] + high[2]) // 2, high[2]):
        of_size = hole[places[hole, 2] == size]
        for place in PLACES:
            wanted = low[:2] + (high - low)[:2] * np.array(place)
            apart = np.square(places[of_size, :2] - wanted).sum(axis=1)
            found.append(int(of_size[np.argmin(apart)]))
    return list(dict.fromkeys(found))


def _draw_examples(figure, results):
    box = results["box"]
    cells = example_cells(box)
    drawn = {"asked": box.truths} | {
        name: results[name].predictions[0] for name in ("box", "xy", "xs") if name in results
    }
    axes = figure.subplots(len(drawn), len(cells), squeeze=False)
    for row, (name, signals) in zip(axes, drawn.items(), strict=True):
        row[0].set_ylabel(name, color=COLORS.get(name, "black"))
        for axis, cell in zip(row, cells, strict=True):
            plotting.show_scaled(axis, signals[cell], box.factors[cell, :2], box.amplitude)
    for axis, cell in zip(axes[0], cells, strict=True):
        axis.set_title("({:.0f}, {:.0f})\nsize {:.2g}".format(*box.factors[cell]), pad=3)


def _draw_readout(axis, results):
    for name, cells in results.items():
        asked = grids.indices(cells.sizes)[:, 2]
        right_size = drawn_size(cells.predictions, cells.truths) == asked
        right_place = cells.scores["exact_accuracy"] > 0
        shown = (right_place, right_size, right_place & right_size)
        for position, hits in enumerate(shown):
            seen, held_out = (
                hits[:, mask].mean(axis=1) for mask in (~cells.held_out, cells.held_out)
            )
            _pair(axis, position, seen, held_out, name)
    axis.set_xticks(range(3), ["position", "size", "both"])
    axis.set(ylabel="share of images that have right", ylim=(-0.04, 1.06), xlim=(-0.5, 2.5))
