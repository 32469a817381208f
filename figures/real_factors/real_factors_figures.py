"""Sprites: what decoders draw, what remedies add, which pairs of factors fail."""

import numpy as np

from compgen_jax.metrics import text
from compgen_jax.statistics import mean_with_interval
from compgen_jax.studies.real_factors import real_factors_claims as claims
from compgen_jax.studies.real_factors import real_factors_presets as presets

from .. import plotting
from ..figure import figure

DRAWN = (  # of a run, and whether held-out sprites are drawn
    ("sprites_pixelwise_range", False),
    ("sprites_range", True),
    ("sprites_pixelwise_range", True),
    ("sprites_lowrank_range", True),
)
EXAMPLES = 6  # images of each
KINDS = {"": "upsampled", "pixelwise_": "per pixel", "lowrank_": "low rank"}
HELD_OUT = ("random", "element", "middle", "range", "extrapolation")
SHARES = {
    f"sprites_{kind}{held_out}": f"{held_out}, {words}"
    for held_out in HELD_OUT
    for kind, words in KINDS.items()
}
SHARP = {"linestyle": "--", "linewidth": 0.8, "marker": "x", "markersize": 3}
ID_MARK = {"markerfacecolor": "white", "markersize": 4}
NEARBY = {  # where training has a shape in the upper half: in words, and a colour
    "": ("none", plotting.VIOLET),
    "_beside": ("7 and 8", plotting.GOLD),
    "_apart": ("8 and 11", plotting.GREEN),
}
REMEDIES = {
    "sprites_range": "none",
    "sprites_mean": "mean marginals",
    "sprites_union": "union marginals",
    "sprites_mean_over_all": "means of held-out images too",
    "sprites_slice": "slices",
    "sprites_lowrank": "low rank",
    "sprites_pixelwise_range": "per pixel",
    "sprites_lowrank_penalties": "low rank with penalties",
}


def _show_sprite(axis, image, *_):
    axis.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1, origin="upper")
    plotting.frame(axis)


def _show_shares(axis, shares: dict):
    """{label: (S,) OOD}: a row each."""
    for row, values in enumerate(shares.values()):
        style = {"fmt": "o", "color": plotting.OOD_COLOR, "across": True}
        plotting.show_number(axis, row, values, plotting.mean_share, **style)
    axis.set_yticks(range(len(shares)), list(shares))
    axis.set(xlim=(-0.03, 1.03), ylim=(len(shares) - 0.5, -0.6))


@figure("sprites", runs=tuple(SHARES), by_default=False)
def draw(runs):
    picture = plotting.new_figure(plotting.WIDTH, 6)
    images, numbers = picture.subfigures(1, 2, width_ratios=[2, 1.2])
    blocks = images.subfigures(len(DRAWN), 1)
    for block, letter, (name, ood) in zip(blocks, "abcd", DRAWN, strict=True):
        if name not in runs:
            continue
        cells, seed = runs[name].cells, plotting.median_seed(runs[name].cells)
        indices = plotting.spread(cells.held_out == ood, EXAMPLES)
        rows = {"asked": cells.truths, "drawn": cells.predictions[seed]}
        axes = plotting.show_rows(block, rows, cells, indices, _show_sprite)
        r2_B = cells.scores["image_r2"][seed, indices]
        close_B = (cells.scores["rendered"][seed, indices] > 0) & (r2_B >= claims.SHAPE)
        for axis, r2, close in zip(axes[1], r2_B, close_B, strict=True):
            plotting.frame(axis, "0.4" if close else plotting.OOD_COLOR)
            axis.set_xlabel(f"{r2:.2f}", fontsize=plotting.SMALL, labelpad=1)
        plotting.set_panels("sprites", letter, axes[0, :1])
    axis = numbers.subplots()
    there = {label: runs[name] for name, label in SHARES.items() if name in runs}
    _show_shares(axis, {label: claims.shapes_rendered(run) for label, run in there.items()})
    plotting.set_panels("sprites", "e", [axis])
    plotting.label_mark(axis, "mean over seeds", color=plotting.OOD_COLOR)
    plotting.label_seeds(axis)
    plotting.legend_below(numbers)
    return picture


@figure("sprites_remedies", runs=tuple(REMEDIES), scale="quick", by_default=False)
def draw_remedies(runs):
    picture = plotting.new_figure(plotting.WIDTH, 0.9 + 0.3 * len(REMEDIES))
    axis = picture.subplots()
    _show_shares(axis, {label: claims.share(runs[name]) for name, label in REMEDIES.items()})
    for row, name in enumerate(REMEDIES):
        seen = claims.share(runs[name], ood=False).mean()
        axis.plot(seen, row, "s", color=plotting.ID_COLOR, **ID_MARK)
    shares = claims.predictors(runs["sprites_range"]).items()
    means = {name: np.mean(share) for name, share in shares}
    best = max(means, key=means.get)
    label = f"best trivial predictor: {best.replace('_', ' ')}"
    axis.axvline(means[best], **plotting.DOTTED, label=label)
    axis.set_xlabel("share rendered")
    plotting.label_regions(axis)
    plotting.legend_below(picture, axis)
    return picture


@figure("sprites_columns", runs=[f"sprites_{name}" for name in presets.NEARBY], by_default=False)
def draw_columns(runs):
    picture = plotting.new_figure(plotting.WIDTH, 5.3)
    above, below = picture.subfigures(2, 1, height_ratios=[1.1, 1])
    rows = {"asked": "", "none\nshown": "", "8 and 11\nshown": "_apart"}
    images = above.subplots(len(rows), 6)
    for row, (label, where) in zip(images, rows.items(), strict=True):
        cells = runs[f"sprites_squares{where}"].cells
        drawn = cells.truths if label == "asked" else cells.predictions[plotting.median_seed(cells)]
        row[0].set_ylabel(label)
        for axis, line in zip(row, range(6, 12), strict=True):
            axis.set_axis_off()
            if line in presets.NOWHERE[where]:
                axis.set_axis_on()
                point = [0, 1, 0, line / 11, 0.5]
                _show_sprite(axis, drawn[plotting.nearest_cell(cells, cells.held_out, point)])
            if label == "asked":
                axis.set_title(f"column {line + 1}", pad=2, fontsize=plotting.SMALL)
    plotting.panel(images[0, 0], "a", "Squares", up=14)
    axes = below.subplots(1, 2)
    for axis, (shape, factor) in zip(axes, (("square", 3), ("heart", 4)), strict=True):
        for level, (where, (label, color)) in enumerate(NEARBY.items()):
            cells, lines = runs[f"sprites_{shape}s{where}"].cells, np.array(presets.NOWHERE[where])
            lines_B = np.round(11 * cells.factors[:, factor])
            masks = [cells.held_out & (lines_B == held_out) for held_out in lines]
            rendered = cells.scores["rendered"]
            sharp = rendered * (cells.scores["image_r2"] >= claims.SHAPE)
            shares = [rendered[:, mask].mean(axis=1) for mask in masks]
            style = {"mean": plotting.mean_share, "dots": color}
            plotting.show_numbers(axis, lines + 1, shares, color, label, **style)
            means = [sharp[:, mask].mean() for mask in masks]
            axis.plot(lines + 1, means, color=color, **SHARP)
            trained = np.setdiff1d(np.arange(6, 13), lines + 1)
            axis.plot(trained, 0 * trained + 1.1 + 0.07 * level, "s", color=color, **ID_MARK)
    plotting.set_panels("sprites_columns", "bc", axes)
    plotting.label_mark(axis, "shown", "s", markerfacecolor="white")
    axis.plot([], [], color=plotting.GREY, label="rendered sharply", **SHARP)
    title = "columns (b) or rows (c) of 7 to 12 in which the shape is shown"
    plotting.legend_below(below, axis, ncols=5, title=title)
    return picture


@figure("sprites_pairs", runs=("sprites_pair_*",), scale="quick", by_default=False)
def draw_pairs(runs):
    picture = plotting.new_figure(plotting.WIDTH, 3.4)
    axis = picture.subplots()
    effects, shares, interpolated = claims.of_pairs(list(runs.values()))
    order = np.argsort(effects, kind="stable")
    names = [" × ".join(claims.pair(run.config)) for run in runs.values()]
    _show_shares(axis, {names[index]: shares[index] for index in order})
    interpolation, mark = plotting.FROM_CODES["interpolator"]
    for row, index in enumerate(order):
        axis.plot(interpolated[index].mean(), row, mark, **plotting.PREDICTED)
        axis.text(1.05, row, f"{effects[index]:.2f}", va="center", fontsize=plotting.SMALL)
    plotting.label_mark(axis, f"{interpolation}, OOD", mark, **plotting.PREDICTED)
    plotting.label_seeds(axis)
    axis.set_xlabel("share rendered OOD (right: main effects)")
    ranked = claims.follow(effects, shares, 0 * interpolated)
    if isinstance(ranked, dict):
        title = ranked["undecided_because"].capitalize()
    else:
        interval = text.with_interval(mean_with_interval(ranked), 2)
        title = f"The rank correlation with main effects is {interval}"
    axis.set_title(title)
    plotting.legend_below(picture, axis)
    return picture
