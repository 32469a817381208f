"""Draws what a finished run learnt and what it makes of held-out combinations, for any task.

    python -m figures.run --workdir=DIR

Writes DIR/figures/run.png and run.pdf.
"""

from pathlib import Path

import numpy as np

from compgen_jax import cli
from compgen_jax.metrics import evaluation
from compgen_jax.runs import decoding, directory, results
from compgen_jax.statistics import mean_band, mean_with_interval
from figures import plotting

WORKDIR = cli.define_workdir()
EXAMPLES = 6
LINES = {"probe.id_r2": ("probe $R^2$ ID", "--"), "probe.ood_r2": ("probe $R^2$ OOD", "-")}


def draw(run: results.FinishedRun, cells: evaluation.CellResults, found):
    """`found`: its `inspection.Inspection` or, of points that form no grid, `decoding.Decoding`.

    (a) The error on seen and held-out combinations over that of the best trivial predictor:
    mean, 95% interval and seeds. (b) By layer, what a linear probe reads of the factors, and the
    share of the features' variance that needs two factors or more jointly. (c) The error along each
    factor, seen (blue) and held-out (red) combinations apart, of a grid. (d) Held-out combinations,
    where the signal is an image: asked above what the first seed answers."""
    if isinstance(found, decoding.Decoding):
        return _draw_without_grid(run, cells, found)
    images = _as_images(cells.truths)
    factors = run.task.factors
    figure = plotting.new_figure(7.4, 2.1 + 1.7 * (images is not None) + 1.7)
    rows = figure.subfigures(3 if images is not None else 2, 1)
    error, layers = rows[0].subplots(1, 2, width_ratios=[1, 2])
    _draw_error(error, run, cells)
    _draw_layers(layers, found)
    along = np.atleast_1d(rows[1].subplots(1, len(factors), sharey=True))
    for axis, factor, column in zip(along, factors, cells.factors.T, strict=True):
        _draw_along(axis, factor, column, cells)
    along[0].set_ylabel(cells.error)
    for axis, letter in zip((error, layers, along[0]), "abc", strict=True):
        plotting.panel_label(axis, letter)
    if images is not None:
        _draw_examples(rows[2], cells, images)
    return figure


def _draw_without_grid(run, cells, found):
    figure = plotting.new_figure(7.4, 2.4)
    error, layers = figure.subplots(1, 2, width_ratios=[1, 2])
    _draw_error(error, run, cells)
    for name, title, dash in (
        ("id_r2", "factors $R^2$ ID", "--"),
        ("ood_r2", "OOD", "-"),
        ("untrained.ood_r2", "OOD before training", ":"),
    ):
        layers.plot(_mean(found.numbers[name]), dash, marker=".", color="0.2", label=title)
    layers.set_xticks(range(len(found.layers)), ["input", *map(str, range(1, len(found.layers)))])
    layers.set(xlabel="layer", ylim=(-0.05, 1.05))
    layers.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, handlelength=3)
    for axis, letter in ((error, "a"), (layers, "b")):
        plotting.panel_label(axis, letter)
    return figure


def _draw_error(axis, run, cells):
    regions = {"ID": ~cells.held_out, "OOD": cells.held_out}
    for position, (region, mask) in enumerate(regions.items()):
        trivial = [
            run.summary["mean"][f"{region.lower()}.{name}_{cells.error}"]["value"]
            for name in run.task.baselines
            if (region, name) != ("ID", "nearest_seen")  # of a seen cell it is itself
        ]
        relative = evaluation.mean_score(cells, cells.error, mask) / min(trivial, default=np.nan)
        plotting.point_with_interval(
            axis, position, mean_with_interval(relative), relative, fmt="o", markersize=4,
            color=(plotting.ID_COLOR, plotting.OOD_COLOR)[position],
        )  # fmt: skip
    axis.axhline(1, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axis.set_xticks(range(2), list(regions))
    axis.set(xlim=(-0.5, 1.6), yscale="log", ylabel=f"{cells.error} /\nbest trivial predictor's")


def _draw_layers(axis, found):
    places = np.arange(len(found.layers))
    for name, (title, dash) in LINES.items():
        axis.plot(places, _mean(found.numbers[name]), dash, marker=".", color="0.2", label=title)
    interaction = _mean(found.numbers["anova.interaction"])
    axis.plot(places, interaction, marker=".", color="#6a51a3", label="interaction share")
    names = [name.removeprefix("layer_").lstrip("0") or "input" for name in found.layers]
    axis.set_xticks(places, names)
    axis.set(xlabel="layer", ylim=(-0.05, 1.05))  # a probe below 0 reads nothing
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, handlelength=3)


def _mean(values_TxL):
    return np.clip(mean_band(values_TxL)[0], -0.05, 1)


def _draw_along(axis, factor, column_B, cells):
    errors_B = evaluation.errors(cells).mean(axis=0)
    for mask, color in ((~cells.held_out, plotting.ID_COLOR), (cells.held_out, plotting.OOD_COLOR)):
        values = np.unique(column_B[mask])
        means = [errors_B[mask & (column_B == value)].mean() for value in values]
        axis.plot(values, means, "o-" if factor.real else "o", markersize=3, color=color)
    axis.set(xlabel=factor.name, yscale="log")
    if not factor.real:
        axis.set_xticks(np.unique(column_B))


def _as_images(signals):
    """The signals as images (..., H, W) or (..., H, W, 3), or None if they are none."""
    shape = signals.shape[1:]
    image = len(shape) == 2 or (len(shape) == 3 and shape[-1] == 3)
    return signals if image and min(shape[:2]) >= 4 else None


def _draw_examples(figure, cells, images):
    held_out = np.flatnonzero(cells.held_out)
    chosen = held_out[np.linspace(0, len(held_out) - 1, EXAMPLES + 2).round().astype(int)[1:-1]]
    axes = figure.subplots(2, EXAMPLES)
    low, high = min(images.min(), 0), images.max()
    for column, cell in enumerate(chosen):
        for axis, shown in zip(axes[:, column], (images, cells.predictions[0]), strict=True):
            scaled = np.clip((shown[cell] - low) / (high - low), 0, 1)
            axis.imshow(scaled, origin="lower", cmap="gray_r", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
        axes[0, column].set_title(", ".join(f"{v:.3g}" for v in cells.factors[cell]), fontsize=6.5)
    axes[0, 0].set_ylabel("asked")
    axes[1, 0].set_ylabel(f"seed {cells.seeds[0]}")
    plotting.panel_label(axes[0, 0], "d")


def main():
    workdir = Path(cli.require(WORKDIR))
    run = results.load(workdir)
    drawn = draw(run, run.cells, decoding.measure_directory(workdir))
    for suffix, content in plotting.saved(drawn).items():
        directory.write_bytes(workdir / "figures" / f"run.{suffix}", content)
    print(f"wrote {workdir / 'figures' / 'run.png'} and run.pdf")


if __name__ == "__main__":
    cli.run(main)
