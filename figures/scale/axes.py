"""Parts of axes that the second paper's figures share."""

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from compgen_jax.papers.scale.picks import sets_seen
from compgen_jax.papers.scale.quantities import COMPOSED, score, scores
from compgen_jax.statistics import mean_with_interval

from .. import plotting


def colored(groups: dict):
    """((key, value), color) by rising key, from light to dark blue."""
    shades = np.linspace(0.4, 1, len(groups))
    for pair, shade in zip(sorted(groups.items()), shades, strict=True):
        yield pair, to_hex(colormaps["Blues"](shade))


def draw_line(axis, places, values_SxT, dash: str, **kwargs):
    """Means with their 95% intervals, joined."""
    numbers = [mean_with_interval(values) for values in values_SxT]
    values = np.array([number["value"] for number in numbers])
    low, high = np.array([number["ci95"] for number in numbers]).T
    style = {"markersize": 4, "linewidth": 1, "capsize": 2} | kwargs
    axis.errorbar(places, values, yerr=[values - low, high - values], fmt=dash, **style)


def show_sets(axis, by_sets, name: str, color, label: str):
    """A score of the runs on held-out sets by the number of sets seen; dotted: on seen sets."""
    seen = [sets_seen(run.config) for run in by_sets]
    plotting.show_numbers(axis, seen, scores(by_sets, f"ood.{name}"), color, label)
    axis.plot(seen, scores(by_sets, f"id.{name}").mean(axis=1), ":", color=color, linewidth=1)
    count_axis(axis, seen, f"sets seen (of {by_sets[0].summary['task']['sets']:.0f})")


def show_gains(axis, runs, title_of):
    """Gain on seen (filled) and held-out (open) sets of every run, side by side, with entries for a
    legend."""
    seen, held_out = {"color": plotting.ID_COLOR}, {"color": plotting.OOD_COLOR}
    held_out["markerfacecolor"] = "white"
    for at, run in enumerate(runs):
        plotting.show_number(axis, at - 0.14, score(run, "id.gain"), fmt="o", **seen)
        plotting.show_number(axis, at + 0.14, score(run, "ood.gain"), fmt="o", **held_out)
    plotting.label_mark(axis, "seen sets", **seen)
    plotting.label_mark(axis, "held-out sets", **held_out)
    axis.set_xticks(range(len(runs)), [title_of(run) for run in runs])
    axis.set(ylabel="gain", ylim=(min(-1.05, axis.get_ylim()[0]), 1.08))
    axis.axhline(0, **plotting.FAINT)
    axis.axhline(COMPOSED, **plotting.DOTTED)


def title_of_support(run) -> str:
    return run.config.task.support.name.replace("_", "\n")


def trivial(axis, level: float, title: str):
    """A grey line at what a trivial predictor scores."""
    axis.axhline(level, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
    style = {"fontsize": plotting.SMALL, "color": "0.4", "ha": "right", "va": "bottom"}
    axis.annotate(title, (1, level), xycoords=("axes fraction", "data"), **style)


def composed(runs, title_of) -> str:
    """How many of these surely compose held-out sets, and which."""
    lowest = [mean_with_interval(score(run, "ood.gain"))["ci95"][0] for run in runs]
    names = [title_of(run) for run, low in zip(runs, lowest, strict=True) if low > COMPOSED]
    words = ", ".join(dict.fromkeys(names)).replace("\n", " ")
    return f"{len(names)} of {len(runs)} compose{f': {words}' if names else ''}"


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
