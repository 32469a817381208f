"""Figure 1, and claims C1 to C3 over all four codes: what is drawn inside and outside the
held-out region."""

import numpy as np

from compgen_jax.papers.forced_rendering.figure1_claims import aligned_peaks

from .. import plotting
from ..figure import figure
from . import factor_maps, mechanism
from .lookup import OF_FIGURE_1, by_code, median_images, shares_by_distance

INSIDE = ((0.2, 0.9), (0.5, 0.5))  # of the held-out width and height: near its edge, its centre


# the lowest is registered first
@figure("fig1_authors", runs=("ramp_cnn_authors", "bump_cnn_authors"), scale="paper")
@figure("fig1", runs=OF_FIGURE_1.get)
@figure("fig1b", runs=("bump_cnn",))
def draw(runs):
    runs = by_code(runs)
    height = 1.9 * len(runs)
    picture = plotting.new_figure(plotting.WIDTH, height + 3.6)
    errors, sums, similarity = picture.subfigures(3, 1, height_ratios=[height, 1.5, 2.1])
    _draw_errors(errors, runs)
    mechanism.draw_sums(sums, runs)
    mechanism.draw_kernels(similarity, runs)
    return picture


def _draw_errors(picture, runs):
    """Panels a to c."""
    maps = []
    for run in runs.values():
        side = 2 * run.cells.grid - 1  # x and y at every half pixel
        halves = np.linspace(0, run.cells.grid - 1, side, dtype=np.float32)
        points = np.stack(np.meshgrid(halves, halves), axis=-1).reshape(-1, 2)
        errors = run.answers(points)[2][run.task.error].mean(axis=0).reshape(side, side)
        maps.append(errors / np.square(run.cells.truths).mean())
    limits = {"norm": "log", "vmin": 1e-3, "vmax": max(2.0, *map(np.max, maps))}
    scheme, networks = picture.subfigures(1, 2, width_ratios=[1, 4])
    region, cells = scheme.subplots(), next(iter(runs.values())).cells
    plotting.show_map(region, plotting.over_grid(~cells.held_out, cells), cmap="Blues", vmax=3)
    plotting.outline(region, plotting.over_grid(cells.held_out, cells))
    factor_maps.name_region(region, plotting.over_grid(cells.held_out, cells), "OOD")
    plotting.panel(region, "a", "A block of positions is held out", wrap=17)
    region.set_anchor("N")
    rows = np.atleast_1d(networks.subfigures(len(runs), 1))
    for row, letter, (code, run), errors in zip(rows, "bc", runs.items(), maps, strict=False):
        error_map, images = row.subfigures(1, 2, width_ratios=[1, 1.15])
        axis, cells, late = error_map.subplots(), run.cells, run.late
        image = plotting.show_map(axis, errors, cells.grid, **limits)
        plotting.outline(axis, plotting.over_grid(cells.held_out, cells))
        share, by_krr = (plotting.ood_shares(c).mean() for c in (late.cells, late.interpolator))
        plotting.remember(axis, "rendered OOD", plotting.ood_shares(late.cells))
        title = (
            f"With the {code} code, {share:.0%} of held-out positions are rendered; "
            f"by interpolation {by_krr:.0%}"
        )
        plotting.panel(axis, letter, title, wrap=36, color=plotting.CODE_COLORS[code])
        error_map.colorbar(image, ax=axis, label=plotting.RELATIVE, format="{x:g}")
        _draw_examples(images, run)


def _draw_examples(picture, run):
    """Two ID cells beside the held-out region, one held-out cell near its edge, one at its
    centre."""
    cells = run.cells
    beside = np.array([(0.1, 0.1), (0.9, 0.5)]) * (cells.grid - 1)
    indices = [plotting.nearest_cell(cells, ~cells.held_out, point) for point in beside]
    indices += plotting.held_out_cells(cells, INSIDE)
    rows = {"asked": cells.truths, "drawn": median_images(run)}
    axes = plotting.show_rows(picture, rows, cells, indices)
    axes[0, 0].set_title("ID (seen)", color=plotting.ID_COLOR)
    axes[0, 2].set_title("OOD (held out)", color=plotting.OOD_COLOR)


@figure(
    "codes",
    runs=("bump_cnn", "ramp_cnn", "onehot_cnn", "positional_cnn"),
    by_default=False,
)
def draw_codes(runs):
    runs = by_code(runs)
    picture = plotting.new_figure(plotting.WIDTH, 4.9)
    top, bottom = picture.subfigures(2, 1, height_ratios=[1.35, 1])
    share, distance, peaks = axes = top.subplots(1, 3)
    maps = bottom.subplots(1, len(runs), sharey=True)
    plotting.show_shares(share, runs)
    for index, (code, run) in enumerate(runs.items()):
        style = {"color": plotting.CODE_COLORS[code], "markersize": 3}
        levels, shares = shares_by_distance(run.late.cells)
        plotting.draw_band(distance, levels, shares, "o-", **style, label=f"{code} code")
        for name, (_, mark) in plotting.FROM_CODES.items():
            levels, shares = shares_by_distance(getattr(run.late, name))
            distance.plot(levels, shares.mean(axis=0), mark + ":", linewidth=0.8, **style)
            plotting.remember(distance, levels, shares, style["color"], mark)
        peaks_of_run, offset = aligned_peaks(run.cells), 0.15 * (index - 1.5)
        for column, values in enumerate((peaks_of_run.several, peaks_of_run.aligned)):
            plotting.show_number(
                peaks, column + offset, values, plotting.mean_share, fmt="o", **style
            )
        peaks.plot(1 + offset, peaks_of_run.chance.mean(), plotting.TRIVIAL, **style)
        image = plotting.show_share(maps[index], run.cells, "rendered")
        maps[index].set_title(f"{code} code", color=plotting.CODE_COLORS[code])
        maps[index].label_outer()
    plotting.label_mark(peaks, "by chance", plotting.TRIVIAL)
    peaks.set_xticks(range(2), ["images with\n2 or more peaks", "misplaced peaks\nin line"])
    peaks.axhline(0.5, **plotting.DOTTED)
    plotting.set_panels("codes", "abcd", (*axes, maps[0]))
    plotting.legend_below(top)
    bottom.colorbar(image, ax=maps, label="share of seeds\nthat render it", shrink=0.9, pad=0.01)
    return picture
