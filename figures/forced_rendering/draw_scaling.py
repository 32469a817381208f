"""Figure 4c: how many images are enough, by the grid's side N. S is the number of seeds, K of
grids."""

from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.ticker import LogFormatter

from compgen_jax.metrics import scaling
from compgen_jax.metrics.scaling import ABOVE, BELOW, REACHED, UNKNOWN
from compgen_jax.papers.forced_rendering import scaling_claims as claim
from compgen_jax.papers.forced_rendering.scaling_claims import GRID, REGION, SCHEMES, Reading

from .. import plotting
from ..figure import figure

COLORS = {"bumps": plotting.VIOLET, "stripes": plotting.GOLD}
WORDS = {claim.RIGHT: "x and y right", claim.RENDERED: "bumps rendered"}
PLACES = (("none", "unseen"), ("none", "real"), ("corner", "ood"), ("donut", "ood"))
PAPERS = Reading("none", "real", claim.ENOUGH, claim.RIGHT)  # of Figure 4c
BOUNDS = {ABOVE: (r"$\uparrow$", "more than"), BELOW: (r"$\downarrow$", "at most")}


@figure("fig4c_epochs", runs=("data_scaling_epochs",), scale="paper", by_default=False)
@figure("fig4c", runs=("data_scaling",), by_default=False)
def draw_thresholds(runs):
    (sweep,) = runs.values()
    target = sweep.config.sweep.search.target
    rows = claim.completed(sweep.rows, sweep.config)
    regions = {row[REGION] for row in rows}
    readings = [
        reading
        for region, where in PLACES
        if region in regions
        for reading in (
            Reading(region, where, claim.ENOUGH, claim.RIGHT),
            Reading(region, where, target),
        )
        if reading != PAPERS
    ]
    height = len(readings) // 2 + 1
    picture = plotting.new_figure(plotting.WIDTH, 2.5 * height)
    axes = picture.subplots(height, 2, sharey=True).ravel()
    for axis, letter, reading in zip(axes, ascii_lowercase, readings, strict=False):
        draw_reading(axis, letter, sweep, reading, 48)
    for axis in axes[len(readings) :]:
        axis.set_axis_off()
    name_marks(axes[len(readings)])
    axes[len(readings)].legend(loc="center left", **plotting.LEGEND)
    return picture


def draw_reading(axis, letter: str, sweep, reading=PAPERS, wrap: int = 28):
    """Images needed by one reading, against N; by default those of the paper's figure."""
    rows = claim.completed(sweep.rows, sweep.config)
    grids_K = np.unique([row[GRID] for row in rows])
    schemes = claim.schemes(rows, reading.region)
    for scheme in schemes:
        _draw_curve(axis, claim.thresholds(rows, reading, scheme), scheme)
    if "stripes" in schemes:
        axis.plot(grids_K, 2 * grids_K, **plotting.DOTTED)
    plotting.log_scale(axis, "xy")
    axis.set(xlabel="N (pixels)", ylabel="images needed")
    every = -(-len(grids_K) // 5)  # so that no two names touch
    axis.set_xticks(grids_K[::every], grids_K[::every])
    axis.yaxis.set_minor_formatter(LogFormatter())  # names ticks where there is no power of 10
    # in this size exponents are not too small
    style = {"loc": "lower left", "bbox_to_anchor": (0, 1), "fontsize": plotting.SMALL / 0.7}
    axis.legend(**style, **plotting.LEGEND)
    title = f"For {WORDS[reading.score]} at {reading.target:g} of {reading.points}"
    plotting.panel(axis, letter, title, wrap=wrap, up=8 + 15 * len(schemes))


def name_marks(axis):
    """Entries for a legend of what all readings have."""
    plotting.label_seeds(axis)
    for marker, label in BOUNDS.values():
        plotting.label_mark(axis, label, marker=marker, linestyle="none")
    plotting.label_mark(axis, "the paper's exponents", ":", "0.75")
    plotting.label_mark(axis, "2 N: all stripes", ":", "0.5")


def _draw_curve(axis, curve, scheme: str):
    """Seeds, side by side, as bounds of several are equal; their geometric mean, where none has a
    bound alone; and the paper's exponent, a line from the first mean on."""
    color, seeds, grids_K = COLORS[scheme], len(curve.seeds_S), curve.along_K
    width = 0.7 * min([0.15, *np.diff(np.log(grids_K))])
    x_SxK = grids_K * np.exp(width * ((np.arange(seeds)[:, None] + 0.5) / seeds - 0.5))
    reached_SxK = curve.status_SxK == REACHED
    known_SxK = np.where(reached_SxK, curve.values_SxK, np.nan)
    bounded_K = ~(reached_SxK | (curve.status_SxK == UNKNOWN)).all(axis=0)
    logs = pd.DataFrame(np.log(known_SxK)).mean()
    means_K = np.where(bounded_K, np.nan, np.exp(logs))
    exponent = scaling.exponent(curve)
    value, (low, high) = exponent["value"], exponent["ci95"]
    interval = "no interval" if np.isnan(low) else f"[{low:.1f}, {high:.1f}]"
    power = "no exponent" if np.isnan(value) else f"$N^{{{value:.1f}}}$ {interval}"
    label = f"{scheme}: {power}".replace("-", plotting.MINUS)
    axis.plot(grids_K, means_K, "-", color=color, linewidth=1.3, label=label)
    marks = {REACHED: ".", **{status: marker for status, (marker, _) in BOUNDS.items()}}
    for status, marker in marks.items():
        chosen_SxK = curve.status_SxK == status
        style = {"marker": marker, "color": color, "linestyle": "none", "markersize": 5}
        axis.plot(x_SxK[chosen_SxK], curve.values_SxK[chosen_SxK], **style)
        values_SxK = np.where(chosen_SxK, curve.values_SxK, np.nan)
        plotting.remember(axis, grids_K, values_SxK, color, marker)
    if len(grids_K) > 1 and np.isfinite(means_K).any():
        first = np.flatnonzero(np.isfinite(means_K))[0]
        line_K = means_K[first] * (grids_K / grids_K[first]) ** SCHEMES[scheme].exponent
        axis.plot(grids_K, line_K, ":", color="0.75", linewidth=1.2, zorder=0)
