"""Draws what a finished run learnt and what it makes of held-out combinations, for any task.

    compgen-jax plot --workdir=DIR

Writes DIR/figures/run.png and run.pdf.
"""

import textwrap
from pathlib import Path

import numpy as np

from compgen_jax import cli
from compgen_jax.metrics import evaluation
from compgen_jax.runs.judge_run import best_baseline
from compgen_jax.runs.run import Run
from compgen_jax.statistics import mean_band
from compgen_jax.tasks import task as tasks

from . import plotting

WORKDIR = cli.define_workdir()
cli.define_trust()
EXAMPLES = 6
PROBES = {  # of a grid
    "probe.id_r2": ("probe R² ID", "--", plotting.GREY),
    "probe.ood_r2": ("probe R² OOD", "-", plotting.GREY),
    "anova.interaction": ("interaction share", "-", plotting.VIOLET),
}
LABELS = {
    "probe.id_accuracy": ("probe accuracy ID", "--", plotting.GOLD),
    "probe.ood_accuracy": ("probe accuracy OOD", "-", plotting.GOLD),
}
DECODED = {  # without a grid
    "decode.id_r2": ("R² of factors ID", "--", plotting.GREY),
    "decode.ood_r2": ("R² of factors OOD", "-", plotting.GREY),
    "decode.untrained.ood_r2": ("R² OOD before training", "-", "0.75"),
}
REGIONS = {  # whether cells are held out: their label, marks and line
    False: ("seen (ID)", plotting.ID_COLOR, "s", "white", "--"),
    True: ("held out (OOD)", plotting.OOD_COLOR, "o", plotting.OOD_COLOR, "-"),
}


def draw(run: Run):
    """How far held-out combinations fall behind ID ones, and in which layer the factors are lost.
    (a) The error on ID and held-out combinations over that of the best trivial predictor:
    geometric mean, 95% interval and seeds. (b) By layer, what a linear probe reads of the factors,
    and on a grid the share of the features' variance that needs two factors or more jointly. (c) On
    a grid, the error along each factor, ID (blue, dashed) and held-out (red) combinations apart.
    (d) Held-out combinations, if outputs are images: above what is asked, below what the first seed
    draws."""
    cells, factors = run.cells, run.task.factors
    on_grid = tasks.has_grid(tasks.on_grid(run.task))
    has_images = plotting.is_image(cells.truths.shape[1:])
    figure = plotting.new_figure(plotting.WIDTH, 2.5 + 2.1 * on_grid + 2.0 * has_images)
    first, *rows = np.atleast_1d(figure.subfigures(1 + on_grid + has_images, 1))
    error, layers = first.subplots(1, 2, width_ratios=[1, 2])

    for position, (_, color, mark, face, _) in REGIONS.items():
        _, trivial = best_baseline(run, run.task.error, "ood" if position else "id")
        mask = cells.held_out == position
        relative = evaluation.mean_score(cells, cells.error, mask) / trivial
        style = {"color": color, "fmt": mark, "markerfacecolor": face}
        plotting.show_number(error, position, relative, plotting.geometric_mean, **style)
    error.axhline(1, **plotting.DOTTED)
    plotting.label_seeds(error)
    error.set_xticks(range(2), ["ID", "OOD"])
    error.set_ylabel(f"{cells.error} /\nbest trivial predictor's")
    error.legend(loc="best", **plotting.LEGEND)

    lines = PROBES if on_grid else DECODED
    if on_grid and not all(factor.real for factor in factors):
        lines = PROBES | LABELS
    for metric, (label, dash, color) in lines.items():
        means = np.clip(mean_band(run.layers(metric))[0], -0.05, 1)  # below 0 a probe reads nothing
        if np.isfinite(means).any():  # labels have no R²
            layers.plot(means, dash, marker=".", color=color, label=label)
    names = [name.removeprefix("layer_").lstrip("0") or "input" for name in run.layer_names]
    layers.set_xticks(range(len(names)), names)
    layers.legend(loc="center left", bbox_to_anchor=(1, 0.5), **plotting.LEGEND)
    mean = plotting.geometric_mean(relative)["value"]
    plotting.set_panels("run", "ab", (error, layers), share=f"{mean:.2g}")

    if on_grid:
        along = np.atleast_1d(rows[0].subplots(1, len(factors), sharey=True))
        for axis, factor, column in zip(along, factors, cells.factors.T, strict=True):
            draw_along(axis, factor, column, cells)
        along[0].set_ylabel(cells.error)
        plotting.set_panels("run", "c", along[:1])
        plotting.legend_below(rows[0], along[0])
    if has_images:
        low, high = min(cells.truths.min(), 0), cells.truths.max()

        def show(axis, image, *_):
            scaled = np.clip((image - low) / (high - low), 0, 1)
            axis.imshow(scaled, origin=run.task.origin, cmap="gray_r", vmin=0, vmax=1)
            plotting.frame(axis)

        indices = plotting.spread(cells.held_out, EXAMPLES)
        images = {"asked": cells.truths, f"seed {cells.seeds[0]}": cells.predictions[0]}
        axes = plotting.show_rows(rows[-1], images, cells, indices, show)
        for axis, point in zip(axes[-1], cells.factors[indices], strict=True):
            axis.set_xlabel(
                textwrap.fill(tasks.in_words(factors, point), 18), fontsize=plotting.SMALL
            )
        plotting.panel(axes[0, 0], "cd"[on_grid], "Held-out combinations of the first seed")
    return figure


def draw_along(axis, factor, column_B, cells):
    errors_TxB = cells.scores[cells.error]
    for held_out, (label, color, mark, face, line) in REGIONS.items():
        mask = cells.held_out == held_out
        values = np.unique(column_B[mask])
        errors = (errors_TxB[:, mask & (column_B == value)].mean(axis=1) for value in values)
        means = [plotting.geometric_mean(error_T)["value"] for error_T in errors]
        style = {"color": color, "markerfacecolor": face, "label": label, "markersize": 3}
        axis.plot(values, means, mark, linestyle=line if factor.real else "none", **style)
    axis.set_xlabel(factor.name)
    plotting.log_scale(axis, "y")
    if not factor.real:
        axis.set_xticks(factor.values, factor.labels or None)


def main():
    workdir = Path(cli.require(WORKDIR))
    run = Run.load(workdir)
    plotting.write(draw(run), workdir / "figures" / "run")
    print(f"wrote {workdir / 'figures' / 'run.png'} and run.pdf")


if __name__ == "__main__":
    cli.run(main)
