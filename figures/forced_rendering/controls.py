"""The controls: is it composition, or the lighting of pixels? And two objects in each image."""

import jax
import numpy as np

from compgen_jax.claims import median_over_checkpoints
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.papers.forced_rendering.controls import ladder, on_lit_pixels, trivial_errors
from compgen_jax.papers.forced_rendering.images import composes, from_codes
from compgen_jax.statistics import mean_with_interval, share_with_interval
from compgen_jax.tasks import bump

from .. import plotting
from ..figure import figure

ROWS = {
    "bump_cnn": "bumps alone",
    "lit": "the same, scored on\nlit pixels alone",
    "wide_bumps": "wide bumps light\nevery pixel",
    "random_cells": "cells held out\nat random",
    "donut_stripes": "stripes and\na few bumps",
}
COLOR = "0.35"  # of held-out numbers
PREDICTORS = {
    "blank": "blank image",
    "id_constant": "best constant",
    "nearest_seen": "nearest seen",
    "line_mean": "row and column",
    "rank_one": "rank-1 completion",
}
# of two objects: examples of each region, and the pixels between their bumps, so that both can be
# told; inches
EXAMPLES, APART = 5, 4
IMAGE, GAP, MAP = 0.55, 0.05, 1.38


@figure("controls", runs=("bump_cnn", "wide_bumps", "random_cells", "donut_stripes"))
def draw(runs):
    """The bump decoder of Figure 1 and its controls, all with the same share of cells held out.
    "Lit pixels" blanks the pixels that no ID image lights, and scores held-out cells whose own
    pixel is lit. (a) The share of held-out cells rendered and, as a bar, of ID cells; the diamond
    is the share of held-out cells by interpolation, kernel ridge regression on the codes and images
    that a seed was shown; the triangle is the same with the kernel of a wide network, which learns
    no features. Only a network above its diamond does more than interpolate. (b) Error over
    held-out cells, that of a blank image being 1; diamonds are predictors that only know the ID
    images of bumps. Means over seeds (geometric for errors) with 95% intervals; grey dots are
    seeds. The ladder of decoders (K4.light) judges wide bumps."""
    base = runs["bump_cnn"]
    scored = {name: (run.cells, run.cells.held_out) for name, run in runs.items()}
    scored["lit"] = on_lit_pixels(base.cells, base.task.scores)
    picture = plotting.new_figure(plotting.WIDTH, 4.3)
    share, error = picture.subplots(1, 2)
    diamond, above, ratios = {"color": plotting.OOD_COLOR, "markersize": 3.5}, [], []
    for row, name in enumerate(ROWS):
        cells, counted = scored[name]
        rendered = mean_score(cells, "rendered", counted)
        plotting.show_number(share, -row, rendered, across=True, fmt="o", color=COLOR)
        of_id = mean_score(cells, "rendered", ~cells.held_out).mean()
        share.plot(of_id, 0.25 - row, "|", color=plotting.ID_COLOR, markersize=6)
        if name in runs:
            by_kernel = plotting.ood_share(runs[name].interpolator)
            share.plot(by_kernel, -row - 0.25, "D", **diamond)
            by_wide = plotting.ood_share(runs[name].wide_network)
            share.plot(by_wide, -row - 0.25, "^", **diamond)
            above.append(mean_with_interval(rendered)["ci95"][0] > by_kernel)
        ratios.append(plotting.show_ood_error(error, -row, cells, COLOR))
    errors = trivial_errors(base.cells)
    for row, name in enumerate(PREDICTORS, start=len(ROWS)):
        error.plot(errors[name], -row, "D", **diamond)
    plotting.label_mark(share, "held out (OOD)", color=COLOR)
    plotting.label_mark(share, "seen (ID), mean", "|", plotting.ID_COLOR, markersize=6)
    plotting.label_mark(share, "OOD: (a) interpolation, (b) trivial predictor", "D", **diamond)
    plotting.label_mark(share, "OOD: wide network", "^", **diamond)
    plotting.label_seeds(share)
    share.axvline(0.5, **plotting.FAINT)
    share.set(xlim=(-0.04, 1.04), xlabel="share rendered")
    share.set_yticks([-row for row in range(len(ROWS))], list(ROWS.values()))
    plotting.finish_errors(error, list(ROWS.values()), list(PREDICTORS.values()))
    title = f"{sum(above)} of {len(above)} are rendered more than by interpolation"
    plotting.panel(share, "a", title, wrap=34)
    title = f"OOD errors: {plotting.span(ratios)} of a blank image's"
    plotting.panel(error, "b", title, wrap=34)
    plotting.legend_below(picture)
    return picture


RUNGS = "convolutions", "with coordinates", "per pixel, one-hot", "per pixel, bump", "transformer"


@figure(
    "ladder",
    runs=(*ladder("donut").values(), *ladder("corner").values()),
    scale="quick",
    by_default=False,
)
def draw_ladder(runs):
    """A ladder of decoders that see bumps alone (K4): further down, a decoder's weights know a
    pixel by its place alone. One recipe trains all. (a) Around the donut's hole, (b) around a
    corner: large dots are the share of seeds that compose, with exact 95% intervals. Small dots are
    seeds, by the share of held-out images rendered. A seed composes if it renders more than half of
    them, and more than the interpolator. Diamonds and squares are what two predictors render from
    the same codes: kernel regression, and a wide network that learns no features."""
    picture = plotting.new_figure(plotting.WIDTH, 2.6)
    axes = picture.subplots(1, 2, sharey=True)
    marks = {"interpolator": "D", "wide network": "s"}
    style = {"color": plotting.OOD_COLOR, "markersize": 3.5}
    for axis, letter, where in zip(axes, "ab", ("donut", "corner"), strict=True):
        counts = []
        for row, name in enumerate(ladder(where).values()):
            run, cells = runs[name], runs[name].late.cells
            answers = median_over_checkpoints(composes(run).astype(float)) > 0.5
            shares = median_over_checkpoints(mean_score(cells, "rendered", cells.held_out))
            number = share_with_interval(answers)
            plotting.point_with_interval(
                axis, -row, number, shares, across=True, fmt="o", color=COLOR, markersize=4
            )
            for predictor, of_predictor in from_codes(run).items():
                axis.plot(of_predictor.mean(), -row - 0.3, marks[predictor], **style)
            counts.append(f"{answers.sum()} of {answers.size}")
        title = (
            f"{where}: {counts[0]} convolutional decoders compose, and {counts[-1]} transformers"
        )
        plotting.panel(axis, letter, title, wrap=40)
        axis.set(xlim=(-0.04, 1.04), xlabel="share of seeds, or of held-out images")
        axis.axvline(0.5, **plotting.FAINT)
    axes[0].set_yticks([-row for row in range(len(RUNGS))], RUNGS)
    plotting.label_mark(axes[0], "seeds that compose", color=COLOR)
    plotting.label_seeds(axes[0])
    for predictor, mark in marks.items():
        plotting.label_mark(axes[0], predictor, mark, **style)
    plotting.legend_below(picture)
    return picture


@figure("two_objects", runs=("two_objects",), by_default=False)
def draw_two_objects(runs):
    """Images of two bumps, of which the first has a hole and the second lies anywhere (K1). (a, b)
    What is asked and what a seed draws, for ID and for held-out places of the first bump (circles).
    It is the seed whose share rendered OOD is the median. (c, d) The share of seeds that render the
    first and the second bump, by the place of the first, whose hole is outlined. Each cell has one
    second bump; titles have the mean over ID and over held-out cells."""
    (run,) = runs.values()
    cells, settings = run.cells, run.config.task
    picture = plotting.new_figure(plotting.WIDTH, 3.35)
    seed = plotting.median_seed(cells)
    seconds = jax.vmap(lambda point: bump.second_place(point, settings.grid))(cells.factors)
    apart = np.abs(np.asarray(seconds) - cells.factors).max(axis=1) >= APART
    rows = {"drawn": cells.predictions[seed], "asked": cells.truths}
    for letter, bottom, region, name, color in (
        ("a", 1.87, ~cells.held_out, "first bump ID", plotting.ID_COLOR),
        ("b", 0.2, cells.held_out, "first bump held out (OOD)", plotting.OOD_COLOR),
    ):
        chosen = plotting.spread(region & apart, EXAMPLES)
        for row, (word, images) in enumerate(rows.items()):
            at = bottom + row * (IMAGE + GAP)
            axes = plotting.row_at(picture, 0.3, at, IMAGE, EXAMPLES, GAP)
            for axis, index in zip(axes, chosen, strict=True):
                factors, amplitude = cells.factors[index], settings.image.amplitude
                plotting.show_signal(axis, images[index], amplitude, factors, color)
            axes[0].set_ylabel(word)
        plotting.panel(axes[0], letter, f"{name}, seed {cells.seeds[seed]}", color=color)
    for column, name in enumerate(("first", "second")):
        score = "rendered_second" if column else "rendered"
        axis = plotting.axis_at(picture, 3.82 + column * (MAP + 0.12), 1.2, MAP, MAP)
        image = plotting.show_share(axis, cells, score)
        if column:
            axis.set(ylabel="", yticks=[])
        of_id = mean_score(cells, score, ~cells.held_out).mean()
        shares = f"{of_id:.0%} ID, {plotting.ood_share(cells, score):.0%} OOD"
        plotting.panel(axis, "cd"[column], f"{name} bump rendered: {shares}", wrap=22)
    bar, label = plotting.axis_at(picture, 3.82, 0.45, 2 * MAP + 0.02, 0.09), "share of seeds that"
    picture.colorbar(image, cax=bar, orientation="horizontal", label=f"{label} render it")
    return picture
