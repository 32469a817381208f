"""Draws what a finished run makes of one point, held out or not.

    python -m figures.draw --workdir=DIR --point=8,7.5

Writes DIR/figures/point_8_7.5.png and .pdf. The numbers are the factors' values, in their order.
"""

from pathlib import Path

import matplotlib
import numpy as np
from absl import flags

from compgen_jax import cli
from compgen_jax.config import ConfigError
from compgen_jax.runs import directory, results

from . import plotting

KEY = "red: too much\nblue: too little"
WORKDIR = cli.define_workdir()
POINT = flags.DEFINE_list("point", [], "The value of each factor: 8,7.5.")


def draw(run: results.FinishedRun, point):
    """Above what is asked at the point, then what each seed says; below their difference.

    Images are white at 0 and black at the largest asked value; in the difference red is too much
    and blue too little. What is no image is drawn as a curve over its entries. The caller's
    settings of matplotlib stay as they are.
    """
    points = np.asarray(point, np.float32)[None]
    predictions, truths = (each[:, 0] for each in run.predict_with_truth(points))
    show = _show_images if _is_image(truths[0]) else _show_curves
    with matplotlib.rc_context():
        figure = plotting.new_figure(1.3 * (1 + len(run.seeds)), 2.9)
        axes = figure.subplots(2, 1 + len(run.seeds), squeeze=False)
        show(axes, truths[0], predictions, predictions - truths)
        for axis in axes.flat:
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set(visible=True, color="0.7")
        axes[1, 0].set_axis_off()
        axes[0, 0].set_title("asked")
        for axis, seed in zip(axes[0, 1:], run.seeds, strict=True):
            axis.set_title(f"seed {seed}")
        axes[0, 1].set_ylabel("drawn")
        axes[1, 1].set_ylabel("drawn $-$ asked")
        held_out = run.task.held_out(points)[0]
        named = zip(run.task.factors, point, strict=True)
        place = ", ".join(f"{factor.name} = {value:g}" for factor, value in named)
        figure.suptitle(f"{place}: {'held out' if held_out else 'not held out'}", fontsize=8)
        plotting.close(figure)  # a notebook then shows it once
    return figure


def _is_image(values) -> bool:
    """(H, W), or (H, W, 3) in RGB."""
    return values.shape[2:] in ((), (3,)) and min((*values.shape, 0)[:2]) >= 4


def _show_images(axes, truth, predictions, differences):
    top = max(float(truth.max()), 1e-6)
    limit = {"vmin": -top, "vmax": top, "cmap": "RdBu_r", "origin": "lower"}
    gray = {"vmin": min(0.0, float(truth.min())), "vmax": top, "cmap": "gray_r", "origin": "lower"}
    shown = lambda image: np.clip(image / top, 0, 1) if image.ndim == 3 else image
    for axis, image in zip(axes[0], (truth, *predictions), strict=True):
        axis.imshow(shown(image), **gray)
    axes[1, 0].text(0.95, 0.5, KEY, ha="right", va="center", fontsize=7)
    for axis, image in zip(axes[1, 1:], differences, strict=True):
        axis.imshow(image.mean(axis=-1) if image.ndim == 3 else image, **limit)


def _show_curves(axes, truth, predictions, differences):
    for axis, values in zip(axes[0], (truth, *predictions), strict=True):
        axis.plot(np.ravel(truth), ".-", color="0.7")
        axis.plot(np.ravel(values), ".-", color="black", linewidth=0.8)
        axis.sharey(axes[0, 0])
    for axis, values in zip(axes[1, 1:], differences, strict=True):
        axis.plot(np.ravel(values), ".-", color=plotting.OOD_COLOR, linewidth=0.8)
        axis.axhline(0, **plotting.DOTTED)


def main():
    workdir, point = Path(cli.require(WORKDIR)), POINT.value
    run = results.load(workdir)
    names = ", ".join(factor.name for factor in run.task.factors)
    try:
        values = [float(value) for value in point]
    except ValueError as error:
        raise ConfigError(f"--point={','.join(point)}: {error}") from error
    if len(values) != len(run.task.factors):
        raise ConfigError(f"--point={','.join(point)}: give a number for each factor: {names}")
    stem = workdir / "figures" / f"point_{'_'.join(point)}"
    for suffix, content in plotting.saved(draw(run, values)).items():
        directory.write_bytes(Path(f"{stem}.{suffix}"), content)
    print(f"wrote {stem}.png and .pdf")


if __name__ == "__main__":
    cli.run(main)
