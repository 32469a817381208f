"""Figures 3 and 6: decoders of low-rank embeddings, with and without penalties (section 4.1)."""

import numpy as np
from scipy.stats import spearmanr

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering import lowrank_claims

from .. import plotting
from ..figure import figure
from .lookup import first_seed_layers, in_order

TITLES = {
    "lowrank_none": "no penalty",
    "lowrank_entropy": "entropy only",
    "lowrank_variance": "variance only",
    "lowrank_both": "both penalties",
}
COLORS = dict(zip(TITLES, (plotting.GREY, plotting.VIOLET, plotting.GOLD, plotting.GREEN),
                  strict=True))  # fmt: skip
SHOWN = ("lowrank_none", "lowrank_both")  # whose embeddings and images are drawn
# of the held-out region's width and height
DRAWN = (0.35, 0.6)  # in panel a
POINTS = ((0.1, 0.1), (0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (0.9, 0.9))
PERCENTILE = 95  # of an embedding's |entries|: where the colours end
# sizes in inches
IMAGE, TOKEN, SMALL_IMAGE, MAP = 0.55, 0.68, 0.5, 1.25
COLUMNS = 8  # of tokens
TICKS = (1, 2, 4, 8, 16, 32)


def _embeddings_of_first_seed(run):
    """Those of x and of y, and the end of their colours."""
    first = [each[0] for each in lowrank_claims.embedding_matrices(run)]
    return first, np.percentile(np.abs(first), PERCENTILE)


def _regions(run) -> list[tuple]:
    """Of ID and of held-out cells: (T,) errors, and that of a blank image."""
    cells = run.cells
    errors, blank = evaluation.errors(cells), np.square(cells.truths).mean(axis=(1, 2))
    return [(errors[:, mask].mean(axis=1), blank[mask].mean())
            for mask in (~cells.held_out, cells.held_out)]  # fmt: skip


@figure("fig3", runs=tuple(TITLES))
def draw_low_rank(runs):
    ablations = in_order(TITLES, runs)
    ends = {TITLES[name]: ablations[name] for name in SHOWN}
    picture = plotting.new_figure(plotting.WIDTH, 6.6)
    _draw_architecture(picture, 5.05, ablations["lowrank_both"])
    tokens = [plotting.row_at(picture, 0.42, bottom, TOKEN, 4, 0.05) for bottom in (3.72, 2.92)]
    _draw_tokens(tokens, ends)
    cells = ablations["lowrank_both"].cells
    indices, held_out = plotting.held_out_cells(cells, POINTS), cells.held_out
    drawn = {"asked": cells.truths} | {name: run.cells.predictions[0] for name, run in ends.items()}
    for bottom, (name, images) in zip((4.0, 3.36, 2.72), drawn.items(), strict=True):
        axes = plotting.row_at(picture, 3.85, bottom, SMALL_IMAGE, len(POINTS), 0.08)
        plotting.show_held_out(axes, images, cells, indices)
        axes[0].set_ylabel(name.replace(" ", "\n"), fontsize=plotting.SMALL)
        if name == "asked":
            rendered = [plotting.ood_share(run.late.cells) for run in ends.values()]
            title = "Rendered OOD are {:.0%}, with both penalties {:.0%}".format(*rendered)
            plotting.panel(axes[0], "c", title, up=16)
            plotting.title_points(axes, cells, indices)
    maps, steps = plotting.row_at(picture, 0.25, 0.52, MAP, 2, 0.12), []
    held_out = plotting.over_grid(held_out, cells)
    for axis, (name, run) in zip(maps, ends.items(), strict=True):
        volume, rough = lowrank_claims.log_volumes(run.cells), lowrank_claims.smoothness(run.cells)
        relative = volume.mean(axis=0) - volume[:, ~held_out].mean()
        image = plotting.show_cells(axis, relative, held_out, **plotting.VOLUME)
        axis.set_title(name, pad=3)
        steps.append(rough.in_corner.mean())
        text = f"differ by {rough.roughness.mean():.3f} everywhere,\n{steps[-1]:.3f} in the corner"
        axis.set_xlabel(text, fontsize=plotting.SMALL, labelpad=3)
    plotting.volume_bar(picture, image, cax=plotting.axis_at(picture, 2.95, 0.52, 0.08, MAP))
    title = "Neighbours in the corner differ by {:.3f}, with penalties {:.3f}".format(*steps)
    plotting.panel(maps[0], "d", title, up=16)
    _draw_errors(plotting.axis_at(picture, 4.3, 0.52, 1.4, 1.4), ablations)
    return picture


def _draw_architecture(picture, bottom, run):
    cells, (width, height) = run.cells, picture.get_size_inches()
    canvas = plotting.axis_at(picture, 0, 0, width, height)  # in inches, for text and arrows
    canvas.set(xlim=(0, width), ylim=(0, height))
    canvas.set_axis_off()
    indices = plotting.held_out_cells(cells, [DRAWN])
    code, *layers = (np.asarray(layer[0]) for layer in first_seed_layers(run, indices).values())
    pitch = (plotting.WIDTH - 0.45 - 2 * IMAGE) / (len(layers) + 1)
    lefts = 0.25 + pitch * np.arange(len(layers) + 2)
    rows, middle = (bottom + 0.18 + IMAGE, bottom + 0.1), bottom + 0.14 + IMAGE / 2
    arrow = {"arrowstyle": "-|>", "color": "0.4", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}

    def draw_arrow(left, height, label=""):
        ends = left + IMAGE + 0.08, left + pitch - 0.08
        canvas.annotate("", (ends[1], height), (ends[0], height), arrowprops=arrow)
        canvas.text(sum(ends) / 2, height + 0.06, label, fontsize=plotting.SMALL, ha="center")

    codes = zip(rows, "xy", np.split(code, 2), cells.factors[indices[0]], strict=True)
    for row, name, half, value in codes:
        axis = plotting.axis_at(picture, lefts[0], row + IMAGE / 2 - 0.05, IMAGE, 0.1)
        plotting.show_signal(axis, half[None], 1.0)
        axis.set_aspect("auto")
        axis.set_xlabel(f"one-hot {name} = {value:.0f}", fontsize=plotting.SMALL, labelpad=3)
        if name == "x":
            plotting.panel(axis, "a", "One held-out point", up=22)
        draw_arrow(lefts[0], row + IMAGE / 2)
    between = (lefts[0] + IMAGE + lefts[1]) / 2
    canvas.text(between, middle + IMAGE / 2, "E = Σ λ u vᵀ", fontsize=7.5, ha="center", va="center")
    for index, (left, layer) in enumerate(zip(lefts[1:], layers, strict=False)):
        name = f"hidden layer {index}" if index else "embeddings E"
        name += f",\n2 of {layer.shape[-1]}" if layer.shape[-1] > 2 else ""
        canvas.text(left + IMAGE / 2, rows[0] + IMAGE + 0.05, name, ha="center")
        for row, channel in zip(rows, np.moveaxis(layer, -1, 0), strict=False):
            plotting.show_signed(plotting.axis_at(picture, left, row, IMAGE, IMAGE), channel)
        draw_arrow(left, middle + IMAGE / 2, "PReLU,\nconv 3×3")
    drawn = ("image", cells.predictions[0]), ("asked", cells.truths)
    for left, (name, images) in zip((lefts[-1], plotting.WIDTH - 0.1 - IMAGE), drawn, strict=True):
        axis = plotting.axis_at(picture, left, middle, IMAGE, IMAGE)
        plotting.show_held_out([axis], images, cells, indices)
        axis.set_title(name, pad=3)


def _draw_tokens(axes, runs):
    for row, (name, run) in zip(axes, runs.items(), strict=True):
        (embedded, _), limit = _embeddings_of_first_seed(run)
        held_out = plotting.over_grid(run.cells.held_out, run.cells)
        crosses = held_out.any(axis=0)
        kinds = np.flatnonzero(~crosses), np.flatnonzero(crosses)
        tokens = [kind[int(share * len(kind))] for kind in kinds for share in (0.4, 0.8)]
        row[0].set_ylabel(f"{name}\n±{limit:.2g}", fontsize=plotting.SMALL)
        for axis, token in zip(row, tokens, strict=True):
            plotting.show_signed(axis, embedded[token], limit)
            rows = np.broadcast_to(held_out[:, token, None], held_out.shape)
            plotting.outline(axis, rows, color="black", linewidth=0.8)
            if row is axes[0]:
                color = plotting.OOD_COLOR if crosses[token] else plotting.ID_COLOR
                axis.set_title(f"x = {token}", pad=3, color=color)
    constant = [
        lowrank_claims.embedding_numbers(run)["constant_share"].mean() for run in runs.values()
    ]
    title = "{:.0%} is constant along y, {:.0%} with penalties".format(*constant)
    plotting.panel(axes[0][0], "b", title, up=16)


def _draw_errors(axis, ablations):
    ood = {}
    for name, run in ablations.items():
        errors, (seen, held_out) = zip(*_regions(run), strict=True)
        numbers = [plotting.geometric_mean(values) for values in errors]
        centre = _, ood[name] = [number["value"] for number in numbers]
        ends = [np.nan_to_num(number["ci95"], nan=number["value"]) for number in numbers]
        bars = [np.abs(end - at)[:, None] for end, at in zip(ends, centre, strict=True)]
        axis.plot(*errors, ".", color=COLORS[name], markersize=4, alpha=0.6)
        axis.errorbar(*centre, *bars[::-1], fmt="none", color=COLORS[name], capsize=2, linewidth=1)
        axis.plot(*centre, "o", color=COLORS[name], markeredgecolor="w", label=TITLES[name])
    axis.axvline(seen, **plotting.DOTTED)
    axis.axhline(held_out, **plotting.DOTTED, label="blank image")
    plotting.label_mark(axis, "one seed", ".", alpha=0.6)
    axis.set(xlabel="MSE ID (seen)", ylabel="MSE OOD (held out)")
    plotting.log_scale(axis, "xy")
    best = min(ood, key=ood.get)
    plotting.panel(axis, "e", f"The OOD error is lowest with {TITLES[best]}")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), **plotting.LEGEND)


@figure("fig6", runs=tuple(TITLES))
def draw_embeddings(runs):
    ablations = in_order(TITLES, runs)
    grid = ablations["lowrank_both"].config.task.grid
    tall = 2 * -(-grid // COLUMNS) * (plotting.WIDTH / 2 - 0.3) / COLUMNS + 0.6
    picture = plotting.new_figure(plotting.WIDTH, tall + 2.4)
    top, bottom = picture.subfigures(2, 1, height_ratios=[tall, 2.4])
    firsts = np.arange(0, grid, COLUMNS)
    labels = [f"{k}\N{EN DASH}{min(k + COLUMNS, grid) - 1}" for k in firsts]
    centres = (len(firsts) - np.arange(len(firsts)) - 0.5) * (grid + 1) - 1
    for block, name, letter in zip(top.subfigures(1, 2), SHOWN, "ab", strict=True):
        axes, run = block.subplots(2, 1), ablations[name]
        of_both, limit = _embeddings_of_first_seed(run)
        held_out = plotting.over_grid(run.cells.held_out, run.cells)
        bands = held_out.T[:, :, None], held_out[:, None, :]
        title = f"With {TITLES[name]}, from -{limit:.2g} to {limit:.2g}"
        plotting.panel(axes[0], letter, title.replace("-", plotting.MINUS))
        for axis, factor, images, band in zip(axes, "xy", of_both, bands, strict=True):
            plotting.show_signed(axis, plotting.mosaic(images, COLUMNS), limit)
            framed = plotting.mosaic(np.broadcast_to(band, images.shape), COLUMNS, gap=False)
            plotting.outline(axis, framed, color="black", linewidth=0.5)
            axis.set_yticks(centres, labels)
            axis.tick_params(length=0)
            axis.set_ylabel(f"tokens of {factor}")
    _draw_numbers(bottom.subplots(1, 3), ablations)
    plotting.legend_below(bottom)
    return picture


def _draw_numbers(axes, ablations):
    ranks, constancy, errors = axes
    effective, constants, varying, ood = ([] for _ in range(4))
    for place, (name, run) in enumerate(ablations.items()):
        numbers, color = lowrank_claims.embedding_numbers(run), COLORS[name]
        constant, spectrum = numbers["constant_share"], numbers["spectrum_entropy"]
        mean = {"mean": plotting.geometric_mean, "color": color}
        plotting.show_number(ranks, place - 0.2, numbers["lambda_entropy"], **mean, fmt="s")
        plotting.show_number(ranks, place + 0.15, spectrum, **mean, fmt="o")
        plotting.show_number(constancy, place, constant, plotting.mean_share, fmt="o", color=color)
        _, (held_out, blank) = _regions(run)
        errors.plot(1 - constant, held_out, "o", color=color, markersize=4)
        effective.append(np.exp(np.log(spectrum).mean()))
        constants.append(constant.mean())
        varying += list(1 - constant)
        ood += list(held_out)
    constancy.axhline(1 / run.config.task.grid, **plotting.DOTTED)
    errors.axhline(blank, **plotting.DOTTED)
    plotting.label_seeds(ranks)
    plotting.label_mark(ranks, "(c) squared λ", "s")
    plotting.label_mark(ranks, "(c) squared singular values")
    constancy.plot([], [], **plotting.DOTTED, label="(d) noise, (e) blank image")
    plotting.label_colors(errors, {title: COLORS[name] for name, title in TITLES.items()})
    ranks.set(ylabel="exp(entropy)", yscale="log", ylim=(0.85, None))
    ranks.set_yticks(TICKS, TICKS)
    ranks.minorticks_off()
    constancy.set(ylabel="energy constant along\nthe other axis", ylim=(0, 1.03))
    errors.set(ylabel="MSE OOD")
    plotting.log_scale(errors, "xy")
    errors.set_xlim(min(0.05, errors.get_xlim()[0]), 1.1)
    errors.set_xlabel("energy that varies\nalong the other axis")
    names = [name.removeprefix("lowrank_") for name in ablations]
    for axis in axes[:2]:
        axis.set_xticks(range(len(names)), names, rotation=20)
        axis.set_xlim(-0.5, len(names) - 0.4)
    titles = (
        f"The effective rank is {plotting.span(effective, '{:.1f}'.format)}",
        f"As in a stripe, {plotting.span(constants)} is constant",
        f"Rank correlation is {plotting.signed(spearmanr(varying, ood).statistic)}",
    )
    plotting.panels(axes, "cde", titles, wrap=34)
