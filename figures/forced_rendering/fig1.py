"""Figure 1a-c: decoders given the bump or the ramp code, inside and outside the held-out hole."""

from math import isqrt

import numpy as np
from matplotlib.colors import to_rgb

from compgen_jax.papers.forced_rendering import signals
from compgen_jax.papers.forced_rendering.runs import BOTH
from figures import plotting

EXAMPLES = 4
# sizes in inches
MAP, IMAGE, GAP, ROW = 1.3, 0.48, 0.04, 2.0


def draw(studies):
    """Figure 1 from the studies of the bump and of the ramp code: (a) what is held out, and below,
    if it is the same of both, the corner of the remedies (Figures 3 and 4); (b, c) the error
    between and at the cells, and what the first seed draws, held-out images each on its own
    scale."""
    studies = {study.role.code: study for study in studies}
    codes = [code for code in BOTH if code in studies]
    results = {code: studies[code].results for code in codes}
    figure = plotting.new_figure(9.05, len(codes) * ROW + 0.1)
    bottoms = [ROW * row for row in reversed(range(len(codes)))]
    held_out = [one.held_out.reshape(one.grid, one.grid) for one in results.values()]
    where = [""] * len(codes)
    if len(codes) > 1 and np.array_equal(*held_out):
        held_out[1], where[1] = _corner(results[codes[1]].grid), ", Figures 3, 4"
    axes = [plotting.axis_at(figure, 0.45, bottom + 0.4, MAP, MAP) for bottom in bottoms]
    for drawn in zip(axes, held_out, where, strict=True):
        _draw_support(*drawn)
    plotting.panel_label(axes[0], "a")
    relative = [_relative_error(studies[code]) for code in codes]
    limits = (1e-3, max(2.0, *(values.max() for values in relative)))
    for bottom, letter, code, errors in zip(bottoms, "bc", codes, relative, strict=False):
        _draw_map(figure, bottom + 0.4, letter, code, results[code], errors, limits)
        for left, held_out in ((4.75, False), (6.95, True)):
            _draw_examples(figure, left, bottom + 0.52, results[code], held_out)
    return figure


def draw_bump(studies):
    """Figure 1a and b, of the bump code alone: the first picture, as its network is the first that
    is trained."""
    return draw(studies)


def draw_epochs(studies):
    """Figure 1 with the ramp's network as long as the paper trained it, 50 epochs, after which it
    has not learnt the seen cells; the bump code's network is that of fig1."""
    return draw(studies)


def _corner(grid: int):
    """(N, N) the paper's corner: x and y from 12 of 28 on."""
    beyond = np.arange(grid) >= round(grid * 12 / 28)
    return np.outer(beyond, beyond)


def _relative_error(study):
    """(M, M): the MSE at every half pixel, mean over seeds, over a blank image's, mean over
    cells."""
    points = signals.fine_points(study.results.grid)
    side = isqrt(len(points))
    errors = study.run.error_at(points).mean(axis=0).reshape(side, side)
    return errors / np.square(study.results.truths).mean()


def _draw_support(axis, held_out_NxN, where):
    last = len(held_out_NxN) - 1
    shade = np.where(held_out_NxN[..., None], to_rgb("white"), to_rgb(plotting.ID_COLOR))
    axis.imshow(shade, origin="lower", alpha=0.6)
    plotting.outline(axis, held_out_NxN)
    y, x = np.nonzero(held_out_NxN)
    small = len(x) < 0.1 * held_out_NxN.size
    axis.text(
        x.mean(), y.mean(), "OOD" if small else "held out\n(OOD)", ha="center", va="center",
        color=plotting.OOD_COLOR,
    )  # fmt: skip
    axis.text(
        last / 2,
        last * 1.03,
        f"seen (ID){where}",
        ha="center",
        va="bottom",
        color=plotting.ID_COLOR,
    )
    axis.set(xlabel="x (pixels)", ylabel="y (pixels)")
    axis.set_xticks([0, last])
    axis.set_yticks([0, last])


def _draw_map(figure, bottom, letter, code, results, relative, limits):
    axis = plotting.axis_at(figure, 2.3, bottom, MAP, MAP)
    held_out = results.held_out.reshape(results.grid, results.grid)
    image = plotting.show_map(
        axis, relative, results.grid, norm="log", vmin=limits[0], vmax=limits[1]
    )
    plotting.outline(axis, held_out)
    bar = plotting.axis_at(figure, 2.3 + MAP + 0.05, bottom, 0.07, MAP)
    figure.colorbar(image, cax=bar, label="MSE / blank image's")
    axis.set_title(f"{code} code")
    plotting.panel_label(axis, letter)


def _draw_examples(figure, left, bottom, results, held_out):
    """What was asked above what the first seed drew, for a few cells of one region."""
    color = plotting.OOD_COLOR if held_out else plotting.ID_COLOR
    for column, cell in enumerate(_spread(results, held_out)):
        for row, images in enumerate((results.predictions[0], results.truths)):
            axis = plotting.axis_at(
                figure,
                left + column * (IMAGE + GAP),
                bottom + row * (IMAGE + GAP),
                IMAGE,
                IMAGE,
            )
            shown = images[cell], results.factors[cell], results.amplitude
            if row == 0 and held_out:
                plotting.show_scaled(axis, *shown)
            else:
                plotting.show_signal(axis, shown[0], shown[2], shown[1], color)
            if column == 0 and not held_out:
                axis.set_ylabel(("drawn", "asked")[row])
    name = "OOD (held out)" if held_out else "ID (seen)"
    axis.annotate(
        f"{name}, seed {results.seeds[0]}",
        (left / figure.get_figwidth(), (bottom + 2 * IMAGE + 0.12) / figure.get_figheight()),
        xycoords="figure fraction",
        color=color,
    )


def _spread(results, held_out: bool):
    """Fixed positions, the same for every network: from the hole's edge to its centre (OOD), and
    around it (ID)."""
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
