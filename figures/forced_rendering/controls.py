"""The controls: is it composition, or the lighting of pixels?"""

from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.papers.forced_rendering import controls as claims
from figures import plotting

TITLES = {
    "base": "bumps alone",
    "lit": "the same, scored on\nlit pixels alone",
    "wide": "wide bumps light\nevery pixel",
    "random": "cells held out\nat random",
    "pixelwise": "decoder shared\nby all pixels",
    "donut_stripes": "stripes and\na few bumps",
}
HELD_OUT = "0.35"
PREDICTORS = {
    "blank": "blank image",
    "id_constant": "best constant",
    "nearest_seen": "nearest seen",
    "line_mean": "row and column",
    "rank_one": "rank-1 completion",
}


def draw(studies):
    """Two panels: (a) exact accuracy on held-out combinations (and, as a bar, on seen ones) of the
    bump decoder of Figure 1 and of its controls, all with the same share of cells held out; (b)
    their error over a blank image's, beside that of predictors that only know the seen images.
    Means over seeds with 95% intervals; grey dots are seeds; "lit" blanks the pixels that no seen
    image lit and asks for cells whose own pixel was.
    """
    results = {study.role.control or "base": study.results for study in studies}
    base = next(study for study in studies if not study.role.control)
    shown = {name: _numbers(cells) for name, cells in results.items()}
    shown["lit"] = _numbers(*claims.on_lit_pixels(base.results, base.run.task.scores))
    figure = plotting.new_figure(8.4, 3.9)
    accuracy, error = figure.subplots(1, 2, width_ratios=[1, 1.35])
    rows = {name: -index for index, name in enumerate(TITLES)}
    for name, row in rows.items():
        exact_seen, exact, relative = shown[name]
        plotting.show_number(accuracy, row, exact, across=True, fmt="o", color=HELD_OUT)
        accuracy.plot(exact_seen.mean(), row + 0.25, "|", color=plotting.ID_COLOR, markersize=6)
        plotting.show_number(error, row, relative, across=True, fmt="o", color=HELD_OUT)
    accuracy.axvline(0.5, color="0.85", linewidth=0.8, zorder=0)
    accuracy.plot([], [], "o", color=HELD_OUT, markersize=4, label="held out (OOD)")
    accuracy.plot([], [], "|", color=plotting.ID_COLOR, markersize=6, label="seen (ID), mean")
    accuracy.set(xlim=(-0.04, 1.04), xlabel="exact accuracy")
    plotting.legend_above(accuracy)
    accuracy.set_yticks(list(rows.values()), list(TITLES.values()))
    _draw_predictors(error, base.results, min(rows.values()) - 1)
    error.axvline(1, color="0.85", linewidth=0.8, zorder=0)
    error.set(xscale="log", xlabel="MSE OOD / blank image's")
    trivial = {min(rows.values()) - 1 - k: name for k, name in enumerate(PREDICTORS.values())}
    error.set_yticks([*rows.values(), *trivial], [*TITLES.values(), *trivial.values()])
    error.tick_params(axis="y", labelsize=6.5)
    for axis, letter in ((accuracy, "a"), (error, "b")):
        plotting.panel_label(axis, letter)
    return figure


def _numbers(results, cells=None):
    """Exact accuracy ID and OOD, or over some cells, and relative error OOD, (T,) each."""
    ood = results.held_out
    return (
        mean_score(results, "exact_accuracy", ~ood),
        mean_score(results, "exact_accuracy", ood if cells is None else cells),
        evaluation.relative_error(results, ood),
    )


def _draw_predictors(axis, results, top):
    """Trivial predictors of the base task, which have no seeds."""
    errors = claims.trivial_errors(results)
    for index, name in enumerate(PREDICTORS):
        axis.plot(errors[name], top - index, "D", color=plotting.OOD_COLOR, markersize=3.5)
    axis.axhline(top + 0.5, color="0.7", linewidth=0.8)
