"""The controls: is it composition, or the lighting of pixels?"""

from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.papers.forced_rendering.controls import on_lit_pixels, trivial_errors
from compgen_jax.statistics import mean_with_interval

from .. import plotting
from ..figure import figure

ROWS = {
    "bump_cnn": "bumps alone",
    "lit": "the same, scored on\nlit pixels alone",
    "wide_bumps": "wide bumps light\nevery pixel",
    "random_cells": "cells held out\nat random",
    "donut_pixelwise": "decoder shared\nby all pixels",
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


@figure(
    "controls",
    runs=("bump_cnn", "wide_bumps", "random_cells", "donut_pixelwise", "donut_stripes"),
)
def draw(runs):
    """The bump decoder of Figure 1 and its controls, all with the same share of cells held out.
    "Lit pixels" blanks the pixels that no ID image lights, and scores held-out cells whose own
    pixel is lit. (a) The share of held-out cells rendered and, as a bar, of ID cells; the diamond
    is the share of held-out cells by interpolation, kernel ridge regression on the codes and images
    that a seed was shown. Only a network above its diamond does more than interpolate. (b) Error
    over held-out cells, that of a blank image being 1; diamonds are predictors that only know the
    ID images of bumps. Means over seeds (geometric for errors) with 95% intervals; grey dots are
    seeds. Wide bumps carry
    no verdict: what they fail to render may be worse interpolation. Two objects (K1) decide."""
    base = runs["bump_cnn"]
    scored = {name: (run.cells, run.cells.held_out) for name, run in runs.items()}
    scored["lit"] = on_lit_pixels(base.cells, base.task.scores)
    picture = plotting.new_figure(plotting.WIDTH, 4.3)
    share, error = picture.subplots(1, 2)
    style, above, ratios = {"across": True, "fmt": "o", "color": COLOR}, [], []
    for row, name in enumerate(ROWS):
        cells, counted = scored[name]
        rendered = mean_score(cells, "rendered", counted)
        plotting.show_number(share, -row, rendered, **style)
        of_id = mean_score(cells, "rendered", ~cells.held_out).mean()
        share.plot(of_id, 0.25 - row, "|", color=plotting.ID_COLOR, markersize=6)
        if name in runs:
            kernel = runs[name].interpolator
            by_kernel = mean_score(kernel, "rendered", kernel.held_out).mean()
            share.plot(by_kernel, -row - 0.25, "D", color=plotting.OOD_COLOR, markersize=3.5)
            above.append(mean_with_interval(rendered)["ci95"][0] > by_kernel)
        relative = evaluation.relative_error(cells, cells.held_out)
        plotting.show_number(error, -row, relative, plotting.geometric_mean, **style)
        ratios.append(plotting.geometric_mean(relative)["value"])
    share.axvline(0.5, **plotting.FAINT)
    share.plot([], [], "o", color=COLOR, markersize=4, label="held out (OOD)")
    share.plot([], [], "|", color=plotting.ID_COLOR, markersize=6, label="seen (ID), mean")
    label = "OOD: (a) interpolation, (b) trivial predictor"
    share.plot([], [], "D", color=plotting.OOD_COLOR, markersize=3.5, label=label)
    plotting.label_seeds(share)
    share.set(xlim=(-0.04, 1.04), xlabel="share rendered")
    share.set_yticks([-row for row in range(len(ROWS))], list(ROWS.values()))
    errors = trivial_errors(base.cells)
    for row, name in enumerate(PREDICTORS, start=len(ROWS)):
        error.plot(errors[name], -row, "D", color=plotting.OOD_COLOR, markersize=3.5)
    error.axhline(0.5 - len(ROWS), color="0.7", linewidth=0.8)
    error.axvline(1, **plotting.FAINT)
    error.set(xlabel="MSE OOD / blank image's")
    plotting.log_scale(error, "x")
    names = [*ROWS.values(), *PREDICTORS.values()]
    error.set_yticks([-row for row in range(len(names))], names)
    title = f"{sum(above)} of {len(above)} are rendered more than by interpolation"
    plotting.panel(share, "a", title, wrap=34)
    title = f"OOD errors: {plotting.span(ratios)} of a blank image's"
    plotting.panel(error, "b", title, wrap=34)
    plotting.legend_below(picture)
    return picture
