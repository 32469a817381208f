"""Figures 2 and 11 to 14, and ranks: what every layer of a decoder keeps of the two factors."""

import numpy as np

from compgen_jax.analysis import spectra
from compgen_jax.analysis.statistics import mean_with_interval
from figures import plotting

CODES = ("bump", "ramp")
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
    """Figure 2: by layer of networks of every depth, what a linear probe reads (a, b), how far the
    metric factorizes (c, d) and the share of variance that needs x and y jointly (e, f); and how
    the volume of the deepest networks' layers compares with that at seen cells (g, h)."""
    studies = _convolutional(studies)
    figure = plotting.new_figure(7.4, 8.0)
    curves, maps = figure.subfigures(2, 1, height_ratios=[2.7, 1])
    axes = curves.subplots(3, len(CODES), sharex="col", sharey="row")
    for column, code in enumerate(CODES):
        keys = _by_depth(studies, code, "conv")
        probes, factorization, interaction = axes[:, column]
        draw_lines(probes, studies, keys, "probe.ood_r2")
        draw_lines(probes, studies, keys, "probe.id_r2", dashed=True)
        draw_lines(factorization, studies, keys, "factorization.mean_of_ratios")
        draw_lines(interaction, studies, keys, "anova.interaction_ood")
        draw_lines(interaction, studies, keys, "anova.interaction", dashed=True)
        probes.set_title(f"{code} code")
        probes.set_ylim(max(-1, probes.get_ylim()[0]), None)
        interaction.set_xlabel("layer")
    _label_curves(axes)
    deepest = [_by_depth(studies, code, "conv")[-1] for code in CODES]
    columns = max(len(studies[key].inspection.layers) for key in deepest)
    for row, key, letter in zip(maps.subplots(len(CODES), columns), deepest, "gh", strict=True):
        draw_strip(maps, row, studies[key], f"{key.code}\ndepth {key.depth}", letter)
    return figure


def _label_curves(axes):
    axes[0, 0].set_ylabel("probe $R^2$")
    axes[1, 0].set_ylabel("factorization\nEq 7 (for parity)")
    axes[2, 0].set_ylabel("interaction of x and y\n(share of variance)")
    for axis, letter in zip(axes.flat, "abcdef", strict=True):
        plotting.panel_label(axis, letter)
    axes[0, 0].legend(loc="lower left")
    style = {"color": "0.3", "linewidth": 1.2}
    for axis, names in ((axes[0, 1], ("OOD", "ID")), (axes[2, 1], ("over the hole", "all cells"))):
        lines = [axis.plot([], [], dash, **style)[0] for dash in ("-", "--")]
        axis.legend(lines, names, loc="lower left" if axis is axes[0, 1] else "upper left")


def _by_depth(studies, code, decoder):
    return [key for key in sorted(studies) if key[:2] == (code, decoder)]


def _convolutional(studies):
    return {key: studies[key] for code in CODES for key in _by_depth(studies, code, "conv")}


def _depth_colors(studies):
    depths = sorted({key.depth for key in studies})
    colors = plotting.plt.get_cmap("viridis")(np.linspace(0, 0.85, len(depths)))
    return dict(zip(depths, colors, strict=True))


def draw_lines(axis, studies, keys, name, dashed=False):
    """A number by layer, a line for every depth, with the interval over seeds; the drawn image
    stands apart on the right, so that images of all depths are one above the other."""
    end = max(len(study.inspection.layers) for study in studies.values()) - 1
    colors = _depth_colors(studies)
    for key in keys:
        label = None if dashed else f"depth {key.depth}"
        draw_line(
            axis, studies[key].inspection.numbers[name], end,
            color=colors[key.depth], linestyle="--" if dashed else "-", label=label,
        )  # fmt: skip
    axis.set_xticks(range(end + 1), layer_names(end + 1))


def draw_line(axis, values_TxL, end, color, linestyle, label):
    """One network's number by layer; the last layer, the image, at position `end`."""
    middle, low, high = mean_band(values_TxL)
    inner = np.arange(len(middle) - 1)
    last = [len(middle) - 2, end]
    axis.plot(
        inner, middle[:-1], linestyle, marker=".", markersize=4, color=color, linewidth=1.2,
        label=label,
    )  # fmt: skip
    axis.fill_between(inner, low[:-1], high[:-1], color=color, alpha=0.15, linewidth=0)
    axis.plot(last, middle[-2:], ":", color=color, linewidth=0.8, alpha=0.7)
    axis.errorbar(
        end, middle[-1], yerr=[[middle[-1] - low[-1]], [high[-1] - middle[-1]]],
        fmt="s", markersize=3, capsize=1.5, linewidth=0.8, color=color,
        markerfacecolor="white" if linestyle == "--" else color,
    )  # fmt: skip


def mean_band(values_TxL):
    """Mean and interval over the seeds that have a value, by layer; NaN where none has."""
    found = []
    for values in np.asarray(values_TxL, np.float64).T:
        values = values[np.isfinite(values)]
        number = mean_with_interval(values) if len(values) else None
        middle = number["value"] if number else np.nan
        ends = number["ci95"] if number else (np.nan, np.nan)
        found.append([middle, *(middle if np.isnan(end) else end for end in ends)])
    return np.array(found).T


def layer_names(count: int):
    return ["code", *(str(index) for index in range(1, count - 1)), "image"]


def mean_log_volume(study):
    """(L, N, N) log10 of the volume element, mean over seeds; a dead point, which has none, at a
    millionth of the layer's largest. None for a code without a derivative."""
    volume = study.inspection.maps.get("volume")
    if volume is None:
        return None
    floor = 1e-6 * volume.max(axis=(2, 3), keepdims=True)
    return np.log10(np.maximum(volume, np.where(floor > 0, floor, 1))).mean(axis=0)


def draw_strip(figure, row, study, label, letter):
    """Volume of every layer over the geometric mean of its seen cells, all on one scale."""
    count = len(study.inspection.layers)
    axes = row[:count]
    for axis in row[count:]:
        axis.set_axis_off()
    for axis, name in zip(axes, layer_names(count), strict=True):
        axis.set(title=name, xticks=[], yticks=[])
    axes[0].set_ylabel(label)
    plotting.panel_label(axes[0], letter)
    log_volume, held_out = mean_log_volume(study), study.inspection.maps["held_out"]
    if log_volume is None:
        return
    relative = log_volume - log_volume[:, ~held_out].mean(axis=1)[:, None, None]
    limit = np.percentile(np.abs(relative), 99)
    for axis, values in zip(axes, relative, strict=True):
        image = show_cells(axis, values, held_out, cmap="RdBu_r", vmin=-limit, vmax=limit)
    figure.colorbar(
        image, ax=row, label="$\\log_{10}$ volume\nover seen cells'", pad=0.01, aspect=10,
        shrink=0.8, extend="both",
    )  # fmt: skip


def show_cells(axis, values_NxN, held_out, color="black", **kwargs):
    """A small map with the hole outlined, without ticks."""
    image = axis.imshow(values_NxN, origin="lower", interpolation="nearest", **kwargs)
    plotting.outline(axis, held_out, color=color, linewidth=0.8)
    axis.set(xticks=[], yticks=[])
    return image


def draw_volumes(studies, code, decoder):
    """Figures 11 to 14: log volume element of every layer (mean over seeds, coloured from -3 to
    +3 standard deviations about each map's mean), the hole outlined and its mean log10 volume
    less the seen cells' below; at the right what a linear probe reads. A row for every depth."""
    keys = _by_depth(studies, code, decoder)
    columns = max(len(studies[key].inspection.layers) for key in keys)
    left, panel = 0.5, 0.5 + columns * (MAP + GAP) + 0.55
    height = len(keys) * ROW + 0.65
    figure = plotting.new_figure(panel + 2.1, height)
    for row, key in enumerate(keys):
        bottom = height - 0.25 - MAP - row * ROW
        axes = [
            plotting.axis_at(figure, left + k * (MAP + GAP), bottom, MAP, MAP)
            for k in range(len(studies[key].inspection.layers))
        ]
        _draw_row(axes, studies[key], f"depth {key.depth}")
        probe = plotting.axis_at(figure, panel, bottom, 2.0, MAP)
        _draw_probe(probe, studies[key].inspection.numbers, columns - 1, row == len(keys) - 1)
        if row == 0:
            probe.set_title("linear probe", pad=3)
            probe.legend(loc="lower left", fontsize=6, borderaxespad=0.1)
    _draw_key(plotting.axis_at(figure, left + 0.1, 0.27, 1.2, 0.07), figure)
    figure.text(
        (left + 1.6) / figure.get_figwidth(), 0.27 / height,
        f"{code} code, {DECODERS[decoder]}: $\\log_{{10}}$ volume.  "
        "Below a map: $\\log_{10}$ (OOD volume / ID volume).",
        fontsize=7,
    )  # fmt: skip
    return figure


def _draw_row(axes, study, label):
    log_volume, held_out = mean_log_volume(study), study.inspection.maps["held_out"]
    ratios = mean_band(study.inspection.numbers["volume.log10_ratio"])[0]
    for k, (axis, name) in enumerate(zip(axes, layer_names(len(axes)), strict=True)):
        axis.set_title(name, pad=3)
        axis.set(xticks=[], yticks=[])
        if log_volume is not None:
            centre, spread = log_volume[k].mean(), max(log_volume[k].std(), 1e-3)
            show_cells(
                axis, log_volume[k], held_out, plotting.OOD_COLOR,
                vmin=centre - 3 * spread, vmax=centre + 3 * spread,
            )  # fmt: skip
            axis.set_xlabel(
                f"{ratios[k]:+.2f}".replace("-", "\N{MINUS SIGN}"), fontsize=6.5, labelpad=2
            )
    axes[0].set_ylabel(label)


def _draw_probe(axis, numbers, end, lowest):
    for region, color, dash in (("id", plotting.ID_COLOR, "--"), ("ood", plotting.OOD_COLOR, "-")):
        draw_line(axis, numbers[f"probe.{region}_r2"], end, color, dash, region.upper())
    axis.set_xticks(range(end + 1), layer_names(end + 1) if lowest else [])
    axis.set(ylabel="$R^2$", ylim=(max(-1, min(0, axis.get_ylim()[0])), 1.05))


def _draw_key(axis, figure):
    scale = plotting.plt.cm.ScalarMappable(plotting.plt.Normalize(-3, 3))
    figure.colorbar(scale, cax=axis, orientation="horizontal", ticks=[-3, 0, 3])
    axis.set_xticklabels(["mean \N{MINUS SIGN} 3 sd", "mean", "+ 3 sd"])
    axis.tick_params(labelsize=6, pad=1, length=2)


def draw_ranks(studies):
    """How many dimensions every layer uses, by three counts, for networks of every depth; dotted
    for the true images themselves."""
    studies = _convolutional(studies)
    figure = plotting.new_figure(8.2, 4.2)
    axes = figure.subplots(len(CODES), len(RANKS), sharex=True, sharey=True)
    for row, code in zip(axes, CODES, strict=True):
        keys = _by_depth(studies, code, "conv")
        targets = studies[keys[0]].results.targets
        true = spectra.spectrum(targets.reshape(len(targets), -1))
        for axis, (name, title) in zip(row, RANKS.items(), strict=True):
            draw_lines(axis, studies, keys, f"spectrum.{name}")
            axis.axhline(getattr(true, name), color="0.4", linestyle=":", label="true images")
            axis.set(
                yscale="log",
                ylim=(1.5, 1.5 * true.numerical_rank),
                title=title if code == CODES[0] else "",
            )
            axis.set_yticks(RANK_TICKS, RANK_TICKS)
            axis.minorticks_off()
            axis.set_xlabel("layer" if code == CODES[-1] else "")
        row[0].set_ylabel(f"{code} code\ndimensions")
    axes[0, -1].legend(loc="lower right", ncols=2, columnspacing=1)
    for axis, letter in zip(axes.flat, "abcdef", strict=True):
        plotting.panel_label(axis, letter)
    return figure
