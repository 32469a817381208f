"""Figures of "Scale leads to compositional generalization" and of what lies between it and the
bumps."""

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from compgen_jax.papers.scale import neurons
from compgen_jax.papers.scale.composing import AFFINE, COMPOSED
from compgen_jax.papers.scale.runs import Block, block_of, numbers, select
from compgen_jax.statistics import mean_with_interval
from figures import plotting
from figures.scale.verdicts import baseline, decoded_groups, fails, tables_of_neurons

TRIVIAL = {
    "bilinear": "bilinear map",
    "sum_of_singles": "sum of modules",
    "nearest_seen": "nearest set",
}


def draw_scale(studies):
    """S1. (a) Pooled R² on held-out sets of modules by how many are seen, for three widths; grey:
    trivial predictors, of which the bilinear map composes nothing. (b) The same as
    gain, 1 - error / the bilinear map's: 1 is exact, 0 composes nothing; dotted, seen sets. (c)
    Gain by width. Gains below -1 are not shown. (d) Width 256: gain by the share of all sets that
    is seen, for three numbers of modules; at .5, the sets that are needed. Means over seeds with
    95% intervals; the line at .5 is the criterion."""
    found = select(studies, "seen")
    figure = plotting.new_figure(9.4, 2.9)
    r2, gain, by_width, needed = figure.subplots(1, 4, width_ratios=[1.3, 1, 1, 1])
    for axis, name in ((r2, "r2"), (gain, "gain")):
        for width, own, color in _lines(found, "width"):
            at = [study.role.seen for study in own]
            plotting.show_numbers(axis, at, numbers(own, f"ood.{name}"), color, f"width {width}")
            axis.plot(at, numbers(own, f"id.{name}").mean(axis=1), ":", color=color, linewidth=1)
        sets = found[0].summary["task"]["sets"]
        seen = sorted({study.role.seen for study in found})
        _count_axis(axis, seen, f"sets seen (of {sets:.0f})")
    for seen, own, color in _lines(found, "seen"):
        at = [study.role.width for study in own]
        plotting.show_numbers(by_width, at, numbers(own, "ood.gain"), color, f"{seen} seen")
    _count_axis(by_width, sorted({study.role.width for study in found}), "width")
    for predictor, title in TRIVIAL.items():
        level = baseline(found[-1], predictor)
        r2.axhline(level, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        r2.annotate(title, (1, level), xycoords=("axes fraction", "data"), fontsize=6,
                    color="0.4", ha="right", va="bottom")  # fmt: skip
    # the labels stand behind the curves' ends
    r2.set(ylabel="R² on held-out sets", ylim=(0.2, 1.03))
    fewest, most = (of(study.role.seen for study in found) for of in (min, max))
    r2.set_xlim(0.9 * fewest, most * (most / fewest) ** 0.7)
    for modules, own, color in _lines(select(studies, "needed"), "modules"):
        own.sort(key=_share)
        label = f"{modules} modules ({own[0].summary['task']['sets']:.0f} sets)"
        gains = numbers(own, "ood.gain")
        _draw_line(needed, [_share(s) for s in own], gains, "o-", color=color, label=label)
    _count_axis(needed, (0.1, 0.25, 0.5, 1), "share of sets seen")
    for axis in (gain, by_width, needed):
        axis.set(ylabel="gain on held-out sets", ylim=(-1.05, 1.05))
        _criterion(axis)
    for axis, letter in zip((r2, gain, by_width, needed), "abcd", strict=True):
        columns = 1 if axis is needed else 2
        axis.legend(loc="lower left", bbox_to_anchor=(0, 0.98), ncols=columns, handlelength=1.2)
        plotting.panel_label(axis, letter)
    return figure


def draw_codes_and_supports(studies):
    """S2. Gain on seen (filled) and held-out (open) sets, 69 of 92 seen from each code (a), and 44
    of 92 in each support (b): means over seeds, 95% intervals, seeds. Below each code the R² of an
    affine map from it to the latent; below .9 it is called not affine. The line at .5 is the
    criterion."""
    figure = plotting.new_figure(7.4, 3.0)
    codes, supports = figure.subplots(1, 2, width_ratios=[5, 6])
    of_codes = [*_identity(studies), *select(studies, "code")]
    of_supports = select(studies, "support")
    for axis, own, name in ((codes, of_codes, "code"), (supports, of_supports, "support")):
        for position, study in enumerate(own):
            for offset, region, face in ((-0.14, "id", None), (0.14, "ood", "white")):
                color = plotting.ID_COLOR if region == "id" else plotting.OOD_COLOR
                plotting.show_number(
                    axis, position + offset, numbers([study], f"{region}.gain")[0], fmt="o",
                    color=color, markerfacecolor=face or color,
                )  # fmt: skip
        titles = [_title(study, name) for study in own]
        axis.set_xticks(range(len(own)), titles, fontsize=6.5)
        axis.set(ylabel="gain", ylim=(min(-1.05, axis.get_ylim()[0]), 1.08))
        axis.axhline(0, color="0.8", linewidth=0.8, zorder=0)
        _criterion(axis)
    codes.plot([], [], "o", color=plotting.ID_COLOR, label="seen sets")
    codes.plot([], [], "o", color=plotting.OOD_COLOR, markerfacecolor="white", label="held out")
    plotting.legend_above(codes)
    for axis, letter in ((codes, "a"), (supports, "b")):
        plotting.panel_label(axis, letter)
    return figure


def draw_neurons(studies):
    """S3. (a) The network written down for k-hot tasks: its largest error in float32, and its
    ReLUs, which grow in proportion to the modules. (b) The one for graded tasks: error, relative to
    the standard deviation, by ReLUs, for 8, 16 and 32 modules, on the interval that no teacher's
    entries leave (lines) and on each teacher's own (dotted). (c) Trained MLPs: R² on held-out sets
    by width; the line at .95 is what the smallest width is asked for. Means over 4 teachers, or
    seeds, with 95% intervals."""
    exact, graded, own = tables_of_neurons()
    figure = plotting.new_figure(7.4, 2.9)
    error, knots, trained = figure.subplots(1, 3)
    _draw_exact(error, exact)
    for rows, dash, title in ((graded, "o-", "{} modules"), (own, ":", None)):
        each = sorted({row["modules"] for row in rows})
        for modules, color in zip(each, _shades(len(each)), strict=True):
            at = sorted({row["neurons"] for row in rows})
            own_rows = [row for row in rows if row["modules"] == modules]
            values = [[(1 - row["r2"]) ** 0.5 for row in own_rows if row["neurons"] == n]
                      for n in at]  # fmt: skip
            knots.plot(at, np.mean(values, axis=1), dash, color=color, markersize=3, linewidth=1,
                       label=title and title.format(modules))  # fmt: skip
    knots.set(yscale="log", ylabel="error / standard deviation")
    _count_axis(knots, sorted({row["neurons"] for row in graded}), "ReLUs")
    knots.tick_params(axis="x", labelsize=6)
    found = dict.fromkeys([  # some belong to both
        *select(studies, "modules"),
        *(s for s in select(studies, "seen") if s.role.seen == max(_seen(studies))
          and s.role.width > 16),
    ])  # fmt: skip
    for modules, of_modules, color in _lines(found, "modules"):
        of_modules = sorted(of_modules, key=lambda study: study.role.width)
        at = [study.role.width for study in of_modules]
        plotting.show_numbers(trained, at, numbers(of_modules, "ood.r2"), color,
                              f"{modules} modules")  # fmt: skip
    trained.axhline(neurons.REACHED, **plotting.DOTTED)
    _count_axis(trained, sorted({study.role.width for study in found}), "width of an MLP")
    trained.set(ylabel="R² on held-out sets")
    for axis, letter in zip((error, knots, trained), "abc", strict=True):
        axis.legend(loc="lower left", bbox_to_anchor=(0, 0.98), ncols=2, handlelength=1.2)
        plotting.panel_label(axis, letter)
    return figure


def draw_decodability(studies):
    """S4. (a) What a linear readout, fitted on seen sets, has of the latent in the last layer on
    held-out sets, beside the network's own R² there: a point for each seed; grey, the same networks
    before training. (b) By layer, of networks that compose (gain above .5) and that fail, and
    dotted of untrained ones. (c) The share of held-out tasks whose latent is nearest to what is
    read, beside 1 - √δ, δ the share of tasks with R² below .95: the theorem's bound, less .02, is
    the line."""
    figure = plotting.new_figure(7.4, 2.9)
    against, depth, theorem = figure.subplots(1, 3)
    groups = decoded_groups(studies)
    for group, color in zip(groups, _shades(len(groups)), strict=True):
        for run in group:
            before = run["untrained"][:, -1]
            against.plot(run["r2"], before, ".", color="0.8", markersize=3, zorder=0)
            against.plot(run["r2"], run["read"][:, -1], "o", color=color, markersize=3)
            theorem.plot(1 - np.sqrt(1 - run["right"]), run["recovery"], "o", color=color,
                         markersize=3)  # fmt: skip
        against.plot([], [], "o", color=color, markersize=3, label=f"width {group[0]['width']}")
    against.set(xlabel="R² on held-out sets", ylabel="R² of the latent, last layer")
    runs = [run for group in groups for run in group]
    for title, own, color in (
        ("compose", [run for run in runs if not fails(run)], plotting.ID_COLOR),
        ("fail", [run for run in runs if fails(run)], plotting.OOD_COLOR),
    ):
        if own:
            for name, dash, label in (("read", "o-", title), ("untrained", ":", None)):
                values = np.mean([run[name] for run in own], axis=0)
                band = [mean_with_interval(column) for column in values.T]
                depth.errorbar(range(values.shape[1]), values.mean(axis=0),
                               yerr=_bars(band), fmt=dash, color=color, markersize=3,
                               capsize=2, linewidth=1, label=label)  # fmt: skip
    layers = runs[0]["read"].shape[1]
    depth.set_xticks(range(layers), ["code", *(str(k) for k in range(1, layers))])
    depth.set(xlabel="layer", ylabel="R² of the latent, held-out sets")
    ends = np.array([0, 1])
    theorem.plot(ends, ends - 0.02, "-", color="0.5", linewidth=0.8, zorder=0)
    theorem.set(xlabel="1 - √δ", ylabel="latents recovered", xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    for axis, letter in zip((against, depth, theorem), "abc", strict=True):
        if axis is not theorem:
            plotting.legend_above(axis)
        plotting.panel_label(axis, letter)
    return figure


def draw_bridge(studies):
    """Between the papers: is it coverage, size or the support that decides? (a) Decoders of bumps
    with a block or as many cells at random held out: exact accuracy on held-out cells by the share
    that is seen, narrow (open) and wide (filled). (b) Students of modules: gain on held-out sets
    where sets are held out at random, where no seen set joins two groups of modules, and where one
    module is never seen; narrow and wide. A block is compositional and connected in the second
    paper's sense, and fails."""
    figure = plotting.new_figure(7.4, 3.0)
    bumps, modules = figure.subplots(1, 2)
    blocks = [(block_of(study), study) for study in studies if block_of(study)]
    sets = [(Block(study.role.support, _share(study), study.role.width), study)
            for study in select(studies, "bridge")]  # fmt: skip
    _draw_held_out(bumps, blocks, "ood.exact_accuracy")
    _draw_held_out(modules, sets, "ood.gain")
    bumps.set(xlabel="share of cells seen", ylabel="exact accuracy on held-out cells",
              ylim=(-0.04, 1.05))  # fmt: skip
    modules.set(xlabel="share of sets seen", ylabel="gain on held-out sets")
    _criterion(modules)
    for axis, letter in ((bumps, "a"), (modules, "b")):
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=6)
        plotting.panel_label(axis, letter)
    return figure


HELD_OUT = {
    "random": ("at random", "#009e73"),
    "donut": ("a block", "#d55e00"),
    "disconnected": ("between two groups", "#d55e00"),
    "non_compositional": ("all with one module", "#cc79a7"),
}


def _draw_held_out(axis, pairs, name: str):
    """A score by the share seen, of every kind of hold-out and width, side by side; pairs of block
    and study."""
    shares = sorted({round(block.seen, 3) for block, _ in pairs})
    found = {(block.region, block.width) for block, _ in pairs}
    kinds = sorted(found, key=lambda kind: (list(HELD_OUT).index(kind[0]), kind[1]))
    widest = max(block.width for block, _ in pairs)
    for index, (region, width) in enumerate(kinds):
        title, color = HELD_OUT[region]
        own = [(shares.index(round(block.seen, 3)), study) for block, study in pairs
               if (block.region, block.width) == (region, width)]  # fmt: skip
        own.sort(key=lambda pair: pair[0])
        aside = 0.07 * (index - (len(kinds) - 1) / 2)
        places, values = [place + aside for place, _ in own], numbers([s for _, s in own], name)
        face, dash = (color, "o-") if width == widest else ("white", "o--")
        label = f"{title}, width {width}"
        _draw_line(axis, places, values, dash, color=color, markerfacecolor=face, label=label)
    axis.set_xticks(range(len(shares)), [f"{share:.0%}" for share in shares])
    axis.set_xlim(-0.4, len(shares) - 0.6)


def _draw_line(axis, places, values_SxT, dash: str, **kwargs):
    """Means with their 95% intervals, joined."""
    found = [mean_with_interval(values) for values in values_SxT]
    axis.errorbar(places, [one["value"] for one in found], yerr=_bars(found), fmt=dash,
                  markersize=4, linewidth=1, capsize=2, **kwargs)  # fmt: skip


def _share(study) -> float:
    return study.role.seen / study.summary["task"]["sets"]


def _shades(count: int) -> list:
    """Blues from light to dark."""
    return [to_hex(colormaps["Blues"](share)) for share in np.linspace(0.4, 1, count)]


def _lines(studies, name: str):
    """(value, studies, color) by rising value of a role's field."""
    values = sorted({getattr(study.role, name) for study in studies})
    for value, color in zip(values, _shades(len(values)), strict=True):
        yield value, [s for s in studies if getattr(s.role, name) == value], color


def _identity(studies) -> list:
    """The run of the latent itself, with as many sets and as wide as those of codes."""
    if select(studies, "code", code="identity"):
        return []
    like = select(studies, "code")[0].role
    return select(studies, "seen", seen=like.seen, width=like.width)


def _seen(studies):
    return [study.role.seen for study in select(studies, "seen")]


def _title(study, name: str) -> str:
    title = getattr(study.role, name).replace("_", "\n").replace("orthogonal", "ortho-\ngonal")
    if name == "support":
        return title
    r2 = study.summary["task"]["code_r2"]
    kind = "affine" if r2 >= AFFINE else "not affine"
    return f"{title}\n{kind}\n({r2:.2f})"


def _criterion(axis):
    axis.axhline(COMPOSED, **plotting.DOTTED)


def _count_axis(axis, values, label: str):
    axis.set_xscale("log")
    axis.set_xticks(values, [str(value) for value in values])
    axis.minorticks_off()
    axis.set_xlabel(label)


def _draw_exact(axis, rows):
    modules = sorted({row["modules"] for row in rows})
    errors = [[row["max_error"] for row in rows if row["modules"] == m] for m in modules]
    axis.plot(modules, np.max(errors, axis=1), "o-", color="0.2", markersize=3, label="error")
    axis.set(yscale="log", ylim=(1e-7, 1e-4), ylabel="largest error")
    axis.axhline(neurons.EXACT, **plotting.DOTTED)
    _count_axis(axis, modules, "modules")
    right = axis.twinx()
    counts = [next(row["neurons"] for row in rows if row["modules"] == m) for m in modules]
    right.plot(modules, counts, "s--", color="#3182bd", markersize=3)
    right.set(ylim=(0, None))
    right.set_ylabel("ReLUs", color="#3182bd")
    right.spines["right"].set_visible(True)
    axis.plot([], [], "s--", color="#3182bd", markersize=3, label="ReLUs")


def _bars(numbers_L):
    values = np.array([number["value"] for number in numbers_L])
    low, high = np.array([number["ci95"] for number in numbers_L]).T
    return np.stack([values - low, high - values])
