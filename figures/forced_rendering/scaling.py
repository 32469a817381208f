"""Figure 4c and its companion: how many images are enough, by the grid's side N.

Drawn from a finished sweep: its config, and its table (`compgen_jax.sweeps.table.rows`). S is the
number of seeds, K of grids.
"""

import textwrap
from string import ascii_lowercase

import numpy as np
from matplotlib.ticker import LogFormatter

from compgen_jax.metrics import scaling
from compgen_jax.metrics.scaling import ABOVE, BELOW, REACHED, UNKNOWN
from compgen_jax.papers.forced_rendering.scaling import (
    GRID,
    REGION,
    SCHEMES,
    Reading,
    completed,
    places,
    schemes,
    scored_place,
    settings_of,
    thresholds,
    told_apart,
)

from .. import plotting
from ..figure import figure

COLORS = {"bumps": plotting.CODE_COLORS["bump"], "stripes": plotting.CODE_COLORS["ramp"]}
MAIN = (("none", "unseen"), ("none", "real"), ("corner", "ood"), ("donut", "ood"))
TARGETS = np.array([0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])
BOUNDS = {ABOVE: ("^", "more than"), BELOW: ("v", "at most")}
PANELS = 2  # in a row
EDGE = -0.3  # of the exponents' scale
Line = plotting.plt.Line2D


@figure("fig4c_epochs", runs=("data_scaling_epochs",), scale="paper", by_default=False)
@figure("fig4c", runs=("data_scaling",), by_default=False)
def draw_thresholds(runs):
    """Figure 4c: images that are needed to render the share of points that the sweep searched, by
    the grid's side N; a panel for each place where decoders are scored (and for each value of the
    sweep's other axes). Trials train for as many steps, in fig4c_epochs for as many epochs. Dots:
    seeds; lines: their geometric mean, where none has a bound alone. Open arrows: a threshold above
    the largest number of images, or at or below the smallest. Light dashes: the paper's exponents,
    through the mean at the smallest N. Dotted, all 2 N stripes: above this line images are these
    and bumps, below it stripes alone, of which some are dropped (claim C11 takes the exponent of
    either). In the legends: the fitted exponent of all images with its 95% interval over seeds."""
    (sweep,) = runs.values()
    rows, target = completed(sweep.rows, sweep.config), sweep.config.sweep.search.target
    panels = [
        (Reading(*place, target), setting)
        for place in MAIN
        for setting in settings_of(rows, place[0])
    ]
    lines, columns = -(-len(panels) // PANELS), min(len(panels), PANELS)
    picture = plotting.new_figure(plotting.WIDTH, 0.45 + 2.6 * lines)
    axes = picture.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axis in axes.ravel()[len(panels) :]:
        axis.set_axis_off()
    for axis, letter, panel in zip(axes.ravel(), "abcdefghijklmnop", panels, strict=False):
        _draw_thresholds(axis, letter, rows, *panel)
    for axis in axes[:, 0]:
        axis.set_ylabel(f"images to render {target:g}")
    handles = [Line([], [], linestyle="none", color="0.3", label="a seed", marker=".",
                    markersize=4)]  # fmt: skip
    for marker, label in BOUNDS.values():
        handles.append(Line([], [], linestyle="none", color="0.3", label=label, marker=marker,
                            markerfacecolor="white", markersize=4))  # fmt: skip
    handles.append(Line([], [], linestyle="--", color="0.75", label="the paper's exponents"))
    handles.append(Line([], [], linestyle=":", color="0.5", label="2 N: all stripes"))
    picture.legend(handles=handles, loc="outside lower center", ncols=3, **plotting.LEGEND)
    return picture


def _draw_thresholds(axis, letter: str, rows, reading, setting):
    shown = schemes(rows, reading.region)
    for scheme in shown:
        curve = thresholds(rows, reading, scheme, setting)
        means_K = _draw_curve(axis, curve, scheme)
        _draw_reference(axis, curve.along_K, means_K, SCHEMES[scheme].exponent)
    grids_K = np.unique([row[GRID] for row in rows])
    if "stripes" in shown:
        axis.plot(grids_K, 2 * grids_K, **plotting.DOTTED)
    axis.set(xscale="log", yscale="log", xlabel="N (pixels)")
    # room on the right for the references' names
    axis.set_xlim(grids_K[0] / 1.1, grids_K[-1] * 1.1 * (grids_K[-1] / grids_K[0]) ** 0.12)
    axis.set_xticks(grids_K, _apart(grids_K))
    axis.set_xticks([], minor=True)
    axis.tick_params(labelbottom=True)
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(LogFormatter())  # names ticks where there is no power of 10
    plotting.legend_in_row(axis, ncols=1, bbox_to_anchor=(0, 1))
    title = [scored_place(reading), told_apart(setting, settings_of(rows, reading.region))]
    axis.set_title("\n".join(filter(None, title)), pad=6 + 11 * len(shown))
    plotting.panel(axis, letter)


def _draw_curve(axis, curve, scheme: str):
    """Seeds, their geometric mean and bounds; returns the means (K,), NaN where some seed has a
    bound alone."""
    color, seeds = COLORS[scheme], len(curve.seeds_S)
    # side by side, as bounds of several seeds are equal
    apart = 0.7 * min([0.15, *np.diff(np.log(curve.along_K))])
    aside_Sx1 = apart * ((np.arange(seeds)[:, None] + 0.5) / seeds - 0.5)
    x_SxK = curve.along_K * np.exp(aside_Sx1)
    reached_SxK = curve.status_SxK == REACHED
    known_SxK = curve.status_SxK != UNKNOWN
    whole_K = reached_SxK.any(axis=0) & (reached_SxK == known_SxK).all(axis=0)
    logs_SxK = np.where(reached_SxK, np.log(np.where(reached_SxK, curve.values_SxK, 1)), 0)
    means_K = np.exp(logs_SxK.sum(axis=0) / np.maximum(reached_SxK.sum(axis=0), 1))
    means_K = np.where(whole_K, means_K, np.nan)
    label = f"{SCHEMES[scheme].title}: {_power(scaling.exponent(curve))}"
    axis.plot(curve.along_K, means_K, "-", color=color, linewidth=1.3, label=label)
    dots = x_SxK[reached_SxK], curve.values_SxK[reached_SxK]
    axis.plot(*dots, ".", color=color, markersize=4, alpha=0.6)
    for status, (marker, _) in BOUNDS.items():
        bound_SxK = curve.status_SxK == status
        axis.plot(
            x_SxK[bound_SxK], curve.values_SxK[bound_SxK], marker, color=color,
            markerfacecolor="white", markersize=4, markeredgewidth=0.7, linestyle="none",
        )  # fmt: skip
    return means_K


def _power(number: dict) -> str:
    value, (low, high) = number["value"], number["ci95"]
    if np.isnan(value):
        return "no exponent"
    interval = "no interval" if np.isnan(low) else f"[{low:.1f}, {high:.1f}]"
    return f"N^{value:.1f} {interval}".replace("-", plotting.MINUS)


def _draw_reference(axis, grids_K, means_K, exponent: int):
    """A line of this slope through the first mean there is, if any, named at its end."""
    if len(grids_K) == 1 or np.isnan(means_K).all():
        return
    first = np.flatnonzero(np.isfinite(means_K))[0]
    line_K = means_K[first] * (grids_K / grids_K[first]) ** exponent
    axis.plot(grids_K, line_K, "--", color="0.75", linewidth=1, zorder=0)
    name = "∝ N" if exponent == 1 else f"∝ N{' ¹²³'[exponent]}"
    axis.annotate(
        name, (grids_K[-1], line_K[-1]), xytext=(9, 0), textcoords="offset points", va="center",
        fontsize=plotting.SMALL, color="0.5",
    )  # fmt: skip


def _apart(grids_K) -> list[str]:
    """Labels of ticks on a logarithmic axis, empty where they would touch the one before."""
    labels, last = [], -np.inf
    near = 0.12 * np.log(grids_K[-1] / grids_K[0])
    for position, grid in zip(np.log(grids_K), grids_K, strict=True):
        labels.append(str(grid) if position - last >= near else "")
        last = position if labels[-1] else last
    return labels


@figure("exponents", runs=("data_scaling",), by_default=False)
def draw_exponents(runs):
    """The exponent of N of all images, with its 95% band over seeds, by the share that must be
    rendered: a panel for every held-out region and place where decoders are scored, all on one
    scale, which bands may leave. A place where no share has an exponent is named below, and has no
    panel. Grey lines: exponents of 1, 2 and 3. Dotted: the share that was searched, around whose
    thresholds the numbers of images are close together. A line stops where fewer than two N have a
    threshold, or where most thresholds are known to a factor above 2 only; marks at the bottom say
    so. An exponent below the scale is an arrow at its edge."""
    (sweep,) = runs.values()
    rows, config = completed(sweep.rows, sweep.config), sweep.config
    target = config.sweep.search.target
    regions = dict(config.sweep.axes).get(REGION, (config.task.support.region,))
    every = dict(each for region in regions for each in _exponents(rows, region, target))
    known = {title: one for title, one in every.items() if np.isfinite(_values(one)).any()}
    columns = min(len(known), 3) or 1
    lines = -(-len(known) // columns) or 1
    picture = plotting.new_figure(plotting.WIDTH, 1.0 + 2.1 * lines)
    axes = picture.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axis in axes.ravel()[len(known) :]:
        axis.set_axis_off()
    highest = 3.4
    for axis, letter, (title, numbers) in zip(
        axes.flat, ascii_lowercase, known.items(), strict=False
    ):
        _draw_exponents(axis, numbers)
        highest = max(highest, np.nanmax(_values(numbers)))
        title += f": {plotting.span(_values(numbers), lambda one: plotting.signed(one, 1))}"
        plotting.panel(axis, letter, title, wrap=90 // columns)
        for exponent in (1, 2, 3):
            axis.axhline(exponent, **plotting.FAINT)
        axis.axhline(EDGE, color="0.6", linewidth=0.5)
        axis.axvline(target, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
        note = {"fontsize": plotting.SMALL, "color": "0.4", "va": "bottom"}
        axis.text(TARGETS[0], EDGE + 0.02, "below: not identified", **note)
        axis.set(xlabel="share rendered", yticks=[0, 1, 2, 3], ylabel="exponent of N")
        axis.label_outer(remove_inner_ticks=False)
    for axis in axes.flat[max(len(known) - columns, 0) : len(known)]:  # nothing stands below
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("share rendered")
    axes[0, 0].set_ylim(-1.05, min(highest + 0.2, 6))
    handles = [Line([], [], color=COLORS[s], label=SCHEMES[s].title) for s in schemes(rows)]
    handles.append(Line([], [], linestyle=":", color="0.6", label="searched share"))
    handles.append(Line([], [], linestyle="", marker="o", markersize=2.2, color="0.3",
                        fillstyle="none", label="not identified or resolved"))  # fmt: skip
    if any((_values(numbers) < EDGE).any() for numbers in known.values()):
        handles.append(Line([], [], linestyle="", marker="v", markersize=3, color="0.3",
                            label="below the scale"))  # fmt: skip
    style = {"loc": "outside lower center", "ncols": 5}
    if without := "; ".join(title for title in every if title not in known):
        style["title"] = textwrap.fill(f"No exponent at any share: {without}", 100)
    picture.legend(handles=handles, **style | plotting.LEGEND)
    return picture


def _exponents(rows, region: str, target: float):
    """(title, {scheme: (3, R)}) of every place where a region's decoders are scored, at every
    setting; numbers as `_by_share` gives them."""
    for setting in settings_of(rows, region):
        for where in places(region):
            place = scored_place(Reading(region, where, target))
            title = ", ".join(filter(None, [place, told_apart(setting, settings_of(rows, region))]))
            yield (
                title,
                {
                    scheme: _by_share(rows, region, where, scheme, setting)
                    for scheme in schemes(rows, region)
                },
            )


def _by_share(rows, region: str, where: str, scheme: str, setting: dict):
    """(3, R) exponents and ends of their intervals at R shares, `TARGETS`; NaN where not identified
    or not resolved."""
    numbers = []
    for share in TARGETS.tolist():
        number = scaling.exponent(thresholds(rows, Reading(region, where, share), scheme, setting))
        resolved = scaling.is_resolved(number)
        numbers.append((number["value"], *number["ci95"]) if resolved else (np.nan,) * 3)
    return np.transpose(numbers)


def _values(numbers: dict):
    return np.concatenate([[], *(values for values, _, _ in numbers.values())])


def _draw_exponents(axis, numbers: dict):
    for index, (scheme, (values, low, high)) in enumerate(numbers.items()):
        color, below, missing = COLORS[scheme], values < EDGE, np.isnan(values)
        axis.plot(TARGETS, np.where(below, np.nan, values), "-o", color=color, markersize=3)
        axis.plot(TARGETS[below], np.full(below.sum(), EDGE), "v", color=color, markersize=3)
        band = np.maximum([low, high], EDGE)
        axis.fill_between(TARGETS, *band, color=color, alpha=0.1, linewidth=0)
        bottom = np.full(missing.sum(), -0.5 - 0.3 * index)
        axis.plot(TARGETS[missing], bottom, "o", color=color, markersize=2.2, fillstyle="none",
                  markeredgewidth=0.6)  # fmt: skip
