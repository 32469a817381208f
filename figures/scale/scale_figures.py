"""Figures of "Scaling can lead to compositional generalization", S1 to S4."""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from compgen_jax.papers.scale import constructions, decoding_claims, neurons, picks
from compgen_jax.papers.scale import scale_presets as rows
from compgen_jax.papers.scale.codes import AFFINE
from compgen_jax.papers.scale.picks import sets_seen
from compgen_jax.papers.scale.quantities import COMPOSED, score, scores
from compgen_jax.statistics import mean_with_interval

from .. import plotting
from ..figure import figure
from . import axes as parts
from .scale_tables import baseline

TRIVIAL = {
    "bilinear": "bilinear map",
    "sum_of_singles": "sum of modules",
    "nearest_seen": "nearest set",
}


def _shown(*groups):
    return lambda scale: [name for group in groups for name in group(scale)]


@figure("scale1", runs=_shown(rows.sets_and_widths, rows.sets_needed), by_default=False)
def draw_scale(runs):
    by_width = picks.seen_by_width(runs.values())
    drawn = plotting.new_figure(plotting.WIDTH, 5.4)
    (r2, gain), (widths, needed) = axes = drawn.subplots(2, 2)
    for (width, own), color in parts.colored(by_width):
        parts.show_sets(r2, own, "r2", color, f"width {width}")
        parts.show_sets(gain, own, "gain", color, f"width {width}")
    widest = by_width[max(by_width)]
    seen = [sets_seen(run.config) for run in widest]
    by_seen = {count: [own[k] for own in by_width.values()] for k, count in enumerate(seen)}
    for (count, own), color in parts.colored(by_seen):
        values = scores(own, "ood.gain")
        plotting.show_numbers(widths, list(by_width), values, color, f"{count} seen")
    parts.count_axis(widths, list(by_width), "width")
    for predictor, title in TRIVIAL.items():
        parts.trivial(r2, baseline(widest[-1], predictor), title)
    # The labels stand behind the curves' ends.
    r2.set(ylabel="R² on held-out sets", ylim=(0.2, 1.03))
    r2.set_xlim(0.9 * seen[0], seen[-1] * (seen[-1] / seen[0]) ** 0.7)
    most = []
    for (modules, own), color in parts.colored(picks.seen_by_modules(runs.values())):
        label = f"{modules} ({own[0].summary['task']['sets']:.0f} sets)"
        shares = [sets_seen(run.config) / run.summary["task"]["sets"] for run in own]
        values = scores(own, "ood.gain")
        parts.draw_line(needed, shares, values, "o-", color=color, label=label)
        most.append(values[-1].mean())
    parts.count_axis(needed, (0.1, 0.25, 0.5, 1), "share of sets seen")
    needed.legend(title="modules", loc="lower right", **plotting.LEGEND)
    for axis in (gain, widths, needed):
        axis.set(ylabel="gain on held-out sets", ylim=(-1.05, 1.05))
        axis.axhline(COMPOSED, **plotting.DOTTED)
    for axis in axes.flat:
        parts.mark_below(axis)
    plotting.label_mark(r2, "on seen sets", "--", "0.4", linewidth=1)
    plotting.label_seeds(r2)
    gain.plot([], [], **plotting.DOTTED, label="criterion, .5")
    plotting.label_mark(gain, "below the axis", "v")
    last = {name: score(widest[-1], f"ood.{name}").mean() for name in ("r2", "gain")}
    narrow = score(by_width[min(by_width)][-1], "ood.gain").mean()
    sizes = min(by_width), max(by_width)
    titles = (
        f"R² reaches {last['r2']:.2f} with {seen[-1]} sets seen and width {sizes[1]}",
        f"The gain over the bilinear map is then {plotting.signed(last['gain'])}",
        f"With {seen[-1]} sets seen, width {sizes[0]} gains {plotting.signed(narrow)} and width "
        f"{sizes[1]} {plotting.signed(last['gain'])}",
        f"With the most sets seen, gains are {plotting.span(most, plotting.signed)}",
    )
    parts.finish(axes.flat, titles)
    return drawn


def _identities(scale: str) -> list[str]:
    """The runs of the latent itself, with as many sets seen and as wide as those of codes."""
    codes = rows.codes(scale).items()
    return [name.partition(f"_{config.task.code.name}")[0] for name, config in codes]


@figure("scale2", runs=_shown(_identities, rows.codes, rows.supports), by_default=False)
def draw_codes_and_supports(runs):
    drawn = plotting.new_figure(plotting.WIDTH, 5.4)
    supports, codes = drawn.subplots(2, 1)
    of_codes = _alike(runs.values(), lambda task: task.code.name, "identity")
    parts.show_gains(codes, of_codes, _title_of_code)
    of_supports = _alike(runs.values(), lambda task: task.support.name, "random")
    parts.show_gains(supports, of_supports, parts.title_of_support)
    codes.set_xlabel("code of the latent (R² of an affine map from the code to the latent)")
    supports.set_xlabel("sets that are seen")
    plotting.legend_below(drawn, codes)
    title = f"From {parts.composed(of_codes)} codes, networks are right on held-out sets"
    plotting.panel(codes, "b", title, wrap=90)
    choices = parts.composed(of_supports)
    title = f"With {choices} choices of sets, networks are right on held-out ones"
    plotting.panel(supports, "a", title, wrap=90)
    return drawn


@figure("same_examples", runs=_shown(rows.few_examples), by_default=False)
def draw_same_examples(runs):
    gain = lambda run: score(run, "ood.gain")
    of_kernel = lambda run: score(run, "ood.interpolator_gain")
    ranked = sorted(runs.values(), key=lambda run: gain(run).mean())
    drawn = plotting.new_figure(plotting.WIDTH, 3.1)
    axis = drawn.subplots()
    for row, run in enumerate(ranked):
        plotting.show_number(axis, row, gain(run), across=True, color=plotting.OOD_COLOR, fmt="o")
        axis.plot(of_kernel(run).mean(), row, "D", color=plotting.GREY, markersize=4)
    words = [parts.title_of_support(run).replace("\n", " ") for run in ranked]
    pairs = zip(ranked, words, strict=True)
    axis.set_yticks(
        range(len(ranked)), [f"{sets_seen(run.config)} sets, {how}" for run, how in pairs]
    )
    more = [mean_with_interval(gain(run) - of_kernel(run))["ci95"][0] > 0 for run in ranked]
    axis.set_title(f"Networks gain more than interpolation with {sum(more)} of {len(more)} choices")
    axis.set(xlabel="gain on held-out sets", xlim=(-1.05, 1.05))
    axis.axvline(0, **plotting.FAINT)
    axis.axvline(COMPOSED, **plotting.DOTTED, label="half of the error")
    plotting.label_mark(axis, "network", color=plotting.OOD_COLOR)
    plotting.label_mark(axis, "interpolation", "D", plotting.GREY, markersize=4)
    plotting.label_seeds(axis)
    plotting.legend_below(drawn, axis)
    return drawn


def _alike(runs, of_task, base: str) -> list:
    """The students of every code (or support, which `of_task` names), the best first: those of
    another than the base, and those of the base with as many modules, sets seen and neurons."""
    place = lambda run: (run.config.task.modules, sets_seen(run.config), run.config.model.width)
    others = [place(run) for run in runs if of_task(run.config.task) != base]

    def belongs(run) -> bool:
        task = run.config.task
        plain = (task.code.name, task.support.name) == ("identity", "random")
        return of_task(task) != base or (plain and place(run) in others)

    gain = lambda run: score(run, "ood.gain").mean()
    return sorted(filter(belongs, runs), key=gain, reverse=True)


def _title_of_code(run) -> str:
    code, r2 = run.config.task.code, run.summary["task"]["code_r2"]
    words = {
        "identity": "the latent\nitself",
        "orthogonal": "the latent\nturned",
        "interval_shuffle": "intervals\nshuffled",
        "invertible": f"invertible map,\nweights {code.std:g}",
        "fewshot": f"{code.pairs} examples\nof the task",
    }
    kind = "affine" if r2 >= AFFINE else "not affine"
    return f"{words.get(code.name, code.name)}\n{kind} ({r2:.2f})"


@figure("scale3", runs=_shown(rows.sets_and_widths, rows.more_modules), by_default=False)
def draw_neurons(runs):
    built = constructions.CONSTRUCTED
    drawn = plotting.new_figure(plotting.WIDTH, 5.2)
    (relus, error), (knots, trained) = axes = drawn.subplots(2, 2)
    of_modules = pd.DataFrame(built.exact).groupby("modules")
    exact = of_modules.agg({"max_error": "max", "neurons": "first"})
    modules, largest = exact.index.tolist(), exact.max_error.tolist()
    relus.plot(modules, exact.neurons, "o-", color=plotting.GREY, markersize=4)
    relus.set(xlabel="modules", xticks=modules, ylabel="ReLUs", xlim=(0, None), ylim=(0, None))
    error.plot(modules, largest, "o-", color=plotting.GREY, markersize=4)
    error.set(ylim=(1e-7, 1e-4), ylabel="largest error")
    plotting.log_scale(error, "y")
    error.axhline(neurons.EXACT, **plotting.DOTTED, label="criterion: exact in float32")
    parts.count_axis(error, modules, "modules")
    smallest = []
    for table, line, title in (
        (built.graded, {"linewidth": 1, "marker": "o"}, "{} modules"),
        (built.graded_own, {"linewidth": 0.6}, None),
    ):
        table = pd.DataFrame(table)
        table["log_error"] = np.log(1 - table.r2) / 2
        by_modules = {modules: rows for modules, rows in table.groupby("modules")}
        for (modules, of_size), color in parts.colored(by_modules):
            errors = np.exp(of_size.groupby("neurons").log_error.mean())
            style = {"markersize": 4, "label": title and title.format(modules)} | line
            knots.plot(errors.index, errors, color=color, **style)
            smallest.append(errors.iloc[-1])
    plotting.label_mark(knots, "teacher's own interval", "-", "0.4", linewidth=0.6)
    knots.set_ylabel("error / standard deviation")
    plotting.log_scale(knots, "y")
    parts.count_axis(knots, sorted({row["neurons"] for row in built.graded}), "ReLUs")
    best = []
    for (modules, by_width), color in parts.colored(picks.width_by_modules(runs.values())):
        values = scores(by_width.values(), "ood.r2")
        plotting.show_numbers(trained, list(by_width), values, color, f"{modules} modules")
        best.append(values[-1].mean())
    trained.axhline(neurons.REACHED, **plotting.DOTTED, label="criterion, .95")
    plotting.label_seeds(trained)
    parts.count_axis(trained, list(by_width), "width of an MLP")
    trained.set(ylabel="R² on held-out sets")
    titles = (
        "K-hot tasks, written down: ReLUs grow in proportion to the modules",
        f"K-hot tasks, written down: errors are at most {max(largest):.1g}",
        f"Graded tasks, written down: errors fall to {max(smallest):.1g} and less",
        f"Trained MLPs: R² is {plotting.span(best, '{:.2f}'.format)} at the largest width",
    )
    parts.finish(axes.flat, titles, wrap=40)
    return drawn


@figure("scale4", runs=_shown(rows.sets_and_widths), by_default=False)
def draw_decodability(runs):
    drawn = plotting.new_figure(plotting.WIDTH, 3.1)
    against, depth, theorem = axes = drawn.subplots(1, 3)
    points, above, groups = [], [], {"compose": [], "fail": []}
    for (width, own), color in parts.colored(picks.seen_by_width(runs.values())):
        for run in own:
            r2, least = score(run, "ood.r2"), 1 - np.sqrt(1 - decoding_claims.right(run))
            before, after = (
                decoding_claims.read_untrained(run)[:, -1],
                decoding_claims.read(run)[:, -1],
            )
            modules, latents = (run.outputs(f"decode.{name}recovery") for name in ("active_", ""))
            against.plot(r2, before, ".", color="0.8", markersize=3, zorder=0)
            against.plot(r2, after, "o", color=color, markersize=3)
            style = {"color": color, "markersize": 3}
            theorem.plot(least, modules, "o", **style)
            theorem.plot(least, latents, "*", **style)
            points.append((r2, after))
            above.append(modules >= least - decoding_claims.SLACK)
            composes = score(run, "ood.gain").mean() >= COMPOSED
            groups["compose" if composes else "fail"].append(run)
        plotting.label_mark(against, f"width {width}", color=color, markersize=3)
    last, colors = {}, {"compose": plotting.GREEN, "fail": plotting.VIOLET}
    for title, chosen in groups.items():
        of_layers = (decoding_claims.read, "o-", 1.2), (decoding_claims.read_untrained, "-", 0.5)
        for read, dash, width in of_layers if chosen else ():
            values_LxT = np.mean([read(run) for run in chosen], axis=0).T
            label = title if dash == "o-" else None
            style = {"color": colors[title], "label": label, "markersize": 3, "linewidth": width}
            parts.draw_line(depth, range(len(values_LxT)), values_LxT, dash, **style)
            last.setdefault(title, values_LxT[-1].mean())
    names = ["code", *(str(k) for k in range(1, len(values_LxT)))]
    against.set(xlabel="R² on held-out sets", ylabel="R² of the latent, last layer")
    depth.set_xticks(range(len(names)), names)
    depth.set(xlabel="layer", ylabel="R² of the latent, held-out sets")
    ends = np.array([0, 1])
    theorem.plot(ends, ends - decoding_claims.SLACK, **plotting.DOTTED, label="the theorem's bound")
    limits = {"xlim": (-0.05, 1.05), "ylim": (-0.05, 1.05)}
    theorem.set(xlabel="1 - √δ", ylabel="modules or latents recovered", **limits)
    plotting.label_mark(against, "before training", ".", "0.8", markersize=3)
    plotting.label_mark(depth, "before training", "-", "0.4", linewidth=0.5)
    plotting.label_mark(theorem, "modules", markersize=3)
    plotting.label_mark(theorem, "latents", "*")
    rank = spearmanr(*np.concatenate(points, axis=1)).statistic
    titles = (
        f"The rank correlation of both R² is {plotting.signed(rank)}",
        "R² ends at " + " and ".join(f"{r2:.2f} ({title})" for title, r2 in last.items()),
        f"{np.concatenate(above).mean():.0%} of seeds recover more modules than the bound",
    )
    parts.finish(axes, titles, wrap=30)
    return drawn
