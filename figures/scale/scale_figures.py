"""Figures of "Scaling can lead to compositional generalization", S1 to S4, and of the middle
scale."""

import numpy as np
import pandas as pd

from compgen_jax.papers.scale import constructions, decoding_claims, neurons, picks
from compgen_jax.papers.scale import scale_presets as presets
from compgen_jax.papers.scale.codes import AFFINE
from compgen_jax.papers.scale.picks import sets_seen
from compgen_jax.papers.scale.quantities import COMPOSED, score, scores

from .. import plotting
from ..figure import figure
from .scale_tables import baseline

TRIVIAL = {
    "bilinear": "bilinear map",
    "sum_of_singles": "sum of modules",
    "nearest_seen": "nearest set",
}
PLANS = {"majority": "most frequent\naction", "nearest_seen": "nearest plan"}
SUPPORTS = {
    "random": "at random",
    "equal": "all modules\nequally often",
    "popular": "a few modules\nmeet all others",
    "unpopular": "some modules\nin one set each",
    "non_compositional": "one module\nis missing",
    "disconnected": "two groups\nnever meet",
}


def _names_of(*groups):
    return lambda scale: [name for group in groups for name in group(scale)]


def _colored(groups: dict):
    """((key, value), color) by rising key, from light to dark."""
    return zip(sorted(groups.items()), plotting.shades(len(groups)), strict=True)


def _seen(run) -> int:
    return sets_seen(run.config)


def _gain(run) -> float:
    return score(run, "ood.gain").mean()


def _size(run) -> tuple:
    return run.config.task.modules, run.config.model.width, _seen(run)


def _show_sets(axis, runs, metric: str, color, label: str):
    """A score on held-out sets by the number of sets seen; dashed: on seen sets."""
    seen = list(map(_seen, runs))
    plotting.show_numbers(axis, seen, scores(runs, f"ood.{metric}"), color, label)
    axis.plot(seen, scores(runs, f"id.{metric}").mean(axis=1), "--", color=color, linewidth=1)
    _count_axis(axis, seen, f"sets seen (of {runs[0].summary['task']['sets']:.0f})")


def _show_sets_and_widths(runs):
    """A figure, and its panels: R² and gain by sets and width, and one that is empty."""
    picture = plotting.new_figure(plotting.WIDTH, 5.2)
    r2, gain, below = picture.subplot_mosaic([["r2", "gain"], ["below", "below"]]).values()
    for (width, of_width), color in _colored(picks.seen_by_width(runs)):
        _show_sets(r2, of_width, "r2", color, f"width {width}")
        _show_sets(gain, of_width, "gain", color, f"width {width}")
    plotting.label_mark(r2, "on seen sets", "--", "0.4", linewidth=1)
    r2.set_ylabel("R² on held-out sets")
    _gain_axis(gain)
    return picture, (r2, gain, below)


def _gain_axis(axis):
    axis.axhline(COMPOSED, **plotting.DOTTED, label="criterion, .5")
    axis.set(ylabel="gain", ylim=(-1.05, 1.08))


def _show_gains(axis, runs: dict):
    """{label: run}: gain on held-out and on seen sets, side by side."""
    for index, run in enumerate(runs.values()):
        plotting.show_regions(axis, index, 0.14, score(run, "ood.gain"), score(run, "id.gain"))
    _gain_axis(axis)
    axis.set_xticks(range(len(runs)), list(runs))
    axis.axhline(0, **plotting.FAINT)
    plotting.label_regions(axis)


def _baselines(axis, run, titles: dict):
    """Dotted lines at what baselines score, named on the right."""
    levels = [baseline(run, name) for name in titles]
    for level in levels:
        axis.axhline(level, **plotting.DOTTED)
    axis.secondary_yaxis("right").set_yticks(levels, list(titles.values()))


def _count_axis(axis, counts, label: str):
    axis.set_xscale("log")
    axis.set_xticks(counts, [str(count) for count in counts])
    axis.minorticks_off()
    axis.set_xlabel(label)


def _finish(axes, titles):
    """Every panel's letter, title and, if it has entries, legend."""
    for axis in axes:
        if axis.get_legend_handles_labels()[0]:
            axis.legend(**plotting.LEGEND)
    plotting.panels(axes, "abcd"[: len(axes)], titles, wrap=34)


@figure("scale1", runs=_names_of(presets.sets_and_widths, presets.sets_needed), by_default=False)
def draw_scale(runs):
    picture, axes = _show_sets_and_widths(runs.values())
    r2, _, needed = axes
    by_width = picks.seen_by_width(runs.values())
    _baselines(r2, by_width[max(by_width)][-1], TRIVIAL)
    r2.set_ylim(0.2, 1.03)
    for (modules, of_modules), color in _colored(picks.seen_by_modules(runs.values())):
        label = f"{modules} modules ({of_modules[0].summary['task']['sets']:.0f} sets)"
        shares = [_seen(run) / run.summary["task"]["sets"] for run in of_modules]
        plotting.show_numbers(needed, shares, scores(of_modules, "ood.gain"), color, label)
    _count_axis(needed, (0.1, 0.25, 0.5, 1), "share of sets seen")
    _gain_axis(needed)
    plotting.label_seeds(needed)
    _finish(axes, ("R²", "Gain over the bilinear map", "Gain by number of modules"))
    return picture


def _names_of_identities(scale: str) -> list[str]:
    """The runs of the latent itself, with as many sets seen and as wide as those of codes."""
    codes = presets.codes(scale).items()
    return [name.partition(f"_{config.task.code.name}")[0] for name, config in codes]


@figure(
    "scale2",
    runs=_names_of(_names_of_identities, presets.codes, presets.supports),
    by_default=False,
)
def draw_codes_and_supports(runs):
    picture = plotting.new_figure(plotting.WIDTH, 5.4)
    supports, codes = picture.subplots(2, 1)
    _show_gains(supports, _alike(runs, "support", "random", _support_title))
    _show_gains(codes, _alike(runs, "code", "identity", _code_title))
    supports.set_xlabel("sets that are seen")
    codes.set_xlabel("code of the latent (R² of an affine map from the code to the latent)")
    plotting.legend_below(picture, codes)
    plotting.panels((supports, codes), "ab", ("By choice of sets", "By code"), wrap=90)
    return picture


def _alike(runs, group: str, base: str, title_of) -> dict:
    """Students of every code (or support: the group of a task's config), the best first: those of
    another than the base, and those of the base with as many modules, sets seen and neurons."""
    chosen = [run for run in runs.values() if getattr(run.config.task, group).name != base]
    sizes = set(map(_size, chosen))
    for run in runs.values():
        names = run.config.task.code.name, run.config.task.support.name
        if names == ("identity", "random") and _size(run) in sizes:
            chosen.append(run)
    chosen.sort(key=_gain, reverse=True)
    return {title_of(run): run for run in chosen}


def _support_title(run) -> str:
    return SUPPORTS[run.config.task.support.name]


def _code_title(run) -> str:
    code, r2 = run.config.task.code, run.summary["task"]["code_r2"]
    words = {
        "identity": "the latent\nitself",
        "orthogonal": "the latent\nturned",
        "interval_shuffle": "intervals\nshuffled",
        "invertible": f"invertible map,\nweights {code.std:g}",
        "fewshot": f"{code.pairs} examples\nof the task",
    }
    return f"{words[code.name]}\n{'affine' if r2 >= AFFINE else 'not affine'} ({r2:.2f})"


@figure("same_examples", runs=_names_of(presets.few_examples), by_default=False)
def draw_same_examples(runs):
    ranked = sorted(runs.values(), key=_gain, reverse=True)
    picture = plotting.new_figure(plotting.WIDTH, 2.8)
    axis = picture.subplots()
    titles = [f"{_seen(run)} sets,\n{_support_title(run)}" for run in ranked]
    _show_gains(axis, dict(zip(titles, ranked, strict=True)))
    for index, run in enumerate(ranked):
        kernel = score(run, "ood.interpolator_gain").mean()
        axis.plot(index - 0.3, kernel, "D", **plotting.PREDICTED)
    plotting.label_mark(axis, "interpolation, OOD", "D", **plotting.PREDICTED)
    axis.set_xlabel("sets that are seen")
    plotting.legend_below(picture, axis, ncols=5)
    return picture


@figure("scale3", runs=_names_of(presets.sets_and_widths, presets.more_modules), by_default=False)
def draw_neurons(runs):
    built = constructions.CONSTRUCTED
    picture = plotting.new_figure(plotting.WIDTH, 5.2)
    relus, error, knots, trained = axes = picture.subplots(2, 2).ravel()
    exact = pd.DataFrame(built.exact).groupby("modules")
    exact = exact.agg({"max_error": "max", "neurons": "first"})
    for axis, values in ((relus, exact.neurons), (error, exact.max_error)):
        axis.plot(values, "o-", color=plotting.GREY, markersize=4)
    relus.set(xlabel="modules", ylabel="ReLUs", xlim=(0, None), ylim=(0, None))
    error.set(ylim=(1e-7, 1e-4), ylabel="largest error")
    plotting.log_scale(error, "y")
    error.axhline(neurons.EXACT, **plotting.DOTTED, label="criterion: exact in float32")
    _count_axis(error, exact.index, "modules")
    for table, style in ((built.graded, "o-"), (built.graded_own, "-")):
        table = pd.DataFrame(table)
        table["log_error"] = np.log(1 - table.r2) / 2
        for (modules, rows), color in _colored(dict(list(table.groupby("modules")))):
            errors = np.exp(rows.groupby("neurons").log_error.mean())
            label = f"{modules} modules" if style == "o-" else None
            knots.plot(errors, style, color=color, markersize=4, linewidth=0.8, label=label)
    plotting.label_mark(knots, "teacher's own interval", "-", "0.4", linewidth=0.8)
    knots.set(xlabel="ReLUs", ylabel="error / standard deviation")
    plotting.log_scale(knots, "xy")
    for (modules, by_width), color in _colored(picks.width_by_modules(runs.values())):
        r2 = scores(by_width.values(), "ood.r2")
        plotting.show_numbers(trained, list(by_width), r2, color, f"{modules} modules")
    trained.axhline(neurons.REACHED, **plotting.DOTTED, label="criterion, .95")
    plotting.label_seeds(trained)
    _count_axis(trained, list(by_width), "width of an MLP")
    trained.set(ylabel="R² on held-out sets")
    _finish(axes, ("By hand, k-hot tasks", "Its errors", "By hand, graded tasks", "Trained MLPs"))
    return picture


@figure("scale4", runs=_names_of(presets.sets_and_widths), by_default=False)
def draw_decodability(runs):
    picture = plotting.new_figure(plotting.WIDTH, 3.1)
    against, depth, theorem = axes = picture.subplots(1, 3)
    groups = {"compose": [], "fail": []}
    for (width, of_width), color in _colored(picks.seen_by_width(runs.values())):
        style = {"color": color, "markersize": 3}
        for run in of_width:
            r2, bound = score(run, "ood.r2"), 1 - np.sqrt(1 - decoding_claims.right(run))
            before = decoding_claims.layer_r2(run, "untrained.")[:, -1]
            against.plot(r2, before, ".", color="0.8", markersize=3, zorder=0)
            against.plot(r2, decoding_claims.layer_r2(run)[:, -1], "o", **style)
            theorem.plot(bound, run.outputs("decode.active_recovery"), "o", **style)
            theorem.plot(bound, run.outputs("decode.recovery"), "*", **style)
            composes = _gain(run) >= COMPOSED
            groups["compose" if composes else "fail"].append(run)
        plotting.label_mark(against, f"width {width}", **style)
    for (title, chosen), color in zip(
        groups.items(), (plotting.GREEN, plotting.VIOLET), strict=True
    ):
        kinds = {"-": "", ":": "untrained."} if chosen else {}
        for dash, kind in kinds.items():
            values_TxL = np.mean([decoding_claims.layer_r2(run, kind) for run in chosen], axis=0)
            layers, label = range(values_TxL.shape[1]), title if dash == "-" else None
            plotting.draw_band(depth, layers, values_TxL, dash, color, label=label)
    depth.set_xticks(layers, ["code", *layers[1:]])
    depth.set(xlabel="layer", ylabel="R² of the latent, held-out sets")
    against.set(xlabel="R² on held-out sets", ylabel="R² of the latent, last layer")
    slack = decoding_claims.SLACK
    theorem.plot((0, 1), (-slack, 1 - slack), **plotting.DOTTED, label="the theorem's bound")
    theorem.set(xlabel="1 - √δ", ylabel="modules or latents recovered")
    plotting.label_mark(against, "before training", ".", "0.8", markersize=3)
    plotting.label_mark(depth, "before training", ":", "0.4")
    plotting.label_mark(theorem, "modules", markersize=3)
    plotting.label_mark(theorem, "latents", "*")
    _finish(axes, ("Readout and student", "By layer", "Against the theorem"))
    return picture


@figure("scale1d", runs=_names_of(presets.architectures), by_default=False)
def draw_architectures(runs):
    picture = plotting.new_figure(plotting.WIDTH, 2.7)
    axes = picture.subplots(1, 2, sharey=True)
    for axis, model in zip(axes, ("task_transformer", "hypernetwork"), strict=True):
        for of_modules in picks.seen_by_modules(runs.values(), model).values():
            _show_sets(axis, of_modules, "r2", plotting.OOD_COLOR, "on held-out sets")
            _baselines(axis, of_modules[-1], {"bilinear": "bilinear map"})
        plotting.label_mark(axis, "on seen sets", "--", plotting.OOD_COLOR, linewidth=1)
        axis.set_ylim(0, 1.03)
    axes[0].set_ylabel("R²")
    _finish(axes, ("Transformer", "Hypernetwork"))
    return picture


@figure("gridworld", runs=_names_of(presets.preferences), by_default=False)
def draw_gridworld(runs):
    picture = plotting.new_figure(plotting.COLUMN, 2.7)
    axis, ranked = picture.subplots(), sorted(runs.values(), key=_seen)
    _show_sets(axis, ranked, "step_accuracy", plotting.OOD_COLOR, "on held-out sets")
    _baselines(axis, ranked[-1], PLANS)
    plotting.label_mark(axis, "on seen sets", "--", plotting.OOD_COLOR, linewidth=1)
    axis.set(ylabel="share of right steps", ylim=(0, 1.03))
    axis.legend(**plotting.LEGEND)
    return picture


@figure("scale_middle", runs=("middle_*",), scale="quick", by_default=False)
def draw_middle(runs):
    draws = [run for name, run in picks.more(runs).items() if name.startswith("draws_")]
    picture, axes = _show_sets_and_widths(draws)
    _show_gains(axes[-1], {_support_title(run): run for run in sorted(draws, key=_size)})
    _finish(axes, ("R²", "Gain over the bilinear map", "Gain by choice of sets"))
    return picture
