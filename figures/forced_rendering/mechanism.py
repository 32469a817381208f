"""Figures 1d, 1e and 8: what the bump and the ramp decoder draw for combinations they never saw."""

import numpy as np

from compgen_jax.claims import median_over_checkpoints
from compgen_jax.metrics import kernels
from compgen_jax.papers.forced_rendering.mechanism_claims import superposition_r2

from .. import plotting
from ..figure import figure
from .lookup import by_code, flat

CONSTRUCTIONS = {"mean_code": "mean code", "sums": "sums of ID"}
EXAMPLE = 0  # of the saved held-out points
AGREEMENTS = {"binary": "ideal", "true": "true\nimages", "partial": "ideal,\ngiven\ntrue"}


@figure("fig1d", runs=("bump_cnn", "ramp_cnn"))
def draw_superposition(runs):
    runs, names = by_code(runs), []
    picture = plotting.new_figure(plotting.WIDTH, 2.5)
    *blocks, last = picture.subfigures(1, 3, width_ratios=[4, 4, 3])
    numbers = last.subplots()
    for block, letter, construction in zip(blocks, "ab", CONSTRUCTIONS, strict=True):
        axes = block.subplots(len(runs), 4, squeeze=False)
        for row, (code, run) in zip(axes, runs.items(), strict=True):
            of_x, of_y = run.maps[f"superposition.{construction}"][EXAMPLE]
            output = run.maps["superposition.output"][EXAMPLE]
            images = {"x alone": of_x, "y alone": of_y, "sum": of_x + of_y, "drawn": output}
            point = run.maps["superposition.points"][EXAMPLE]
            for axis, (word, image) in zip(row, images.items(), strict=True):
                plotting.show_scaled(axis, image, point, run.cells.amplitude)
                axis.set_title(word, pad=2, fontsize=plotting.SMALL)
            row[0].set_ylabel(f"{code} code", color=plotting.CODE_COLORS[code])
            for mark, name in (("o", "inner_r2"), (plotting.TRIVIAL, "inner_shuffled_r2")):
                r2 = median_over_checkpoints(superposition_r2(run, construction, name))
                position = len(names) + 0.2 * (mark == plotting.TRIVIAL)
                color = plotting.CODE_COLORS[code]
                plotting.show_number(numbers, position, r2, fmt=mark, color=color)
            names.append(f"{code},\n{CONSTRUCTIONS[construction]}")
        plotting.panel(axes[0, 0], letter, f"By {CONSTRUCTIONS[construction]}", up=16)
    plotting.label_mark(numbers, "own x, y")
    plotting.label_mark(numbers, "others'", plotting.TRIVIAL)
    plotting.label_seeds(numbers)
    numbers.set_xticks(range(len(names)), names, rotation=90)
    plotting.set_panels("fig1d", "c", [numbers])
    plotting.legend_below(last, ncols=2)
    return picture


@figure("fig1e", runs=("bump_cnn", "ramp_cnn"))
def draw_kernels(runs):
    runs = by_code(runs)
    cells = runs["bump"].cells
    images = [
        kernels.binary(cells.factors[cells.held_out]),
        kernels.cosine(kernels.gram(flat(cells.truths[cells.held_out]))),
    ]
    for run in runs.values():
        held_out = run.maps["held_out"].ravel()
        images.append(run.maps["similarity.cosine"][np.ix_(held_out, held_out)])
    picture = plotting.new_figure(plotting.WIDTH, 2.3)
    axes = picture.subplots(1, len(images) + 1, width_ratios=[1] * len(images) + [1.3])
    for axis, kernel in zip(axes, images, strict=False):
        image = axis.imshow(kernel, origin="lower", vmin=0, vmax=1, interpolation="nearest")
        axis.set(xticks=[], yticks=[], xlabel="OOD cells")
    plotting.set_panels("fig1e", "abcde", axes)
    picture.colorbar(image, ax=axes[:-1], label="cosine similarity", shrink=0.7, pad=0.01)
    agreement = axes[-1]
    for index, (code, run) in enumerate(runs.items()):
        style = {"fmt": "o", "color": plotting.CODE_COLORS[code]}
        for column, name in enumerate(AGREEMENTS):
            values = run.outputs(f"output.cosine.{name}")
            plotting.show_number(agreement, column + 0.3 * (index - 0.5), values, **style)
        plotting.label_mark(agreement, code, color=plotting.CODE_COLORS[code])
    plotting.label_seeds(agreement)
    agreement.axhline(0, **plotting.FAINT)
    agreement.set_xticks(range(len(AGREEMENTS)), list(AGREEMENTS.values()))
    agreement.set_ylim(None, 1.02)
    plotting.legend_below(picture, agreement)
    return picture


@figure("fig8", runs=("bump_cnn", "ramp_cnn"))
def draw_similarities(runs):
    picture = plotting.new_figure(plotting.WIDTH, 4.6)
    runs, letters = by_code(runs), iter("abcdef")
    for row, (code, run) in zip(picture.subplots(len(runs), 3), runs.items(), strict=True):
        held_out = run.maps["held_out"].ravel()
        order, id_count = np.argsort(held_out, kind="stable"), int((~held_out).sum())
        cosine, l2, overlap = (
            run.maps[f"similarity.{name}"][np.ix_(order, order)]
            for name in ("cosine", "l2", "overlap")
        )
        pairs = ~np.eye(len(cosine), dtype=bool)
        most = 1000 * max(np.percentile(overlap[pairs], 99.9), 1 / len(overlap))
        kernels_of_run = {
            "cosine similarity": (cosine, 0, 1),
            "minus L2 distance": (l2, l2[pairs].min(), 0),
            "pixels shared (of 1000)": (1000 * overlap, 0, most),
        }
        for axis, (label, (kernel, low, high)) in zip(row, kernels_of_run.items(), strict=True):
            image = axis.imshow(
                kernel, origin="lower", vmin=low, vmax=high, interpolation="nearest"
            )
            for draw_line in (axis.axhline, axis.axvline):
                draw_line(id_count - 0.5, color=plotting.OOD_COLOR, linewidth=0.8)
            size = id_count - 2, len(kernel) - id_count - 1
            frame = {"fill": False, "color": "white", "linewidth": 1.2}
            axis.add_patch(plotting.plt.Rectangle((0, id_count), *size, **frame))
            centres = [(id_count - 1) / 2, (id_count + len(kernel) - 1) / 2]
            axis.set_xticks(centres, ["ID", "OOD"])
            axis.set_yticks(centres, ["ID", "OOD"], rotation=90, va="center")
            axis.tick_params(length=0)
            extend = "max" if kernel.max() > high else "neither"
            picture.colorbar(image, ax=axis, shrink=0.7, label=label, extend=extend)
            title = f"Mean in the white frame: {kernel[id_count:, :id_count].mean():.2g}"
            plotting.panel(axis, next(letters), title.replace("-", plotting.MINUS), wrap=28)
        row[0].set_ylabel(f"{code} code", labelpad=12, color=plotting.CODE_COLORS[code])
    return picture
