"""Figures of other students and tasks, and of the middle scale."""

from compgen_jax.papers.scale import picks
from compgen_jax.papers.scale import scale_presets as rows
from compgen_jax.papers.scale.quantities import COMPOSED, score

from .. import plotting
from ..figure import figure
from . import axes as parts
from .scale_tables import baseline


def sets_seen(run) -> int:
    return picks.sets_seen(run.config)


@figure("scale1d", runs=lambda scale: [*rows.architectures(scale)], by_default=False)
def draw_others(runs):
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
