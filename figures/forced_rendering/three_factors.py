"""Bumps of three factors, x, y and size: which held-out combinations are composed?"""

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import evaluation
from compgen_jax.metrics.coverage import pairs_seen
from compgen_jax.metrics.readout import drawn_size
from compgen_jax.papers.forced_rendering.controls import trivial_errors

from .. import plotting
from ..figure import figure
from .controls import PREDICTORS as OF_TWO_FACTORS
from .lookup import in_order

PREDICTORS = OF_TWO_FACTORS | {"line_mean": "along each factor"}
RUNS = {"three_factors": "box"} | {f"three_factors_{name}": name for name in ("xy", "xs", "random")}
COLORS = {"box": "#0072b2", "xy": "#d55e00", "xs": "#cc79a7", "random": "#009e73"}
NAMES = {
    "box": "a box of x, y and size",
    "xy": "(x, y), at every size",
    "xs": "(x, size), at every y",
    "random": "combinations at random",
}
ASIDE = dict(zip(NAMES, (-0.3, -0.1, 0.1, 0.3), strict=True))
SCORES = {"image_accuracy": "good image", "exact_accuracy": "exact\nposition"}
PAIRS = {"x-y": "#6a51a3", "x-size": "#238b45", "y-size": "#d94801"}
PLACES = ((0.25, 0.3), (0.7, 0.6))  # of the held-out width and height, for each of three sizes


@figure("three_factors", runs=tuple(RUNS), by_default=False)
def draw(runs):
    """Networks of three factors, by what is held out: a box of combinations, of which each pair of
    values is seen; a square of x and y at every size, so that none of its pairs (x, y) is seen; one
    of x and size at every y; or as many combinations as in the box, at random. Means over seeds
    with 95% intervals; grey dots are seeds; filled is held out, open is ID. (a) The share of good
    images (an error of at most a quarter of a blank image's) and of exact positions. (b) Error over
    held-out combinations, that of a blank image being 1; diamonds are predictors that only know the
    ID images. (c) Good held-out images by how many of their three pairs of values occur in some ID
    combination. (d) The same by the distance to the nearest ID combination. (e) By layer, mean
    |cosine| of the angle between the tangents of two factors, for the box and for the square of x
    and y; solid held out, dashed ID. (f) For these two, by layer: log10 of the volume element of
    held-out combinations over that of ID ones, geometric means. (g) What the first seeds draw at
    combinations of the held-out box (circles), of three sizes; each image has its own scale, and
    its largest value is printed below. (h) The share of images with the right position, with the
    right size (that of the nearest true image at the drawn position), and with both."""
    shown = {RUNS[name]: run for name, run in in_order(RUNS, runs).items()}
    results = {name: run.cells for name, run in shown.items()}
    picture = plotting.new_figure(9.05, 8.2)
    rows = picture.subfigures(3, 1, height_ratios=[2.5, 2.2, 3.5])
    accuracy, error, pairs, distance = rows[0].subplots(1, 4, width_ratios=[1.1, 1.2, 1, 1])
    _draw_accuracy(accuracy, results)
    _draw_error(error, results)
    _draw_pairs(pairs, results)
    for name, cells in results.items():
        levels, means = evaluation.profile_by_distance(cells.scores["image_accuracy"], cells)
        style = {"markersize": 3, "linewidth": 1}
        plotting.draw_band(distance, levels, means, "o-", COLORS[name], **style)
    distance.set(xlabel="distance to the nearest\nseen combination (cells)", ylim=(-0.04, 1.06))
    *angles, volume = rows[1].subplots(1, 3)
    for axis, name in zip(angles, ("box", "xy"), strict=True):
        _draw_angles(axis, shown[name])
        axis.set_title(f"held out: {NAMES[name]}", pad=16)
        values = shown[name].layers("volume.log10_ratio")
        plotting.draw_line(volume, values, values.shape[1] - 1, COLORS[name], "-", None)
    volume.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    plotting.name_layers(volume, values.shape[1])
    volume.set(xlabel="layer", ylabel="$\\log_{10}$ volume, OOD / ID")
    examples, read = rows[2].subfigures(1, 2, width_ratios=[6.4, 2.6])
    _draw_examples(examples, results)
    readout = read.subplots(1, 1)
    _draw_readout(readout, results)
    handles = [
        plotting.plt.Line2D([], [], linestyle="none", marker="o", color=COLORS[name], label=text)
        for name, text in NAMES.items()
    ]
    picture.legend(handles=handles, loc="outside upper center", ncols=4, title="held out")
    labelled = accuracy, error, pairs, distance, angles[0], volume, examples.axes[0], readout
    plotting.panel_labels(labelled, "abcdefgh")
    return picture


def _draw_accuracy(axis, results):
    for place, score in enumerate(SCORES):
        for name, cells in results.items():
            _show_share(axis, place, name, cells, cells.scores[score])
    plotting.label_regions(axis)
    axis.set_xticks(range(len(SCORES)), list(SCORES.values()))
    axis.set(ylabel="share of combinations", ylim=(-0.04, 1.06), xlim=(-0.5, len(SCORES) - 0.5))
    axis.legend(loc="lower left")


def _show_share(axis, place, name, cells, hits_TxB):
    """The share of hits among held-out and among ID combinations."""
    shares = (hits_TxB[:, mask].mean(axis=1, dtype=np.float64)
              for mask in (cells.held_out, ~cells.held_out))  # fmt: skip
    plotting.show_regions(axis, place + ASIDE[name], 0.04, *shares, color=COLORS[name])


def _draw_error(axis, results):
    for index, (name, cells) in enumerate(results.items()):
        relative = evaluation.relative_error(cells, cells.held_out)
        plotting.show_number(axis, -index, relative, across=True, fmt="o", color=COLORS[name])
        errors = trivial_errors(cells)
        for row, predictor in enumerate(PREDICTORS, start=len(results)):
            height = -row - 0.18 * (index - 1.5)
            axis.plot(errors[predictor], height, "D", color=COLORS[name], markersize=3)
    axis.axhline(0.5 - len(results), color="0.7", linewidth=0.8)
    axis.axvline(1, **plotting.FAINT)
    names = [*(NAMES[name] for name in results), *PREDICTORS.values()]
    axis.set_yticks([-row for row in range(len(names))], names, fontsize=6.5)
    axis.set(xscale="log", xlabel="MSE OOD / blank image's")


def _draw_pairs(axis, results):
    for index, (name, cells) in enumerate(results.items()):
        counts = pairs_seen(cells.held_out, cells.sizes)
        for count in range(4):
            chosen = cells.held_out & (counts == count)
            if chosen.any():
                values = evaluation.mean_score(cells, "image_accuracy", chosen)
                place = count + 0.2 * (index - 1.5)
                plotting.show_number(axis, place, values, fmt="o", color=COLORS[name])
    axis.set_xticks(range(4))
    axis.set(xlabel="pairs of values seen", ylabel="good images, held out", ylim=(-0.04, 1.06),
             xlim=(-0.5, 3.5))  # fmt: skip


def _draw_angles(axis, run):
    end = len(run.layer_names) - 1
    for pair, color in PAIRS.items():
        for region, dash, label in (("ood", "-", pair.replace("-", ", ")), ("id", "--", None)):
            values = run.layers(f"angle.{pair}.{region}")
            plotting.draw_line(axis, values, end, color, dash, label)
    plotting.name_layers(axis, end + 1)
    axis.set(ylabel="|cosine| of tangents", ylim=(0, None), xlabel="layer")
    plotting.legend_above(axis)


def example_cells(box) -> list[int]:
    """Held-out cells of its smallest, middle and largest size, the nearest to each of `PLACES`."""
    places = grids.indices(box.sizes)
    region = np.flatnonzero(box.held_out)
    low, high = places[region].min(axis=0), places[region].max(axis=0)
    chosen = []
    for size in (low[2], (low[2] + high[2]) // 2, high[2]):
        of_size = region[places[region, 2] == size]
        for place in PLACES:
            wanted = low[:2] + (high - low)[:2] * np.array(place)
            apart = np.square(places[of_size, :2] - wanted).sum(axis=1)
            chosen.append(int(of_size[np.argmin(apart)]))
    return list(dict.fromkeys(chosen))


def _draw_examples(picture, results):
    box = results["box"]
    indices = example_cells(box)
    drawn = {name: results[name].predictions[0] for name in ("box", "xy", "xs") if name in results}
    axes = picture.subplots(1 + len(drawn), len(indices), squeeze=False)
    for row, (name, images) in zip(axes, ({"asked": box.truths} | drawn).items(), strict=True):
        row[0].set_ylabel(name, color=COLORS.get(name, "black"))
        plotting.show_held_out(row, images, box, indices)
    for axis, index in zip(axes[0], indices, strict=True):
        axis.set_title("({:.0f}, {:.0f})\nsize {:.2g}".format(*box.factors[index]), pad=3)


def _draw_readout(axis, results):
    for name, cells in results.items():
        asked = grids.indices(cells.sizes)[:, 2]
        right_size = drawn_size(cells.predictions, cells.truths) == asked
        right_place = cells.scores["exact_accuracy"] > 0
        for place, hits in enumerate((right_place, right_size, right_place & right_size)):
            _show_share(axis, place, name, cells, hits)
    axis.set_xticks(range(3), ["position", "size", "both"])
    axis.set(ylabel="share of images that have right", ylim=(-0.04, 1.06), xlim=(-0.5, 2.5))
