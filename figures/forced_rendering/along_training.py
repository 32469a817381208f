"""What decoders draw along training: do they memorise first and compose later, or never?"""

from string import ascii_lowercase

from compgen_jax.metrics import evaluation
from compgen_jax.runs.measure import along_training

from .. import plotting
from ..figure import figure

GREY, GREEN = plotting.GREY, plotting.GREEN
# by column: the networks, with label and colour
COLUMNS = {
    "bumps alone": {
        "bump_cnn": ("bump code", plotting.CODE_COLORS["bump"]),
        "ramp_cnn": ("ramp code", plotting.CODE_COLORS["ramp"]),
        "random_cells": ("random hold-out", GREY),
    },
    "stripes": {
        "stripes_0_bumps": ("stripes alone", GREY),
        "stripes_30_bumps": ("and 30 bumps", GREEN),
        "stripes_50_bumps": ("and 50 bumps", GREEN),
    },
    "low rank": {"lowrank_none": ("no penalty", GREY), "lowrank_both": ("both penalties", GREEN)},
}
NAMES = tuple(name for networks in COLUMNS.values() for name in networks)
# by row: its label, its limits, and its solid and dashed line: a share rendered, or a metric
DRAWN = (
    ("share rendered", (-0.03, 1.03), "ood", "id"),
    ("R² of a probe OOD", (-1.05, 1.05), "probe.ood_r2"),
    ("R² of sums OOD", (-0.03, 1.05), "output.superposition.sums.r2"),
)
KERNELS = (
    ("effective rank\nof the images", (0.8, None), "schmidt.exp_entropy"),
    ("share of the kernel\nin terms of one factor", (0, 1.05), "explained.hoeffding"),
    ("share of the kernel\nin its first product", (0, 1.05), "explained.schmidt"),
)
METRICS = tuple(metric for _, _, metric, *_ in (*DRAWN[1:], *KERNELS))


@figure("training", runs=NAMES, by_default=False)
def draw(runs):
    """Networks that fail have learnt the ID images long before; those that compose draw OOD images
    soon after. What decoders draw along training, at the steps whose parameters are kept (measuring
    takes about 20 seconds of a CPU core a network at quick scale, once); means over seeds with 95%
    intervals. (a to c) The share of images rendered. (d to f) R² on OOD cells of a linear probe of
    x and y on the last hidden layer; values below -1 are not shown. (g to i) R² of OOD images in
    terms of the sums of ID images of the same row and column."""
    return _draw(runs, DRAWN)


@figure("training_kernels", runs=NAMES, by_default=False)
def draw_kernels(runs):
    """All decoders begin with images of one factor, whose similarity is one product, and leave them
    as they learn. Along training, as in the figure `training`; the kernel is the Gram matrix of all
    images. (a to c) Its effective rank, exp(entropy) of its Schmidt spectrum; true bumps have 1. (d
    to f) Its share in terms of one factor (Eq 33); true bumps have .49 at N = 16 (.31 at 28). (g to
    i) Its share in its first product (Eq 35); true bumps have 1."""
    return _draw(runs, KERNELS)


def _draw(runs, rows):
    picture = plotting.new_figure(plotting.WIDTH, 5.8)
    axes = picture.subplots(len(rows), len(COLUMNS), sharex="col", sharey="row")
    for column, (title, networks) in zip(axes.T, COLUMNS.items(), strict=True):
        for name, (label, color) in networks.items():
            if name in runs:
                _draw_network(column, rows, runs[name], label, color)
        if rows is DRAWN:
            plotting.label_mark(column[0], "dashed: ID images", "--")
        plotting.legend_in_row(column[0], ncols=1, title=title, alignment="left")
        column[-1].set_xlabel("training steps")
        plotting.log_scale(column[-1], "x")
    for row, (label, limits, *_) in zip(axes, rows, strict=True):
        row[0].set(ylabel=label, ylim=limits)
    for axis, letter in zip(axes.flat, ascii_lowercase, strict=False):
        plotting.panel(axis, letter)
    return picture


def _draw_network(column, rows, run, label: str, color):
    """One network's numbers at the kept steps, down a column of axes."""
    cells, numbers = run.along.cells, {}
    for name, of_layers in along_training(run, METRICS).items():  # of the last hidden and the image
        numbers[name] = list(of_layers.values())[0 if name.startswith("probe") else -1]
    for region, mask in (("ood", cells.held_out), ("id", ~cells.held_out)):
        numbers[region] = evaluation.mean_score(cells, "rendered", mask)
    labels = f"{label}: {numbers['ood'][:, -1].mean():.0%} OOD", None
    for axis, (_, _, *lines) in zip(column, rows, strict=True):
        for line, dash, label in zip(lines, ("-", "--"), labels, strict=False):
            style = {"linewidth": 1.2, "label": label}
            plotting.draw_band(axis, run.kept_steps, numbers[line], dash, color, **style)
