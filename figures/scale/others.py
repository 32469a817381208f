"""Figures of other students and tasks, of the middle scale, and between the two papers."""

from compgen_jax.papers.scale import picks
from compgen_jax.papers.scale import runs as rows
from compgen_jax.papers.scale.quantities import COMPOSED, score, scores

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
        for own in picks.seen_by_modules(runs.values(), model).values():
            parts.show_sets(axis, own, "r2", plotting.OOD_COLOR, f"{name}, on held-out sets")
            parts.trivial(axis, baseline(own[-1], "bilinear"), "bilinear map")
            titles.append(f"{name}: R² {score(own[-1], 'ood.r2').mean():.2f} with the most sets")
        plotting.label_mark(axis, "on seen sets", ":", "0.4")
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
    axis, own = drawn.subplots(), sorted(runs.values(), key=lambda run: picks.sets_seen(run.config))
    parts.show_sets(axis, own, "step_accuracy", plotting.OOD_COLOR, "MLP, on held-out sets")
    seen = [picks.sets_seen(run.config) for run in own]
    for predictor, title in (("majority", "most frequent"), ("nearest_seen", "nearest plan")):
        right = [1 - score(run, f"ood.{predictor}_miss").mean() for run in own]
        axis.plot(seen, right, "--", color="0.6", linewidth=0.8, zorder=0)
        style = {"fontsize": plotting.SMALL, "color": "0.4", "ha": "right", "va": "top"}
        place = (seen[-1], right[-1]), (0, -3)
        axis.annotate(title, *place, textcoords="offset points", **style)
    plotting.label_mark(axis, "on seen sets", ":", "0.4")
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
    size = lambda run: (run.config.model.width, picks.sets_seen(run.config))
    random = max(filter(at_random, draws.values()), key=size)
    shown = [random, *(run for run in draws.values() if not at_random(run))]
    parts.show_gains(supports, shown, parts.title_of_support)
    plotting.label_mark(r2, "on seen sets", ":", "0.4")
    last = {name: score(random, f"ood.{name}").mean() for name in ("r2", "gain")}
    titles = (
        f"R² {last['r2']:.2f} with the most sets and width",
        f"gain {plotting.signed(last['gain'])} with the most sets and width",
        parts.composed(shown, parts.title_of_support),
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
    decoders, students = [], []
    for name, run in runs.items():
        task, support = run.config.task, run.config.task.support
        if name.startswith("modules_"):
            share = picks.sets_seen(run.config) / run.summary["task"]["sets"]
            students.append((round(share, 3), support.name, run))
        else:
            block = ((support.high + 1 - support.low) / task.grid) ** 2
            held_out = support.share if support.region == "random" else block
            decoders.append((round(1 - held_out, 3), support.region, run))
    accuracy = _draw_held_out(bumps, decoders, "ood.exact_accuracy", plotting.percent)
    gains = _draw_held_out(modules, students, "ood.gain", plotting.signed)
    label = "exact accuracy on held-out cells"
    bumps.set(xlabel="share of cells seen", ylabel=label, ylim=(-0.04, 1.05))
    modules.set(xlabel="share of sets seen", ylabel="gain on held-out sets")
    modules.axhline(COMPOSED, **plotting.DOTTED)
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2}
    parts.finish(axes, [f"wide networks: {words}" for words in (accuracy, gains)], **place)
    return drawn


HELD_OUT = {
    "random": ("at random", "#009e73"),
    "donut": ("a block", "#d55e00"),
    "disconnected": ("between two groups", "#d55e00"),
    "non_compositional": ("all with one module", "#cc79a7"),
}


def _draw_held_out(axis, runs, name: str, in_words) -> str:
    """A score by the share seen, of every kind of hold-out and width, side by side; `runs`: the
    share, the kind and the run, maybe none. Returns wide networks' means at the largest share."""
    shares, lines, wide = sorted({share for share, *_ in runs}), {}, {}
    for share, kind, run in sorted(runs, key=lambda one: one[0]):
        line = lines.setdefault((list(HELD_OUT).index(kind), run.config.model.width), [])
        line.append((shares.index(share), run))
    widest = max((width for _, width in lines), default=0)
    for index, ((kind, width), line) in enumerate(sorted(lines.items())):
        title, color = list(HELD_OUT.values())[kind]
        aside = 0.07 * (index - (len(lines) - 1) / 2)
        places, values = [at + aside for at, _ in line], scores([run for _, run in line], name)
        wide[title] = f"{in_words(values[-1].mean())} {title}"
        face, dash = (color, "o-") if width == widest else ("white", "o--")
        style = {"color": color, "markerfacecolor": face, "label": f"{title}, width {width}"}
        parts.draw_line(axis, places, values, dash, **style)
    axis.set_xticks(range(len(shares)), [f"{share:.0%}" for share in shares])
    axis.set_xlim(-0.4, len(shares) - 0.6)
    return ", ".join(wide.values())
