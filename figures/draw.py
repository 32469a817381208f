"""Draws what a finished run makes of one point, held out or not.

    compgen-jax draw --workdir=DIR --point=8,7.5

Writes DIR/figures/point_8_7.5.png and .pdf. The numbers are the factors' values, in their order; a
label stands for its value.
"""

import re
from pathlib import Path

import jax
import matplotlib
import numpy as np
from absl import flags

from compgen_jax import cli
from compgen_jax.runs.run import Run
from compgen_jax.settings import naming
from compgen_jax.tasks import task as tasks

from . import plotting

COLORS, KEY = "BrBG_r", "brown: too much\nteal: too little"  # as in the explorer
WORKDIR = cli.define_workdir()
cli.define_trust()
POINT = flags.DEFINE_list("point", [], "The value of each factor: 8,7.5; or its label.")


def draw(run: Run, point):
    """Above what is asked at the point, then what each seed draws; below their difference.

    All images have one scale: white at 0 and black at the largest asked value. In the difference
    brown is too much and teal too little, in colour of the channel that differs most. What is no
    image is drawn as a curve over its entries; the image that it was read off stands below what is
    asked. The caller's settings of matplotlib stay as they are.

    Args: point, for each factor a number or a label. Raises ValueError for any other.
    """
    task, points = run.task, tasks.point_of(run.task.factors, point)[None]
    predictions, truths = (values[:, 0] for values in run.answers(points)[:2])
    target, is_image = truths[0], plotting.is_image(truths[0].shape)
    low, high = min(0.0, float(target.min())), max(float(target.max()), 1e-6)
    scale = {"vmin": low, "vmax": high, "cmap": "gray_r", "origin": task.origin}
    signed = {"vmin": -high, "vmax": high, "cmap": COLORS, "origin": task.origin}
    with matplotlib.rc_context():
        figure = plotting.new_figure(1.3 * (1 + len(run.seeds)), 2.9)
        axes = figure.subplots(2, 1 + len(run.seeds), squeeze=False)
        for axis, values in zip(axes[0], (target, *predictions), strict=True):
            if is_image:
                colored = values.ndim == 3
                axis.imshow(np.clip(values / high, 0, 1) if colored else values, **scale)
            else:
                axis.plot(np.ravel(target), ".-", color="0.7")
                axis.plot(np.ravel(values), ".-", color="black", linewidth=0.8)
                axis.sharey(axes[0, 0])
        errors = predictions - (target if is_image else truths)
        for axis, values in zip(axes[1, 1:], errors, strict=True):
            if is_image:
                channels = np.atleast_3d(values)
                largest = np.abs(channels).argmax(axis=-1, keepdims=True)
                axis.imshow(np.take_along_axis(channels, largest, axis=-1)[..., 0], **signed)
            else:
                axis.plot(np.ravel(values), ".-", color=plotting.GREEN, linewidth=0.8)
                axis.axhline(0, **plotting.DOTTED)
        model_input = task.example(jax.random.key(0), points[0]).input
        if is_image:
            axes[1, 0].text(0.95, 0.5, KEY, ha="right", va="center", fontsize=7)
        elif plotting.is_image(np.shape(model_input)):
            axes[1, 0].imshow(model_input, cmap="gray_r", origin=task.origin)
            axes[1, 0].set_title("given (the input)")
        for axis in axes.flat:
            plotting.frame(axis)
        axes[1, 0].set_axis_off()
        for axis, title in zip(axes[0], ("asked", *map("seed {}".format, run.seeds)), strict=True):
            axis.set_title(title)
        axes[0, 1].set_ylabel("drawn")
        axes[1, 1].set_ylabel("drawn $-$ asked")
        region = "held out" if task.held_out(points)[0] else "not held out"
        point_words = tasks.in_words(task.factors, points[0])
        figure.suptitle(f"What each seed draws of {point_words} ({region})", fontsize=8, wrap=True)
        plotting.plt.close(figure)  # a notebook then shows it once
    return figure


def main():
    workdir, point = Path(cli.require(WORKDIR)), POINT.value
    run = Run.load(workdir)
    with naming(f"--point={','.join(point)}"):
        figure = draw(run, point)
    name = re.sub(r"[^\w.+-]", "_", "_".join(point))  # a label may have a slash
    stem = workdir / "figures" / f"point_{name}"
    plotting.write(figure, stem)
    print(f"wrote {stem}.png and .pdf")


if __name__ == "__main__":
    cli.run(main)
