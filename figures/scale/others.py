"""Figures of other students and tasks, of the middle scale, and between the two papers."""

from compgen_jax.papers.scale import picks
from compgen_jax.papers.scale import runs as rows
from compgen_jax.papers.scale.quantities import COMPOSED, score
from compgen_jax.statistics import mean_with_interval

from .. import plotting
from ..figure import figure
from . import axes as parts
from .tables import baseline


def sets_seen(run) -> int:
    return picks.sets_seen(run.config)


@figure("scale1d", runs=lambda scale: [*rows.architectures(scale)], by_default=False)
def draw_others(runs):
    """More sets help other students, too (S1d): R² on held-out sets rises with the number of sets
    seen. (a) A transformer, (b) a hypernetwork, which has the teacher's form. Dashed: on seen sets;
    dotted: the bilinear map, which composes nothing. Means over seeds with 95% intervals."""
    drawn = plotting.new_figure(plotting.WIDTH, 2.7)
    axes, titles = drawn.subplots(1, 2, sharey=True), []
    for axis, model in zip(axes, ("task_transformer", "hypernetwork"), strict=True):
        for own in picks.seen_by_modules(runs.values(), model).values():
            colors = plotting.OOD_COLOR, "on held-out sets", plotting.ID_COLOR
            parts.show_sets(axis, own, "r2", *colors)
            parts.trivial(axis, baseline(own[-1], "bilinear"), "bilinear map")
            last = f"R² is {score(own[-1], 'ood.r2').mean():.2f} with {sets_seen(own[-1])} sets"
            titles.append(f"{model.removeprefix('task_').capitalize()}: {last}")
        plotting.label_mark(axis, "on seen sets", "--", plotting.ID_COLOR, linewidth=1)
        axis.set(ylim=(0, 1.03), xlim=(8 / 9 * own[0].config.task.support.seen, None))
        axis.set_xlim(right=1.7 * axis.get_xlim()[1])  # room for the dotted line's name
    axes[0].set_ylabel("R²")
    plotting.label_seeds(axes[0])
    parts.finish(axes, titles, wrap=44)
    return drawn


@figure("gridworld", runs=lambda scale: [*rows.preferences(scale)], by_default=False)
def draw_gridworld(runs):
    """More sets help on another task, too (S1d): the gridworld of preferences. Share of right steps
    on held-out sets by the number of sets seen. Dashed: on seen sets; dotted: the most frequent
    action, and the plan of the nearest seen set. Means over seeds with 95% intervals."""
    drawn = plotting.new_figure(plotting.COLUMN, 2.7)
    axis, own = drawn.subplots(), sorted(runs.values(), key=sets_seen)
    colors = plotting.OOD_COLOR, "MLP, on held-out sets", plotting.ID_COLOR
    parts.show_sets(axis, own, "step_accuracy", *colors)
    seen = [sets_seen(run) for run in own]
    titles = {"majority": "most frequent action", "nearest_seen": "plan of the nearest seen set"}
    for predictor, title in titles.items():
        right = [1 - score(run, f"ood.{predictor}_miss").mean() for run in own]
        axis.plot(seen, right, **plotting.DOTTED)
        style = {"fontsize": plotting.SMALL, "color": "0.4", "ha": "right", "va": "top"}
        place = (seen[-1], right[-1]), (0, -10)
        axis.annotate(title, *place, textcoords="offset points", **style)
    plotting.label_mark(axis, "MLP, on seen sets", "--", plotting.ID_COLOR, linewidth=1)
    axis.set(ylabel="share of right steps", ylim=(0, 1.03))
    right = score(own[-1], "ood.step_accuracy").mean()
    axis.set_title(f"With {seen[-1]} sets seen, {right:.0%} of steps are right")
    axis.legend(loc="best", **plotting.LEGEND)
    return drawn


@figure("scale_middle", runs=("middle_*",), scale="quick", by_default=False)
def draw_middle(runs):
    """More sets and wider students help between the scales, too: 16 modules, 696 sets, widths to
    512; each draw has a teacher, a split and a training seed of its own. (a) Pooled R² and
    (b) gain on held-out sets by the number of sets seen, for each width; dashed: on seen sets. (c)
    Gain on held-out (filled) and seen sets (open) for each support at width 512, 522 sets seen.
    Means over draws with 95% intervals; dotted at .5: the criterion."""
    draws = {n: run for n, run in picks.more(runs).items() if n.startswith("draws_")}
    drawn = plotting.new_figure(plotting.WIDTH, 5.2)
    axes = drawn.subplot_mosaic([["r2", "gain"], ["supports", "supports"]])
    r2, gain, supports = axes = [axes[name] for name in ("r2", "gain", "supports")]
    for (width, own), color in parts.colored(picks.seen_by_width(draws.values())):
        parts.show_sets(r2, own, "r2", color, f"width {width}")
        parts.show_sets(gain, own, "gain", color, f"width {width}")
    gain.set(ylabel="gain on held-out sets", ylim=(-1.05, 1.05))
    r2.set(ylabel="R² on held-out sets")
    gain.axhline(COMPOSED, **plotting.DOTTED)
    at_random = lambda run: run.config.task.support.name == "random"
    size = lambda run: (run.config.model.width, sets_seen(run))
    random = max(filter(at_random, draws.values()), key=size)
    shown = [random, *(run for run in draws.values() if not at_random(run))]
    parts.show_gains(supports, shown, parts.title_of_support)
    plotting.label_mark(r2, "on seen sets", "--", "0.4", linewidth=1)
    last = {name: score(random, f"ood.{name}").mean() for name in ("r2", "gain")}
    titles = (
        f"R² is {last['r2']:.2f} with the most sets and width",
        f"The gain over the bilinear map is then {plotting.signed(last['gain'])}",
        f"Students compose held-out sets with {parts.composed(shown)} supports",
    )
    parts.finish(axes, titles)
    return drawn


def _bridge(scale: str) -> list[str]:
    return ["bump_cnn", "random_cells", *rows.bridge(scale)]


@figure("bridge", runs=_bridge, by_default=False)
def draw_bridge(runs):
    """What is held out decides, more than how much was seen: at random it is composed, a block and
    a missing link are not. (a) Decoders of bumps, with a block or as many cells at random held out:
    exact accuracy on held-out cells. (b) Students of modules: gain on held-out sets, where these
    are held out at random, where no seen set joins two groups of modules, and where one module is
    never seen. Light and dark: few and many cells or sets seen. Means over seeds with 95%
    intervals; grey dots are seeds. A block is compositional and connected in the second paper's
    sense, and fails."""
    drawn = plotting.new_figure(plotting.WIDTH, 3.1)
    bumps, modules = axes = drawn.subplots(1, 2)
    decoders, students = [], []
    for name, run in runs.items():
        task, support = run.config.task, run.config.task.support
        if name.startswith("modules_"):
            share = sets_seen(run) / run.summary["task"]["sets"]
            students.append((round(share, 3), support.name, run))
        else:
            block = ((support.high + 1 - support.low) / task.grid) ** 2
            held_out = support.share if support.region == "random" else block
            decoders.append((round(1 - held_out, 3), support.region, run))
    shares = _draw_held_out(
        bumps, decoders, "ood.exact_accuracy", "cells", plotting.percent, plotting.mean_share
    )
    gains = _draw_held_out(modules, students, "ood.gain", "sets", plotting.signed)
    bumps.set_xlabel("exact accuracy on held-out cells")
    modules.set_xlabel("gain on held-out sets")
    modules.axvline(COMPOSED, **plotting.DOTTED)
    titles = (
        f"Of held-out cells, wide decoders draw right {shares}",
        f"Wide students gain {gains}",
    )
    parts.finish(axes, titles, wrap=40, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    return drawn


def _draw_held_out(axis, runs, name: str, of: str, in_words, mean=mean_with_interval) -> str:
    """A score of every kind of hold-out and width (rows), by the share seen (light to dark);
    `runs`: the share, the kind and the run, maybe none. Returns wide networks' means at the largest
    share."""
    by_share, wide = {}, {}
    for share, kind, run in runs:
        key = parts.SUPPORTS[kind].replace("\n", " "), run.config.model.width
        by_share.setdefault(share, {})[key] = score(run, name)
    rows = sorted(set().union(*by_share.values()))
    for index, ((share, own), color) in enumerate(parts.colored(by_share)):
        for (kind, width), values in own.items():
            at = rows.index((kind, width)) + 0.4 * index - 0.1
            plotting.show_number(axis, at, values, mean, across=True, fmt="o", color=color)
            if width == rows[-1][1]:
                wide[kind] = f"{in_words(values.mean())} ({kind})"
        plotting.label_mark(axis, f"{share:.0%} of {of} seen", color=color)
    axis.set_yticks(range(len(rows)), [f"{kind},\nwidth {width}" for kind, width in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    return ", ".join(wide[kind] for kind in sorted(wide))
