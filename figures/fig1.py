"""Figure 1a-c: decoders given the bump or the ramp code, inside and outside the held-out hole."""

import numpy as np

from compgen_jax import plotting
from compgen_jax.analysis import evaluation

EXAMPLES = 4


def draw(results: dict):
    """Figure 1 from the CellResults of the bump and of the ramp code, by code."""
    figure = plotting.new_figure(7.4, 3.7)
    left, right = figure.subfigures(1, 2, width_ratios=[1.35, 6])
    codes = ("bump", "ramp")
    _draw_support(left.subplots(), results["bump"])
    rows = right.subfigures(2, 1)
    relative = [_relative_error(results[code]) for code in codes]
    limits = (1e-3, max(2.0, *(values.max() for values in relative)))
    for row, letter, code, errors in zip(rows, "bc", codes, relative, strict=True):
        _draw_code(row, letter, code, results[code], errors, limits)
    return figure


def _relative_error(results):
    """(N, N) MSE over a blank image's, mean over seeds."""
    blank_B = np.square(results.targets).mean(axis=(1, 2))
    relative = evaluation.error_map(results).mean(axis=0) / blank_B
    return relative.reshape(results.grid, results.grid)


def _draw_support(axis, results):
    held_out = results.held_out.reshape(results.grid, results.grid)
    axis.imshow(~held_out, origin="lower", cmap="Blues", vmin=0, vmax=2.5)
    plotting.outline(axis, held_out)
    centre = results.factors[results.held_out].mean(axis=0)
    axis.text(*centre, "held out\n(OOD)", ha="center", va="center", color=plotting.OOD_COLOR)
    axis.text(
        (results.grid - 1) / 2, (results.grid - 1) * 1.03, "seen (ID)",
        ha="center", va="bottom", color="#2171b5",
    )  # fmt: skip
    axis.set(xlabel="x (pixels)", ylabel="y (pixels)")
    axis.set_xticks([0, results.grid - 1])
    axis.set_yticks([0, results.grid - 1])
    plotting.panel_label(axis, "a")


def _draw_code(figure, letter, code, results, relative, limits):
    grid = figure.add_gridspec(2, 2 + 2 * EXAMPLES, width_ratios=[3.4, 0.1] + [1] * 2 * EXAMPLES)
    axis = figure.add_subplot(grid[:, 0])
    image = plotting.show_map(axis, relative, norm="log", vmin=limits[0], vmax=limits[1])
    plotting.outline(axis, results.held_out.reshape(relative.shape))
    figure.colorbar(image, ax=axis, label="MSE / blank image's", shrink=0.85, pad=0.02)
    axis.set_title(f"{code} code")
    plotting.panel_label(axis, letter)
    chosen = {"ID": _spread(results, False), "OOD": _spread(results, True)}
    for block, (region, cells) in enumerate(chosen.items()):
        color = {"ID": plotting.ID_COLOR, "OOD": plotting.OOD_COLOR}[region]
        for index, cell in enumerate(cells):
            column = 2 + block * EXAMPLES + index
            for row, signals in enumerate((results.targets, results.signals[0])):
                axis = figure.add_subplot(grid[row, column])
                plotting.show_signal(
                    axis, signals[cell], results.amplitude, results.factors[cell], color
                )
                if column == 2:
                    axis.set_ylabel(("asked", "drawn")[row])
            if row and index == 0:
                axis.set_xlabel(f"{region} examples, seed {results.seeds[0]}", loc="left")


def _spread(results, held_out: bool):
    """Fixed positions, the same for every network: on the hole's diagonal from its corner to
    its centre (OOD), and around it (ID)."""
    last = results.grid - 1
    hole = results.factors[results.held_out]
    low, high = hole.min(axis=0), hole.max(axis=0)
    centre = (low + high) / 2
    if held_out:
        points = [low + (centre - low) * t for t in (0.1, 0.4, 0.7, 1.0)]
        points[1][0], points[2][1] = high[0] - 1, high[1] - 2  # not all on one diagonal
    else:
        points = [low / 2, (last - low[0] / 2, centre[1]), (centre[0], low[1] / 2), last - low / 2]
    allowed = np.flatnonzero(results.held_out == held_out)
    return [
        allowed[np.argmin(np.square(results.factors[allowed] - np.round(point)).sum(axis=1))]
        for point in points
    ]
