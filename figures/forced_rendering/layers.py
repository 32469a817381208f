"""Figures 2 and 11 to 14, and ranks: what every layer of a decoder keeps of the two factors."""

import numpy as np

from compgen_jax.metrics import geometry, spectra
from compgen_jax.statistics import mean_band

from .. import plotting
from ..figure import figure
from .lookup import BOTH, by_depth, depth_of, flat

EVERY_DEPTH = ("bump_cnn", "bump_cnn_depth*", "ramp_cnn", "ramp_cnn_depth*")
RANKS = {
    "numerical_rank": "numerical rank",
    "energy_rank": "rank of 99% of variance",
    "participation_ratio": "participation ratio",
}
DECODERS = {"conv": "CNN", "mlp": "MLP"}
RANK_TICKS = (2, 5, 10, 20, 50, 100, 200)
# sizes in inches
MAP, GAP, ROW = 0.72, 0.06, 1.08


@figure("fig2", runs=(*EVERY_DEPTH, "random_cells", "random_cells_ramp"))
def draw_layers(runs):
    """Figure 2, with the paper's letters; one line for each depth, with 95% intervals over seeds.
    (a, b) R² of a linear probe of x and y, by layer, on OOD and, dashed, on ID cells. (c, d) How
    far the metric tensor factorizes: the mean over cells of Eq 7's ratio and, dashed, the ratio of
    means of the authors' code, both from exact derivatives. (e, f) Of the deepest network of each
    code: log10 of every layer's volume element over the mean of its ID cells. (g, h) Not in the
    paper: the share of a layer's variance that needs x and y jointly, over held-out and, dashed,
    over all cells."""
    networks = {code: by_depth(runs, f"{code}_cnn") for code in BOTH}
    picture = plotting.new_figure(7.4, 8.0)
    curves, maps = picture.subfigures(2, 1, height_ratios=[2.7, 1])
    axes = curves.subplots(3, len(BOTH), sharex="col", sharey="row")
    rows = (
        ("probe.ood_r2", "probe.id_r2"),
        ("factorization.mean_of_ratios", "factorization.ratio_of_means"),
        ("anova.interaction_ood", "anova.interaction"),
    )
    for column, code in enumerate(BOTH):
        for axis, (solid, dashed) in zip(axes[:, column], rows, strict=True):
            _draw_lines(axis, networks, code, solid)
            _draw_lines(axis, networks, code, dashed, dashed=True)
        axes[0, column].set_title(f"{code} code")
        axes[0, column].set_ylim(max(-1, axes[0, column].get_ylim()[0]), None)
        axes[2, column].set_xlabel("layer")
    axes[0, 0].set_ylabel("probe $R^2$")
    axes[1, 0].set_ylabel("factorization\nEq 7 (for parity)")
    axes[2, 0].set_ylabel("interaction of x and y\n(share of variance)")
    axes[0, 0].legend(loc="lower left")
    names = ("OOD", "ID"), ("mean of ratios", "ratio of means"), ("over the hole", "all cells")
    places = "lower right", "lower right", "upper left"
    for axis, labels, place in zip(axes[:, 1], names, places, strict=True):
        style = {"color": "0.3", "linewidth": 1.2}
        lines = [axis.plot([], [], dash, **style)[0] for dash in ("-", "--")]
        axis.legend(lines, labels, loc=place)
    plotting.panel_labels(axes.flat, "abcdgh")
    deepest = {code: of_code[-1] for code, of_code in networks.items()}
    strips = maps.subplots(len(BOTH), max(len(run.layer_names) for run in deepest.values()))
    for row, (code, run), letter in zip(strips, deepest.items(), "ef", strict=True):
        draw_strip(maps, row, run, f"{code}\ndepth {depth_of(run)}")
        plotting.panel_label(row[0], letter)
    return picture


def _draw_lines(axis, networks, code, metric, dashed=False):
    """A metric by layer of a code's networks, a line for every depth. The drawn image stands apart
    on the right, where images of all depths and codes stand one above the other."""
    every = [run for of_code in networks.values() for run in of_code]
    end = max(len(run.layer_names) for run in every) - 1
    depths = sorted({depth_of(run) for run in every})
    colors = plotting.plt.get_cmap("viridis")(np.linspace(0, 0.85, len(depths)))
    for run in networks[code]:
        label = None if dashed else f"depth {depth_of(run)}"
        color = colors[depths.index(depth_of(run))]
        values = run.layers(metric)
        plotting.draw_line(axis, values, end, color, "--" if dashed else "-", label)
    plotting.name_layers(axis, end + 1)


def mean_log_volume(run):
    """(L, N, N) log10 of the volume element, mean over seeds."""
    return geometry.log_volume(run.maps["volume"], axis=(2, 3)).mean(axis=0)


def draw_strip(picture, axes, run, label: str):
    """The volume of every layer over the geometric mean of its ID cells, all on one scale; axes
    without a layer are hidden."""
    volume, held_out = mean_log_volume(run), run.maps["held_out"]
    relative = volume - volume[:, ~held_out].mean(axis=1)[:, None, None]
    limit = np.percentile(np.abs(relative), 99)
    for axis, values, name in zip(
        axes, relative, plotting.layer_names(len(relative)), strict=False
    ):
        image = plotting.show_cells(axis, values, held_out, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axis.set_title(name)
    for axis in axes[len(relative) :]:
        axis.set_axis_off()
    axes[0].set_ylabel(label)
    picture.colorbar(
        image, ax=axes, label="$\\log_{10}$ volume\nover seen cells'", pad=0.01, aspect=10,
        shrink=0.8, extend="both",
    )  # fmt: skip


# the lowest is registered first
@figure("fig14_20_epochs", runs=("ramp_mlp_20_epochs*",), scale="paper")
@figure("fig13_20_epochs", runs=("bump_mlp_20_epochs*",), scale="paper")
@figure("fig14", runs=("ramp_mlp", "ramp_mlp_depth*"))
@figure("fig13", runs=("bump_mlp", "bump_mlp_depth*"))
@figure("fig12", runs=("ramp_cnn", "ramp_cnn_depth*"))
@figure("fig11", runs=("bump_cnn", "bump_cnn_depth*"))
def draw_volumes(runs):
    """Figures 11 to 14: one code and one kind of decoder each, a row for every depth. Those of 20
    epochs show the MLPs as the authors trained them; the others draw ID cells right. Maps: log10
    of the volume element of every layer, mean over seeds, coloured from -3 to +3 standard
    deviations about the map's mean; held-out cells are outlined. Below a map is the mean log10
    volume of its held-out cells less that of its ID cells. Right: R² of a linear probe of x and y
    by layer, ID and OOD, with 95% intervals over seeds."""
    networks = sorted(runs.values(), key=depth_of)
    columns = max(len(run.layer_names) for run in networks)
    left, panel = 0.5, 0.5 + columns * (MAP + GAP) + 0.55
    height = len(networks) * ROW + 0.65
    picture = plotting.new_figure(panel + 2.1, height)
    for row, run in enumerate(networks):
        bottom = height - 0.25 - MAP - row * ROW
        axes = plotting.row_at(picture, left, bottom, MAP, len(run.layer_names), GAP)
        _draw_volumes(axes, run)
        axes[0].set_ylabel(f"depth {depth_of(run)}")
        probe = plotting.axis_at(picture, panel, bottom, 2.0, MAP)
        plotting.draw_line(
            probe, run.layers("probe.id_r2"), columns - 1, plotting.ID_COLOR, "--", "ID"
        )
        plotting.draw_line(
            probe, run.layers("probe.ood_r2"), columns - 1, plotting.OOD_COLOR, "-", "OOD"
        )
        plotting.name_layers(probe, columns)
        if run is not networks[-1]:
            probe.set_xticks(range(columns), [])
        probe.set(ylabel="$R^2$", ylim=(max(-1, min(0, probe.get_ylim()[0])), 1.05))
        if row == 0:
            probe.set_title("linear probe", pad=3)
            probe.legend(loc="lower left", fontsize=6, borderaxespad=0.1)
    key = plotting.axis_at(picture, left + 0.1, 0.27, 1.2, 0.07)
    scale = plotting.plt.cm.ScalarMappable(plotting.plt.Normalize(-3, 3))
    picture.colorbar(scale, cax=key, orientation="horizontal", ticks=[-3, 0, 3])
    key.set_xticklabels([f"mean {plotting.MINUS} 3 sd", "mean", "+ 3 sd"])
    key.tick_params(labelsize=6, pad=1, length=2)
    config = networks[0].config
    picture.text(
        (left + 1.6) / picture.get_figwidth(), 0.27 / height,
        f"{config.task.code.name} code, {DECODERS[config.model.name]}: $\\log_{{10}}$ volume.  "
        "Below a map: $\\log_{10}$ (OOD volume / ID volume).",
        fontsize=7,
    )  # fmt: skip
    return picture


def _draw_volumes(axes, run):
    held_out, names = run.maps["held_out"], plotting.layer_names(len(axes))
    ratios = mean_band(run.layers("volume.log10_ratio"))[0]
    for axis, name, volume, ratio in zip(axes, names, mean_log_volume(run), ratios, strict=True):
        centre, spread = volume.mean(), max(volume.std(), 1e-3)
        limits = {"vmin": centre - 3 * spread, "vmax": centre + 3 * spread}
        plotting.show_cells(axis, volume, held_out, plotting.OOD_COLOR, **limits)
        axis.set_title(name, pad=3)
        axis.set_xlabel(f"{ratio:+.2f}".replace("-", plotting.MINUS), fontsize=6.5, labelpad=2)


@figure("ranks", runs=EVERY_DEPTH)
def draw_ranks(runs):
    """How many dimensions every layer uses, by three counts, for two codes; one line for each
    depth, with 95% intervals over seeds. Dotted: the true images themselves."""
    networks = {code: by_depth(runs, f"{code}_cnn") for code in BOTH}
    picture = plotting.new_figure(8.2, 4.2)
    axes = picture.subplots(len(BOTH), len(RANKS), sharex=True, sharey=True)
    for row, code in zip(axes, BOTH, strict=True):
        true = spectra.spectrum(flat(networks[code][0].cells.truths))
        for axis, (name, title) in zip(row, RANKS.items(), strict=True):
            _draw_lines(axis, networks, code, f"spectrum.{name}")
            axis.axhline(getattr(true, name), color="0.4", linestyle=":", label="true images")
            axis.set(yscale="log", ylim=(1.5, 1.5 * true.numerical_rank))
            axis.set_title(title if code == BOTH[0] else "")
            axis.set_yticks(RANK_TICKS, RANK_TICKS)
            axis.minorticks_off()
            axis.set_xlabel("layer" if code == BOTH[-1] else "")
        row[0].set_ylabel(f"{code} code\ndimensions")
    axes[0, -1].legend(loc="lower right", ncols=2, columnspacing=1)
    plotting.panel_labels(axes.flat, "abcdef")
    return picture
