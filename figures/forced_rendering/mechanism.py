"""Figures 1d, 1e and 8: what the bump and the ramp decoder draw for combinations they never saw."""

import textwrap

import numpy as np

from compgen_jax.claims import median_over_checkpoints
from compgen_jax.metrics import kernels
from compgen_jax.papers.forced_rendering.mechanism_claims import superposition_r2

from .. import plotting
from ..figure import figure
from .lookup import by_code, flat

# {metric: (its name in panel c, the title of its images)}
CONSTRUCTIONS = {
    "mean_code": ("mean code", "Sums by the mean code explain {} with the bump, {} with the ramp"),
    "sums": ("sums of ID", "Sums of ID images explain {} with the bump, {} with the ramp"),
}
TITLES = "x alone", "y alone", "sum", "drawn"
EXAMPLE = 0  # of the saved held-out points
AGREEMENTS = {"binary": "ideal", "true": "true\nimages", "partial": "ideal,\ngiven\ntrue"}
# sizes in inches
IMAGE, GAP = 0.5, 0.07


@figure("fig1d", runs=("bump_cnn", "ramp_cnn"))
def draw_superposition(runs):
    shown = by_code(runs)
    explained_by = lambda *asked: median_over_checkpoints(superposition_r2(*asked))
    row, block, count = IMAGE + 0.3, 4 * (IMAGE + GAP) + 0.16, len(shown)
    height = count * row + 0.75
    picture = plotting.new_figure(plotting.WIDTH, height)
    numbers = plotting.axis_at(picture, 5.42, 0.5, 1.3, height - 0.95)
    for at, (construction, (_, title)) in enumerate(CONSTRUCTIONS.items()):
        for place, (code, run) in enumerate(shown.items()):
            bottom, color = height - 0.65 - IMAGE - place * row, plotting.CODE_COLORS[code]
            axes = plotting.row_at(picture, 0.3 + at * block, bottom, IMAGE, 4, GAP)
            of_x, of_y = run.maps[f"superposition.{construction}"][EXAMPLE]
            point = run.maps["superposition.points"][EXAMPLE]
            images = of_x, of_y, of_x + of_y, run.maps["superposition.output"][EXAMPLE]
            for axis, image, word in zip(axes, images, TITLES, strict=True):
                plotting.show_scaled(axis, image, point, run.cells.amplitude)
                axis.set_title(word, pad=2, fontsize=plotting.SMALL)
            if at == 0:
                axes[0].set_ylabel(f"{code} code", color=color)
            if place == 0:
                explained = (explained_by(one, construction).mean() for one in shown.values())
                title = title.format(*map(plotting.percent, explained))
                plotting.panel(axes[0], "ab"[at], textwrap.fill(title, 34), up=16)
            r2, others = (explained_by(run, construction, control) for control in (False, True))
            x = at * count + place
            plotting.show_number(numbers, x - 0.15, r2, fmt="o", color=color)
            plotting.show_number(numbers, x + 0.2, others, fmt=plotting.TRIVIAL, color=color)
    plotting.label_mark(numbers, "of own x, y")
    plotting.label_mark(numbers, "of others'", plotting.TRIVIAL)
    plotting.label_seeds(numbers)
    places = range(count * len(CONSTRUCTIONS))
    numbers.set_xticks(places, list(shown) * len(CONSTRUCTIONS))
    names = [f"\n\n{short}" for short, _ in CONSTRUCTIONS.values()]
    numbers.set_xticks(np.arange(len(names)) * count + (count - 1) / 2, names, minor=True)
    numbers.tick_params(which="minor", length=0)
    numbers.axvline(count - 0.5, color="0.85", linewidth=0.8)
    numbers.set(ylabel="R² over OOD cells", xlim=(-0.6, len(places) - 0.4))
    numbers.set(ylim=(0, 1.3), yticks=np.linspace(0, 1, 6))  # the legend lies above 1
    numbers.legend(loc="upper right", **plotting.LEGEND)
    plotting.panel(numbers, "c", "Own x and y\nexplain more")
    return picture


@figure("fig1e", runs=("bump_cnn", "ramp_cnn"))
def draw_kernels(runs):
    shown = by_code(runs)
    cells = shown["bump"].cells
    truths = flat(cells.truths[cells.held_out])
    kernels_by_title = {
        "Ideal": kernels.binary(cells.factors[cells.held_out]),
        "True": kernels.cosine(kernels.gram(truths)),
    }
    for code, run in shown.items():
        within = np.ix_(*[run.maps["held_out"].ravel()] * 2)
        kernels_by_title[f"Drawn, {code}"] = run.maps["similarity.cosine"][within]
    count = len(kernels_by_title)
    picture = plotting.new_figure(plotting.WIDTH, 2.3)
    axes = picture.subplots(1, count + 1, width_ratios=[1] * count + [1.3])
    for axis, letter, (title, kernel) in zip(axes, "abcd", kernels_by_title.items(), strict=False):
        image = axis.imshow(kernel, origin="lower", vmin=0, vmax=1, interpolation="nearest")
        axis.set(xticks=[], yticks=[], xlabel="OOD cells")
        plotting.panel(axis, letter, title)
    axes[0].set_ylabel("OOD cells")
    picture.colorbar(image, ax=axes[:-1], label="cosine similarity", shrink=0.7, pad=0.01)
    agreement, of_true = axes[-1], []
    for index, (code, run) in enumerate(shown.items()):
        for place, name in enumerate(AGREEMENTS):
            values, at = run.outputs(f"output.cosine.{name}"), place + 0.3 * (index - 0.5)
            plotting.show_number(agreement, at, values, fmt="o", color=plotting.CODE_COLORS[code])
        of_true.append(run.outputs("output.cosine.true").mean())
    plotting.label_colors(agreement, {code: plotting.CODE_COLORS[code] for code in shown})
    plotting.label_seeds(agreement)
    agreement.axhline(0, **plotting.FAINT)
    agreement.set_xticks(range(len(AGREEMENTS)), list(AGREEMENTS.values()))
    agreement.set(ylabel="correlation with drawn", ylim=(None, 1.02), xlim=(-0.5, 2.5))
    title = f"Correlation with true images is {plotting.span(of_true, '{:.2f}'.format)}"
    plotting.panel(agreement, "e", title, wrap=19)
    plotting.legend_below(picture, agreement)
    return picture


@figure("fig8", runs=("bump_cnn", "ramp_cnn"))
def draw_similarities(runs):
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
            (cosine, "cosine similarity is {:.2g}", "cosine similarity", 0, 1),
            (l2, "L2 distance is {:.2g}", "minus L2 distance", l2[pairs].min(), 0),
            (1000 * overlap, "{:.2g} of 1000 pixels are shared", "shared pixels", 0, most),
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
            title = f"In the white frame, {title.format(abs(kernel[seen:, :seen].mean()))}"
            plotting.panel(axis, next(letters), title, wrap=28)
        row[0].set_ylabel(f"{code} code", labelpad=12, color=plotting.CODE_COLORS[code])
    return picture
