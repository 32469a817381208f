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
MAP, IMAGE, GAP, ROW = 1.3, 0.48, 0.04, 2.0


@figure("fig1b", runs=("bump_cnn",))
def draw_bump(runs):
    """Figure 1a and b, for the bump code alone. (a) The combinations of x and y that are held out.
    (b) Left, the error at every half pixel over that of a blank image, mean over seeds; above it
    the share of held-out cells rendered by the network, and by kernel ridge regression. Right, what
    is asked and what the first seed draws, at ID and at held-out cells (circles); each held-out
    image has its own scale, and its largest value is printed below. This is the first figure,
    because its network is trained first."""
    return draw(runs)


@figure("fig1", runs=("bump_cnn", "ramp_cnn"))
def draw(runs):
    """Figure 1. (a) The combinations of x and y that are held out; below, the corner that is held
    out in Figures 3 and 4. (b, c) The bump and the ramp code. Left, the error at every half pixel
    over that of a blank image, mean over seeds; above it the share of held-out cells rendered by
    the network, and by kernel ridge regression on the same codes (interpolation). Right, what is
    asked and what the first seed draws, at ID and at held-out cells (circles); each held-out image
    has its own scale, and its largest value is printed below."""
    shown = by_code(runs)
    picture = plotting.new_figure(9.05, len(shown) * ROW + 0.1)
    held_out = [plotting.over_grid(run.cells.held_out, run.cells) for run in shown.values()]
    names = ["seen (ID)"] * len(shown)
    if len(shown) == 2 and np.array_equal(*held_out):
        held_out[1], names[1] = _corner(len(held_out[1])), "seen (ID), Figures 3, 4"
    errors = [_relative_error(run) for run in shown.values()]
    limits = {"vmin": 1e-3, "vmax": max(2.0, *(each.max() for each in errors))}
    for row, (code, run) in enumerate(shown.items()):
        bottom = ROW * (len(shown) - 1 - row) + 0.4
        region = plotting.axis_at(picture, 0.45, bottom, MAP, MAP)
        _draw_region(region, held_out[row], names[row])
        axis = plotting.axis_at(picture, 2.3, bottom, MAP, MAP)
        image = plotting.show_map(axis, errors[row], run.cells.grid, norm="log", **limits)
        plotting.outline(axis, plotting.over_grid(run.cells.held_out, run.cells))
        axis.set_title(f"{code} code\n{_shares(run)}", fontsize=7)
        plotting.panel_label(axis, "bc"[row])
        bar = plotting.axis_at(picture, 2.3 + MAP + 0.05, bottom, 0.07, MAP)
        picture.colorbar(image, cax=bar, label="MSE / blank image's")
        _draw_examples(picture, 4.75, bottom + 0.12, run.cells, _id_examples(run.cells))
        _draw_examples(picture, 6.95, bottom + 0.12, run.cells, _ood_examples(run.cells))
        if row == 0:
            plotting.panel_label(region, "a")
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
    """'rendered .06, kernel .36': shares of held-out cells, means over seeds."""
    by_network, by_kernel = (
        mean_score(cells, "rendered", cells.held_out).mean()
        for cells in (run.cells, run.interpolator)
    )
    return f"rendered {by_network:.2f}, kernel {by_kernel:.2f}"


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


def _draw_examples(picture, left, bottom, cells, indices):
    """What is asked above what the first seed draws, for a few cells of one region."""
    held_out = cells.held_out[indices[0]]
    color = plotting.OOD_COLOR if held_out else plotting.ID_COLOR
    drawn = plotting.row_at(picture, left, bottom, IMAGE, len(indices), GAP)
    asked = plotting.row_at(picture, left, bottom + IMAGE + GAP, IMAGE, len(indices), GAP)
    rows = [(asked, cells.truths)]
    if held_out:
        plotting.show_held_out(drawn, cells.predictions[0], cells, indices)
    else:
        rows.append((drawn, cells.predictions[0]))
        asked[0].set_ylabel("asked")
        drawn[0].set_ylabel("drawn")
    for axes, images in rows:
        for axis, index in zip(axes, indices, strict=True):
            factors = cells.factors[index]
            plotting.show_signal(axis, images[index], cells.amplitude, factors, color)
    name = "OOD (held out)" if held_out else "ID (seen)"
    asked[0].annotate(
        f"{name}, seed {cells.seeds[0]}",
        (left / picture.get_figwidth(), (bottom + 2 * IMAGE + 0.12) / picture.get_figheight()),
        xycoords="figure fraction",
        color=color,
    )


def _id_examples(cells) -> list[int]:
    """Places around the held-out region, the same for every network."""
    low, high, last = *_bounds(cells), cells.grid - 1
    centre = (low + high) / 2
    points = [low / 2, (last - low[0] / 2, centre[1]), (centre[0], low[1] / 2), last - low / 2]
    return [plotting.nearest_cell(cells, ~cells.held_out, np.round(point)) for point in points]


def _ood_examples(cells) -> list[int]:
    """Places from the held-out region's edge to its centre, the same for every network."""
    low, high = _bounds(cells)
    points = [low + ((low + high) / 2 - low) * share for share in (0.1, 0.4, 0.7, 1.0)]
    points[1][0], points[2][1] = high[0] - 1, high[1] - 2  # not all on one diagonal
    return [plotting.nearest_cell(cells, cells.held_out, np.round(point)) for point in points]


def _bounds(cells):
    region = cells.factors[cells.held_out]
    return region.min(axis=0), region.max(axis=0)
