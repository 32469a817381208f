"""Figure 1a-c: decoders given the bump or the ramp code, inside and outside the held-out region."""

from math import isqrt

import numpy as np
from matplotlib.colors import to_rgb

from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.papers.forced_rendering import signals

from .. import plotting
from ..figure import figure
from .lookup import by_code

# sizes in inches
MAP, IMAGE, GAP, ROW = 1.25, 0.54, 0.04, 2.05


@figure("fig1b", runs=("bump_cnn",))
def draw_bump(runs):
    """Figure 1a and b, for the bump code alone. (a) The combinations of x and y that are held out.
    (b) Left, the error at every half pixel over that of a blank image, mean over seeds; above it
    the share of held-out cells rendered by the network, and by kernel ridge regression. Right, what
    is asked and what the first seed draws, at ID and at held-out cells (circles); each drawn
    image has its own scale, and its largest value is printed below. This is the first figure,
    because its network is trained first."""
    return draw(runs)


@figure("fig1", runs=("bump_cnn", "ramp_cnn"))
def draw(runs):
    """Figure 1. (a) The combinations of x and y that are held out; below, the corner that is held
    out in Figures 3 and 4. (b, c) The bump and the ramp code. Left, the error at every half pixel
    over that of a blank image, mean over seeds; above it the share of held-out cells rendered by
    the network, and by kernel ridge regression on the same codes (interpolation). Right, what is
    asked and what the first seed draws, at ID and at held-out cells (circles); each drawn image
    has its own scale, and its largest value is printed below."""
    shown = by_code(runs)
    height = len(shown) * ROW + 0.1
    picture = plotting.new_figure(plotting.WIDTH, height)
    held_out = [plotting.over_grid(run.cells.held_out, run.cells) for run in shown.values()]
    names = ["seen (ID)"] * len(shown)
    if len(shown) == 2 and np.array_equal(*held_out):
        held_out[1], names[1] = _corner(len(held_out[1])), "seen, Figures 3, 4"
    errors = [_relative_error(run) for run in shown.values()]
    limits = {"vmin": 1e-3, "vmax": max(2.0, *(each.max() for each in errors))}
    for row, (code, run) in enumerate(shown.items()):
        bottom = height - 0.1 - (row + 1) * ROW + 0.42
        region = plotting.axis_at(picture, 0.4, bottom, MAP, MAP)
        _draw_region(region, held_out[row], names[row])
        axis = plotting.axis_at(picture, 2.2, bottom, MAP, MAP)
        image = plotting.show_map(axis, errors[row], run.cells.grid, norm="log", **limits)
        plotting.outline(axis, plotting.over_grid(run.cells.held_out, run.cells))
        title = f"{code} code: {_shares(run)}"
        plotting.panel(axis, "bc"[row], title, wrap=34, color=plotting.CODE_COLORS[code])
        bar = plotting.axis_at(picture, 2.2 + MAP + 0.05, bottom, 0.07, MAP)
        picture.colorbar(image, cax=bar, label="MSE / blank image's", format="{x:g}")
        _draw_examples(picture, 4.36, bottom - 0.02, run.cells)
        if row == 0:
            plotting.panel(region, "a")
    return picture


@figure("fig1_epochs", runs=("bump_cnn", "ramp_cnn_50_epochs"), scale="paper")
def draw_epochs(runs):
    """Figure 1 with the ramp's network as long as the paper trained it: 50 epochs, after which it
    has not learnt the ID cells. The bump's network is that of fig1, and so are all panels."""
    return draw(runs)


@figure("fig1_authors", runs=("ramp_cnn_authors", "bump_cnn_authors_128"), scale="paper")
def draw_authors(runs):
    """Figure 1 with the networks of the authors' code: 10 layers, 1000 bumps and, for the bump
    code, a smaller held-out square (a). Panels are those of fig1."""
    return draw(runs)


def _shares(run) -> str:
    """Shares of held-out cells rendered by the network and by kernel regression, means over
    seeds."""
    by_network, by_kernel = (
        plotting.percent(mean_score(cells, "rendered", cells.held_out).mean())
        for cells in (run.cells, run.interpolator)
    )
    return f"{by_network} of held-out cells rendered, by interpolation {by_kernel}"


def _corner(grid: int):
    """(N, N) the paper's corner: x and y from 12 of 28 on."""
    beyond = np.arange(grid) >= round(grid * 12 / 28)
    return np.outer(beyond, beyond)


def _relative_error(run):
    """(M, M): the MSE at every half pixel, mean over seeds, over a blank image's, mean over
    cells."""
    points = signals.fine_points(run.cells.grid)
    side = isqrt(len(points))
    errors = run.error_at(points).mean(axis=0).reshape(side, side)
    return errors / np.square(run.cells.truths).mean()


def _draw_region(axis, held_out_NxN, name: str):
    last = len(held_out_NxN) - 1
    shade = np.where(held_out_NxN[..., None], to_rgb("white"), to_rgb(plotting.ID_COLOR))
    axis.imshow(shade, origin="lower", alpha=0.6)
    plotting.outline(axis, held_out_NxN)
    y, x = np.nonzero(held_out_NxN)
    centred = {"ha": "center", "color": plotting.OOD_COLOR}
    text = "OOD" if len(x) < 0.1 * held_out_NxN.size else "held out\n(OOD)"
    axis.text(x.mean(), y.mean(), text, va="center", **centred)
    axis.text(last / 2, last * 1.03, name, va="bottom", ha="center", color=plotting.ID_COLOR)
    plotting.name_pixels(axis, last)


def _draw_examples(picture, left, bottom, cells):
    """What is asked beside what the first seed draws: on top two ID cells, below two held-out
    ones."""
    for column, (indices, name, color) in enumerate((
        (_id_examples(cells), "ID (seen)", plotting.ID_COLOR),
        (_ood_examples(cells), "OOD (held out)", plotting.OOD_COLOR),
    )):  # fmt: skip
        at = left + column * (2 * (IMAGE + GAP) + 0.08)
        for row, index in enumerate(indices):
            height = bottom + (len(indices) - 1 - row) * (IMAGE + GAP + 0.12) + 0.06
            axes = asked, drawn = plotting.row_at(picture, at, height, IMAGE, 2, GAP)
            factors = cells.factors[index]
            plotting.show_signal(asked, cells.truths[index], cells.amplitude, factors, color)
            plotting.show_scaled(
                drawn, cells.predictions[0, index], factors, cells.amplitude, color
            )
            if row == 0:
                plotting.panel(asked, "", name, up=14, color=color)
                for axis, word in zip(axes, ("asked", "drawn"), strict=True):
                    axis.set_title(word, pad=2, fontsize=plotting.SMALL)


def _id_examples(cells) -> list[int]:
    """Places beside the held-out region, the same for every network."""
    low, high = _bounds(cells)
    points = low / 2, (cells.grid - 1 - low[0] / 2, (low[1] + high[1]) / 2)
    return [plotting.nearest_cell(cells, ~cells.held_out, np.round(point)) for point in points]


def _ood_examples(cells) -> list[int]:
    """One place near the held-out region's edge and one at its centre, for every network."""
    low, high = _bounds(cells)
    points = (low[0] + 0.4 * (high[0] - low[0]) / 2, high[1] - 1), (low + high) / 2
    return [plotting.nearest_cell(cells, cells.held_out, np.round(point)) for point in points]


def _bounds(cells):
    region = cells.factors[cells.held_out]
    return region.min(axis=0), region.max(axis=0)
