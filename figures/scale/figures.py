"""Figures of "Scale leads to compositional generalization", and one between the two papers."""

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from compgen_jax.papers.scale import decoding, neurons
from compgen_jax.papers.scale import runs as rows
from compgen_jax.papers.scale.composing import AFFINE
from compgen_jax.papers.scale.quantities import COMPOSED, score, scores
from compgen_jax.papers.scale.runs import sets_seen
from compgen_jax.statistics import mean_with_interval

from .. import plotting
from ..figure import figure
from .tables import baseline

TRIVIAL = {
    "bilinear": "bilinear map",
    "sum_of_singles": "sum of modules",
    "nearest_seen": "nearest set",
}


def _shown(*groups):
    return lambda scale: [name for group in groups for name in group(scale)]


@figure("scale1", runs=_shown(rows.sets_and_widths, rows.sets_needed), by_default=False)
def draw_scale(runs):
    """S1 (more sets and wider students help). (a) Pooled R² on held-out sets of modules by the
    number of sets seen, for each width; dotted: R² on seen sets. Grey lines are trivial predictors;
    the bilinear map composes nothing. (b) The same as gain, 1 - error / the bilinear map's error:
    1 is exact, 0 is the bilinear map. Gains below -1 are not shown. (c) Gain by width. (d) Gain by
    the share of all sets that is seen, for each number of modules: where a curve crosses .5, the
    sets are enough. Means over seeds with 95% intervals; the line at .5 is the criterion."""
    by_width = rows.seen_by_width(runs.values())
    drawn = plotting.new_figure(9.4, 2.9)
    r2, gain, widths, needed = drawn.subplots(1, 4, width_ratios=[1.3, 1, 1, 1])
    seen = [sets_seen(run.config) for run in next(iter(by_width.values()))]
    anyone = by_width[max(by_width)][-1]
    for axis, name in ((r2, "r2"), (gain, "gain")):
        for (width, own), color in _colored(by_width):
            plotting.show_numbers(axis, seen, scores(own, f"ood.{name}"), color, f"width {width}")
            axis.plot(seen, scores(own, f"id.{name}").mean(axis=1), ":", color=color, linewidth=1)
        _count_axis(axis, seen, f"sets seen (of {anyone.summary['task']['sets']:.0f})")
    by_seen = {count: [own[k] for own in by_width.values()] for k, count in enumerate(seen)}
    for (count, own), color in _colored(by_seen):
        at = list(by_width)
        plotting.show_numbers(widths, at, scores(own, "ood.gain"), color, f"{count} seen")
    _count_axis(widths, list(by_width), "width")
    for predictor, title in TRIVIAL.items():
        level = baseline(anyone, predictor)
        r2.axhline(level, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        r2.annotate(title, (1, level), xycoords=("axes fraction", "data"), fontsize=6,
                    color="0.4", ha="right", va="bottom")  # fmt: skip
    # The labels stand behind the curves' ends.
    r2.set(ylabel="R² on held-out sets", ylim=(0.2, 1.03))
    r2.set_xlim(0.9 * seen[0], seen[-1] * (seen[-1] / seen[0]) ** 0.7)
    for (modules, own), color in _colored(rows.seen_by_modules(runs.values())):
        label = f"{modules} modules ({own[0].summary['task']['sets']:.0f} sets)"
        shares = [_share_seen(run) for run in own]
        _draw_line(needed, shares, scores(own, "ood.gain"), "o-", color=color, label=label)
    _count_axis(needed, (0.1, 0.25, 0.5, 1), "share of sets seen")
    for axis in (gain, widths, needed):
        axis.set(ylabel="gain on held-out sets", ylim=(-1.05, 1.05))
        _criterion(axis)
    for axis, letter in zip((r2, gain, widths, needed), "abcd", strict=True):
        columns = 1 if axis is needed else 2
        axis.legend(loc="lower left", bbox_to_anchor=(0, 0.98), ncols=columns, handlelength=1.2)
        plotting.panel_label(axis, letter)
    return drawn


def _identities(scale: str) -> list[str]:
    """The runs of the latent itself, with as many sets seen and as wide as those of codes."""
    return [
        name.removesuffix(f"_{config.task.code.name}") for name, config in rows.codes(scale).items()
    ]


@figure("scale2", runs=_shown(_identities, rows.codes, rows.supports), by_default=False)
def draw_codes_and_supports(runs):
    """S2 (which codes and supports are composed). Gain on seen (filled) and held-out (open) sets,
    (a) from each code of the latent, with the R² of an affine map from code to latent below; at
    less than .9 the code is called not affine; (b) for each support, with as many sets seen. Means
    over seeds, 95% intervals, and the seeds as dots. The line at .5 is the criterion."""
    drawn = plotting.new_figure(7.4, 3.0)
    codes, supports = drawn.subplots(1, 2, width_ratios=[5, 6])
    of_codes = _alike(runs.values(), lambda task: task.code.name, "identity")
    of_supports = _alike(runs.values(), lambda task: task.support.name, "random")
    for axis, own, title in (
        (codes, of_codes, _title_of_code),
        (supports, of_supports, _title_of_support),
    ):
        for position, run in enumerate(own):
            for offset, region, face in ((-0.14, "id", None), (0.14, "ood", "white")):
                color = plotting.ID_COLOR if region == "id" else plotting.OOD_COLOR
                plotting.show_number(
                    axis, position + offset, score(run, f"{region}.gain"), fmt="o",
                    color=color, markerfacecolor=face or color,
                )  # fmt: skip
        axis.set_xticks(range(len(own)), [title(run) for run in own], fontsize=6.5)
        axis.set(ylabel="gain", ylim=(min(-1.05, axis.get_ylim()[0]), 1.08))
        axis.axhline(0, color="0.8", linewidth=0.8, zorder=0)
        _criterion(axis)
    codes.plot([], [], "o", color=plotting.ID_COLOR, label="seen sets")
    codes.plot([], [], "o", color=plotting.OOD_COLOR, markerfacecolor="white", label="held out")
    plotting.legend_above(codes)
    for axis, letter in ((codes, "a"), (supports, "b")):
        plotting.panel_label(axis, letter)
    return drawn


def _alike(runs, of_task, base: str) -> list:
    """The students of every code (or support, which `of_task` names): those of another than the
    base, and those of the base with as many modules, sets seen and neurons."""
    place = lambda run: (run.config.task.modules, sets_seen(run.config), run.config.model.width)
    others = {run.config.name: place(run) for run in runs if of_task(run.config.task) != base}
    plain = lambda run: (
        run.config.task.code.name == "identity" and run.config.task.support.name == "random"
    )
    return [
        run
        for run in runs
        if run.config.name in others or plain(run) and place(run) in others.values()
    ]


def _title_of_code(run) -> str:
    title = run.config.task.code.name.replace("_", "\n").replace("orthogonal", "ortho-\ngonal")
    r2 = run.summary["task"]["code_r2"]
    kind = "affine" if r2 >= AFFINE else "not affine"
    return f"{title}\n{kind}\n({r2:.2f})"


def _title_of_support(run) -> str:
    return run.config.task.support.name.replace("_", "\n")


@figure("scale3", runs=_shown(rows.sets_and_widths, rows.more_modules), by_default=False)
def draw_neurons(runs):
    """S3 (neurons grow slowly with the modules). (a) The network written down for k-hot tasks: its
    largest error in float32, and its ReLUs, which grow in proportion to the modules. (b) The one
    for graded tasks: error over the standard deviation of the answers, by ReLUs, for each number of
    modules, on the interval that no teacher's entries leave (lines) and on each teacher's own
    (dotted). (c) Trained MLPs: R² on held-out sets by width; the line at .95 is what the needed
    width gives. Means over 4 teachers, or over seeds with 95% intervals."""
    built = neurons.CONSTRUCTED
    drawn = plotting.new_figure(7.4, 2.9)
    error, knots, trained = drawn.subplots(1, 3)
    _draw_exact(error, built.exact)
    for table, dash, title in ((built.graded, "o-", "{} modules"), (built.graded_own, ":", None)):
        of_modules = {row["modules"]: [] for row in table}
        for row in table:
            of_modules[row["modules"]].append(row)
        for (modules, own), color in _colored(of_modules):
            at = sorted({row["neurons"] for row in own})
            errors = [[(1 - row["r2"]) ** 0.5 for row in own if row["neurons"] == n] for n in at]
            knots.plot(at, np.mean(errors, axis=1), dash, color=color, markersize=3, linewidth=1,
                       label=title and title.format(modules))  # fmt: skip
    knots.set(yscale="log", ylabel="error / standard deviation")
    _count_axis(knots, sorted({row["neurons"] for row in built.graded}), "ReLUs")
    knots.tick_params(axis="x", labelsize=6)
    by_modules = rows.width_by_modules(runs.values())
    for (modules, by_width), color in _colored(by_modules):
        values = scores(by_width.values(), "ood.r2")
        plotting.show_numbers(trained, list(by_width), values, color, f"{modules} modules")
    trained.axhline(neurons.REACHED, **plotting.DOTTED)
    _count_axis(trained, list(next(iter(by_modules.values()))), "width of an MLP")
    trained.set(ylabel="R² on held-out sets")
    for axis, letter in zip((error, knots, trained), "abc", strict=True):
        axis.legend(loc="lower left", bbox_to_anchor=(0, 0.98), ncols=2, handlelength=1.2)
        plotting.panel_label(axis, letter)
    return drawn


def _draw_exact(axis, table):
    modules = sorted({row["modules"] for row in table})
    errors = [[row["max_error"] for row in table if row["modules"] == m] for m in modules]
    axis.plot(modules, np.max(errors, axis=1), "o-", color="0.2", markersize=3, label="error")
    axis.set(yscale="log", ylim=(1e-7, 1e-4), ylabel="largest error")
    axis.axhline(neurons.EXACT, **plotting.DOTTED)
    _count_axis(axis, modules, "modules")
    right = axis.twinx()
    counts = [next(row["neurons"] for row in table if row["modules"] == m) for m in modules]
    right.plot(modules, counts, "s--", color="#3182bd", markersize=3)
    right.set(ylim=(0, None))
    right.set_ylabel("ReLUs", color="#3182bd")
    right.spines["right"].set_visible(True)
    axis.plot([], [], "s--", color="#3182bd", markersize=3, label="ReLUs")


@figure("scale4", runs=_shown(rows.sets_and_widths), by_default=False)
def draw_decodability(runs):
    """S4 (the last layer tells the latent where networks compose). (a) R² of a linear readout of
    the latent from the last layer, fitted on seen sets and scored on held-out ones, beside the
    network's own R² there: a point for each seed; grey, the same networks before training. (b) The
    readout's R² by layer, for networks that compose (gain above .5) and networks that fail; dotted:
    before training. (c) The share of held-out tasks whose latent is nearest to what is read, beside
    1 - √δ, where δ is the share of tasks with R² below .95. The line is the theorem's bound, less
    .02."""
    drawn = plotting.new_figure(7.4, 2.9)
    against, depth, theorem = drawn.subplots(1, 3)
    by_width = rows.seen_by_width(runs.values())
    for (width, own), color in _colored(by_width):
        for run in own:
            r2, recovery = score(run, "ood.r2"), run.outputs("decode.recovery")
            before, after = decoding.read_untrained(run)[:, -1], decoding.read(run)[:, -1]
            against.plot(r2, before, ".", color="0.8", markersize=3, zorder=0)
            against.plot(r2, after, "o", color=color, markersize=3)
            theorem.plot(1 - np.sqrt(1 - decoding.right(run)), recovery, "o", color=color,
                         markersize=3)  # fmt: skip
        against.plot([], [], "o", color=color, markersize=3, label=f"width {width}")
    against.set(xlabel="R² on held-out sets", ylabel="R² of the latent, last layer")
    all_runs = [run for own in by_width.values() for run in own]
    composes = [score(run, "ood.gain").mean() >= COMPOSED for run in all_runs]
    for title, wanted, color in (
        ("compose", True, plotting.ID_COLOR), ("fail", False, plotting.OOD_COLOR)
    ):  # fmt: skip
        chosen = [run for run, does in zip(all_runs, composes, strict=True) if does == wanted]
        of_layers = (decoding.read, "o-", title), (decoding.read_untrained, ":", None)
        for read, dash, label in of_layers if chosen else ():
            values_TxL = np.mean([read(run) for run in chosen], axis=0)
            layers = range(values_TxL.shape[1])
            _draw_line(depth, layers, values_TxL.T, dash, color=color, label=label, markersize=3)
    layers = decoding.read(all_runs[0]).shape[1]
    depth.set_xticks(range(layers), ["code", *(str(k) for k in range(1, layers))])
    depth.set(xlabel="layer", ylabel="R² of the latent, held-out sets")
    ends = np.array([0, 1])
    theorem.plot(ends, ends - decoding.SLACK, "-", color="0.5", linewidth=0.8, zorder=0)
    theorem.set(xlabel="1 - √δ", ylabel="latents recovered", xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    for axis, letter in zip((against, depth, theorem), "abc", strict=True):
        if axis is not theorem:
            plotting.legend_above(axis)
        plotting.panel_label(axis, letter)
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
    drawn = plotting.new_figure(7.4, 3.0)
    bumps, modules = drawn.subplots(1, 2)
    students = [run for name, run in runs.items() if name.startswith("modules_")]
    decoders = [run for run in runs.values() if run not in students]
    _draw_held_out(bumps, [(_share_of_cells(run), run) for run in decoders], "ood.exact_accuracy")
    _draw_held_out(modules, [(_share_seen(run), run) for run in students], "ood.gain")
    bumps.set(xlabel="share of cells seen", ylabel="exact accuracy on held-out cells",
              ylim=(-0.04, 1.05))  # fmt: skip
    modules.set(xlabel="share of sets seen", ylabel="gain on held-out sets")
    _criterion(modules)
    for axis, letter in ((bumps, "a"), (modules, "b")):
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=6)
        plotting.panel_label(axis, letter)
    return drawn


HELD_OUT = {
    "random": ("at random", "#009e73"),
    "donut": ("a block", "#d55e00"),
    "disconnected": ("between two groups", "#d55e00"),
    "non_compositional": ("all with one module", "#cc79a7"),
}


def _draw_held_out(axis, pairs, name: str):
    """A score by the share seen, of every kind of hold-out and width, side by side; pairs of share
    and run, which may be none."""
    support = lambda run: run.config.task.support
    kind = lambda run: getattr(support(run), "region", None) or support(run).name
    shares = sorted({round(share, 3) for share, _ in pairs})
    found = {(kind(run), run.config.model.width) for _, run in pairs}
    kinds = sorted(found, key=lambda one: (list(HELD_OUT).index(one[0]), one[1]))
    widest = max((width for _, width in kinds), default=0)
    for index, (region, width) in enumerate(kinds):
        title, color = HELD_OUT[region]
        own = [(shares.index(round(share, 3)), run) for share, run in pairs
               if (kind(run), run.config.model.width) == (region, width)]  # fmt: skip
        own.sort(key=lambda pair: pair[0])
        aside = 0.07 * (index - (len(kinds) - 1) / 2)
        places, values = [place + aside for place, _ in own], scores([run for _, run in own], name)
        face, dash = (color, "o-") if width == widest else ("white", "o--")
        label = f"{title}, width {width}"
        _draw_line(axis, places, values, dash, color=color, markerfacecolor=face, label=label)
    axis.set_xticks(range(len(shares)), [f"{share:.0%}" for share in shares])
    axis.set_xlim(-0.4, len(shares) - 0.6)


# --- parts of axes -----------------------------------------------------------------------------


def _share_seen(run) -> float:
    return sets_seen(run.config) / run.summary["task"]["sets"]


def _share_of_cells(run) -> float:
    support, grid = run.config.task.support, run.config.task.grid
    side = support.high + 1 - support.low
    return 1 - (support.share if support.region == "random" else side**2 / grid**2)


def _colored(groups: dict):
    """((key, value), color) by rising key, from light to dark blue."""
    shades = np.linspace(0.4, 1, len(groups))
    for pair, shade in zip(sorted(groups.items()), shades, strict=True):
        yield pair, to_hex(colormaps["Blues"](shade))


def _draw_line(axis, places, values_SxT, dash: str, **kwargs):
    """Means with their 95% intervals, joined."""
    numbers = [mean_with_interval(values) for values in values_SxT]
    values = np.array([number["value"] for number in numbers])
    low, high = np.array([number["ci95"] for number in numbers]).T
    style = {"markersize": 4, "linewidth": 1, "capsize": 2} | kwargs
    axis.errorbar(places, values, yerr=[values - low, high - values], fmt=dash, **style)


def _criterion(axis):
    axis.axhline(COMPOSED, **plotting.DOTTED)


def _count_axis(axis, values, label: str):
    axis.set_xscale("log")
    axis.set_xticks(values, [str(value) for value in values])
    axis.minorticks_off()
    axis.set_xlabel(label)
