"""Figures 2 and 10 to 14: layers of decoders of every depth, and what they draw."""

from functools import partial

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering.layer_claims import depth_of

from .. import plotting
from ..figure import figure
from . import factor_maps
from .lookup import CODES, by_depth, median_images

LINES = "probe.ood_r2", "factorization.mean_of_ratios", "anova.interaction_ood"  # of Figure 2
# of the held-out region's width and height: a corner, an edge and the centre
POINTS = ((0.1, 0.1), (0.3, 0.85), (0.5, 0.5))

# by scale; at the paper's size they train as long as the paper's
OF_FIGURE_13 = {"quick": ("bump_mlp", "bump_mlp_depth*"), "paper": ("bump_mlp_20_epochs*",)}
OF_FIGURE_14 = {"quick": ("ramp_mlp", "ramp_mlp_depth*"), "paper": ("ramp_mlp_20_epochs*",)}


def every_depth(scale: str, codes=CODES) -> list[str]:
    """The networks of Figures 2 and 10 to 12, at the paper's size those that are trained there."""
    of_codes = {code: [f"{code}_cnn", f"{code}_cnn_depth*"] for code in CODES}
    if scale == "paper":
        of_codes["bump"] = ["bump_cnn", "bump_cnn_depth2", "bump_cnn_depth3"]
        of_codes["ramp"] = ["ramp_cnn_50_epochs"]
    return [name for code in codes for name in of_codes[code]]


@figure("fig2", runs=every_depth)
def draw_layers(runs):
    networks = by_depth(runs)
    picture = plotting.new_figure(plotting.WIDTH, 8.4)
    above, maps, below = picture.subfigures(3, 1, height_ratios=[3.9, 2.1, 2.2])
    axes = [
        *above.subplots(2, len(CODES), sharey="row"),
        below.subplots(1, len(CODES), sharey=True),
    ]
    for row, metric in zip(axes, LINES, strict=True):
        for axis, code in zip(row, CODES, strict=True):
            _draw_lines(axis, networks, code, metric)
    depths = {
        code: ", ".join(str(depth_of(run)) for run in of_code) for code, of_code in networks.items()
    }
    plotting.set_panels("fig2", "abcdgh", np.ravel(axes), **depths)
    for axis, code in zip(axes[0], CODES, strict=True):
        _draw_lines(axis, networks, code, "probe.id_r2", dashed=True)
    plotting.label_mark(axes[0][0], "OOD", "-")
    plotting.label_mark(axes[0][0], "ID", "--")
    axes[0][0].set_ylim(max(-1, axes[0][0].get_ylim()[0]), None)
    plotting.legend_below(above, ncols=8)
    deepest = [networks[code][-1] for code in CODES]
    columns = max(len(run.layer_names) for run in deepest)
    strips = maps.subplots(len(CODES), columns)
    image = factor_maps.show_volumes(strips, deepest)
    for row, code, run, letter in zip(strips, CODES, deepest, "ef", strict=True):
        title = f"{code.capitalize()} code, depth {depth_of(run)}"
        plotting.panel(row[0], letter, title, up=16)
    factor_maps.volume_bar(maps, image, ax=strips, pad=0.01, aspect=14, shrink=0.8)
    return picture


def _draw_lines(axis, networks, code, metric, dashed=False):
    """A metric by layer of a code's networks, a line for every depth. The images of all stand one
    above the other on the right."""
    runs_of_all = [run for runs in networks.values() for run in runs]
    end = max(len(run.layer_names) for run in runs_of_all) - 1
    depths = sorted({depth_of(run) for run in runs_of_all})
    colors = dict(zip(depths, plotting.shades(len(depths)), strict=True))
    for index, run in enumerate(networks[code]):
        label = None if dashed else f"depth {depth_of(run)}"
        style = colors[depth_of(run)], "--" if dashed else "-", label
        beside = end + 0.2 * (index - 1)  # no image's mark hides another
        plotting.draw_line(axis, run.layers(metric), beside, *style)
    plotting.name_layers(axis, end + 1)


# the lowest is registered first
@figure("fig14", runs=OF_FIGURE_14.get, by_default=False)
@figure("fig13", runs=OF_FIGURE_13.get, by_default=False)
@figure("fig12", runs=partial(every_depth, codes=["ramp"]))
@figure("fig11", runs=partial(every_depth, codes=["bump"]))
def draw_volumes(runs):
    networks = sorted(runs.values(), key=depth_of)
    columns = max(len(run.layer_names) for run in networks)
    picture = plotting.new_figure(plotting.WIDTH, 0.85 * len(networks) + 1.3)
    volumes, probe_r2 = picture.subfigures(1, 2, width_ratios=[3.6, 1])
    maps = volumes.subplots(len(networks), columns, squeeze=False)
    probes = probe_r2.subplots(len(networks), 1, squeeze=False)[:, 0]
    image = factor_maps.show_volumes(maps, networks)
    for row, probe, run in zip(maps, probes, networks, strict=True):
        row[0].set_ylabel(f"depth {depth_of(run)}")
        for axis in (row[0], probe):
            axis.set_label(f"depth {depth_of(run)}")  # in the table of numbers
        for region, color, line in (
            ("id", plotting.ID_COLOR, "--"),
            ("ood", plotting.OOD_COLOR, "-"),
        ):
            r2 = run.layers(f"probe.{region}_r2")
            plotting.draw_line(probe, r2, columns - 1, color, line, region.upper())
        plotting.name_layers(probe, columns, every=4)
        probe.set(ylabel="probe R²", ylim=(max(-1, min(0, probe.get_ylim()[0])), 1.05))
    probe.set_xlabel("layer")
    plotting.legend_below(probe_r2, probe)
    factor_maps.volume_bar(volumes, image, ax=maps, location="bottom", shrink=0.5, aspect=30)
    return picture


@figure("fig10", runs=every_depth)
def draw_depths(runs):
    networks = by_depth(runs)
    most = max(map(len, networks.values()))
    picture = plotting.new_figure(plotting.WIDTH, max(0.9 * most + 0.2, 2.3))
    *blocks, last = picture.subfigures(1, 3, width_ratios=[2.4, 2.4, 2])
    error = last.subplots()
    for block, letter, (code, of_code) in zip(blocks, "ab", networks.items(), strict=True):
        color, cells = plotting.CODE_COLORS[code], of_code[0].cells
        indices = plotting.held_out_cells(cells, POINTS)
        for row, run in zip(np.atleast_1d(block.subfigures(most, 1)), of_code, strict=False):
            images = {f"depth {depth_of(run)}": median_images(run)}
            axes = plotting.show_rows(row, images, cells, indices)
            if run is of_code[0]:
                plotting.panel(axes[0, 0], letter, f"Median seed, {code} code", color=color)
        relative = [evaluation.relative_error(run.cells, run.cells.held_out) for run in of_code]
        depths = [depth_of(run) + (0.08 if code == "ramp" else -0.08) for run in of_code]
        plotting.show_numbers(error, depths, relative, color, f"{code} code")
    error.axhline(1, **plotting.DOTTED, label="blank image")
    plotting.label_seeds(error)
    error.set_xticks(sorted({depth_of(run) for of_code in networks.values() for run in of_code}))
    error.set_ylim(0, None)
    plotting.set_panels("fig10", "c", [error])
    plotting.legend_below(last, ncols=2)
    return picture
