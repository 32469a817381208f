"""What decoders draw along training: do they memorise first and compose later, or never?"""

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.runs.measure import along_training

from .. import plotting
from ..figure import figure

CODES, FAILS, COMPOSES = plotting.CODE_COLORS, "#cc79a7", "#009e73"
# by column: the networks, with label and colour
COLUMNS = {
    "bumps alone": {
        "bump_cnn": ("bump code", CODES["bump"]),
        "ramp_cnn": ("ramp code", CODES["ramp"]),
        "random_cells": ("random hold-out", "0.35"),
    },
    "stripes": {
        "stripes_0_bumps": ("stripes alone", FAILS),
        "stripes_30_bumps": ("and 30 bumps", COMPOSES),
        "stripes_50_bumps": ("and 50 bumps", COMPOSES),
    },
    "low rank": {
        "lowrank_none": ("no penalty", FAILS),
        "lowrank_both": ("both penalties", COMPOSES),
    },
}
NAMES = tuple(name for networks in COLUMNS.values() for name in networks)
# by row: its label, its limits, and its solid and dashed line: a share rendered, or a metric with
# the place of the layer
ROWS = (
    ("share rendered OOD\n(dashed: ID)", (-0.03, 1.03), ("ood", "id")),
    ("Schmidt rank of images\n(dashed: effective rank)", (0.8, 2000),
     (("schmidt.rank", -1), ("schmidt.exp_entropy", -1))),
    ("share of the kernel in\none factor (dashed:\nfirst product)", (0, 1.03),
     (("explained.hoeffding", -1), ("explained.schmidt", -1))),
    ("R² OOD: probe\n(dashed: superposition)", (-1.05, 1.05),
     (("probe.ood_r2", 0), ("output.superposition.sums.r2", -1))),
)  # fmt: skip
METRICS = tuple(name for _, _, lines in ROWS[1:] for name, _ in lines)


@figure("training", runs=NAMES, by_default=False)
def draw(runs):
    """What decoders draw along training, at the steps whose parameters are kept (about 20 seconds
    of a CPU core a network at quick scale, once); means over seeds, of ranks geometric, with 95%
    intervals. A network
    that memorises first has its ID images rendered long before its OOD ones. (a to c) The share of
    images rendered, OOD and, dashed, outside the hold-out. (d to f) The Schmidt rank of the images'
    Gram matrix and, dashed, its effective rank, exp(entropy) of its spectrum; true bumps have 1.
    (g to i) The share of this matrix in terms of one factor (Eq 33) and, dashed, in its first
    product (Eq 35); true bumps have .49 at N = 16 (.31 at 28), and 1. (j to l) On OOD cells, R² of
    a linear probe of x and y on the last hidden layer and, dashed, of images in terms of the sums
    of ID images of the same row and column."""
    picture = plotting.new_figure(plotting.WIDTH, 7.6)
    axes = picture.subplots(len(ROWS), len(COLUMNS), sharex="col", sharey="row")
    for column, (title, networks) in zip(axes.T, COLUMNS.items(), strict=True):
        for name, (label, color) in networks.items():
            if name in runs:
                _draw_network(column, runs[name], label, color)
        style = {"ncols": 1, "title": title, "alignment": "left"}
        plotting.legend_in_row(column[0], **style)
        column[-1].set_xlabel("training steps")
        plotting.log_scale(column[-1], "x")
    for row, (label, limits, _) in zip(axes, ROWS, strict=True):
        row[0].set(ylabel=label, ylim=limits)
    plotting.log_scale(axes[1, 0], "y")
    for axis, letter in zip(axes.flat, "abcdefghijkl", strict=True):
        plotting.panel(axis, letter)
    return picture


def _draw_network(column, run, label: str, color):
    """One network's numbers at the kept steps, down a column of axes."""
    steps, cells, measured = run.kept_steps, run.along.cells, along_training(run, METRICS)
    shares = {
        region: evaluation.mean_score(cells, "rendered", mask)
        for region, mask in (("ood", cells.held_out), ("id", ~cells.held_out))
    }
    label = f"{label}: {shares['ood'][:, -1].mean():.0%} OOD"
    for axis, (_, _, lines) in zip(column, ROWS, strict=True):
        for dash, line in zip(("-", "--"), lines, strict=True):
            style = {"linewidth": 1.2, "label": label if dash == "-" else None}
            if isinstance(line, str):
                values_TxK = shares[line]
            else:
                values_TxK = list(measured[line[0]].values())[line[1]]
                if line[0].startswith("schmidt"):
                    values_TxK, style["undo"] = np.log(values_TxK), np.exp
            plotting.draw_band(axis, steps, values_TxK, dash, color, **style)
