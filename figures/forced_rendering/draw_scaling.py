"""Figures of sweeps: how many images are enough, by the grid's side N (Figure 4c), and the error by
N and by the side of the held-out square.

Drawn from a finished sweep: its config, and its table (`sweep_table.rows`). S is the
number of seeds, K of grids.
"""

import textwrap
from string import ascii_lowercase

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.ticker import LogFormatter

from compgen_jax.metrics import scaling
from compgen_jax.metrics.error_map import error_map
from compgen_jax.metrics.scaling import ABOVE, BELOW, REACHED, UNKNOWN
from compgen_jax.papers.forced_rendering import scaling_claims as claim
from compgen_jax.papers.forced_rendering.scaling_claims import GRID, REGION, SCHEMES, Reading

from .. import plotting
from ..figure import figure

SIDE = "task.support.side"
COLORS = {"bumps": plotting.VIOLET, "stripes": plotting.GOLD}
WORDS = {claim.RIGHT: "x and y right", claim.RENDERED: "bumps rendered"}
MAIN = (("none", "unseen"), ("none", "real"), ("corner", "ood"), ("donut", "ood"))
BOUNDS = {ABOVE: (r"$\uparrow$", "more than"), BELOW: (r"$\downarrow$", "at most")}


@figure("fig4c_epochs", runs=("data_scaling_epochs",), scale="paper", by_default=False)
@figure("fig4c", runs=("data_scaling",), by_default=False)
def draw_thresholds(runs):
    (sweep,) = runs.values()
    rows, target = claim.completed(sweep.rows, sweep.config), sweep.config.sweep.search.target
    grids_K = np.unique([row[GRID] for row in rows])
    regions, known, without = {row[REGION] for row in rows}, {}, []
    for region, where in MAIN:
        there = claim.schemes(rows, region) if region in regions else []
        readings = Reading(region, where, claim.ENOUGH, claim.RIGHT), Reading(region, where, target)
        of_place = {one: {scheme: claim.thresholds(rows, one, scheme) for scheme in there}
                    for one in readings}  # fmt: skip
        curves = [curve for of_reading in of_place.values() for curve in of_reading.values()]
        if any(np.isfinite(scaling.exponent(curve)["value"]) for curve in curves):
            known |= of_place
        elif there:
            without.append(Reading(region, where, target).points)
    picture = plotting.new_figure(plotting.WIDTH, 0.6 + 2.3 * (len(known) // 2 or 1))
    axes = picture.subplots(len(known) // 2 or 1, 2, sharey=True, squeeze=False).ravel()
    for axis in axes[len(known) :]:
        axis.set_axis_off()
    for axis, letter, (reading, curves) in zip(axes, ascii_lowercase, known.items(), strict=False):
        for scheme, curve in curves.items():
            _draw_curve(axis, curve, scheme)
        if "stripes" in curves:
            axis.plot(grids_K, 2 * grids_K, **plotting.DOTTED)
        axis.set(xscale="log", yscale="log", xlabel="N (pixels)")
        # room on the right for the references' names
        axis.set_xlim(grids_K[0] / 1.1, grids_K[-1] * 1.1 * (grids_K[-1] / grids_K[0]) ** 0.12)
        every = -(-len(grids_K) // 5)  # so that no two names touch
        names = [grid if place % every == 0 else "" for place, grid in enumerate(grids_K)]
        axis.set_xticks(grids_K, names)
        axis.set_xticks([], minor=True)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(LogFormatter())  # names ticks where there is no power of 10
        plotting.legend_in_row(axis, ncols=1, bbox_to_anchor=(0, 1))
        title = f"For {WORDS[reading.score]} at {reading.target:g} of {reading.points}"
        plotting.panel(axis, letter, title, wrap=60, up=6 + 11 * len(curves))
    for axis in axes[::2]:
        axis.set_ylabel("images needed")
    keys = picture.add_axes((0, 0, 0, 0), frameon=False, visible=False)
    plotting.label_mark(keys, "a seed", ".")
    for marker, label in BOUNDS.values():
        plotting.label_mark(keys, label, marker=marker, linestyle="none")
    plotting.label_mark(keys, "the paper's exponents", ":", "0.75")
    plotting.label_mark(keys, "2 N: all stripes", ":", "0.5")
    note = textwrap.fill(f"No exponent: {'; '.join(without)}", 100) if without else None
    plotting.legend_below(picture, keys, ncols=5, title=note)
    return picture


def _draw_curve(axis, curve, scheme: str):
    """Seeds, side by side, as bounds of several are equal; their geometric mean, where none has a
    bound alone; and the paper's exponent, a line from the first mean on."""
    color, seeds, grids_K = COLORS[scheme], len(curve.seeds_S), curve.along_K
    apart = 0.7 * min([0.15, *np.diff(np.log(grids_K))])
    x_SxK = grids_K * np.exp(apart * ((np.arange(seeds)[:, None] + 0.5) / seeds - 0.5))
    reached_SxK, unknown_SxK = curve.status_SxK == REACHED, curve.status_SxK == UNKNOWN
    whole_K = reached_SxK.any(axis=0) & (reached_SxK | unknown_SxK).all(axis=0)
    logs_SxK = np.log(np.where(reached_SxK, curve.values_SxK, 1))
    logs_K = logs_SxK.sum(axis=0) / np.maximum(reached_SxK.sum(axis=0), 1)
    means_K = np.where(whole_K, np.exp(logs_K), np.nan)
    exponent = scaling.exponent(curve)
    value, (low, high) = exponent["value"], exponent["ci95"]
    interval = "no interval" if np.isnan(low) else f"[{low:.1f}, {high:.1f}]"
    power = "no exponent" if np.isnan(value) else f"N^{value:.1f} {interval}"
    label = f"{SCHEMES[scheme].title}: {power}".replace("-", plotting.MINUS)
    axis.plot(grids_K, means_K, "-", color=color, linewidth=1.3, label=label)
    dots = x_SxK[reached_SxK], curve.values_SxK[reached_SxK]
    axis.plot(*dots, ".", color=color, markersize=4, alpha=0.6)
    for status, (marker, _) in BOUNDS.items():
        bound_SxK = curve.status_SxK == status
        points = x_SxK[bound_SxK], curve.values_SxK[bound_SxK]
        axis.plot(*points, marker=marker, color=color, linestyle="none", markersize=5)
    if len(grids_K) == 1 or not whole_K.any():
        return
    power, first = SCHEMES[scheme].exponent, np.flatnonzero(whole_K)[0]
    line_K = means_K[first] * (grids_K / grids_K[first]) ** power
    axis.plot(grids_K, line_K, ":", color="0.75", linewidth=1.2, zorder=0)
    name = "∝ N" if power == 1 else f"∝ N{' ¹²³'[power]}"
    style = {"textcoords": "offset points", "va": "center", "fontsize": plotting.SMALL}
    axis.annotate(name, (grids_K[-1], line_K[-1]), xytext=(9, 0), color="0.5", **style)


@figure("holdout_map", runs=("holdout_map",), by_default=False)
def draw_holdout_map(runs):
    (sweep,) = runs.values()
    rows, support = sweep.rows, sweep.config.task.support

    def outside(row) -> tuple[float, bool]:
        where = "unseen" if np.isfinite(row["unseen.mse"]) else "seen"
        return row[f"{where}.mse"] / row[f"{where}.blank_mse"], where == "seen"

    held_out = lambda row: (row["ood.mse"] / row["ood.blank_mse"], False)
    maps = [error_map(rows, GRID, SIDE, measure) for measure in (held_out, outside)]
    values = np.concatenate([each.values_YxX.ravel() for each in maps])
    values = values[np.isfinite(values) & (values > 0)]
    norm = LogNorm(*((values.min(), max(values.max(), 1)) if values.size else (0.1, 1)))
    picture = plotting.new_figure(plotting.WIDTH, max(0.36 * len(maps[0].lines_Y), 1.0) + 1.15)
    axes, star = picture.subplots(1, 2), " (*: seen ones)" * bool(maps[1].on_seen_YxX.any())
    titles = "At held-out cells", f"Outside, at unseen cells{star},"
    colors = plotting.plt.get_cmap("viridis").with_extremes(bad="0.85")
    for axis, errors, letter, title in zip(axes, maps, "ab", titles, strict=True):
        style = {"origin": "lower", "cmap": colors, "norm": norm, "aspect": "auto"}
        image = axis.imshow(errors.values_YxX, **style)
        for (y, x), value in np.ndenumerate(errors.values_YxX):
            star = "*" * bool(errors.on_seen_YxX[y, x])
            succeeded, trials = errors.succeeded_YxX[y, x], errors.trials_YxX[y, x]
            note = f"\n{succeeded} of {trials}" if succeeded < trials else ""
            style = {"ha": "center", "va": "center", "fontsize": plotting.SMALL}
            if np.isfinite(value):
                color = "black" if norm(value) > 0.6 else "white"
                axis.text(x, y, f"{value:.2g}{star}{note}", color=color, **style)
        axis.set_xticks(range(len(errors.columns_X)), errors.columns_X)
        axis.set_yticks(range(len(errors.lines_Y)), [f"{side:.2g}" for side in errors.lines_Y])
        axis.set_xlabel("N (pixels)")
        text = f"{title} errors are {plotting.span(errors.values_YxX, '{:.2g}'.format)}"
        plotting.panel(axis, letter, text, wrap=46)
    axes[0].set_ylabel("side of the square / N")
    axes[1].tick_params(labelleft=False)
    style = {"pad": 0.01, "format": "{x:g}", "aspect": 20}
    bar = picture.colorbar(image, ax=axes, label=plotting.RELATIVE, **style)
    bar.ax.yaxis.set_minor_formatter(LogFormatter())
    share = " times the share of the area not held out" if support.in_proportion else " at every N"
    picture.suptitle(f"A training set has {support.samples} bumps{share}", x=0.01, ha="left")
    return picture
