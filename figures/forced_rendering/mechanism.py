"""Figures 1d, 1e and 8: what the bump and the ramp decoder draw for combinations they never saw."""

import numpy as np

from compgen_jax.claims import median_over_checkpoints
from compgen_jax.metrics import kernels
from compgen_jax.papers.forced_rendering.mechanism_claims import (
    CONSTRUCTION,
    agreement,
    superposition_r2,
)

from .. import plotting
from ..figure import figure
from .lookup import OF_FIGURE_8, by_code, flat, median_images, median_maps

TITLES = {"mean_code": "other input at its mean", "sums": "sums of ID outputs"}
EXAMPLE = 0  # of the held-out points of `superposition.points`
AGREEMENTS = {
    "binary": "binary\nkernel",
    "true": "true\nimages",
    "partial": "binary,\nbeyond\ntrue",
}


def draw_sums(picture, runs):
    """Figure 1d: an image for x alone, one for y alone, their sum and what is drawn; and how much
    of what is drawn such sums explain."""
    *blocks, last = picture.subfigures(1, len(runs) + 1, width_ratios=[4] * len(runs) + [2.4])
    numbers = last.subplots()
    for index, (block, (code, run)) in enumerate(zip(blocks, runs.items(), strict=False)):
        maps, construction, color = median_maps(run), CONSTRUCTION[code], plotting.CODE_COLORS[code]
        of_x, of_y = maps[f"superposition.{construction}"][EXAMPLE]
        output = maps["superposition.output"][EXAMPLE]
        images = {"x alone": of_x, "y alone": of_y, "sum": of_x + of_y, "drawn": output}
        axes = block.subplots(1, len(images))
        for axis, (word, image) in zip(axes, images.items(), strict=True):
            point = maps["superposition.points"][EXAMPLE]
            plotting.show_scaled(axis, image, point, run.cells.amplitude)
            axis.set_title(word, pad=2, fontsize=plotting.SMALL)
        title = f"{code.capitalize()} code: {TITLES[construction]}"
        plotting.panel(axes[0], "" if index else "d", title, up=14, color=color)
        marks = (0, "o", "inner_r2"), (0.2, plotting.TRIVIAL, "inner_shuffled_r2")
        for beside, mark, name in marks:
            r2 = median_over_checkpoints(superposition_r2(run, construction, name))
            plotting.show_number(numbers, index + beside, r2, fmt=mark, color=color)
    plotting.label_mark(numbers, "own x, y")
    plotting.label_mark(numbers, "others'", plotting.TRIVIAL)
    numbers.set_xticks(range(len(runs)), runs)
    numbers.set(ylabel="R² of the sum", ylim=(0, 1.02), xlim=(-0.4, len(runs) - 0.4))
    plotting.legend_below(last)


def draw_kernels(picture, runs):
    """Figure 1e: the similarity of held-out and ID outputs, beside that of the true images below
    the binary kernel; and their correlation."""
    cells = next(iter(runs.values())).cells
    block = np.ix_(cells.held_out, ~cells.held_out)
    cosine = lambda images: kernels.cosine(kernels.gram(flat(images)))[block]
    shown = {"Binary kernel": kernels.binary(cells.factors)[block]}
    shown["True images"] = cosine(cells.truths)
    for code, run in runs.items():
        shown[f"Drawn, {code} code"] = cosine(median_images(run))
    maps, last = picture.subfigures(1, 2, width_ratios=[4.4, 2])
    axes = maps.subplots(2, 2)
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    for axis, (title, kernel) in zip(axes.flat, shown.items(), strict=False):
        style = {"vmin": 0, "vmax": 0.5, "interpolation": "nearest", "aspect": "auto"}
        image = axis.imshow(kernel, origin="lower", **style)
        axis.set(xticks=[], yticks=[], title=title)
    axes[0, 0].set_ylabel("OOD cells")
    axes[-1, 0].set_xlabel("ID cells")
    plotting.panel(axes[0, 0], "e")
    maps.colorbar(image, ax=axes, label="cosine similarity", extend="both", pad=0.01)
    numbers = last.subplots()
    for index, (code, run) in enumerate(runs.items()):
        style = {"fmt": "o", "color": plotting.CODE_COLORS[code]}
        for column, name in enumerate(AGREEMENTS):
            values = median_over_checkpoints(agreement(run, name))
            plotting.show_number(numbers, column + 0.3 * (index - 0.5), values, **style)
        plotting.label_mark(numbers, f"{code} code", color=style["color"])
    plotting.label_seeds(numbers)
    numbers.axhline(0, **plotting.FAINT)
    numbers.set_xticks(range(len(AGREEMENTS)), list(AGREEMENTS.values()))
    numbers.set(ylabel="correlation with drawn", xlim=(-0.5, len(AGREEMENTS) - 0.5))
    plotting.legend_below(last, ncols=2)


@figure("fig8", runs=OF_FIGURE_8.get)
def draw_similarities(runs):
    picture = plotting.new_figure(plotting.WIDTH, 4.6)
    runs, letters = by_code(runs), iter("abcdef")
    for row, (code, run) in zip(picture.subplots(len(runs), 3), runs.items(), strict=True):
        held_out, maps = run.maps["held_out"].ravel(), median_maps(run)
        order, id_count = np.argsort(held_out, kind="stable"), int((~held_out).sum())
        cosine, l2, overlap = (
            maps[f"similarity.{name}"][np.ix_(order, order)] for name in ("cosine", "l2", "overlap")
        )
        pairs, pixels = ~np.eye(len(cosine), dtype=bool), flat(run.cells.truths).shape[1]
        most = max(pixels * np.percentile(overlap[pairs], 99.9), 1)
        mean, frame = "Mean, OOD by ID: {:.2g}", (slice(id_count, None), slice(id_count))
        shared = "OOD by ID, {:.2%} of pairs share a pixel"
        kernels_of_run = {
            "cosine similarity": (cosine, 0, 1, mean, cosine[frame]),
            "minus L2 distance": (l2, l2[pairs].min(), 0, mean, l2[frame]),
            "pixels that both fill": (pixels * overlap, 0, most, shared, overlap[frame] > 0),
        }
        for axis, (label, shown) in zip(row, kernels_of_run.items(), strict=True):
            kernel, low, high, title, values = shown
            image = axis.imshow(
                kernel, origin="lower", vmin=low, vmax=high, interpolation="nearest"
            )
            for draw_line in (axis.axhline, axis.axvline):
                draw_line(id_count - 0.5, color=plotting.OOD_COLOR, linewidth=0.8)
            centres = [(id_count - 1) / 2, (id_count + len(kernel) - 1) / 2]
            axis.set_xticks(centres, ["ID", "OOD"])
            axis.set_yticks(centres, ["ID", "OOD"], rotation=90, va="center")
            axis.tick_params(length=0)
            picture.colorbar(image, ax=axis, shrink=0.7, label=label, extend="max")
            title = title.format(values.mean()).replace("-", plotting.MINUS)
            plotting.panel(axis, next(letters), title, wrap=28)
            plotting.remember(axis, label, [values.mean()])
        row[0].set_ylabel(f"{code} code", labelpad=12, color=plotting.CODE_COLORS[code])
    return picture
