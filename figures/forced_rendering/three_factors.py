"""Bumps of three factors, x, y and size: which held-out combinations are composed?"""

import numpy as np

from compgen_jax import grids
from compgen_jax.metrics import evaluation
from compgen_jax.metrics.coverage import pairs_seen
from compgen_jax.metrics.evaluation import drawn_size
from compgen_jax.papers.forced_rendering.control_claims import trivial_errors

from .. import plotting
from ..figure import figure
from .controls import PREDICTORS as OF_TWO_FACTORS
from .lookup import in_order

PREDICTORS = OF_TWO_FACTORS | {"line_mean": "along each factor"}
RUNS = {"three_factors": "box"} | {f"three_factors_{name}": name for name in ("xy", "xs", "random")}
COLORS = dict(zip(("box", "xy", "xs", "random"), plotting.TONES, strict=False))
NAMES = {
    "box": "a box of x, y and size",
    "xy": "(x, y), at every size",
    "xs": "(x, size), at every y",
    "random": "combinations at random",
}
WORDS = {"xy": "(x, y)", "xs": "(x, size)"}  # of what is held out, beside images
ASIDE = dict(zip(NAMES, (-0.3, -0.1, 0.1, 0.3), strict=True))
SCORES = {"image_accuracy": "good image", "exact_accuracy": "exact position"}
READOUT = ("position", "size", "both")
PLACES = ((0.25, 0.3), (0.7, 0.6))  # of the held-out width and height, for each of three sizes


@figure("three_factors", runs=tuple(RUNS), by_default=False)
def draw(runs):
    results = {RUNS[name]: run.cells for name, run in in_order(RUNS, runs).items()}
    picture = plotting.new_figure(plotting.WIDTH, 7.6)
    above, below, drawn = picture.subfigures(3, 1, height_ratios=[2.2, 2.5, 2.9])
    accuracy, error = above.subplots(1, 2)
    pairs, distance, readout = below.subplots(1, 3)
    good, errors, all_seen, both = [], [], [np.nan], []
    farthest = 0.0, 0.0
    for index, (name, cells) in enumerate(results.items()):
        color, aside = COLORS[name], ASIDE[name]
        hits, counts = cells.scores["image_accuracy"], pairs_seen(cells.held_out, cells.sizes)
        for place, score in enumerate(SCORES):
            plotting.show_score(accuracy, place + aside, 0.04, cells, score, color)
        good.append(plotting.ood_share(cells, "image_accuracy"))
        errors.append(plotting.show_ood_error(error, -index, cells, color))
        trivial = trivial_errors(cells)
        for row, predictor in enumerate(PREDICTORS, start=len(results)):
            height = -row - 0.18 * (index - 1.5)
            error.plot(trivial[predictor], height, plotting.TRIVIAL, color=color, markersize=3)
        for count in range(4):
            chosen = cells.held_out & (counts == count)
            if chosen.any():
                values, place = hits[:, chosen].mean(axis=1), count + 0.2 * (index - 1.5)
                style = {"mean": plotting.mean_share, "fmt": "o", "color": color}
                plotting.show_number(pairs, place, values, **style)
                all_seen += [values.mean()] if count == 3 else []
        levels, means = evaluation.profile_by_distance(hits, cells)
        plotting.draw_band(distance, levels, means, "o-", color, markersize=3, linewidth=1)
        farthest = max(farthest, (levels[-1], means[:, -1].mean()))
        right_size = drawn_size(cells.predictions, cells.truths) == grids.indices(cells.sizes)[:, 2]
        right = {"position": cells.scores["exact_accuracy"] > 0, "size": right_size}
        read = cells._replace(scores=right | {"both": right["position"] & right_size})
        for place, score in enumerate(READOUT):
            share = plotting.show_score(readout, place + aside, 0.04, read, score, color)
        both.append(share)
    share, shares = "good images OOD", {"ylim": (-0.04, 1.06)}
    accuracy.set_xticks(range(len(SCORES)), list(SCORES.values()))
    accuracy.set(ylabel="share of combinations", xlim=(-0.5, len(SCORES) - 0.5), **shares)
    plotting.finish_errors(error, [NAMES[name] for name in results], list(PREDICTORS.values()))
    pairs.set_xticks(range(4))
    pairs.set(xlabel="pairs of values seen\n(of three)", ylabel=share, xlim=(-0.5, 3.5), **shares)
    distance.set(xlabel="distance to the nearest\nID combination (cells)", ylabel=share, **shares)
    readout.set_xticks(range(len(READOUT)), READOUT)
    readout.set(ylabel="share that have it right", xlim=(-0.5, 2.5), **shares)
    _draw_examples(drawn, results)
    titles = {
        accuracy: f"Good images are {plotting.span(good)} of the held-out ones",
        error: f"OOD errors are {plotting.span(errors)} of a blank image's",
        pairs: f"Where all pairs are seen, {plotting.span(all_seen)} are good",
        distance: f"Farthest away, {farthest[1]:.0%} are good",
        readout: f"Position and size are both right in {plotting.span(both)} OOD",
    }
    plotting.panels(titles, "abcde", titles.values(), wrap=29)
    plotting.label_colors(accuracy, {NAMES[name]: COLORS[name] for name in results})
    plotting.label_regions(accuracy)
    plotting.label_mark(accuracy, "trivial predictor", plotting.TRIVIAL)
    plotting.legend_below(below, accuracy)
    return picture


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
        row[0].set_ylabel(WORDS.get(name, name), color=COLORS.get(name, "black"))
        plotting.show_held_out(row, images, box, indices)
    plotting.title_points(axes[0], box, indices, "({:.0f}, {:.0f})\nsize {:.2g}")
    plotting.panel(axes[0, 0], "f", "First seeds draw this in the box", up=30)
