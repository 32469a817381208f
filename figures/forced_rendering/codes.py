"""Claims C1 to C3 over all four codes: shares rendered, success near the edge, superposed bumps."""

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering.figure1 import aligned_peaks

from .. import plotting
from ..figure import figure
from .lookup import by_code


@figure("codes", runs=("bump_cnn", "ramp_cnn", "onehot_cnn", "positional_cnn"))
def draw(runs):
    """What Figure 1 claims, for four codes; means over seeds with 95% intervals, grey dots are
    seeds. (a) C1: the share of images rendered over held-out (filled) and ID cells (open); diamonds
    are held-out cells by interpolation, kernel ridge regression on the same codes. (b) C2: the
    share of held-out cells rendered, by their distance to the nearest ID cell; dotted, by
    interpolation. (c) C3: held-out images with two peaks; of all misplaced peaks, those in line
    with x or y, beside what chance would give. A peak counts relative to its image's maximum. Grey
    lines: criteria at one half. (d) The share of seeds whose image is rendered, by cell."""
    shown = by_code(runs)
    results = {code: run.cells for code, run in shown.items()}
    picture = plotting.new_figure(plotting.WIDTH, 4.9)
    top, bottom = picture.subfigures(2, 1, height_ratios=[1.35, 1])
    axes = share, distance, peaks = top.subplots(1, 3)
    held_out, profiles, of_peaks = [], [], []
    for place, (code, cells) in enumerate(results.items()):
        color = plotting.CODE_COLORS[code]
        regions = [evaluation.mean_score(cells, "rendered", mask)
                   for mask in (cells.held_out, ~cells.held_out)]  # fmt: skip
        plotting.show_regions(share, place, 0.15, *regions, color=color)
        kernel = shown[code].interpolator
        by_kernel = evaluation.mean_score(kernel, "rendered", kernel.held_out).mean()
        share.plot(place - 0.3, by_kernel, "D", color=color, markersize=3)
        rendered_at = lambda each: evaluation.profile_by_distance(each.scores["rendered"], each)
        levels, means = rendered_at(cells)
        plotting.draw_band(distance, levels, means, "o-", color, markersize=3)
        distance.plot(levels, rendered_at(kernel)[1].mean(axis=0), ":", color=color)
        held_out.append(regions[0].mean())
        profiles.append(means.mean(axis=0))
        of_peaks.append(aligned_peaks(cells))
        _draw_peaks(peaks, 0.15 * (place - 1.5), of_peaks[-1], color)
    plotting.label_colors(share, {code: plotting.CODE_COLORS[code] for code in results})
    plotting.label_regions(share)
    share.plot([], [], "D", color="0.3", markersize=3, label="OOD, interpolation")
    distance.plot([], [], ":", color="0.3", label="OOD, interpolation, by distance")
    peaks.plot([], [], "_", color="0.3", markersize=9, label="by chance")
    share.set_xticks(range(len(results)), list(results), rotation=20)
    share.set(ylabel="share rendered", ylim=(-0.04, 1.09))
    distance.set(xlabel="distance to the nearest\nID cell (pixels)", ylabel="share rendered OOD")
    peaks.set_xticks(range(2), ["images with\n2 peaks", "peaks\nin line"])
    peaks.set(ylabel="share", ylim=(-0.04, 1.08))
    for axis in (share, peaks):
        axis.axhline(0.5, **plotting.FAINT)
    near, far = ([each[part].mean() for each in profiles] for part in (slice(1), slice(1, None)))
    several, aligned = ([np.mean(getattr(each, name)) for each in of_peaks]
                        for name in ("several", "aligned"))  # fmt: skip
    titles = (
        f"C1: {plotting.span(held_out)} of OOD images rendered",
        f"C2: {plotting.span(near)} rendered at the edge, {plotting.span(far)} inside",
        f"C3: {plotting.span(several)} have 2 peaks, {plotting.span(aligned)} of these in line",
    )
    for axis, letter, title in zip(axes, "abc", titles, strict=True):
        plotting.panel(axis, letter, title, wrap=28)
    plotting.legend_below(top)
    maps = bottom.subplots(1, len(results), sharey=True)
    for axis, (code, cells) in zip(maps, results.items(), strict=True):
        image = plotting.show_share(axis, cells, "rendered")
        axis.set_title(f"{code} code")
        axis.label_outer()
    bottom.colorbar(image, ax=maps, label="share of seeds\nthat render it", shrink=0.9, pad=0.01)
    plotting.panel(maps[0], "d")
    return picture


def _draw_peaks(axis, aside, peaks, color):
    for place, values in enumerate((peaks.several, peaks.aligned)):
        plotting.show_number(axis, place + aside, values, fmt="o", color=color)
    axis.plot(1 + aside, peaks.chance.mean(), "_", color=color, markersize=9)
