"""Draws what a finished run learnt and what it makes of held-out combinations, for any task.

    compgen-jax plot --workdir=DIR

Writes DIR/figures/run.png and run.pdf.
"""

import textwrap
from pathlib import Path

import numpy as np

from compgen_jax import cli
from compgen_jax.metrics import evaluation
from compgen_jax.runs.judge_run import best_trivial_error
from compgen_jax.runs.run import Run
from compgen_jax.statistics import mean_band, mean_with_interval
from compgen_jax.tasks import task as tasks

from . import plotting

WORKDIR = cli.define_workdir()
EXAMPLES = 6
GRID_LINES = {
    "probe.id_r2": ("probe R² ID", "--", plotting.GREY),
    "probe.ood_r2": ("probe R² OOD", "-", plotting.GREY),
    "probe.id_accuracy": ("probe accuracy ID", "--", plotting.GOLD),
    "probe.ood_accuracy": ("probe accuracy OOD", "-", plotting.GOLD),
    "anova.interaction": ("interaction share", "-", plotting.VIOLET),
}
POINT_LINES = {
    "decode.id_r2": ("R² of factors ID", "--", plotting.GREY),
    "decode.ood_r2": ("R² of factors OOD", "-", plotting.GREY),
    "decode.untrained.ood_r2": ("R² OOD before training", "-", "0.75"),
}


def draw(run: Run):
    """How far held-out combinations fall behind ID ones, and in which layer the factors are lost.
    (a) The error on ID and held-out combinations over that of the best trivial predictor:
    geometric mean, 95% interval and seeds. (b) By layer, what a linear probe reads of the factors,
    and on a grid the share of the features' variance that needs two factors or more jointly. (c) On
    a grid, the error along each factor, ID (blue, dashed) and held-out (red) combinations apart.
    (d) Held-out combinations, if outputs are images: above what is asked, below what the first seed
    draws."""
    cells, on_grid = run.cells, tasks.has_grid(tasks.on_grid(run.task))
    has_images = plotting.is_image(cells.truths.shape[1:])
    figure = plotting.new_figure(plotting.WIDTH, 2.5 + 2.1 * on_grid + 2.0 * has_images)
    first, *rows = np.atleast_1d(figure.subfigures(1 + on_grid + has_images, 1))
    error, layers = first.subplots(1, 2, width_ratios=[1, 2])
    draw_layers(layers, run, GRID_LINES if on_grid else POINT_LINES)

    styles = {"color": plotting.ID_COLOR} | plotting.SEEN, {"color": plotting.OOD_COLOR, "fmt": "o"}
    regions = zip((~cells.held_out, cells.held_out), styles, strict=True)
    for position, (mask, style) in enumerate(regions):
        trivial = best_trivial_error(run, ood=position == 1)
        relative = evaluation.mean_score(cells, cells.error, mask) / trivial
        plotting.show_number(error, position, relative, plotting.geometric_mean, **style)
    error.axhline(1, **plotting.DOTTED)
    plotting.label_seeds(error)
    error.set_xticks(range(2), ["ID", "OOD"])
    error.set(xlim=(-0.5, 1.6), ylabel=f"{cells.error} /\nbest trivial predictor's")
    plotting.log_scale(error, "y")
    error.legend(loc="best", **plotting.LEGEND)
    mean = plotting.geometric_mean(relative)["value"]
    plotting.panel(error, "a", f"The error OOD is {mean:.2g} of a trivial predictor's", wrap=26)

    if on_grid:
        along = np.atleast_1d(rows[0].subplots(1, len(run.task.factors), sharey=True))
        for axis, factor, column in zip(along, run.task.factors, cells.factors.T, strict=True):
            draw_along(axis, factor, column, cells)
        along[0].set_ylabel(cells.error)
        plotting.panel(along[0], "c", "The error by the value of each factor")
        plotting.legend_below(rows[0], along[0])
    if has_images:
        draw_examples(rows[-1].subplots(2, EXAMPLES), run.task, cells, "cd"[on_grid])
    return figure


def draw_layers(axis, run, lines: dict):
    """A probe has R² for numbers alone; for labels its accuracy is drawn."""
    title, score, has_labels = "", "R²", not all(factor.real for factor in run.task.factors)
    for metric, (label, dash, color) in lines.items():
        values = run.layers(metric)
        means = np.clip(mean_band(values)[0], -0.05, 1)  # a probe below 0 reads nothing
        if not np.isfinite(means).any() or (metric.endswith("accuracy") and not has_labels):
            continue
        axis.plot(means, dash, marker=".", color=color, label=label)
        if metric.endswith((".ood_r2", ".ood_accuracy")) and not (title or "untrained" in metric):
            number = mean_with_interval(values[:, -1] - values[:, 0])
            value, (low, high) = number["value"], number["ci95"]
            change = f"{'rises' if value > 0 else 'falls'} by {abs(value):.2f}"
            if not (low > 0 or high < 0):  # one seed has no interval
                change = f"does not surely change ({value:+.2f})".replace("-", plotting.MINUS)
            score = "R²" if metric.endswith("r2") else "accuracy"
            title = f"OOD, {score} of the factors {change} over the layers"
    names = [name.removeprefix("layer_").lstrip("0") or "input" for name in run.layer_names]
    axis.set_xticks(range(len(names)), names)
    axis.set(xlabel="layer", ylim=(-0.05, 1.05), ylabel=f"{score} or share")
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), **plotting.LEGEND)
    plotting.panel(axis, "b", title, wrap=44)


def draw_along(axis, factor, column_B, cells):
    errors_TxB = cells.scores[cells.error]
    regions = (
        (~cells.held_out, "s", "--", plotting.ID_COLOR, "white", "seen (ID)"),
        (cells.held_out, "o", "-", plotting.OOD_COLOR, plotting.OOD_COLOR, "held out (OOD)"),
    )
    for mask, mark, dash, color, face, label in regions:
        values = np.unique(column_B[mask])
        errors = (errors_TxB[:, mask & (column_B == value)].mean(axis=1) for value in values)
        means = [plotting.geometric_mean(error_T)["value"] for error_T in errors]
        style = {"color": color, "markerfacecolor": face, "label": label, "markersize": 3}
        axis.plot(values, means, mark, linestyle=dash if factor.real else "none", **style)
    axis.set_xlabel(factor.name)
    plotting.log_scale(axis, "y")
    if not factor.real:
        axis.set_xticks(factor.values, factor.labels or None)


def draw_examples(axes, task, cells, letter: str):
    rows = {"asked": cells.truths, f"seed {cells.seeds[0]}": cells.predictions[0]}
    low, high = min(cells.truths.min(), 0), cells.truths.max()
    for row, (label, images) in zip(axes, rows.items(), strict=True):
        row[0].set_ylabel(label)
        for axis, cell in zip(row, plotting.spread(cells.held_out, EXAMPLES), strict=True):
            scaled = np.clip((images[cell] - low) / (high - low), 0, 1)
            axis.imshow(scaled, origin=task.origin, cmap="gray_r", vmin=0, vmax=1)
            plotting.frame(axis)
            if row is axes[0]:
                values = zip(task.factors, cells.factors[cell], strict=True)
                name = textwrap.fill(", ".join(tasks.value_name(*pair) for pair in values), 18)
                axis.set_title(name, fontsize=plotting.SMALL)
    up = 5 + 11 * max(axis.get_title("left").count("\n") + 1 for axis in axes[0])
    names = ", ".join(factor.name for factor in task.factors)
    title = f"What the first seed draws of held-out combinations ({names})"
    plotting.panel(axes[0, 0], letter, title, up=up)


def main():
    workdir = Path(cli.require(WORKDIR))
    run = Run.load(workdir)
    plotting.write(draw(run), workdir / "figures" / "run")
    print(f"wrote {workdir / 'figures' / 'run.png'} and run.pdf")


if __name__ == "__main__":
    cli.run(main)
