"""Figure 3: decoders of low-rank embeddings, with and without penalties (section 4.1)."""

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering.low_rank import (
    embedding_matrices,
    embedding_numbers,
    log_volumes,
    smoothness,
)
from compgen_jax.statistics import mean_with_interval

from .. import plotting
from ..figure import figure
from .lookup import first_seed_layers, in_order

TITLES = {
    "lowrank_none": "no penalty",
    "lowrank_entropy": "entropy only",
    "lowrank_variance": "variance only",
    "lowrank_both": "both penalties",
}
COLORS = dict(zip(TITLES, ("0.35", "#0072b2", "#d55e00", "#009e73"), strict=True))
SHOWN = ("lowrank_none", "lowrank_both")  # whose embeddings and images are drawn
# of the held-out region's width and height
DRAWN = (0.35, 0.6)  # in panel a
POINTS = ((0.1, 0.1), (0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (0.3, 0.7), (0.9, 0.9))
PERCENTILE = 95  # of an embedding's |entries|: where the colours end
# sizes in inches
IMAGE, TOKEN, SMALL_IMAGE, MAP = 0.55, 0.68, 0.45, 1.25


@figure("fig3", runs=tuple(TITLES))
def draw_low_rank(runs):
    """Figure 3: decoders of low-rank embeddings; the upper right corner is held out. (a) The
    decoder with both penalties, first seed, at a held-out point. Every value of x and of y has an
    embedding of low rank, and convolutions decode the two. Each map runs from blue, minus its
    largest magnitude, over white, 0, to red. (b) Embeddings of x of the first seeds, without and
    with both penalties: two columns seen at every y, and two whose rows above the line are held
    out. Colours end at the 95th percentile of a network's magnitudes. (c) What these draw at
    held-out points (circles); each image has its own scale, and its largest value is printed below.
    (d) How smooth the drawn images are: log10 of their volume element, by differences between
    neighbouring cells, less its mean over ID cells; mean over seeds. Below: the mean absolute
    difference between neighbouring cells, over all cells and over the corner. (e) Errors of the
    four ablations: seeds, geometric means and 95% intervals; dotted, a blank image's."""
    ablations = in_order(TITLES, runs)
    shown = {name: ablations[name] for name in SHOWN}
    picture = plotting.new_figure(plotting.WIDTH, 6.6)
    _draw_architecture(picture, 5.05, ablations["lowrank_both"])
    tokens = [plotting.row_at(picture, 0.42, bottom, TOKEN, 4, 0.05) for bottom in (3.72, 2.92)]
    _draw_tokens(tokens, shown)
    images = [plotting.row_at(picture, 3.85, bottom, SMALL_IMAGE, len(POINTS), 0.03)
              for bottom in (4.0, 3.36, 2.72)]  # fmt: skip
    _draw_held_out(images, shown)
    maps = plotting.row_at(picture, 0.25, 0.52, MAP, 2, 0.12)
    _draw_smoothness(maps, plotting.axis_at(picture, 2.95, 0.52, 0.08, MAP), shown)
    errors = plotting.axis_at(picture, 4.3, 0.52, 1.5, 1.4)
    _draw_errors(errors, ablations)
    return picture


def of_first_seed(run):
    """The first seed's embeddings of x and of y, and the end of their colours."""
    first = [each[0] for each in embedding_matrices(run)]
    return first, np.percentile(np.abs(first), PERCENTILE)


def mse(run):
    """{'id', 'ood'}: (T,) errors over ID and over held-out cells, and that of a blank image."""
    cells = run.cells
    errors, blank = evaluation.errors(cells), np.square(cells.truths).mean(axis=(1, 2))
    regions = {"id": ~cells.held_out, "ood": cells.held_out}
    return {name: (errors[:, mask].mean(axis=1), blank[mask].mean())
            for name, mask in regions.items()}  # fmt: skip


def _draw_architecture(picture, bottom, run):
    cells = run.cells
    indices = plotting.held_out_cells(cells, [DRAWN])
    code, *layers = (np.asarray(layer[0]) for layer in first_seed_layers(run, indices).values())
    pitch = (plotting.WIDTH - 0.45 - 2 * IMAGE) / (len(layers) + 1)
    lefts = 0.25 + pitch * np.arange(len(layers) + 2)
    rows, middle = (bottom + 0.18 + IMAGE, bottom + 0.1), bottom + 0.14 + IMAGE / 2
    title = rows[0] + IMAGE + 0.05
    canvas = plotting.canvas_of(picture)
    codes = zip(rows, "xy", np.split(code, 2), cells.factors[indices[0]], strict=True)
    for row, name, half, value in codes:
        axis = plotting.axis_at(picture, lefts[0], row + IMAGE / 2 - 0.05, IMAGE, 0.1)
        plotting.show_signal(axis, half[None], 1.0)
        axis.set_aspect("auto")
        axis.set_xlabel(f"one-hot {name} = {value:.0f}", fontsize=plotting.SMALL, labelpad=3)
        if name == "x":
            plotting.panel(axis, "a", f"seed {cells.seeds[0]}", up=22)
        _draw_arrow(canvas, lefts[0], lefts[1], row + IMAGE / 2)
    between = (lefts[0] + IMAGE + lefts[1]) / 2
    canvas.text(between, middle + IMAGE / 2, "E = Σ λ u vᵀ", fontsize=7.5, ha="center", va="center")
    for index, (left, layer) in enumerate(zip(lefts[1:], layers, strict=False)):
        name = f"hidden layer {index}" if index else "embeddings E"
        name += f",\n2 of {layer.shape[-1]}" if layer.shape[-1] > 2 else ""
        canvas.text(left + IMAGE / 2, title, name, ha="center")
        for row, channel in zip(rows, np.moveaxis(layer, -1, 0), strict=False):
            plotting.show_signed(plotting.axis_at(picture, left, row, IMAGE, IMAGE), channel)
        _draw_arrow(canvas, left, left + pitch, middle + IMAGE / 2, "PReLU,\nconv 3×3")
    drawn = ("image", cells.predictions[0]), ("asked", cells.truths)
    for left, (name, images) in zip((lefts[-1], plotting.WIDTH - 0.1 - IMAGE), drawn, strict=True):
        axis = plotting.axis_at(picture, left, middle, IMAGE, IMAGE)
        plotting.show_held_out([axis], images, cells, indices)
        axis.set_title(name, pad=3)


def _draw_arrow(canvas, left, right, height, label=""):
    left, right = left + IMAGE + 0.08, right - 0.08
    style = {"arrowstyle": "-|>", "color": "0.4", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
    canvas.annotate("", (right, height), (left, height), arrowprops=style)
    canvas.text((left + right) / 2, height + 0.06, label, fontsize=plotting.SMALL, ha="center")


def _draw_tokens(axes, shown):
    for row, (name, run) in zip(axes, shown.items(), strict=True):
        (embedded, _), limit = of_first_seed(run)
        held_out = plotting.over_grid(run.cells.held_out, run.cells)
        with_hole = held_out.any(axis=0)
        kinds = np.flatnonzero(~with_hole), np.flatnonzero(with_hole)
        tokens = [kind[int(share * len(kind))] for kind in kinds for share in (0.4, 0.8)]
        row[0].set_ylabel(f"{TITLES[name]}\n±{limit:.2g}", fontsize=plotting.SMALL)
        for axis, token in zip(row, tokens, strict=True):
            plotting.show_signed(axis, embedded[token], limit)
            rows = np.broadcast_to(held_out[:, token, None], held_out.shape)
            plotting.outline(axis, rows, color="black", linewidth=0.8)
            if row is axes[0]:
                color = plotting.OOD_COLOR if with_hole[token] else plotting.ID_COLOR
                axis.set_title(f"x = {token}", pad=3, color=color)
    constant = [embedding_numbers(run)["constant_share"].mean() for run in shown.values()]
    title = "embeddings: {:.0%}, with penalties {:.0%} constant".format(*constant)
    plotting.panel(axes[0][0], "b", title, up=16)


def _draw_held_out(axes, shown):
    cells = shown["lowrank_both"].cells
    indices = plotting.held_out_cells(cells, POINTS)
    drawn = {"asked": cells.truths}
    drawn |= {TITLES[name]: run.cells.predictions[0] for name, run in shown.items()}
    for row, (name, images) in zip(axes, drawn.items(), strict=True):
        plotting.show_held_out(row, images, cells, indices)
        row[0].set_ylabel(name.replace(" ", "\n"), fontsize=plotting.SMALL)
    for axis, index in zip(axes[0], indices, strict=True):
        point = "({:.0f}, {:.0f})".format(*cells.factors[index])
        axis.set_title(point, pad=3, fontsize=plotting.SMALL)
    rendered = [evaluation.mean_score(run.cells, "rendered", run.cells.held_out).mean()
                for run in shown.values()]  # fmt: skip
    title = "OOD rendered: {:.0%}, with both penalties {:.0%}".format(*rendered)
    plotting.panel(axes[0][0], "c", title, up=16)


def _draw_smoothness(axes, bar, shown):
    cells = shown["lowrank_both"].cells
    held_out = plotting.over_grid(cells.held_out, cells)
    maps = [log_volumes(run.cells) for run in shown.values()]
    means = [each.mean(axis=0) - each[:, ~held_out].mean() for each in maps]
    steps = []
    for axis, mean, (name, run) in zip(axes, means, shown.items(), strict=True):
        image = plotting.show_cells(axis, mean, held_out, **plotting.VOLUME)
        axis.set_title(TITLES[name], pad=3)
        rough = smoothness(run.cells)
        steps.append(rough.in_corner.mean())
        text = f"steps: all {rough.roughness.mean():.3f},\ncorner {steps[-1]:.3f}"
        axis.set_xlabel(text, fontsize=plotting.SMALL, labelpad=3)
    plotting.volume_bar(bar.figure, image, cax=bar)
    title = "steps in the corner: {:.3f}, with penalties {:.3f}".format(*steps)
    plotting.panel(axes[0], "d", title, up=16)


def _draw_errors(axis, ablations):
    ood = {}
    for name, run in ablations.items():
        errors, (seen, held_out) = zip(*mse(run).values(), strict=True)
        numbers = [mean_with_interval(np.log10(values)) for values in errors]
        centre = _, ood[name] = [10 ** number["value"] for number in numbers]
        ends = [10 ** np.nan_to_num(n["ci95"], nan=n["value"]) for n in numbers]
        bars = [np.abs(end - at)[:, None] for end, at in zip(ends, centre, strict=True)]
        axis.plot(*errors, ".", color=COLORS[name], markersize=4, alpha=0.6)
        axis.errorbar(*centre, *bars[::-1], fmt="none", color=COLORS[name], capsize=2, linewidth=1)
        axis.plot(*centre, "o", color=COLORS[name], markeredgecolor="w", label=TITLES[name])
    axis.axvline(seen, **plotting.DOTTED)
    axis.axhline(held_out, **plotting.DOTTED, label="blank image")
    axis.plot([], [], ".", color="0.3", markersize=4, alpha=0.6, label="one seed")
    axis.set(xlabel="MSE ID (seen)", ylabel="MSE OOD (held out)")
    plotting.log_scale(axis, "xy")
    best = min(ood, key=ood.get)
    plotting.panel(axis, "e", f"lowest OOD: {TITLES[best]}, {ood[best]:.2g}")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), **plotting.LEGEND)
