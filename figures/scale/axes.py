"""Parts of axes that the second paper's figures share."""

import numpy as np
from matplotlib.colors import to_hex

from compgen_jax.papers.scale.picks import sets_seen
from compgen_jax.papers.scale.quantities import COMPOSED, score, scores
from compgen_jax.statistics import mean_with_interval

from .. import plotting

SUPPORTS = {
    "random": "at random",
    "equal": "all modules\nequally often",
    "popular": "a few modules\nmeet all others",
    "unpopular": "some modules\nin one set each",
    "non_compositional": "one module\nis missing",
    "disconnected": "two groups\nnever meet",
}


def colored(groups: dict):
    """((key, value), color) by rising key, from light to dark."""
    for pair, shade in zip(sorted(groups.items()), plotting.shades(len(groups)), strict=True):
        yield pair, to_hex(shade)


def draw_line(axis, places, values_SxT, dash: str, **kwargs):
    """Means with their 95% intervals, joined."""
    numbers = [mean_with_interval(values) for values in values_SxT]
    values = np.array([number["value"] for number in numbers])
    low, high = np.array([number["ci95"] for number in numbers]).T
    style = {"markersize": 4, "linewidth": 1, "capsize": 2} | kwargs
    axis.errorbar(places, values, yerr=[values - low, high - values], fmt=dash, **style)


def show_sets(axis, by_sets, name: str, color, label: str, seen_color=None):
    """A score of the runs on held-out sets by the number of sets seen; dashed: on seen sets."""
    seen = [sets_seen(run.config) for run in by_sets]
    plotting.show_numbers(axis, seen, scores(by_sets, f"ood.{name}"), color, label)
    on_seen = scores(by_sets, f"id.{name}").mean(axis=1)
    axis.plot(seen, on_seen, "--", color=seen_color or color, linewidth=1)
    count_axis(axis, seen, f"sets seen (of {by_sets[0].summary['task']['sets']:.0f})")


def show_gains(axis, runs, title_of):
    """Gain on held-out and on seen sets of every run, side by side, with entries for a legend."""
    for at, run in enumerate(runs):
        plotting.show_regions(axis, at, 0.14, score(run, "ood.gain"), score(run, "id.gain"))
    axis.set_xticks(range(len(runs)), [title_of(run) for run in runs])
    axis.set(ylabel="gain", ylim=(min(-1.05, axis.get_ylim()[0]), 1.08))
    axis.axhline(0, **plotting.FAINT)
    axis.axhline(COMPOSED, **plotting.DOTTED, label="criterion, .5")
    plotting.label_regions(axis)


def mark_below(axis):
    """An arrow at the lower edge for every mean below it."""
    low = axis.get_ylim()[0]
    for line in [bar[0] for bar in axis.containers]:
        for x in [x for x, y in line.get_xydata() if y < low]:
            axis.plot(x, low, "v", color=line.get_color(), markersize=4, clip_on=False)


def title_of_support(run) -> str:
    return SUPPORTS[run.config.task.support.name]


def trivial(axis, level: float, title: str):
    """A dotted line at what a trivial predictor scores."""
    axis.axhline(level, **plotting.DOTTED)
    style = {"fontsize": plotting.SMALL, "color": "0.4", "ha": "right", "va": "bottom"}
    axis.annotate(title, (1, level), xycoords=("axes fraction", "data"), **style)


def composed(runs) -> str:
    """How many of these surely compose held-out sets."""
    lowest = [mean_with_interval(score(run, "ood.gain"))["ci95"][0] for run in runs]
    return f"{sum(low > COMPOSED for low in lowest)} of {len(runs)}"


def count_axis(axis, values, label: str):
    axis.set_xscale("log")
    axis.set_xticks(values, [str(value) for value in values])
    axis.minorticks_off()
    axis.set_xlabel(label)


def finish(axes, titles, wrap: int = 34, **style):
    """Every panel's letter, title and, if it has entries, legend."""
    for axis, letter, title in zip(axes, "abcd", titles, strict=False):
        if axis.get_legend_handles_labels()[0] and not axis.get_legend():
            axis.legend(**{"loc": "best"} | plotting.LEGEND | style)
        plotting.panel(axis, letter, title, wrap=wrap)
