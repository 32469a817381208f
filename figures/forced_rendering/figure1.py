"""Figure 1a-c, and claims C1 to C3 over all four codes: what is drawn inside and outside the
held-out region."""

from math import isqrt

import numpy as np
from matplotlib.colors import to_rgb

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering import signals
from compgen_jax.papers.forced_rendering.figure1 import aligned_peaks

from .. import plotting
from ..figure import figure
from .lookup import by_code

# sizes in inches
MAP, IMAGE, GAP, ROW = 1.25, 0.54, 0.04, 2.2


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
    the network, and by kernel ridge regression on the same codes: with a Gaussian kernel
    (interpolation), and with that of a wide network, which learns no features. Right, what is
    asked and what the first seed draws, at ID and at held-out cells (circles); each drawn image
    has its own scale, and its largest value is printed below."""
    runs, maps, regions = by_code(runs), [], []
    for run in runs.values():
        errors = run.error_at(signals.fine_points(run.cells.grid)).mean(axis=0)
        side = isqrt(len(errors))
        maps.append(errors.reshape(side, side) / np.square(run.cells.truths).mean())
        regions.append((plotting.over_grid(run.cells.held_out, run.cells), "seen (ID)"))
    if len(regions) == 2 and np.array_equal(regions[0][0], regions[1][0]):
        grid = len(regions[0][0])
        beyond = np.arange(grid) >= round(grid * 12 / 28)  # the paper's corner
        regions[1] = np.outer(beyond, beyond), "seen, Figures 3, 4"
    limits = {"vmin": 1e-3, "vmax": max(2.0, *(each.max() for each in maps))}
    picture = plotting.new_figure(plotting.WIDTH, len(runs) * ROW + 0.1)
    for row, (code, run) in enumerate(runs.items()):
        bottom, cells = (len(runs) - row - 1) * ROW + 0.42, run.cells
        region = plotting.axis_at(picture, 0.4, bottom, MAP, MAP)
        _draw_region(region, *regions[row])
        axis = plotting.axis_at(picture, 2.2, bottom, MAP, MAP)
        image = plotting.show_map(axis, maps[row], cells.grid, norm="log", **limits)
        plotting.outline(axis, plotting.over_grid(cells.held_out, cells))
        title = (
            f"{code} code: {plotting.ood_share(cells):.0%} of held-out cells rendered, "
            f"by interpolation {plotting.ood_share(run.interpolator):.0%}, "
            f"by a wide network {plotting.ood_share(run.wide_network):.0%}"
        )
        plotting.panel(axis, "bc"[row], title, wrap=34, color=plotting.CODE_COLORS[code])
        bar = plotting.axis_at(picture, 2.2 + MAP + 0.05, bottom, 0.07, MAP)
        picture.colorbar(image, cax=bar, label="MSE / blank image's", format="{x:g}")
        _draw_examples(picture, 4.36, bottom - 0.02, cells)
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


def _draw_region(axis, held_out_NxN, name: str):
    last = len(held_out_NxN) - 1
    shade = np.where(held_out_NxN[..., None], to_rgb("white"), to_rgb(plotting.ID_COLOR))
    axis.imshow(shade, origin="lower", alpha=0.6)
    plotting.outline(axis, held_out_NxN)
    small = held_out_NxN.sum() < 0.1 * held_out_NxN.size
    plotting.name_region(axis, held_out_NxN, "OOD" if small else "held out\n(OOD)")
    axis.text(last / 2, last * 1.03, name, va="bottom", ha="center", color=plotting.ID_COLOR)
    plotting.name_pixels(axis, last)


def _draw_examples(picture, left, bottom, cells):
    """What is asked beside what the first seed draws, at the same places for every network: two ID
    cells beside the held-out region, one held-out cell near its edge and one at its centre."""
    held_out, region = cells.held_out, cells.factors[cells.held_out]
    low, high = region.min(axis=0), region.max(axis=0)
    beside = low / 2, (cells.grid - 1 - low[0] / 2, (low[1] + high[1]) / 2)
    inside = (low[0] + 0.4 * (high[0] - low[0]) / 2, high[1] - 1), (low + high) / 2
    for column, (points, allowed, name, color) in enumerate((
        (beside, ~held_out, "ID (seen)", plotting.ID_COLOR),
        (inside, held_out, "OOD (held out)", plotting.OOD_COLOR),
    )):  # fmt: skip
        at = left + column * (2 * (IMAGE + GAP) + 0.08)
        for row, point in enumerate(points):
            index = plotting.nearest_cell(cells, allowed, np.round(point))
            height = bottom + (1 - row) * (IMAGE + GAP + 0.12) + 0.06
            axes = asked, drawn = plotting.row_at(picture, at, height, IMAGE, 2, GAP)
            factors, image = cells.factors[index], cells.predictions[0, index]
            plotting.show_signal(asked, cells.truths[index], cells.amplitude, factors, color)
            plotting.show_scaled(drawn, image, factors, cells.amplitude, color)
            if row == 0:
                plotting.panel(asked, "", name, up=14, color=color)
                for axis, word in zip(axes, ("asked", "drawn"), strict=True):
                    axis.set_title(word, pad=2, fontsize=plotting.SMALL)


@figure("codes", runs=("bump_cnn", "ramp_cnn", "onehot_cnn", "positional_cnn"))
def draw_codes(runs):
    """What Figure 1 claims, for four codes; means over seeds with 95% intervals, grey dots are
    seeds. (a) C1: the share of images rendered over held-out (filled) and ID cells (open); diamonds
    are held-out cells by interpolation, kernel ridge regression on the same codes; triangles are
    the same with the kernel of a wide network, which learns no features. (b) C2: the share of
    held-out cells rendered, by their distance to the nearest ID cell; dotted, by interpolation;
    dashed, by the wide network. (c) C3: held-out images with two peaks; of all misplaced peaks,
    those in line with x or y, beside what chance would give. A peak counts relative to its image's
    maximum. Grey lines: criteria at one half. (d) The share of seeds whose image is rendered, by
    cell."""
    runs, shares, edge, inner, several, aligned = by_code(runs), [], [], [], [], []
    picture = plotting.new_figure(plotting.WIDTH, 4.9)
    top, bottom = picture.subfigures(2, 1, height_ratios=[1.35, 1])
    axes = share, distance, peaks = top.subplots(1, 3)
    maps = bottom.subplots(1, len(runs), sharey=True)
    for place, (code, run) in enumerate(runs.items()):
        cells, color = run.cells, plotting.CODE_COLORS[code]
        shares.append(plotting.show_score(share, place, 0.15, cells, "rendered", color))
        levels, means = evaluation.profile_by_distance(cells.scores["rendered"], cells)
        plotting.draw_band(distance, levels, means, "o-", color, markersize=3)
        edge.append(means[:, 0].mean())
        inner.append(means[:, 1:].mean())
        for name, (_, mark, line) in plotting.FROM_CODES.items():
            kernel = getattr(run, name)
            at = place - 0.3 if name == "interpolator" else place + 0.3
            share.plot(at, plotting.ood_share(kernel), mark, color=color, markersize=3)
            levels, means = evaluation.profile_by_distance(kernel.scores["rendered"], kernel)
            distance.plot(levels, means.mean(axis=0), line, color=color)
        of_peaks, aside = aligned_peaks(cells), 0.15 * (place - 1.5)
        plotting.show_number(peaks, aside, of_peaks.several, fmt="o", color=color)
        plotting.show_number(peaks, 1 + aside, of_peaks.aligned, fmt="o", color=color)
        peaks.plot(1 + aside, of_peaks.chance.mean(), "_", color=color, markersize=9)
        several.append(np.mean(of_peaks.several))
        aligned.append(np.mean(of_peaks.aligned))
        image = plotting.show_share(maps[place], cells, "rendered")
        maps[place].set_title(f"{code} code")
        maps[place].label_outer()
    plotting.label_colors(share, {code: plotting.CODE_COLORS[code] for code in runs})
    plotting.label_regions(share)
    for title, mark, line in plotting.FROM_CODES.values():
        plotting.label_mark(share, f"OOD, {title}", mark, markersize=3)
        plotting.label_mark(distance, f"OOD, {title}, by distance", line)
    plotting.label_mark(peaks, "by chance", "_", markersize=9)
    share.set_xticks(range(len(runs)), list(runs), rotation=20)
    share.set(ylabel="share rendered", ylim=(-0.04, 1.09))
    distance.set(xlabel="distance to the nearest\nID cell (pixels)", ylabel="share rendered OOD")
    peaks.set_xticks(range(2), ["images with\n2 peaks", "peaks\nin line"])
    peaks.set(ylabel="share", ylim=(-0.04, 1.08))
    for axis in (share, peaks):
        axis.axhline(0.5, **plotting.FAINT)
    span = plotting.span
    titles = (
        f"C1: {span(shares)} of OOD images rendered",
        f"C2: {span(edge)} rendered at the edge, {span(inner)} inside",
        f"C3: {span(several)} have 2 peaks, {span(aligned)} of these in line",
    )
    plotting.panels(axes, "abc", titles, wrap=28)
    plotting.legend_below(top)
    bottom.colorbar(image, ax=maps, label="share of seeds\nthat render it", shrink=0.9, pad=0.01)
    plotting.panel(maps[0], "d")
    return picture
