"""Figures 2 and 11 to 14, and ranks: what every layer of a decoder keeps of the two factors."""

import numpy as np

from compgen_jax.metrics import geometry, spectra
from compgen_jax.papers.forced_rendering.runs import BOTH, by_depth
from compgen_jax.statistics import mean_band
from figures import plotting

RANKS = {
    "numerical_rank": "numerical rank",
    "energy_rank": "rank of 99% of variance",
    "participation_ratio": "participation ratio",
}
DECODERS = {"conv": "CNN", "mlp": "MLP"}
RANK_TICKS = (2, 5, 10, 20, 50, 100, 200)
# sizes in inches
MAP, GAP, ROW = 0.72, 0.06, 1.08


def draw_layers(studies):
    """Figure 2, in the paper's letters: by layer of networks of every depth, what a linear probe
    reads (a, b) and how far the metric factorizes (c, d), by the mean over points of Eq 7's ratio
    and, dashed, by the ratio of means of the authors' code, both of exact derivatives; how the
    volume of the deepest networks' layers compares with that at seen cells (e, f). Beyond the
    paper, the share of variance that needs x and y jointly (g, h)."""
    figure = plotting.new_figure(7.4, 8.0)
    curves, maps = figure.subfigures(2, 1, height_ratios=[2.7, 1])
    axes = curves.subplots(3, len(BOTH), sharex="col", sharey="row")
    for column, code in enumerate(BOTH):
        own = by_depth(studies, code)
        probes, factorization, interaction = axes[:, column]
        _draw_lines(probes, studies, own, "probe.ood_r2")
        _draw_lines(probes, studies, own, "probe.id_r2", dashed=True)
        _draw_lines(factorization, studies, own, "factorization.mean_of_ratios")
        _draw_lines(factorization, studies, own, "factorization.ratio_of_means", dashed=True)
        _draw_lines(interaction, studies, own, "anova.interaction_ood")
        _draw_lines(interaction, studies, own, "anova.interaction", dashed=True)
        probes.set_title(f"{code} code")
        probes.set_ylim(max(-1, probes.get_ylim()[0]), None)
        interaction.set_xlabel("layer")
    _label_curves(axes)
    deepest = [by_depth(studies, code)[-1] for code in BOTH]
    columns = max(len(study.inspection.layers) for study in deepest)
    for row, study, letter in zip(maps.subplots(len(BOTH), columns), deepest, "ef", strict=True):
        draw_strip(maps, row, study, f"{study.role.code}\ndepth {study.role.depth}", letter)
    return figure


def _label_curves(axes):
    axes[0, 0].set_ylabel("probe $R^2$")
    axes[1, 0].set_ylabel("factorization\nEq 7 (for parity)")
    axes[2, 0].set_ylabel("interaction of x and y\n(share of variance)")
    for axis, letter in zip(axes.flat, "abcdgh", strict=True):
        plotting.panel_label(axis, letter)
    axes[0, 0].legend(loc="lower left")
    style = {"color": "0.3", "linewidth": 1.2}
    dashes = ("OOD", "ID"), ("mean of ratios", "ratio of means"), ("over the hole", "all cells")
    for axis, names in zip(axes[:, 1], dashes, strict=True):
        lines = [axis.plot([], [], dash, **style)[0] for dash in ("-", "--")]
        axis.legend(lines, names, loc="upper left" if axis is axes[2, 1] else "lower right")


def _depth_colors(studies):
    depths = sorted({study.role.depth for study in studies})
    colors = plotting.plt.get_cmap("viridis")(np.linspace(0, 0.85, len(depths)))
    return dict(zip(depths, colors, strict=True))


def _draw_lines(axis, studies, own, name, dashed=False):
    """A number by layer of a code's `own` studies, a line for every depth, with the interval over
    seeds; the drawn image stands apart on the right, so that images of all depths are one above
    the other."""
    end = max(len(study.inspection.layers) for study in studies) - 1
    colors = _depth_colors(studies)
    for study in own:
        label = None if dashed else f"depth {study.role.depth}"
        plotting.draw_line(
            axis, study.inspection.numbers[name], end,
            color=colors[study.role.depth], linestyle="--" if dashed else "-", label=label,
        )  # fmt: skip
    axis.set_xticks(range(end + 1), plotting.layer_names(end + 1))


def mean_log_volume(study):
    """(L, N, N) log10 of the volume element, mean over seeds; None for a code without a
    derivative."""
    volume = study.inspection.maps.get("volume")
    return None if volume is None else geometry.log_volume(volume, axis=(2, 3)).mean(axis=0)


def draw_strip(figure, row, study, label, letter):
    """Volume of every layer over the geometric mean of its seen cells, all on one scale."""
    count = len(study.inspection.layers)
    axes = row[:count]
    for axis in row[count:]:
        axis.set_axis_off()
    for axis, name in zip(axes, plotting.layer_names(count), strict=True):
        axis.set(title=name, xticks=[], yticks=[])
    axes[0].set_ylabel(label)
    plotting.panel_label(axes[0], letter)
    log_volume, held_out = mean_log_volume(study), study.inspection.maps["held_out"]
    if log_volume is None:
        return
    relative = log_volume - log_volume[:, ~held_out].mean(axis=1)[:, None, None]
    limit = np.percentile(np.abs(relative), 99)
    for axis, values in zip(axes, relative, strict=True):
        image = plotting.show_cells(axis, values, held_out, cmap="RdBu_r", vmin=-limit, vmax=limit)
    figure.colorbar(
        image, ax=row, label="$\\log_{10}$ volume\nover seen cells'", pad=0.01, aspect=10,
        shrink=0.8, extend="both",
    )  # fmt: skip


def draw_volumes(studies, code, model):
    """Figures 11 to 14: log volume element of every layer (mean over seeds, coloured from -3 to
    +3 standard deviations about each map's mean), the hole outlined and its mean log10 volume
    less the seen cells' below; at the right what a linear probe reads. A row for every depth."""
    own = by_depth(studies, code, model)
    columns = max(len(study.inspection.layers) for study in own)
    left, panel = 0.5, 0.5 + columns * (MAP + GAP) + 0.55
    height = len(own) * ROW + 0.65
    figure = plotting.new_figure(panel + 2.1, height)
    for row, study in enumerate(own):
        bottom = height - 0.25 - MAP - row * ROW
        axes = [
            plotting.axis_at(figure, left + k * (MAP + GAP), bottom, MAP, MAP)
            for k in range(len(study.inspection.layers))
        ]
        _draw_row(axes, study, f"depth {study.role.depth}")
        probe = plotting.axis_at(figure, panel, bottom, 2.0, MAP)
        _draw_probe(probe, study.inspection.numbers, columns - 1, row == len(own) - 1)
        if row == 0:
            probe.set_title("linear probe", pad=3)
            probe.legend(loc="lower left", fontsize=6, borderaxespad=0.1)
    _draw_key(plotting.axis_at(figure, left + 0.1, 0.27, 1.2, 0.07), figure)
    figure.text(
        (left + 1.6) / figure.get_figwidth(), 0.27 / height,
        f"{code} code, {DECODERS[model]}: $\\log_{{10}}$ volume.  "
        "Below a map: $\\log_{10}$ (OOD volume / ID volume).",
        fontsize=7,
    )  # fmt: skip
    return figure


def _draw_row(axes, study, label):
    log_volume, held_out = mean_log_volume(study), study.inspection.maps["held_out"]
    ratios = mean_band(study.inspection.numbers["volume.log10_ratio"])[0]
    for k, (axis, name) in enumerate(zip(axes, plotting.layer_names(len(axes)), strict=True)):
        axis.set_title(name, pad=3)
        axis.set(xticks=[], yticks=[])
        if log_volume is not None:
            centre, spread = log_volume[k].mean(), max(log_volume[k].std(), 1e-3)
            plotting.show_cells(
                axis, log_volume[k], held_out, plotting.OOD_COLOR,
                vmin=centre - 3 * spread, vmax=centre + 3 * spread,
            )  # fmt: skip
            axis.set_xlabel(
                f"{ratios[k]:+.2f}".replace("-", "\N{MINUS SIGN}"), fontsize=6.5, labelpad=2
            )
    axes[0].set_ylabel(label)


def _draw_probe(axis, numbers, end, lowest):
    for region, color, dash in (("id", plotting.ID_COLOR, "--"), ("ood", plotting.OOD_COLOR, "-")):
        plotting.draw_line(axis, numbers[f"probe.{region}_r2"], end, color, dash, region.upper())
    axis.set_xticks(range(end + 1), plotting.layer_names(end + 1) if lowest else [])
    axis.set(ylabel="$R^2$", ylim=(max(-1, min(0, axis.get_ylim()[0])), 1.05))


def _draw_key(axis, figure):
    scale = plotting.plt.cm.ScalarMappable(plotting.plt.Normalize(-3, 3))
    figure.colorbar(scale, cax=axis, orientation="horizontal", ticks=[-3, 0, 3])
    axis.set_xticklabels(["mean \N{MINUS SIGN} 3 sd", "mean", "+ 3 sd"])
    axis.tick_params(labelsize=6, pad=1, length=2)


def draw_ranks(studies):
    """How many dimensions every layer uses, by three counts, for networks of every depth; dotted
    for the true images themselves."""
    figure = plotting.new_figure(8.2, 4.2)
    axes = figure.subplots(len(BOTH), len(RANKS), sharex=True, sharey=True)
    for row, code in zip(axes, BOTH, strict=True):
        own = by_depth(studies, code)
        targets = own[0].results.truths
        true = spectra.spectrum(targets.reshape(len(targets), -1))
        for axis, (name, title) in zip(row, RANKS.items(), strict=True):
            _draw_lines(axis, studies, own, f"spectrum.{name}")
            axis.axhline(getattr(true, name), color="0.4", linestyle=":", label="true images")
            axis.set(
                yscale="log",
                ylim=(1.5, 1.5 * true.numerical_rank),
                title=title if code == BOTH[0] else "",
            )
            axis.set_yticks(RANK_TICKS, RANK_TICKS)
            axis.minorticks_off()
            axis.set_xlabel("layer" if code == BOTH[-1] else "")
        row[0].set_ylabel(f"{code} code\ndimensions")
    axes[0, -1].legend(loc="lower right", ncols=2, columnspacing=1)
    for axis, letter in zip(axes.flat, "abcdef", strict=True):
        plotting.panel_label(axis, letter)
    return figure
