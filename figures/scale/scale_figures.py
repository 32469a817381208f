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
CODES = {
    "identity": "the latent\nitself",
    "orthogonal": "the latent\nturned",
    "interval_shuffle": "intervals\nshuffled",
    "invertible": "invertible map,\nweights {std:g}",
    "fewshot": "{pairs} examples\nof the task",
    "tokens": "numbers and\ntenths",
}


def _figure(name: str, *groups):
    """A figure of all runs of groups of presets."""
    names = lambda scale: [run for group in groups for run in group(scale)]
    return figure(name, runs=names, by_default=False)


def _colored(groups: dict):
    """((key, value), color) in their order, from light to dark."""
    return zip(groups.items(), plotting.shades(len(groups)), strict=True)


def _gain(run) -> float:
    return score(run, "ood.gain").mean()


def _support(run) -> str:
    return SUPPORTS[run.config.task.support.name]


def _show_sets(axis, runs, metric: str, color, label: str):
    """A score on held-out sets by the number of sets seen; dashed: on seen sets."""
    seen = [sets_seen(run.config) for run in runs]
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
        style = {"color": plotting.OOD_COLOR, "fmt": "o"}
        plotting.show_number(axis, index - 0.14, score(run, "ood.gain"), **style)
        style = {"color": plotting.ID_COLOR} | plotting.SEEN
        plotting.show_number(axis, index + 0.14, score(run, "id.gain"), **style)
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


def _show_students(axis, runs, metric: str, trivial: dict):
    """A score by sets seen, beside that of baselines."""
    _show_sets(axis, runs, metric, plotting.OOD_COLOR, "on held-out sets")
    _baselines(axis, runs[-1], trivial)
    plotting.label_mark(axis, "on seen sets", "--", plotting.OOD_COLOR, linewidth=1)
    axis.set_ylim(0, 1.03)


def _count_axis(axis, counts, label: str):
    axis.set(xscale="log", xlabel=label)
    axis.set_xticks(counts, map(str, counts))
    axis.minorticks_off()


def _finish(axes, *titles):
    """Every panel's letter, title and, if it has entries, legend."""
    for axis in axes:
        if axis.get_legend_handles_labels()[0]:
            axis.legend(**plotting.LEGEND)
    for axis, letter, title in zip(axes, "abcd", titles, strict=False):
        plotting.panel(axis, letter, title, wrap=34)


@_figure("scale1", presets.sets_and_widths, presets.sets_needed)
def draw_scale(runs):
    picture, axes = _show_sets_and_widths(runs.values())
    r2, _, needed = axes
    *_, widest = picks.seen_by_width(runs.values()).values()
    _baselines(r2, widest[-1], TRIVIAL)
    r2.set_ylim(0.2, 1.03)
    for (modules, of_modules), color in _colored(picks.seen_by_modules(runs.values())):
        sets = of_modules[0].summary["task"]["sets"]
        shares = [sets_seen(run.config) / sets for run in of_modules]
        label = f"{modules} modules ({sets:.0f} sets)"
        plotting.show_numbers(needed, shares, scores(of_modules, "ood.gain"), color, label)
    _count_axis(needed, (0.1, 0.25, 0.5, 1), "share of sets seen")
    _gain_axis(needed)
    plotting.label_seeds(needed)
    _finish(axes, "R²", "Gain over the bilinear map", "Gain by number of modules")
    return picture


def _usual(name: str, config, part: str) -> str:
    """The name of the student of the latent itself, or of sets at random, that is else the same."""
    return name.partition(f"_{getattr(config.task, part).name}")[0]


def _ranked(runs: dict, part: str, title_of) -> dict:
    """{title: student} of every code (or support: the part of the task), the best first."""
    usual = {name: _usual(name, run.config, part) for name, run in runs.items()}
    chosen = {name for pair in usual.items() if pair[0] != pair[1] for name in pair}
    ranked = sorted((runs[name] for name in chosen), key=_gain, reverse=True)
    return {title_of(run): run for run in ranked}


def _code(run) -> str:
    code, r2 = run.config.task.code, run.summary["task"]["code_r2"]
    title = CODES[code.name].format(**vars(code))
    return f"{title}\n{'affine' if r2 >= AFFINE else 'not affine'} ({r2:.2f})"


@_figure(
    "scale2",
    lambda scale: [_usual(name, run, "code") for name, run in presets.codes(scale).items()],
    presets.codes,
    presets.supports,
)
def draw_codes_and_supports(runs):
    picture = plotting.new_figure(plotting.WIDTH, 5.4)
    supports, codes = picture.subplots(2, 1)
    _show_gains(supports, _ranked(runs, "support", _support))
    _show_gains(codes, _ranked(runs, "code", _code))
    plotting.legend_below(picture, codes)
    plotting.set_panels("scale2", "ab", (supports, codes))
    return picture


@_figure("same_examples", presets.few_examples)
def draw_same_examples(runs):
    ranked = sorted(runs.values(), key=_gain, reverse=True)
    picture = plotting.new_figure(plotting.WIDTH, 2.8)
    axis = picture.subplots()
    titles = [f"{sets_seen(run.config)} sets,\n{_support(run)}" for run in ranked]
    _show_gains(axis, dict(zip(titles, ranked, strict=True)))
    kernel, x = scores(ranked, "ood.interpolator_gain").mean(axis=1), np.arange(len(ranked)) - 0.3
    axis.plot(x, kernel, "D", label="interpolation, OOD", **plotting.PREDICTED)
    axis.set_xlabel("sets that are seen")
    plotting.legend_below(picture, axis, ncols=5)
    return picture


@_figure("scale3", presets.sets_and_widths, presets.more_modules)
def draw_neurons(runs):
    built = constructions.CONSTRUCTED
    picture = plotting.new_figure(plotting.WIDTH, 5.2)
    relus, error, knots, trained = axes = picture.subplots(2, 2).ravel()
    exact = pd.DataFrame(built.rows("exact")).groupby("modules")
    for axis, values in ((relus, exact.neurons.first()), (error, exact.max_error.max())):
        axis.plot(values, "o-", color=plotting.GREY, markersize=4)
    relus.set(xlim=(0, None), ylim=(0, None))
    plotting.log_scale(error, "y")
    error.axhline(neurons.EXACT, **plotting.DOTTED, label="criterion: exact in float32")
    _count_axis(error, values.index, "modules")
    for name, style in (("graded", "o-"), ("graded_own", "-")):
        table = pd.DataFrame(built.rows(name))
        table["log_error"] = np.log(1 - table.r2) / 2
        for (modules, rows), color in _colored(dict(list(table.groupby("modules")))):
            errors = np.exp(rows.groupby("neurons").log_error.mean())
            label = f"{modules} modules" if name == "graded" else None
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
    _finish(axes)
    plotting.set_panels("scale3", "abcd", axes)
    return picture


@_figure("scale4", presets.sets_and_widths)
def draw_decodability(runs):
    picture = plotting.new_figure(plotting.WIDTH, 3.1)
    against, depth, theorem = axes = picture.subplots(1, 3)
    composing, failing = [], []
    for (width, of_width), color in _colored(picks.seen_by_width(runs.values())):
        style = {"color": color, "markersize": 3}
        for run in of_width:
            r2, bound = score(run, "ood.r2"), 1 - np.sqrt(1 - score(run, "ood.task_accuracy"))
            trained, before = (run.layers(f"decode.{kind}ood_r2") for kind in ("", "untrained."))
            against.plot(r2, before[:, -1], ".", color="0.8", markersize=3, zorder=0)
            against.plot(r2, trained[:, -1], "o", **style)
            for mark, name in (("o", "active_recovery"), ("*", "recovery")):
                theorem.plot(bound, run.outputs(f"decode.{name}"), mark, **style)
            (composing if _gain(run) >= COMPOSED else failing).append((trained, before))
        plotting.label_mark(against, f"width {width}", **style)
    for chosen, title, color in (
        (composing, "compose", plotting.GREEN),
        (failing, "fail", plotting.VIOLET),
    ):
        means_SxL = np.mean(chosen, axis=0) if chosen else ()
        for values_SxL, dash, label in zip(means_SxL, "-:", (title, None), strict=False):
            layers = range(values_SxL.shape[1])
            plotting.draw_band(depth, layers, values_SxL, dash, color, label=label)
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
    _finish(axes, "Readout and student", "By layer", "Against the theorem")
    return picture


@_figure("scale1d", presets.architectures)
def draw_architectures(runs):
    picture = plotting.new_figure(plotting.WIDTH, 2.7)
    axes = picture.subplots(1, 2, sharey=True)
    for axis, model in zip(axes, ("task_transformer", "hypernetwork"), strict=True):
        (students,) = picks.seen_by_modules(runs.values(), model).values()
        _show_students(axis, students, "r2", {"bilinear": "bilinear map"})
    axes[0].set_ylabel("R²")
    _finish(axes, "Transformer", "Hypernetwork")
    return picture


@_figure("gridworld", presets.preferences)
def draw_gridworld(runs):
    picture = plotting.new_figure(plotting.COLUMN, 2.7)
    axis = picture.subplots()
    _show_students(axis, list(runs.values()), "step_accuracy", PLANS)
    axis.set_ylabel("share of right steps")
    axis.legend(**plotting.LEGEND)
    return picture


@figure("scale_middle", runs=("middle_*",), scale="quick", by_default=False)
def draw_middle(runs):
    draws = [run for name, run in picks.more(runs).items() if name.startswith("draws_")]
    picture, axes = _show_sets_and_widths(draws)
    _show_gains(axes[-1], {_support(run): run for run in draws})
    _finish(axes, "R²", "Gain over the bilinear map", "Gain by choice of sets")
    return picture
