"""Figures 1d, 1e and 8: what the bump and the ramp decoder draw for combinations they never saw."""

import numpy as np

from compgen_jax.metrics import kernels
from compgen_jax.papers.forced_rendering.mechanism import CONSTRUCTION

from .. import plotting
from ..figure import figure
from .lookup import by_code, flat

CONSTRUCTIONS = {"mean_code": "mean code", "sums": "sums of seen"}
EXAMPLES = (1, 2)  # of the saved held-out points
AGREEMENTS = {"binary": "binary", "true": "true\nimages", "partial": "binary, given\ntrue images"}
# sizes in inches
IMAGE, GAP = 0.85, 0.06


@figure("fig1d", runs=("bump_cnn", "ramp_cnn"))
def draw_superposition(runs):
    """Figure 1d. (a, b) For two held-out points (circles): what the first seed draws for x alone
    and for y alone, the sum of both, and what it draws for (x, y). The bump code stands for x alone
    by the mean code of y; the ramp's images of x alone are sums over ID cells. Each image has its
    own scale; its largest value is printed below. (c) How much of what is drawn for all held-out
    cells such sums explain, and as a control sums of other cells' x and y; means over seeds with
    95% intervals, grey dots are seeds."""
    shown = by_code(runs)
    row, block = IMAGE + 0.24, 4 * (IMAGE + GAP)
    picture = plotting.new_figure(2 * block + 3.35, 2 * row + 0.5)
    for index, (code, run) in enumerate(shown.items()):
        left = 0.3 + index * (block + 0.3)
        upper, lower = (plotting.row_at(picture, left, 0.22 + (1 - line) * row, IMAGE, 4, GAP)
                        for line in range(2))  # fmt: skip
        _draw_parts(upper, run, CONSTRUCTION[code], EXAMPLES[0])
        _draw_parts(lower, run, CONSTRUCTION[code], EXAMPLES[1])
        titles = ("$f(x_{super})$", "$f(y_{super})$", "their sum", "$f(x, y)$")
        for axis, title in zip(upper, titles, strict=True):
            axis.set_title(title, pad=3)
        place = {"xycoords": "axes fraction", "textcoords": "offset points"}
        upper[0].annotate(
            f"{code} code: {CONSTRUCTIONS[CONSTRUCTION[code]]}, seed {run.cells.seeds[0]}", (0, 1),
            xytext=(0, 17), color=plotting.CODE_COLORS[code], **place,
        )  # fmt: skip
        upper[0].annotate(
            "ab"[index], (0, 1), xytext=(-4, 15), fontweight="bold", fontsize=10, ha="right",
            **place,
        )  # fmt: skip
    panel = plotting.axis_at(picture, 2 * block + 1.3, 0.5, 1.95, 2 * row - 0.42)
    _draw_explained(panel, shown)
    plotting.panel_label(panel, "c")
    return picture


def _draw_parts(axes, run, construction, example):
    of_x, of_y = run.maps[f"superposition.{construction}"][example]
    drawn = run.maps["superposition.output"][example]
    point = run.maps["superposition.points"][example]
    for axis, image in zip(axes, (of_x, of_y, of_x + of_y, drawn), strict=True):
        plotting.show_scaled(axis, image, point, run.cells.amplitude)
    axes[0].set_ylabel("({:.0f}, {:.0f})".format(*point), labelpad=2)


def _draw_explained(axis, shown):
    count = len(shown)
    for block, (construction, title) in enumerate(CONSTRUCTIONS.items()):
        for place, (code, run) in enumerate(shown.items(), start=block * count):
            name, color = f"output.superposition.{construction}", plotting.CODE_COLORS[code]
            r2, others = run.outputs(f"{name}.r2"), run.outputs(f"{name}.shuffled_r2")
            plotting.show_number(axis, place - 0.15, r2, fmt="o", color=color)
            plotting.show_number(axis, place + 0.2, others, color=color, **plotting.SEEN)
        plotting.below(axis, (block + 0.5) * count - 0.5, title, 20)
    axis.plot([], [], "o", color="0.3", markersize=4, label="own x and y")
    axis.plot([], [], "s", color="0.3", markerfacecolor="white", markersize=4, label="others'")
    places = range(len(CONSTRUCTIONS) * count)
    axis.set_xticks(places, list(shown) * len(CONSTRUCTIONS))
    axis.axvline(count - 0.5, color="0.85", linewidth=0.8)
    axis.set(ylabel="$R^2$ over the hole", ylim=(0, 1), xlim=(-0.6, len(places) - 0.4))
    axis.legend(loc="upper right", title="superposition of", title_fontsize=7)


@figure("fig1e", runs=("bump_cnn", "ramp_cnn"))
def draw_kernels(runs):
    """Figure 1e: cosine similarity of images at all pairs of held-out cells. (a) The ideal binary
    kernel. (b) The true images. (c, d) What the first seed draws with the bump and with the ramp
    code. (e) How well these kernels agree with that of the drawn images: correlations over pairs,
    means over seeds with 95% intervals, grey dots are seeds. Claim C5 is about pairs of a held-out
    and an ID cell, which Figure 8 shows."""
    shown = by_code(runs)
    cells = shown["bump"].cells
    truths = flat(cells.truths[cells.held_out])
    kernels_by_title = {
        "ideal (binary)": kernels.binary(cells.factors[cells.held_out]),
        "true images": kernels.cosine(kernels.gram(truths)),
    }
    for code, run in shown.items():
        within = run.maps["held_out"].ravel()
        kernel = run.maps["similarity.cosine"][np.ix_(within, within)]
        kernels_by_title[f"{code} code, seed {run.cells.seeds[0]}"] = kernel
    count = len(kernels_by_title)
    picture = plotting.new_figure(9.05, 2.25)
    axes = picture.subplots(1, count + 1, width_ratios=[1] * count + [1.15])
    for axis, (title, kernel) in zip(axes, kernels_by_title.items(), strict=False):
        image = axis.imshow(kernel, origin="lower", vmin=0, vmax=1, interpolation="nearest")
        axis.set(title=title, xticks=[], yticks=[], xlabel="held-out cells")
    axes[0].set_ylabel("held-out cells\n(row by row)")
    picture.colorbar(image, ax=axes[:-1], label="similarity", shrink=0.75, pad=0.01, aspect=15)
    _draw_agreements(axes[-1], shown)
    plotting.panel_labels(axes, "abcde")
    return picture


def _draw_agreements(axis, shown):
    for index, (code, run) in enumerate(shown.items()):
        color = plotting.CODE_COLORS[code]
        for place, name in enumerate(AGREEMENTS):
            values = run.outputs(f"output.cosine.{name}")
            plotting.show_number(axis, place + 0.3 * (index - 0.5), values, fmt="o", color=color)
    plotting.label_colors(axis, {code: plotting.CODE_COLORS[code] for code in shown})
    axis.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axis.set_xticks(range(len(AGREEMENTS)), list(AGREEMENTS.values()), fontsize=6)
    axis.set(ylabel="correlation of kernels", ylim=(None, 1.02), xlim=(-0.5, 2.5))
    axis.set_title("agreement with")
    axis.legend(loc="upper right", handletextpad=0.1)


@figure("fig8", runs=("bump_cnn", "ramp_cnn"))
def draw_similarities(runs):
    """Figure 8: similarity of what the first seed draws at all pairs of cells, ID cells first, with
    the bump (a to c) and the ramp code (d to f): by cosine, by L2 distance, and by the pixels that
    both images fill. Bumps fill so few pixels that few pairs share one. Framed in white: pairs of a
    held-out and an ID cell, the section that the paper shows in Figure 1e (claim C5)."""
    picture = plotting.new_figure(7.4, 4.6)
    shown = by_code(runs)
    axes = picture.subplots(len(shown), 3)
    for row, (code, run) in zip(axes, shown.items(), strict=True):
        held_out = run.maps["held_out"].ravel()
        order = np.argsort(held_out, kind="stable")
        for axis, name in zip(row, ("cosine", "l2", "overlap"), strict=True):
            kernel = run.maps[f"similarity.{name}"][np.ix_(order, order)]
            _draw_similarity(picture, axis, name, kernel, int((~held_out).sum()))
        row[0].set_ylabel(f"{code} code, seed {run.cells.seeds[0]}", labelpad=12)
    plotting.panel_labels(axes.flat, "abcdef")
    return picture


def _draw_similarity(picture, axis, name, kernel, seen: int):
    off_diagonal = kernel[~np.eye(len(kernel), dtype=bool)]
    label = None
    if name == "cosine":
        title, low, high = "cosine", 0, 1
    elif name == "l2":
        title, low, high = "minus L2 distance", off_diagonal.min(), 0
    else:
        title, label, kernel = "overlap", "pixels in a thousand", 1000 * kernel
        low, high = 0, 1000 * max(np.percentile(off_diagonal, 99.9), 1 / len(kernel))
    image = axis.imshow(kernel, origin="lower", vmin=low, vmax=high, interpolation="nearest")
    axis.axhline(seen - 0.5, color=plotting.OOD_COLOR, linewidth=0.8)
    axis.axvline(seen - 0.5, color=plotting.OOD_COLOR, linewidth=0.8)
    size = seen - 2, len(kernel) - seen - 1
    frame = {"fill": False, "color": "white", "linewidth": 1.2}
    axis.add_patch(plotting.plt.Rectangle((0, seen), *size, **frame))
    centres = [(seen - 1) / 2, (seen + len(kernel) - 1) / 2]
    axis.set_xticks(centres, ["ID", "OOD"], fontsize=7)
    axis.set_yticks(centres, ["ID", "OOD"], fontsize=7, rotation=90, va="center")
    axis.tick_params(length=0)
    axis.set_title(title)
    extend = "max" if kernel.max() > high else "neither"
    picture.colorbar(image, ax=axis, shrink=0.7, label=label, extend=extend)
