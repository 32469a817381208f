"""Claims C1 to C3 over all four codes: shares rendered, success near the edge, superposed bumps."""

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
    picture = plotting.new_figure(7.4, 4.6)
    top, bottom = picture.subfigures(2, 1, height_ratios=[1.05, 1])
    axes = share, distance, peaks = top.subplots(1, 3)
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
        plotting.draw_band(distance, levels, means, "o-", color, markersize=3, label=code)
        distance.plot(levels, rendered_at(kernel)[1].mean(axis=0), ":", color=color)
        _draw_peaks(peaks, 0.15 * (place - 1.5), aligned_peaks(cells), color)
    plotting.label_regions(share)
    share.plot([], [], "D", color="0.3", markersize=3, label="OOD, interpolation")
    share.set_xticks(range(len(results)), list(results))
    share.set(ylabel="share rendered", ylim=(-0.04, 1.09), title="C1: shares rendered")
    share.legend(loc="center right", bbox_to_anchor=(1.0, 0.7))
    distance.set(
        xlabel="distance to the nearest seen cell (pixels)",
        ylabel="share rendered OOD",
        ylim=(-0.02, None),
        title="C2: success near the edge",
    )
    distance.legend()
    peaks.set_xticks(range(2), ["images with\n2 peaks", "peaks\nin line"])
    peaks.set(ylabel="share", ylim=(-0.04, 1.08), title="C3: several peaks in line")
    for axis in (share, peaks):
        axis.axhline(0.5, color="0.8", linewidth=0.8, zorder=0)
    maps = bottom.subplots(1, len(results), sharey=True)
    for axis, (code, cells) in zip(maps, results.items(), strict=True):
        image = plotting.show_share(axis, cells, "rendered", cmap="cividis")
        axis.set_title(f"{code} code")
        axis.label_outer()
    bottom.colorbar(image, ax=maps, label="share rendered", shrink=0.9, pad=0.01)
    plotting.panel_labels([*axes, maps[0]], "abcd")
    return picture


def _draw_peaks(axis, aside, peaks, color):
    for place, values in enumerate((peaks.several, peaks.aligned)):
        plotting.show_number(axis, place + aside, values, fmt="o", color=color)
    chance = peaks.chance.mean()
    axis.plot(1 + aside, chance, "_", color=color, markersize=9)
    if aside > 0.2:  # the last code
        axis.text(1, chance - 0.04, "by chance", ha="center", va="top", fontsize=7)
