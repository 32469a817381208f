"""Figure 1a-c, and claims C1 to C3 over all four codes: what is drawn inside and outside the
held-out region."""

from math import isqrt

import numpy as np
from matplotlib.colors import to_rgb

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering import signals
from compgen_jax.papers.forced_rendering.figure1_claims import aligned_peaks

from .. import plotting
from ..figure import figure
from .lookup import by_code, shares_by_distance

# sizes in inches
MAP, IMAGE, GAP, ROW = 1.25, 0.54, 0.04, 2.2


@figure("fig1b", runs=("bump_cnn",))
def draw_bump(runs):
    return draw(runs)


@figure("fig1", runs=("bump_cnn", "ramp_cnn"))
def draw(runs):
    runs, maps, regions = by_code(runs), [], []
    for run in runs.values():
        errors = run.error_at(signals.fine_points(run.cells.grid)).mean(axis=0)
        side = isqrt(len(errors))
        maps.append(errors.reshape(side, side) / np.square(run.cells.truths).mean())
        held_out = plotting.over_grid(run.cells.held_out, run.cells)
        regions.append((held_out, "A square of positions is held out"))
    if len(regions) == 2 and np.array_equal(regions[0][0], regions[1][0]):
        grid = len(regions[0][0])
        beyond = np.arange(grid) >= round(grid * 12 / 28)  # the paper's corner
        regions[1] = np.outer(beyond, beyond), "Other figures hold out a corner"
    limits = {"vmin": 1e-3, "vmax": max(2.0, *(each.max() for each in maps))}
    picture = plotting.new_figure(plotting.WIDTH, len(runs) * ROW + 0.1)
    for row, (code, run) in enumerate(runs.items()):
        bottom, cells, late = (len(runs) - row - 1) * ROW + 0.42, run.cells, run.late
        region = plotting.axis_at(picture, 0.42, bottom, MAP, MAP)
        _draw_region(region, *regions[row], "a" if row == 0 else "")
        axis = plotting.axis_at(picture, 2.15, bottom, MAP, MAP)
        image = plotting.show_map(axis, maps[row], cells.grid, norm="log", **limits)
        plotting.outline(axis, plotting.over_grid(cells.held_out, cells))
        title = (
            f"With the {code} code, {plotting.ood_share(late.cells):.0%} of held-out positions are "
            f"rendered; by interpolation {plotting.ood_share(late.interpolator):.0%}"
        )
        plotting.panel(axis, "bc"[row], title, wrap=36, color=plotting.CODE_COLORS[code])
        bar = plotting.axis_at(picture, 2.15 + MAP + 0.05, bottom, 0.07, MAP)
        picture.colorbar(image, cax=bar, label=plotting.RELATIVE, format="{x:g}")
        _draw_examples(picture, 4.36, bottom - 0.02, cells)
    return picture


@figure("fig1_epochs", runs=("bump_cnn", "ramp_cnn_50_epochs"), scale="paper")
def draw_epochs(runs):
    return draw(runs)


@figure("fig1_authors", runs=("ramp_cnn_authors", "bump_cnn_authors"), scale="paper")
def draw_authors(runs):
    return draw(runs)


def _draw_region(axis, held_out_NxN, title: str, letter: str):
    last = len(held_out_NxN) - 1
    shade = np.where(held_out_NxN[..., None], to_rgb("white"), to_rgb(plotting.ID_COLOR))
    axis.imshow(shade, origin="lower", alpha=0.3)
    plotting.outline(axis, held_out_NxN)
    small = held_out_NxN.sum() < 0.1 * held_out_NxN.size
    plotting.name_region(axis, held_out_NxN, "OOD" if small else "held out\n(OOD)")
    style = {"va": "center", "ha": "center", "color": plotting.ID_COLOR}
    axis.text(last / 2, np.argmax(held_out_NxN.any(axis=1)) / 2 - 0.5, "seen (ID)", **style)
    plotting.panel(axis, letter, title, wrap=16)
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


@figure(
    "codes",
    runs=("bump_cnn", "ramp_cnn", "onehot_cnn", "positional_cnn"),
    numbers=shares_by_distance,
)
def draw_codes(runs):
    runs, shares, edge, inner, several, aligned = by_code(runs), [], [], [], [], []
    picture = plotting.new_figure(plotting.WIDTH, 4.9)
    top, bottom = picture.subfigures(2, 1, height_ratios=[1.35, 1])
    axes = share, distance, peaks = top.subplots(1, 3)
    maps = bottom.subplots(1, len(runs), sharey=True)
    for place, (code, run) in enumerate(runs.items()):
        cells, color = run.cells, plotting.CODE_COLORS[code]
        shares.append(plotting.show_score(share, place, 0.15, run.late.cells, "rendered", color))
        levels, means = evaluation.profile_by_distance(cells.scores["rendered"], cells)
        plotting.draw_band(distance, levels, means, "o-", color, markersize=3)
        edge.append(means[:, 0].mean())
        inner.append(means[:, 1:].mean())
        for name, (_, mark) in plotting.FROM_CODES.items():
            kernel, style = getattr(run, name), {"color": color, "markersize": 3}
            at = place - 0.3 if name == "interpolator" else place + 0.3
            share.plot(at, plotting.ood_share(getattr(run.late, name)), mark, **style)
            levels, means = evaluation.profile_by_distance(kernel.scores["rendered"], kernel)
            distance.plot(levels, means.mean(axis=0), mark + ":", linewidth=0.8, **style)
        of_peaks, aside = aligned_peaks(cells), 0.15 * (place - 1.5)
        style = {"mean": plotting.mean_share, "fmt": "o", "color": color}
        plotting.show_number(peaks, aside, of_peaks.several, **style)
        plotting.show_number(peaks, 1 + aside, of_peaks.aligned, **style)
        peaks.plot(1 + aside, of_peaks.chance.mean(), plotting.TRIVIAL, color=color, markersize=4)
        several.append(np.mean(of_peaks.several))
        aligned.append(np.mean(of_peaks.aligned))
        image = plotting.show_share(maps[place], cells, "rendered")
        maps[place].set_title(f"{code} code", color=color)
        maps[place].label_outer()
    plotting.label_colors(share, {f"{code} code": plotting.CODE_COLORS[code] for code in runs})
    plotting.label_regions(share)
    for title, mark in plotting.FROM_CODES.values():
        plotting.label_mark(share, f"{title}, OOD", mark, markersize=3)
    plotting.label_mark(peaks, "by chance", plotting.TRIVIAL)
    share.set_xticks(range(len(runs)), list(runs), rotation=20)
    share.set(ylabel="share rendered", ylim=(-0.04, 1.09))
    distance.set(xlabel="distance to the nearest\nID cell (pixels)", ylabel="share rendered OOD")
    peaks.set_xticks(range(2), ["images with\n2 or more peaks", "misplaced peaks\nin line"])
    peaks.set(ylabel="share OOD", ylim=(-0.04, 1.08), xlim=(-0.4, 1.4))
    for axis in (share, peaks):
        axis.axhline(0.5, **plotting.DOTTED)
    span = plotting.span
    titles = (
        f"Of held-out images, {span(shares)} are rendered (C1)",
        f"Next to ID cells {span(edge)} are rendered, farther inside {span(inner)} (C2)",
        f"{span(several)} have several peaks; misplaced ones are in line in {span(aligned)} (C3)",
    )
    plotting.panels(axes, "abc", titles, wrap=28)
    plotting.legend_below(top)
    bottom.colorbar(image, ax=maps, label="share of seeds\nthat render it", shrink=0.9, pad=0.01)
    plotting.panel(maps[0], "d")
    return picture
