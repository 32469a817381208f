"""Figures 1d, 1e and 8: what the bump and the ramp decoder draw for combinations they never saw."""

import numpy as np

from compgen_jax.metrics import kernels
from compgen_jax.papers.forced_rendering.mechanism import CONSTRUCTION
from figures import plotting

CONSTRUCTIONS = {"mean_code": "mean code", "sums": "sums of seen"}
EXAMPLES = (1, 2)  # of the saved held-out points
AGREEMENTS = {
    "binary": "binary",
    "true": "true\nimages",
    "partial": "binary, given\ntrue images",
}
# sizes in inches
IMAGE, GAP = 0.85, 0.06


def draw_superposition(studies):
    """Figure 1d: for two held-out points (circles), what the first seed draws for x alone and for
    y alone, their sum, and what it draws for both; beside it how much of the outputs over the
    hole such superpositions explain, against those of other coordinates."""
    row = IMAGE + 0.24
    block = 4 * (IMAGE + GAP)
    figure = plotting.new_figure(2 * block + 3.35, 2 * row + 0.5)
    chosen = {study.role.code: study for study in studies}
    for index, (code, study) in enumerate(chosen.items()):
        left = 0.3 + index * (block + 0.3)
        for line, example in enumerate(EXAMPLES):
            axes = [
                plotting.axis_at(
                    figure, left + column * (IMAGE + GAP), 0.22 + (1 - line) * row, IMAGE, IMAGE
                )
                for column in range(4)
            ]
            _draw_parts(axes, code, study, example)
            if line == 0:
                _title_parts(axes, code, "ab"[index], study.results.seeds[0])
    panel = plotting.axis_at(figure, 2 * block + 1.3, 0.5, 1.95, 2 * row - 0.42)
    _draw_explained(panel, chosen)
    plotting.panel_label(panel, "c")
    return figure


def _draw_parts(axes, code, study, example):
    maps = study.inspection.maps
    of_x, of_y = maps[f"superposition.{CONSTRUCTION[code]}"][example]
    drawn = maps["superposition.output"][example]
    point = maps["superposition.points"][example]
    for axis, signal in zip(axes, (of_x, of_y, of_x + of_y, drawn), strict=True):
        plotting.show_scaled(axis, signal, point, study.results.amplitude)
    axes[0].set_ylabel(f"({point[0]:.0f}, {point[1]:.0f})", labelpad=2)


def _title_parts(axes, code, letter, seed):
    titles = ("$f(x_{super})$", "$f(y_{super})$", "their sum", "$f(x, y)$")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, pad=3)
    axes[0].annotate(
        f"{code} code: {CONSTRUCTIONS[CONSTRUCTION[code]]}, seed {seed}", (0, 1),
        xytext=(0, 17), xycoords="axes fraction", textcoords="offset points",
        color=plotting.CODE_COLORS[code],
    )  # fmt: skip
    axes[0].annotate(
        letter, (0, 1), xytext=(-4, 15), xycoords="axes fraction", textcoords="offset points",
        fontweight="bold", fontsize=10, ha="right",
    )  # fmt: skip


def _draw_explained(axis, chosen):
    positions = []
    for index, (construction, code) in enumerate(
        (construction, code) for construction in CONSTRUCTIONS for code in chosen
    ):
        outputs, color = chosen[code].inspection.outputs, plotting.CODE_COLORS[code]
        name = f"output.superposition.{construction}"
        positions.append(index)
        plotting.show_number(axis, index - 0.15, outputs[f"{name}.r2"], fmt="o", color=color)
        plotting.show_number(
            axis, index + 0.2, outputs[f"{name}.shuffled_r2"],
            fmt="s", color=color, markerfacecolor="white",
        )  # fmt: skip
    axis.plot([], [], "o", color="0.3", markersize=4, label="own x and y")
    axis.plot([], [], "s", color="0.3", markerfacecolor="white", markersize=4, label="others'")
    axis.set_xticks(positions, list(chosen) * len(CONSTRUCTIONS))
    for index, name in enumerate(CONSTRUCTIONS.values()):
        centre = (index + 0.5) * len(chosen) - 0.5
        axis.annotate(
            name, (centre, 0), xytext=(0, -20), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="top",
        )  # fmt: skip
    axis.axvline(len(chosen) - 0.5, color="0.85", linewidth=0.8)
    axis.set(ylabel="$R^2$ over the hole", ylim=(0, 1), xlim=(-0.6, len(positions) - 0.4))
    axis.legend(loc="upper right", title="superposition of", title_fontsize=7)


def draw_kernels(studies):
    """Figure 1e: cosine similarity of what the first seed draws at held-out cells, beside the
    ideal binary kernel and that of the true images; and how well the pairs agree, all seeds. Pairs
    are of two held-out cells here; C5 is asked of those of a held-out and a seen one (Figure 8)."""
    figure = plotting.new_figure(9.05, 2.25)
    chosen = {study.role.code: study for study in studies}
    axes = figure.subplots(1, 3 + len(chosen), width_ratios=[1] * (2 + len(chosen)) + [1.15])
    results = chosen["bump"].results
    held_out = results.held_out
    shown = {
        "ideal (binary)": kernels.binary(results.factors[held_out]),
        "true images": kernels.cosine(kernels.gram(_flat(results.truths[held_out]))),
    }
    for code, study in chosen.items():
        within = study.inspection.maps["held_out"].ravel()
        cosine = study.inspection.maps["similarity.cosine"]
        shown[f"{code} code, seed {study.results.seeds[0]}"] = cosine[np.ix_(within, within)]
    for axis, letter, (title, kernel) in zip(axes, "abcd", shown.items(), strict=False):
        image = axis.imshow(kernel, origin="lower", vmin=0, vmax=1, interpolation="nearest")
        axis.set(title=title, xticks=[], yticks=[], xlabel="held-out cells")
        plotting.panel_label(axis, letter)
    axes[0].set_ylabel("held-out cells\n(row by row)")
    figure.colorbar(image, ax=axes[:-1], label="similarity", shrink=0.75, pad=0.01, aspect=15)
    _draw_agreements(axes[-1], chosen)
    plotting.panel_label(axes[-1], "e")
    return figure


def _flat(images_BxHxW):
    return images_BxHxW.reshape(len(images_BxHxW), -1)


def _draw_agreements(axis, chosen):
    for index, (code, study) in enumerate(chosen.items()):
        color = plotting.CODE_COLORS[code]
        for position, name in enumerate(AGREEMENTS):
            values = study.inspection.outputs[f"output.cosine.{name}"]
            plotting.show_number(axis, position + 0.3 * (index - 0.5), values, fmt="o", color=color)
        axis.plot([], [], "o", color=color, markersize=4, label=code)
    axis.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axis.set_xticks(range(len(AGREEMENTS)), list(AGREEMENTS.values()), fontsize=6)
    axis.set(ylabel="correlation of kernels", ylim=(None, 1.02), xlim=(-0.5, 2.5))
    axis.set_title("agreement with")
    axis.legend(loc="upper right", handletextpad=0.1)


def draw_similarities(studies):
    """Figure 8: similarity of the first seed's images at all pairs of cells, seen ones first, by
    cosine, by L2 distance and by the pixels that both images fill, of which these bumps fill
    so few that few pairs share one. Framed: pairs of a held-out and a seen cell, the section
    that the paper shows in Figure 1e (its claim C5)."""
    figure = plotting.new_figure(7.4, 4.6)
    chosen = {study.role.code: study for study in studies}
    axes = figure.subplots(len(chosen), 3)
    for row, (code, study) in zip(axes, chosen.items(), strict=True):
        maps = study.inspection.maps
        held_out = maps["held_out"].ravel()
        order = np.argsort(held_out, kind="stable")
        panels = zip(row, ("cosine", "l2", "overlap"), strict=True)
        for axis, name in panels:
            kernel = maps[f"similarity.{name}"][np.ix_(order, order)]
            _draw_similarity(figure, axis, name, kernel, int((~held_out).sum()))
        row[0].set_ylabel(f"{code} code, seed {study.results.seeds[0]}", labelpad=12)
    for axis, letter in zip(axes.flat, "abcdef", strict=False):
        plotting.panel_label(axis, letter)
    return figure


def _draw_similarity(figure, axis, name, kernel, seen: int):
    off_diagonal = kernel[~np.eye(len(kernel), dtype=bool)]
    limits = {
        "cosine": (0, 1),
        "l2": (off_diagonal.min(), 0),
        "overlap": (0, max(np.percentile(off_diagonal, 99.9), 1 / len(kernel))),
    }[name]
    if name == "overlap":
        kernel, limits = 1000 * kernel, (0, 1000 * limits[1])
    image = axis.imshow(
        kernel, origin="lower", vmin=limits[0], vmax=limits[1], interpolation="nearest"
    )
    axis.axhline(seen - 0.5, color=plotting.OOD_COLOR, linewidth=0.8)
    axis.axvline(seen - 0.5, color=plotting.OOD_COLOR, linewidth=0.8)
    axis.add_patch(
        plotting.plt.Rectangle(
            (0, seen), seen - 2, len(kernel) - seen - 1, fill=False, color="white", linewidth=1.2
        )
    )
    centres = [(seen - 1) / 2, (seen + len(kernel) - 1) / 2]
    axis.set_xticks(centres, ["ID", "OOD"], fontsize=7)
    axis.set_yticks(centres, ["ID", "OOD"], fontsize=7, rotation=90, va="center")
    axis.tick_params(length=0)
    titles = {"cosine": "cosine", "l2": "minus L2 distance", "overlap": "overlap"}
    labels = {"cosine": None, "l2": None, "overlap": "pixels in a thousand"}
    axis.set_title(titles[name])
    extend = "max" if kernel.max() > limits[1] else "neither"
    figure.colorbar(image, ax=axis, shrink=0.7, label=labels[name], extend=extend)
