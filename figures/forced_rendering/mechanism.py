"""Figures 1d, 1e and 8: what the bump and the ramp decoder draw for combinations they never saw."""

import numpy as np

from compgen_jax.metrics import kernels
from compgen_jax.papers.forced_rendering.mechanism import CONSTRUCTION

from .. import plotting
from ..figure import figure
from .lookup import by_code, flat

CONSTRUCTIONS = {"mean_code": "mean code", "sums": "sums of ID"}
TITLES = "x alone", "y alone", "sum", "drawn"
EXAMPLES = (1, 2)  # of the saved held-out points
AGREEMENTS = {"binary": "binary", "true": "true\nimages", "partial": "binary,\ngiven\ntrue"}
# sizes in inches
IMAGE, GAP = 0.51, 0.05


@figure("fig1d", runs=("bump_cnn", "ramp_cnn"))
def draw_superposition(runs):
    """Figure 1d. (a, b) For two held-out points (circles): what the first seed draws for x alone
    and for y alone, the sum of both, and what it draws for (x, y). The bump code stands for x alone
    by the mean code of y; the ramp's images of x alone are sums over ID cells. Each image has its
    own scale; its largest value is printed below. (c) How much of what is drawn for all held-out
    cells such sums explain, and as a control sums of other cells' x and y; means over seeds with
    95% intervals, grey dots are seeds."""
    shown = by_code(runs)
    row, block = IMAGE + 0.65, 4 * (IMAGE + GAP)
    picture = plotting.new_figure(plotting.WIDTH, 2 * row + 0.1)
    for index, (code, run) in enumerate(shown.items()):
        bottom, parts = (1 - index) * row + 0.25, run.maps[f"superposition.{CONSTRUCTION[code]}"]
        for column, example in enumerate(EXAMPLES):
            left = 0.25 + column * (block + 0.08)
            axes = plotting.row_at(picture, left, bottom, IMAGE, 4, GAP)
            of_x, of_y = parts[example]
            point = run.maps["superposition.points"][example]
            images = of_x, of_y, of_x + of_y, run.maps["superposition.output"][example]
            for axis, image, word in zip(axes, images, TITLES, strict=True):
                plotting.show_scaled(axis, image, point, run.cells.amplitude)
                axis.set_title(word, pad=2, fontsize=plotting.SMALL)
            name = "({:.0f}, {:.0f})".format(*point)
            axes[0].set_ylabel(name, labelpad=2, fontsize=plotting.SMALL)
            if column == 0:
                of_sum = run.outputs(f"output.superposition.{CONSTRUCTION[code]}.r2").mean()
                title = (f"{code} code: sums of what is drawn for x and for y alone explain "
                         f"{of_sum:.0%} OOD (R²)")  # fmt: skip
                style = {"up": 14, "color": plotting.CODE_COLORS[code]}
                plotting.panel(axes[0], "ab"[index], title, **style)
    axis, count = plotting.axis_at(picture, 5.35, 0.62, 1.35, 2 * row - 0.95), len(shown)
    for block, (construction, title) in enumerate(CONSTRUCTIONS.items()):
        for place, (code, run) in enumerate(shown.items(), start=block * count):
            name, color = f"output.superposition.{construction}", plotting.CODE_COLORS[code]
            r2, others = run.outputs(f"{name}.r2"), run.outputs(f"{name}.shuffled_r2")
            plotting.show_number(axis, place - 0.15, r2, fmt="o", color=color)
            plotting.show_number(axis, place + 0.2, others, color=color, **plotting.SEEN)
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        style = {"ha": "center", "va": "top", "fontsize": plotting.SMALL}
        middle = (block + 0.5) * count - 0.5
        axis.annotate(title, (middle, 0), xytext=(0, -20), **place, **style)
    plotting.label_mark(axis, "own x and y")
    plotting.label_mark(axis, "others'", "s", markerfacecolor="white")
    plotting.label_seeds(axis)
    places = range(len(CONSTRUCTIONS) * count)
    axis.set_xticks(places, list(shown) * len(CONSTRUCTIONS))
    axis.axvline(count - 0.5, color="0.85", linewidth=0.8)
    axis.set(ylabel="R² over OOD cells", xlim=(-0.6, len(places) - 0.4))
    axis.set(ylim=(0, 1.3), yticks=np.linspace(0, 1, 6))  # the legend lies above 1
    axis.legend(loc="upper right", title="superposition of", **plotting.LEGEND)
    plotting.panel(axis, "c")
    return picture


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
        within = np.ix_(*[run.maps["held_out"].ravel()] * 2)
        kernels_by_title[f"{code} code"] = run.maps["similarity.cosine"][within]
    count = len(kernels_by_title)
    picture = plotting.new_figure(plotting.WIDTH, 2.3)
    axes = picture.subplots(1, count + 1, width_ratios=[1] * count + [1.3])
    for axis, letter, (title, kernel) in zip(axes, "abcd", kernels_by_title.items(), strict=False):
        image = axis.imshow(kernel, origin="lower", vmin=0, vmax=1, interpolation="nearest")
        axis.set(xticks=[], yticks=[], xlabel="OOD cells")
        plotting.panel(axis, letter, title)
    axes[0].set_ylabel("OOD cells")
    picture.colorbar(image, ax=axes[:-1], label="cosine similarity", location="bottom", shrink=0.5)
    agreement, nearest = axes[-1], {}
    for index, (code, run) in enumerate(shown.items()):
        means = {}
        for place, (name, title) in enumerate(AGREEMENTS.items()):
            values, at = run.outputs(f"output.cosine.{name}"), place + 0.3 * (index - 0.5)
            plotting.show_number(agreement, at, values, fmt="o", color=plotting.CODE_COLORS[code])
            means[title.replace("\n", " ")] = values.mean()
        nearest[max(means, key=means.get)] = code
    plotting.label_colors(agreement, {code: plotting.CODE_COLORS[code] for code in shown})
    plotting.label_seeds(agreement)
    agreement.axhline(0, **plotting.FAINT)
    agreement.set_xticks(range(len(AGREEMENTS)), list(AGREEMENTS.values()))
    agreement.set(ylabel="correlation of kernels", ylim=(None, 1.02), xlim=(-0.5, 2.5))
    plotting.panel(agreement, "e", f"drawn images are most like: {', '.join(nearest)}", wrap=26)
    plotting.legend_below(picture, agreement, loc="lower right")
    return picture


@figure("fig8", runs=("bump_cnn", "ramp_cnn"))
def draw_similarities(runs):
    """Figure 8: similarity of what the first seed draws at all pairs of cells, ID cells first, with
    the bump (a to c) and the ramp code (d to f): by cosine, by L2 distance, and by the pixels that
    both images fill. Bumps fill so few pixels that few pairs share one. Framed in white: pairs of a
    held-out and an ID cell, the section that the paper shows in Figure 1e (claim C5)."""
    picture = plotting.new_figure(plotting.WIDTH, 4.6)
    runs, letters = by_code(runs), iter("abcdef")
    for row, (code, run) in zip(picture.subplots(len(runs), 3), runs.items(), strict=True):
        held_out = run.maps["held_out"].ravel()
        order, seen = np.argsort(held_out, kind="stable"), int((~held_out).sum())
        cosine, l2, overlap = (run.maps[f"similarity.{name}"][np.ix_(order, order)]
                               for name in ("cosine", "l2", "overlap"))  # fmt: skip
        pairs = ~np.eye(len(cosine), dtype=bool)
        most = 1000 * max(np.percentile(overlap[pairs], 99.9), 1 / len(overlap))
        shown = (
            (cosine, "cosine", "similarity", 0, 1),
            (l2, "minus L2 distance", "distance", l2[pairs].min(), 0),
            (1000 * overlap, "overlap", "pixels in a thousand", 0, most),
        )
        for axis, (kernel, title, label, low, high) in zip(row, shown, strict=True):
            style = {"cmap": plotting.plt.get_cmap("viridis", 24), "interpolation": "nearest"}
            image = axis.imshow(kernel, origin="lower", vmin=low, vmax=high, **style)
            axis.axhline(seen - 0.5, color=plotting.OOD_COLOR, linewidth=0.8)
            axis.axvline(seen - 0.5, color=plotting.OOD_COLOR, linewidth=0.8)
            size = seen - 2, len(kernel) - seen - 1
            frame = {"fill": False, "color": "white", "linewidth": 1.2}
            axis.add_patch(plotting.plt.Rectangle((0, seen), *size, **frame))
            centres = [(seen - 1) / 2, (seen + len(kernel) - 1) / 2]
            axis.set_xticks(centres, ["ID", "OOD"])
            axis.set_yticks(centres, ["ID", "OOD"], rotation=90, va="center")
            axis.tick_params(length=0)
            extend = "max" if kernel.max() > high else "neither"
            picture.colorbar(image, ax=axis, shrink=0.7, label=label, extend=extend)
            title += f": {kernel[seen:, :seen].mean():.2g} in the frame"
            plotting.panel(axis, next(letters), title.replace("-", plotting.MINUS), wrap=22)
        row[0].set_ylabel(f"{code} code, seed {run.cells.seeds[0]}", labelpad=12)
    return picture
