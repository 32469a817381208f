"""Figures of other students and tasks, of the middle scale, and between the two papers."""

from compgen_jax.papers.scale import runs as rows
from compgen_jax.papers.scale.quantities import score, scores

from .. import plotting
from ..figure import figure
from . import axes as parts
from .tables import baseline


@figure("scale1d", runs=lambda scale: [*rows.architectures(scale)], by_default=False)
def draw_others(runs):
    """S1d (more sets help other students, too). R² on held-out sets by the number of sets seen, for
    (a) a transformer and (b) a hypernetwork, which has the teacher's form; dotted: on seen sets;
    dashed: the bilinear map, which composes nothing. Means over seeds with 95% intervals."""
    drawn = plotting.new_figure(plotting.WIDTH, 2.9)
    axes, titles = drawn.subplots(1, 2, sharey=True), []
    for axis, model in zip(axes, ("task_transformer", "hypernetwork"), strict=True):
        name = model.removeprefix("task_")
        for own in rows.seen_by_modules(runs.values(), model).values():
            parts.show_sets(axis, own, "r2", plotting.OOD_COLOR, f"{name}, on held-out sets")
            parts.trivial(axis, baseline(own[-1], "bilinear"), "bilinear map")
            titles.append(f"{name}: R² {score(own[-1], 'ood.r2').mean():.2f} with the most sets")
        axis.plot([], [], ":", color="0.4", label="on seen sets")
        axis.set(ylim=(0, 1.03), xlim=(8 / 9 * own[0].config.task.support.seen, None))
        axis.set_xlim(right=1.7 * axis.get_xlim()[1])  # room for the dashed line's name
    axes[0].set_ylabel("R²")
    plotting.label_seeds(axes[0])
    parts.finish(axes, titles)
    return drawn


@figure("gridworld", runs=lambda scale: [*rows.preferences(scale)], by_default=False)
def draw_gridworld(runs):
    """S1d (more sets help on another task, too). The gridworld of preferences: share of right steps
    on held-out sets by the number of sets seen; dotted: on seen sets; dashed: the most frequent
    action and the plan of the nearest seen set. Means over seeds with 95% intervals."""
    drawn = plotting.new_figure(plotting.COLUMN, 2.9)
    axis, own = drawn.subplots(), sorted(runs.values(), key=lambda run: rows.sets_seen(run.config))
    parts.show_sets(axis, own, "step_accuracy", plotting.OOD_COLOR, "MLP, on held-out sets")
    seen = [rows.sets_seen(run.config) for run in own]
    for predictor, title in (("majority", "most frequent"), ("nearest_seen", "nearest plan")):
        right = [1 - score(run, f"ood.{predictor}_miss").mean() for run in own]
        axis.plot(seen, right, "--", color="0.6", linewidth=0.8, zorder=0)
        axis.annotate(title, (seen[-1], right[-1]), (0, -3), textcoords="offset points",
                      fontsize=plotting.SMALL, color="0.4", ha="right", va="top")  # fmt: skip
    axis.plot([], [], ":", color="0.4", label="on seen sets")
    axis.set(ylabel="share of right steps", ylim=(0, 1.03))
    right = score(own[-1], "ood.step_accuracy").mean()
    parts.finish([axis], [f"{right:.0%} right with the most sets"])
    return drawn


@figure("scale_middle", runs=("middle_*",), scale="quick", by_default=False)
def draw_middle(runs):
    """Between the scales: 16 modules, 696 sets, widths to 512; each of six draws has a teacher, a
    split and a training seed of its own. (a) Pooled R² and (b) gain on held-out sets by the number
    of sets seen, for each width; dotted: on seen sets. (c) Gain on seen (filled) and held-out
    (open) sets for each support at width 512, 522 sets seen. Means over draws with 95% intervals;
    the line at .5 is the criterion."""
    draws = {n: run for n, run in rows.more(runs).items() if n.startswith("draws_")}
    drawn = plotting.new_figure(plotting.WIDTH, 5.2)
    axes = drawn.subplot_mosaic([["r2", "gain"], ["supports", "supports"]])
    r2, gain, supports = axes = [axes[name] for name in ("r2", "gain", "supports")]
    for (width, own), color in parts.colored(rows.seen_by_width(draws.values())):
        parts.show_sets(r2, own, "r2", color, f"width {width}")
        parts.show_sets(gain, own, "gain", color, f"width {width}")
    gain.set(ylabel="gain on held-out sets", ylim=(-1.05, 1.05))
    r2.set(ylabel="R² on held-out sets")
    parts.criterion(gain)
    random = max(
        (run for run in draws.values() if run.config.task.support.name == "random"),
        key=lambda run: (run.config.model.width, rows.sets_seen(run.config)),
    )
    others = [run for run in draws.values() if run.config.task.support.name != "random"]
    parts.show_gains(supports, [random, *others], parts.title_of_support)
    r2.plot([], [], ":", color="0.4", label="on seen sets")
    last = {name: score(random, f"ood.{name}").mean() for name in ("r2", "gain")}
    titles = (
        f"R² {last['r2']:.2f} with the most sets and width",
        f"gain {plotting.signed(last['gain'])} with the most sets and width",
        parts.composed([random, *others], parts.title_of_support),
    )
    parts.finish(axes, titles)
    return drawn


def _bridge(scale: str) -> list[str]:
    return ["bump_cnn", "random_cells", *rows.bridge(scale)]


@figure("bridge", runs=_bridge, by_default=False)
def draw_bridge(runs):
    """Between the papers: is it coverage, size or the support that decides? (a) Decoders of bumps
    with a block, or as many cells at random, held out: exact accuracy on held-out cells by the
    share of cells seen, narrow (open) and wide (filled). (b) Students of modules: gain on held-out
    sets, where sets are held out at random, where no seen set joins two groups of modules, and
    where one module is never seen; narrow and wide. A block is compositional and connected in the
    second paper's sense, and fails."""
    drawn = plotting.new_figure(plotting.WIDTH, 3.6)
    bumps, modules = axes = drawn.subplots(1, 2)
    students = [run for name, run in runs.items() if name.startswith("modules_")]
    decoders = [run for run in runs.values() if run not in students]
    shares = [(_share_of_cells(run), run) for run in decoders]
    accuracy = _draw_held_out(bumps, shares, "ood.exact_accuracy")
    shares = [(parts.share_seen(run), run) for run in students]
    gains = _draw_held_out(modules, shares, "ood.gain")
    bumps.set(xlabel="share of cells seen", ylabel="exact accuracy on held-out cells",
              ylim=(-0.04, 1.05))  # fmt: skip
    modules.set(xlabel="share of sets seen", ylabel="gain on held-out sets")
    parts.criterion(modules)
    worded = (
        ", ".join(f"{shown(value)} {title}" for title, value in each.items())
        for each, shown in ((accuracy, plotting.percent), (gains, plotting.signed))
    )
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2}
    parts.finish(axes, [f"wide networks: {words}" for words in worded], **place)
    return drawn


HELD_OUT = {
    "random": ("at random", "#009e73"),
    "donut": ("a block", "#d55e00"),
    "disconnected": ("between two groups", "#d55e00"),
    "non_compositional": ("all with one module", "#cc79a7"),
}


def _draw_held_out(axis, pairs, name: str) -> dict[str, float]:
    """A score by the share seen, of every kind of hold-out and width, side by side; pairs of share
    and run, which may be none. Returns wide networks' means at the largest share, by hold-out."""
    support = lambda run: run.config.task.support
    kind = lambda run: getattr(support(run), "region", None) or support(run).name
    shares = sorted({round(share, 3) for share, _ in pairs})
    found = {(kind(run), run.config.model.width) for _, run in pairs}
    kinds = sorted(found, key=lambda one: (list(HELD_OUT).index(one[0]), one[1]))
    widest = max((width for _, width in kinds), default=0)
    wide = {}
    for index, (region, width) in enumerate(kinds):
        title, color = HELD_OUT[region]
        own = [(shares.index(round(share, 3)), run) for share, run in pairs
               if (kind(run), run.config.model.width) == (region, width)]  # fmt: skip
        own.sort(key=lambda pair: pair[0])
        aside = 0.07 * (index - (len(kinds) - 1) / 2)
        places, values = [place + aside for place, _ in own], scores([run for _, run in own], name)
        wide[title] = values[-1].mean()
        face, dash = (color, "o-") if width == widest else ("white", "o--")
        parts.draw_line(axis, places, values, dash, color=color, markerfacecolor=face,
                        label=f"{title}, width {width}")  # fmt: skip
    axis.set_xticks(range(len(shares)), [f"{share:.0%}" for share in shares])
    axis.set_xlim(-0.4, len(shares) - 0.6)
    return wide


def _share_of_cells(run) -> float:
    support, grid = run.config.task.support, run.config.task.grid
    side = support.high + 1 - support.low
    return 1 - (support.share if support.region == "random" else side**2 / grid**2)
