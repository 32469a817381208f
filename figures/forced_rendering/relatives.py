"""Relatives of the decoders, in the authors' code and not in their paper: encoders, which see every
pixel, and decoders that all pixels share."""

import textwrap

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory

from .. import plotting
from ..figure import figure
from . import authors
from .lookup import depth_of, in_order

TITLES = {"encoder_code": "the bump code", "encoder_coordinates": "x and y"}
ENCODER_COLORS = {"encoder_code": plotting.CODE_COLORS["bump"],
                  "encoder_coordinates": plotting.GOLD}  # fmt: skip
SCORES = {"exact_accuracy": "exact", "position_accuracy": "within\n1 pixel"}
TRIVIAL = {"nearest_seen": "nearest seen,\nOOD", "best_constant": "best constant,\nOOD"}
ASIDE = 0.2  # how far each encoder stands from their common place

MODELS = {"pixelwise": "per-pixel MLP", "transformer": "transformer"}
HOLES = {"corner": "corner held out", "donut": "square held out"}
COLORS = {"pixelwise": plotting.GREEN, "transformer": plotting.PINK}
# of the held-out region's width and height
POINTS = ((0.1, 0.1), (0.9, 0.1), (0.5, 0.5), (0.1, 0.9))
APART = 0.16  # ID from held-out numbers, either side of a network's place
# sizes in inches: panels a and b, images
LEFT, PANEL, BETWEEN = 0.8, 1.18, 0.58
IMAGE, GAP, ROW = 0.48, 0.04, 0.78


@figure("encoders", runs=tuple(TITLES), by_default=False)
def draw_encoders(runs):
    """An encoder, which sees every pixel, does not read held-out positions exactly either. Encoders
    are the bump task turned round, in the authors' code and not in their paper. One gives the code
    of an image's bump, the other its x and y. (a, b) The share of seeds whose answer is exact, by
    where the bump is; held-out cells are outlined. A code is exact if the largest unit of each half
    is the right one, x and y if both are off by half a pixel at most. (c) Exact answers, and
    answers within a pixel in x and in y, over held-out and over ID cells; means over seeds. (d)
    Error, that of the mean answer over the same cells being 1; geometric means over seeds. Crosses
    are trivial predictors: the answer of the nearest ID cell, and the best single number. Intervals
    are 95%; grey dots are seeds."""
    runs, within, errors = in_order(TITLES, runs), [], []
    picture = plotting.new_figure(plotting.WIDTH, 4.7)
    above, below = picture.subfigures(2, 1, height_ratios=[1, 1.3])
    maps = above.subplots(1, len(runs), squeeze=False)[0]
    accuracy, error = below.subplots(1, 2)
    for index, (name, run) in enumerate(runs.items()):
        aside, color = 2 * ASIDE * (index - (len(runs) - 1) / 2), ENCODER_COLORS[name]
        image = plotting.show_share(maps[index], run.cells, "exact_accuracy")
        exact, near = (plotting.show_score(accuracy, place + aside, 0.09, run.cells, score, color)
                       for place, score in enumerate(SCORES))  # fmt: skip
        within.append(near)
        title = f"From an image to {TITLES[name]}, {exact:.0%} are exact OOD"
        plotting.panel(maps[index], "ab"[index], title, wrap=30, color=color)
        mean = {key: number["value"] for key, number in run.summary["mean"].items()}
        style = {"mean": plotting.geometric_mean, "across": True, "color": color}
        held_out, error_TxB = run.cells.held_out, evaluation.errors(run.cells)
        of_id = error_TxB[:, ~held_out].mean(axis=1) / mean["id.mean_answer_mse"]
        ood = error_TxB[:, held_out].mean(axis=1) / mean["ood.mean_answer_mse"]
        plotting.show_number(error, -aside, of_id, **style, **plotting.SEEN)
        plotting.show_number(error, -1 - aside, ood, **style, fmt="o")
        errors.append(plotting.geometric_mean(ood)["value"])
        for row, predictor in enumerate(TRIVIAL, start=2):
            relative = mean[f"ood.{predictor}_mse"] / mean["ood.mean_answer_mse"]
            error.plot(relative, -row - aside, plotting.TRIVIAL, color=color, markersize=4)
    above.colorbar(image, ax=list(maps), label="share of seeds, exact", shrink=0.8)
    plotting.label_regions(accuracy)
    plotting.label_mark(accuracy, "trivial predictor, OOD", plotting.TRIVIAL)
    accuracy.set_xticks(range(len(SCORES)), list(SCORES.values()))
    accuracy.set(ylabel="share of combinations", ylim=(-0.04, 1.06), xlim=(-0.5, len(SCORES) - 0.5))
    plotting.label_colors(error, {TITLES[name]: ENCODER_COLORS[name] for name in runs})
    error.axhline(-1.6, color="0.7", linewidth=0.8)
    error.axvline(1, **plotting.DOTTED)
    names = ["encoder, ID", "encoder, OOD", *TRIVIAL.values()]
    error.set_yticks([-row for row in range(len(names))], names)
    error.set(xlabel="MSE relative to the mean answer", ylim=(0.4 - len(names), 0.5))
    plotting.log_scale(error, "x")
    title = f"Within a pixel are {plotting.span(within)} of held-out answers"
    plotting.panel(accuracy, "c", title, wrap=46)
    title = f"OOD errors are {plotting.span(errors)} of the mean answer's"
    plotting.panel(error, "d", title, wrap=40)
    plotting.legend_below(below)
    return picture


@figure(
    "pixels",
    runs=("pixelwise", "pixelwise_depth*", "transformer", "transformer_depth*"),
    by_default=False,
)
def draw(runs):
    """Decoders whose weights all pixels share draw most held-out positions. By number of layers;
    they are in the authors' code and not in their paper, each with the authors' held-out region.
    (a) Error over held-out and over ID cells, that of a blank image being 1; geometric means.
    Stars, at the paper's size: the authors' own networks as far as their error is known. (b) Exact
    accuracy: the share of images whose brightest pixel is the requested one; means. Both over seeds
    with 95% intervals; grey dots are seeds. (c) What the first seeds draw at the same places of the
    held-out region (circles); images are scaled by the factor below them."""
    models = {name: run.config.model.name for name, run in runs.items()}
    order = sorted(runs, key=lambda name: (list(MODELS).index(models[name]), depth_of(runs[name])))
    kinds = list(dict.fromkeys(models[name] for name in order))
    places = [index + 0.6 * kinds.index(models[name]) for index, name in enumerate(order)]
    height = max(len(runs) * ROW + 0.9, 3.1)
    top, tall = height - 0.5, min(height - 1.4, 2.6)
    picture = plotting.new_figure(plotting.WIDTH, height)
    error, accuracy = plotting.row_at(picture, LEFT, top - tall, (PANEL, tall), 2, BETWEEN)
    errors, hits, labels = [], [], {}
    for row, (x, name) in enumerate(zip(places, order, strict=True)):
        run, color = runs[name], COLORS[models[name]]
        cells, hole = run.cells, run.config.task.support.region
        labels[f"{MODELS[models[name]]}, {HOLES.get(hole, hole)}"] = color
        relative = [evaluation.relative_error(cells, mask)
                    for mask in (cells.held_out, ~cells.held_out)]  # fmt: skip
        style = {"color": color, "mean": plotting.geometric_mean}
        plotting.show_regions(error, x, APART, *relative, **style)
        errors.append(plotting.geometric_mean(relative[0])["value"])
        hits.append(plotting.show_score(accuracy, x, APART, cells, "exact_accuracy", color))
        theirs = authors.relative_errors(name) if run.config.name == name else {}
        for region, value in theirs.items():
            fill = "full" if region == "ood" else "none"
            error.plot(x - 2.2 * APART, value, "*", color="0.25", fillstyle=fill, markersize=5)
        image = _draw_images(picture, run, top - IMAGE - row * ROW)
        if row == 0:
            plotting.panel(image, "c", "First seeds draw this at held-out cells")
    plotting.label_regions(error)
    if any(line.get_marker() == "*" for line in error.lines):
        plotting.label_mark(error, "the authors', OOD (open: ID)", "*", "0.25")
    plotting.label_colors(error, labels)
    error.axhline(1, **plotting.DOTTED, label="blank image")
    error.set(ylabel=plotting.RELATIVE)
    plotting.log_scale(error, "y")
    plotting.legend_below(picture, error, loc="lower left", ncols=3)
    accuracy.set(ylabel="exact accuracy", ylim=(-0.04, 1.06))
    for axis in (error, accuracy):
        axis.set_xticks(places, [str(depth_of(runs[name])) for name in order])
        axis.set(xlim=(places[0] - 0.6, places[-1] + 0.6), xlabel="layers")
    title = f"OOD errors are {plotting.span(errors)} of a blank image's"
    plotting.panel(error, "a", textwrap.fill(title, 24))
    plotting.panel(accuracy, "b", textwrap.fill(f"Exact OOD are {plotting.span(hits)}", 24))
    return picture


@figure("pixels_begun", runs=("pixelwise_begun",), scale="paper", by_default=False)
def draw_begun(runs):
    """The per-pixel MLP learns held-out positions long after the ID ones. On the authors' settings,
    in as many of its 2000 epochs as two cores hold in an hour and a half. (a) Error by epoch over
    held-out and over ID cells, that of a blank image being 1; geometric means over seeds with 95%
    intervals, thin lines are seeds. Dotted: the authors' own network after all epochs, the upper
    line held out. (b) Exact accuracy: the share of images whose brightest pixel is the requested
    one; means. (c) What the first seed draws at held-out points (circles); images are scaled by the
    factor below them."""
    ((name, run),) = runs.items()
    picture = plotting.new_figure(plotting.WIDTH, 2.75)
    error, accuracy = plotting.row_at(picture, LEFT, 0.7, (PANEL, 1.6), 2, BETWEEN)
    metrics, theirs = directory.read_metrics(run.path), authors.relative_errors(name)
    epochs = metrics["epoch"][0]
    for region, dash, label in (("id", "--", "seen (ID)"), ("ood", "-", "held out (OOD)")):
        logarithms = np.log10(metrics[f"{region}.mse"] / metrics[f"{region}.blank_mse"])
        exact = metrics[f"{region}.exact_accuracy"]
        power, same = lambda values: 10**values, lambda values: values
        for axis, values_TxE, undo in ((error, logarithms, power), (accuracy, exact, same)):
            style = {"undo": undo, "linewidth": 1.2, "label": label}
            plotting.draw_band(axis, epochs, values_TxE, dash, COLORS["pixelwise"], **style)
            axis.plot(epochs, undo(values_TxE.T), dash, color="0.6", linewidth=0.4, zorder=0)
        error.axhline(theirs[region], **plotting.DOTTED)
    error.plot([], [], **plotting.DOTTED, label="authors', after 2000 epochs")
    plotting.label_mark(error, "one seed", "-", "0.6", linewidth=0.4)
    error.set(xlabel="epoch", ylabel=plotting.RELATIVE)
    plotting.log_scale(error, "y")
    accuracy.set(xlabel="epoch", ylabel="exact accuracy", ylim=(-0.04, 1.06))
    plotting.legend_below(picture, error, loc="lower left")
    image = _draw_images(picture, run, 2.3 - IMAGE)
    plotting.panel(error, "a", f"The OOD error ends at {10 ** logarithms[:, -1].mean():.1%}")
    plotting.panel(accuracy, "b", f"Exact OOD are {exact[:, -1].mean():.0%}")
    plotting.panel(image, "c", "The first seed at held-out cells")
    return picture


def _draw_images(picture, run, bottom: float):
    """Returns the first image's axis."""
    left, model = plotting.WIDTH - 0.05 - len(POINTS) * (IMAGE + GAP), run.config.model.name
    axes = plotting.row_at(picture, left, bottom, IMAGE, len(POINTS), GAP)
    indices = plotting.held_out_cells(run.cells, POINTS)
    plotting.show_held_out(axes, run.cells.predictions[0], run.cells, indices)
    style = {"rotation": 0, "ha": "right", "va": "center", "fontsize": plotting.SMALL}
    name = f"{MODELS[model]}\n{depth_of(run)} layers"
    axes[0].set_ylabel(name, color=COLORS[model], labelpad=4, **style)
    return axes[0]
