"""Decoders that all pixels share: the per-pixel MLP and the transformer of pixels."""

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.runs import directory
from compgen_jax.statistics import geometric_mean_with_interval, mean_band
from figures import plotting
from figures.forced_rendering import authors

TITLES = {"pixelwise": "per-pixel MLP", "transformer": "transformer"}  # by the role's decoder
HOLES = {"corner": "corner held out", "donut": "square held out"}
COLORS = {"pixelwise": "#009e73", "transformer": "#cc79a7"}
# of the hole's width and height
POINTS = ((0.1, 0.1), (0.9, 0.1), (0.5, 0.5), (0.1, 0.9), (0.9, 0.9))
APART = 0.16  # seen from held-out combinations, either side of a network's place
# sizes in inches: panels a and b, images
WIDTH, LEFT, PANEL, BETWEEN = 9.05, 0.7, 1.75, 0.65
IMAGE, GAP, ROW = 0.55, 0.06, 0.78


def draw(studies):
    """Decoders whose weights all pixels share, in the authors' code and not in their paper, by
    number of layers, each with its own hold-out, as the authors have it. (a) Error over held-out
    (filled) and seen combinations (open), that of a blank image being 1; at the paper's size, open
    diamonds are the authors' own networks, where their error is known, over that of a blank one of
    their images, the upper one held out; geometric means. (b) Share of images with the brightest
    pixel at exactly the requested one; means. Both over seeds with 95% intervals; grey dots are
    seeds. (c) What the first seeds draw at the same places in the held-out region (circles), each
    image on its own scale, its largest value below."""
    studies = sorted(studies, key=_order)
    height = max(len(studies) * ROW + 0.5, 3.0)
    top = height - 0.42
    figure = plotting.new_figure(WIDTH, height)
    tall = min(height - 1.15, 2.6)
    error, accuracy = (
        plotting.axis_at(figure, LEFT + index * (PANEL + BETWEEN), top - tall, PANEL, tall)
        for index in range(2)
    )
    _draw_errors(error, studies)
    _draw_accuracy(accuracy, studies)
    images = [
        _draw_images(figure, study, top - IMAGE - row * ROW) for row, study in enumerate(studies)
    ]
    for axis, letter in ((error, "a"), (accuracy, "b"), (images[0], "c")):
        plotting.panel_label(axis, letter)
    _say_what_is_drawn(images[0])
    return figure


def draw_begun(studies):
    """The per-pixel MLP on the authors' settings, in as many of its 2000 epochs as two cores hold
    in an hour and a half. (a) Error by epoch over held-out (solid) and seen combinations (dashed),
    that of a blank image being 1; geometric means over seeds with 95% intervals; thin lines are
    seeds; dotted, the authors' own network after all epochs, the upper line held out. (b) Share of
    images with the brightest pixel at exactly the requested one; means. (c) What the first seed
    draws in the held-out region."""
    (study,) = studies
    figure = plotting.new_figure(WIDTH, 2.6)
    error, accuracy = (
        plotting.axis_at(figure, LEFT + index * (PANEL + BETWEEN), 0.5, PANEL, 1.7)
        for index in range(2)
    )
    metrics = directory.read_metrics(study.path)
    epochs = metrics["epoch"][0]
    theirs = authors.relative_errors(authors.counterpart(study.config.name))
    for region, dash, name in (("ood", "-", "held out"), ("id", "--", "seen")):
        relative = metrics[f"{region}.mse"] / metrics[f"{region}.blank_mse"]
        _draw_by_epoch(error, epochs, np.log10(relative), dash, name, lambda log: 10**log)
        error.axhline(theirs[region], **plotting.DOTTED)
        _draw_by_epoch(accuracy, epochs, metrics[f"{region}.exact_accuracy"], dash, name)
    error.set(yscale="log", xlabel="epoch", ylabel="MSE / blank image's")
    error.annotate("authors', after 2000 epochs", (epochs[0], theirs["id"]), xytext=(0, 2),
                   textcoords="offset points", fontsize=6.5)  # fmt: skip
    accuracy.set(xlabel="epoch", ylabel="exact accuracy", ylim=(-0.04, 1.06))
    plotting.legend_above(error)
    image = _draw_images(figure, study, 2.2 - IMAGE)
    _say_what_is_drawn(image)
    for axis, letter in ((error, "a"), (accuracy, "b"), (image, "c")):
        plotting.panel_label(axis, letter)
    return figure


def _say_what_is_drawn(axis):
    axis.annotate(
        "first seed, at held-out points", (0, 1), xytext=(0, 6), xycoords="axes fraction",
        textcoords="offset points",
    )  # fmt: skip


def _draw_by_epoch(axis, epochs, values_TxE, dash, label, shown=lambda value: value):
    """Mean, interval and seeds of a number by epoch, each as `shown`."""
    color = COLORS["pixelwise"]
    middle, low, high = (shown(line) for line in mean_band(values_TxE))
    axis.plot(epochs, middle, dash, color=color, linewidth=1.2, label=label)
    axis.fill_between(epochs, low, high, color=color, alpha=0.15, linewidth=0)
    axis.plot(epochs, shown(values_TxE.T), dash, color="0.6", linewidth=0.4, zorder=0)


def _order(study):
    return list(TITLES).index(study.role.model), study.role.depth


def _regions(results):
    """Seen cells and held-out ones, how far aside each is drawn, and how it is marked."""
    yield ~results.held_out, APART, {"fmt": "s", "markerfacecolor": "white"}
    yield results.held_out, -APART, {"fmt": "o"}


def places(studies) -> list[float]:
    """Where each stands on the axis: with a gap between one model and the next."""
    models = list(dict.fromkeys(study.role.model for study in studies))
    return [i + 0.6 * models.index(study.role.model) for i, study in enumerate(studies)]


def _show_depths(axis, studies):
    """Ticks by depth, and below them whose they are and what it does not see."""
    at = places(studies)
    axis.set_xticks(at, [str(study.role.depth) for study in studies])
    axis.set(xlim=(at[0] - 0.6, at[-1] + 0.6), xlabel="layers")
    for name, title in TITLES.items():
        own = [(x, study) for x, study in zip(at, studies, strict=True)
               if study.role.model == name]  # fmt: skip
        if own:
            hole = own[0][1].config.task.support.region
            axis.annotate(
                f"{title}\n{HOLES.get(hole, hole)}", (sum(x for x, _ in own) / len(own), 0),
                xytext=(0, -29), xycoords=("data", "axes fraction"), textcoords="offset points",
                ha="center", va="top", fontsize=6.5, color=COLORS[name],
            )  # fmt: skip


def _draw_errors(axis, studies):
    known = False
    for x, study in zip(places(studies), studies, strict=True):
        results, color = study.results, COLORS[study.role.model]
        for cells, aside, marker in _regions(results):
            values = evaluation.relative_error(results, cells)
            marked = {"color": color, **marker}
            plotting.show_number(axis, x + aside, values, geometric_mean_with_interval, **marked)
        for value in authors.relative_errors(study.config.name).values():
            axis.plot(x - 2.2 * APART, value, "D", color="0.25", fillstyle="none", markersize=4)
            known = True
    axis.axhline(1, **plotting.DOTTED)
    axis.set(yscale="log", ylabel="MSE / blank image's")
    _show_depths(axis, studies)
    axis.plot([], [], "o", color="0.3", markersize=4, label="held out")
    axis.plot([], [], "s", color="0.3", markerfacecolor="white", markersize=4, label="seen")
    if known:
        axis.plot([], [], "D", color="0.25", fillstyle="none", markersize=4, label="authors'")
    plotting.legend_above(axis)


def _draw_accuracy(axis, studies):
    for x, study in zip(places(studies), studies, strict=True):
        results, color = study.results, COLORS[study.role.model]
        for cells, aside, marker in _regions(results):
            values = evaluation.mean_score(results, "exact_accuracy", cells)
            plotting.show_number(axis, x + aside, values, color=color, **marker)
    axis.set(ylabel="exact accuracy", ylim=(-0.04, 1.06))
    _show_depths(axis, studies)


def _draw_images(figure, study, bottom: float):
    """Returns the first image's axis."""
    results, name = study.results, study.role.model
    left = WIDTH - 0.1 - len(POINTS) * (IMAGE + GAP)
    axes = [
        plotting.axis_at(figure, left + column * (IMAGE + GAP), bottom, IMAGE, IMAGE)
        for column in range(len(POINTS))
    ]
    for axis, cell in zip(axes, plotting.held_out_cells(results, POINTS), strict=True):
        signal = results.predictions[0, cell]
        plotting.show_scaled(axis, signal, results.factors[cell], results.amplitude)
    axes[0].set_ylabel(
        f"{TITLES[name]}\n{study.role.depth} layers", color=COLORS[name], rotation=0, ha="right",
        va="center", labelpad=6,
    )  # fmt: skip
    return axes[0]
