"""What helps a decoder on held-out bumps, and what does not."""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.ticker import LogFormatter

from compgen_jax.claims import median_over_checkpoints
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.studies.why_not.why_not_claims import composes, ladder
from compgen_jax.tasks import bump

from .. import plotting
from ..figure import figure
from ..forced_rendering.lookup import shares_by_distance

# of layers of a network that fails beside two that render
METRICS = (
    "probe.ood_r2",
    "factorization.ratio_of_means",
    "volume.log10_ratio",
    "anova.interaction_ood",
)
DRAWN = {  # decoders whose drawings stand below one another
    "bump_cnn": "convolutional\ndecoder",
    "bump_cnn_stripes": "the same,\nstripes added",
    "pixels_own_bump": "per pixel,\nown weights",
    "pixels_shared_bump": "per pixel,\nshared weights",
}
POINTS = (0.2, 0.75), (0.35, 0.35), (0.5, 0.5), (0.65, 0.8), (0.9, 0.2)
CONTROLS = {
    "bump_cnn": "bumps alone",
    "wide_bumps": "wide bumps light\nevery pixel",
    "random_cells": "cells held out\nat random",
    "donut_stripes": "stripes and\na few bumps",
}
RUNGS = {
    "conv": "convolutions",
    "conv_coordinates": "convolutions with\npixel coordinates",
    "pixelwise_onehot": "per-pixel network,\none-hot code",
    "pixelwise_bump": "per-pixel network,\nbump code",
    "transformer": "transformer\nover pixels",
}
READERS = {
    "pixels_own": "per pixel,\nown weights",
    "pixels_shared": "per pixel,\nshared weights",
    "convolutions_own": "full-size conv.,\nown weights",
    "convolutions_shared": "full-size conv.,\nshared weights",
    "doubling_own": "upsampled twice,\nown weights",
    "doubling_shared": "upsampled twice,\nshared weights",
}
HOLE = {
    "bump_cnn": "No stripes",
    "bump_cnn_stripes": "Stripes",
    "bump_cnn_stripes_hole_corner": "Stripes, blank in a corner",
    "bump_cnn_stripes_hole_middle": "Stripes, blank in the middle",
    "bump_cnn_stripes_left_out_middle": "The middle left out of the loss",
    "pixels_own_stripes_left_out_middle": "The same, per pixel, own weights",
}
APART = {
    "pixels_shared_bump": "All pixels share one set of weights",
    "pixels_apart_corner": "A corner has a set of its own",
    "pixels_apart_middle": "The middle has a set of its own",
    "pixels_own_bump": "Each pixel has a set of its own",
}


@figure("composer", runs=("bump_cnn", "random_cells", "donut_stripes"), by_default=False)
def draw_beside_composer(runs):
    fails = runs["bump_cnn"]
    networks = (
        ("bumps around the square: fails", fails, plotting.OOD_COLOR, "-"),
        (
            "random positions held out: renders it",
            runs["random_cells"].over(fails),
            plotting.ID_COLOR,
            "--",
        ),
        ("stripes shown too: renders it", runs["donut_stripes"], plotting.GREEN, "-."),
    )
    picture = plotting.new_figure(plotting.WIDTH, 4.1)
    axes = picture.subplots(2, 2).ravel()
    for axis, metric in zip(axes, METRICS, strict=True):
        for words, run, color, line in networks:
            values = np.median(run.late.layers(metric), axis=1)
            if metric == "probe.ood_r2":
                values[:, -1] = np.nan
            plotting.draw_line(axis, values, values.shape[-1] - 1, color, line, words)
        plotting.name_layers(axis, values.shape[-1])
    plotting.set_panels("composer", "abcd", axes)
    axes[2].axhline(0, **plotting.DOTTED)
    plotting.legend_below(picture, axes[0], ncols=3)
    return picture


@figure("drawings", runs=tuple(DRAWN), by_default=False)
def draw_drawings(runs):
    first = runs["bump_cnn"]
    cells, images = first.cells, {"asked": first.cells.truths}
    outputs = {"interpolation": (first.interpolator, first.late.interpolator)}
    outputs |= {words: (runs[name].cells, runs[name].late.cells) for name, words in DRAWN.items()}
    for name, (of_network, _) in outputs.items():
        images[name] = of_network.predictions[plotting.median_seed(of_network)]
    indices = plotting.held_out_cells(cells, POINTS)
    picture = plotting.new_figure(plotting.WIDTH, 0.96 * len(images) + 0.15)
    axes = plotting.show_rows(picture, images, cells, indices)
    for axis in axes.flat:
        plotting.outline(axis, plotting.over_grid(cells.held_out, cells), linewidth=0.8)
    for row, (name, (of_network, late)) in zip(axes[1:], outputs.items(), strict=True):
        rendered = of_network.scores["rendered"][plotting.median_seed(of_network), indices]
        for axis, right in zip(row, rendered, strict=True):
            axis.set_xlabel(f"{axis.get_xlabel()} {'✓' if right else '✗'}")
        row[-1].set_label(name)
        plotting.remember(row[-1], *shares_by_distance(late))
        rim, inside = (
            median_over_checkpoints(mean_score(late, "rendered", mask)).mean()
            for mask in (cells.distance == 1, cells.distance > 1)
        )
        shares = f"{rim:.0%} of the rim\n{inside:.0%} inside"
        row[-1].text(1.15, 0.5, shares, transform=row[-1].transAxes, va="center")
    return picture


def draw_shares(runs, panels: dict):
    """A panel for each {run: label}: shares rendered, and how many seeds compose."""
    picture = plotting.new_figure(plotting.WIDTH, 0.9 + 0.42 * max(map(len, panels.values())))
    axes = picture.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, letter, (title, labels) in zip(axes, "ab", panels.items(), strict=False):
        plotting.show_shares(axis, {label: runs[name] for name, label in labels.items()})
        counts = {0.6: "compose"}
        for row, name in enumerate(labels):
            seeds = median_over_checkpoints(composes(runs[name]).astype(float)) > 0.5
            counts[-row] = f"{seeds.sum()} of {seeds.size}"
        for height, words in counts.items():
            axis.text(1.08, height, words, va="center", fontsize=plotting.SMALL)
        plotting.panel(axis, letter, title, wrap=38, up=10)
    plotting.legend_below(picture, ncols=5)
    return picture


def draw_maps(runs, panels: dict):
    """The share of networks that render each position, of four runs, or of six in two rows."""
    (titles,) = panels.values()
    rows, columns = (1, 4) if len(titles) == 4 else (2, 3)
    picture = plotting.new_figure(plotting.WIDTH, 1.1 + 1.9 * rows)
    axes = picture.subplots(rows, columns, squeeze=False)
    for axis, letter, (name, title) in zip(axes.flat, "abcdef", titles.items(), strict=False):
        run = runs[name]
        image, stripes = plotting.show_share(axis, run.cells, "rendered"), run.config.task.stripes
        if frame := stripes.hole or getattr(run.config.model, "apart", ()):
            (low, high), (x, y) = frame, run.cells.factors.T
            inside = (low <= np.minimum(x, y)) & (np.maximum(x, y) <= high)
            plotting.outline(axis, plotting.over_grid(inside, run.cells), color="w", linestyle="--")
        if stripes.copies:  # one as training shows it, hatched where it says nothing
            inset, task = axis.inset_axes((1.06, 0.3, 0.38, 0.38)), run.config.task
            point = np.array([sum(stripes.hole or (task.grid,)) // 2, np.nan], np.float32)
            stripe = bump.flip(bump.example(point, task).target, task.image)
            plotting.show_signal(inset, stripe, task.image.amplitude)
            inset.patch.set(hatch="xxxx", edgecolor="0.6")
            inset.set_title("a stripe", fontsize=plotting.SMALL, pad=2)
        axis.label_outer()
        plotting.panel(axis, letter, title, wrap=21)
    style = {"location": "bottom", "shrink": 0.4, "aspect": 30}
    picture.colorbar(image, ax=axes, label="share of networks that render it", **style)
    return picture


for _name, _draw, _panels, _scale in (
    ("controls", draw_shares, {"Controls of the decoder of Figure 1": CONTROLS}, ""),
    (
        "ladder",
        draw_shares,
        {
            f"Around a {shape}": {run: RUNGS[rung] for rung, run in ladder(region).items()}
            for shape, region in (("square", "donut"), ("corner", "corner"))
        },
        "quick",
    ),
    (
        "readers",
        draw_shares,
        {
            f"With the {words} code": {f"{name}_{code}": label for name, label in READERS.items()}
            for code, words in (("bump", "bump"), ("onehot", "one-hot"))
        },
        "quick",
    ),
    ("apart", draw_maps, {"": APART}, "quick"),
    ("hole", draw_maps, {"": HOLE}, "quick"),
):
    _runs = tuple(run for labels in _panels.values() for run in labels)
    figure(_name, runs=_runs, scale=_scale, by_default=False)(partial(_draw, panels=_panels))


@figure("holdout_map", runs=("holdout_map",), by_default=False)
def draw_holdout_map(runs):
    (sweep,) = runs.values()
    trials, support = pd.DataFrame(sweep.rows), sweep.config.task.support
    failed = (trials.status != "ok").sum()
    trials = trials[trials.status == "ok"]
    held_out, unseen, seen = (
        trials[f"{region}.mse"] / trials[f"{region}.blank_mse"]
        for region in ("ood", "unseen", "seen")
    )
    by_place = [trials["task.support.side"], trials["task.grid"]]
    starred = unseen.isna()
    title = "Unseen ID cells (*: seen ones)" if starred.any() else "Unseen ID cells"
    maps = {"Held-out cells": (held_out, starred & False), title: (unseen.fillna(seen), starred)}
    picture = plotting.new_figure(plotting.WIDTH, max(0.36 * by_place[0].nunique(), 1.0) + 1.15)
    axes = picture.subplots(1, 2, sharey=True)
    norm = LogNorm(min(error.min() for error, _ in maps.values()), max(1, held_out.max()))
    style = {"origin": "lower", "cmap": "viridis", "norm": norm, "aspect": "auto"}
    centred = {"ha": "center", "va": "center", "fontsize": plotting.SMALL}
    for axis, letter, (title, values) in zip(axes, "ab", maps.items(), strict=True):
        means, stars = (of_trials.groupby(by_place).mean().unstack() for of_trials in values)
        image = axis.imshow(means, **style)
        for (y, x), value in np.ndenumerate(means):
            if np.isfinite(value):
                words = f"{value:.2g}{'*' if stars.iloc[y, x] else ''}"
                color = "black" if norm(value) > 0.6 else "white"
                axis.text(x, y, words, color=color, **centred)
        axis.set_xticks(range(len(means.columns)), means.columns)
        axis.set_yticks(range(len(means)), [f"{side:.2g}" for side in means.index])
        axis.set_xlabel("N (pixels)")
        plotting.panel(axis, letter, title, wrap=46)
    axes[0].set_ylabel("side of the square / N")
    bar = picture.colorbar(image, ax=axes, label=plotting.RELATIVE, pad=0.01, format="{x:g}")
    bar.ax.yaxis.set_minor_formatter(LogFormatter())
    share = " times the share of the area not held out" if support.in_proportion else " at every N"
    title = f"A training set has {support.samples} bumps{share}"
    title += f"; {failed} trials failed" if failed else ""
    picture.suptitle(title, x=0.01, ha="left")
    return picture
