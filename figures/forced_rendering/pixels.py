"""Decoders that all pixels share: the per-pixel MLP and the transformer of pixels."""

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory

from .. import plotting
from ..figure import figure
from . import authors
from .lookup import depth_of

MODELS = {"pixelwise": "per-pixel MLP", "transformer": "transformer"}
HOLES = {"corner": "corner held out", "donut": "square held out"}
COLORS = {"pixelwise": "#009e73", "transformer": "#cc79a7"}
# of the held-out region's width and height
POINTS = ((0.1, 0.1), (0.9, 0.1), (0.5, 0.5), (0.1, 0.9))
APART = 0.16  # ID from held-out numbers, either side of a network's place
# sizes in inches: panels a and b, images
LEFT, PANEL, BETWEEN = 0.62, 1.3, 0.6
IMAGE, GAP, ROW = 0.48, 0.04, 0.78


@figure(
    "pixels",
    runs=("pixelwise", "pixelwise_depth*", "transformer", "transformer_depth*"),
    by_default=False,
)
def draw(runs):
    """Decoders whose weights all pixels share, by number of layers; they are in the authors' code
    and not in their paper, each with the authors' held-out region. (a) Error over held-out (filled)
    and ID cells (open), that of a blank image being 1; geometric means. Open diamonds, at the
    paper's size: the authors' own networks as far as their error is known, the upper one held out.
    (b) Exact accuracy: the share of images whose brightest pixel is the requested one; means. Both
    over seeds with 95% intervals; grey dots are seeds. (c) What the first seeds draw at the same
    places of the held-out region (circles). Each image has its own scale, and its largest value is
    printed below."""
    order = list(MODELS)
    runs = dict(sorted(runs.items(), key=lambda item: (order.index(model_of(item[1])),
                                                       depth_of(item[1]))))  # fmt: skip
    height = max(len(runs) * ROW + 0.9, 3.1)
    top, tall = height - 0.5, min(height - 1.4, 2.6)
    picture = plotting.new_figure(plotting.WIDTH, height)
    error, accuracy = _panels(picture, top - tall, tall)
    errors, hits = [], []
    for x, (name, run) in zip(places(runs), runs.items(), strict=True):
        cells, color = run.cells, COLORS[model_of(run)]
        masks = cells.held_out, ~cells.held_out
        relative = [evaluation.relative_error(cells, mask) for mask in masks]
        exact = [evaluation.mean_score(cells, "exact_accuracy", mask) for mask in masks]
        mean = {"mean": plotting.geometric_mean}
        plotting.show_regions(error, x, APART, *relative, color=color, **mean)
        plotting.show_regions(accuracy, x, APART, *exact, color=color)
        errors.append(plotting.geometric_mean(relative[0])["value"])
        hits.append(exact[0].mean())
        theirs = authors.relative_errors(name) if run.config.name == name else {}
        for value in theirs.values():
            error.plot(x - 2.2 * APART, value, "D", color="0.25", fillstyle="none", markersize=4)
    plotting.label_regions(error)
    if any(line.get_marker() == "D" for line in error.lines):
        error.plot([], [], "D", color="0.25", fillstyle="none", markersize=4, label="authors'")
    held_out = {model_of(run): run.config.task.support.region for run in runs.values()}
    names = {f"{MODELS[model]}, {HOLES.get(hole, hole)}": COLORS[model]
             for model, hole in held_out.items()}  # fmt: skip
    plotting.label_colors(error, names)
    error.axhline(1, **plotting.DOTTED, label="blank image")
    error.set(ylabel="MSE / blank image's")
    plotting.log_scale(error, "y")
    plotting.legend_below(picture, error, loc="lower left", ncols=3)
    accuracy.set(ylabel="exact accuracy", ylim=(-0.04, 1.06))
    for axis in (error, accuracy):
        _name_networks(axis, runs)
    images = [_draw_images(picture, run, top - IMAGE - row * ROW)
              for row, run in enumerate(runs.values())]  # fmt: skip
    plotting.panel(error, "a", f"OOD error {plotting.span(errors)}")
    plotting.panel(accuracy, "b", f"{plotting.span(hits)} exact OOD")
    plotting.panel(images[0], "c", "first seed, held out")
    return picture


@figure("pixels_begun", runs=("pixelwise_begun",), scale="paper", by_default=False)
def draw_begun(runs):
    """The per-pixel MLP on the authors' settings, in as many of its 2000 epochs as two cores hold
    in an hour and a half. (a) Error by epoch over held-out (solid) and ID cells (dashed), that of a
    blank image being 1; geometric means over seeds with 95% intervals, thin lines are seeds.
    Dotted: the authors' own network after all epochs, the upper line held out. (b) Exact accuracy:
    the share of images whose brightest pixel is the requested one; means. (c) What the first seed
    draws at held-out points (circles); each image has its own scale."""
    ((name, run),) = runs.items()
    picture = plotting.new_figure(plotting.WIDTH, 2.75)
    error, accuracy = _panels(picture, 0.7, 1.6)
    metrics = directory.read_metrics(run.path)
    epochs = metrics["epoch"][0]
    theirs = authors.relative_errors(name)
    for region, dash, label in (("id", "--", "seen (ID)"), ("ood", "-", "held out (OOD)")):
        relative = metrics[f"{region}.mse"] / metrics[f"{region}.blank_mse"]
        logarithms = np.log10(relative)
        _draw_by_epoch(error, epochs, logarithms, dash, label, lambda log: 10**log)
        error.axhline(theirs[region], **plotting.DOTTED)
        _draw_by_epoch(accuracy, epochs, metrics[f"{region}.exact_accuracy"], dash, label)
        last = 10 ** logarithms[:, -1].mean()
    error.plot([], [], **plotting.DOTTED, label="authors', after 2000 epochs")
    error.plot([], [], color="0.6", linewidth=0.4, label="one seed")
    error.set(xlabel="epoch", ylabel="MSE / blank image's")
    plotting.log_scale(error, "y")
    accuracy.set(xlabel="epoch", ylabel="exact accuracy", ylim=(-0.04, 1.06))
    plotting.legend_below(picture, error, loc="lower left")
    image = _draw_images(picture, run, 2.3 - IMAGE)
    exact = metrics["ood.exact_accuracy"][:, -1].mean()
    plotting.panel(error, "a", f"OOD error {last:.1%} at the end")
    plotting.panel(accuracy, "b", f"{exact:.0%} exact OOD")
    plotting.panel(image, "c", "first seed, held out")
    return picture


def model_of(run) -> str:
    return run.config.model.name


def _panels(picture, bottom: float, height: float) -> list:
    """The axes of panels a and b."""
    lefts = LEFT, LEFT + PANEL + BETWEEN
    return [plotting.axis_at(picture, left, bottom, PANEL, height) for left in lefts]


def _draw_by_epoch(axis, epochs, values_TxE, dash, label, undo=lambda value: value):
    """Mean, interval and seeds of a number by epoch; `undo` takes a logarithm back."""
    style = {"undo": undo, "linewidth": 1.2, "label": label}
    plotting.draw_band(axis, epochs, values_TxE, dash, COLORS["pixelwise"], **style)
    axis.plot(epochs, undo(values_TxE.T), dash, color="0.6", linewidth=0.4, zorder=0)


def places(runs: dict) -> list[float]:
    """Where each stands on the axis: with a gap between one model and the next."""
    models = list(dict.fromkeys(model_of(run) for run in runs.values()))
    return [i + 0.6 * models.index(model_of(run)) for i, run in enumerate(runs.values())]


def _name_networks(axis, runs: dict):
    """Ticks by depth; models are told by colour."""
    at = places(runs)
    axis.set_xticks(at, [str(depth_of(run)) for run in runs.values()])
    axis.set(xlim=(at[0] - 0.6, at[-1] + 0.6), xlabel="layers")


def _draw_images(picture, run, bottom: float):
    """Returns the first image's axis."""
    left, model = plotting.WIDTH - 0.05 - len(POINTS) * (IMAGE + GAP), model_of(run)
    axes = plotting.row_at(picture, left, bottom, IMAGE, len(POINTS), GAP)
    indices = plotting.held_out_cells(run.cells, POINTS)
    plotting.show_held_out(axes, run.cells.predictions[0], run.cells, indices)
    axes[0].set_ylabel(
        f"{MODELS[model]}\n{depth_of(run)} layers", color=COLORS[model], rotation=0, ha="right",
        va="center", labelpad=4, fontsize=plotting.SMALL,
    )  # fmt: skip
    return axes[0]
