"""The figure of `launch.probe`."""

import numpy as np

from compgen_jax import cli
from compgen_jax.metrics import text

plotting = cli.beside("figures.plotting")
REGIONS = {
    "id": ("ID (seen)", plotting.ID_COLOR, -1),
    "ood": ("OOD (held out)", plotting.OOD_COLOR, 1),
}
LABELS = {"r2": "$R^2$", "auc": "AUC"}
SHUFFLED = "shuffled targets"
CHANCE = {"r2": 0.0, "auc": 0.5}
LOWEST = -0.25  # where an axis of R2 ends, unless a score is less: then it is logarithmic below -1
MOST_NAMES = 12  # of layers along an axis
MOST_FACTORS = 60  # a taller picture is of no use, and one of thousands can't be drawn


def draw(decoded, report: dict, success_B, held_out_B) -> dict[str, bytes]:
    """{'png', 'pdf'}. For each measure (left) the mean score over the factors by layer with its
    interval, and (middle) each factor at the chosen layer; (right), where there is success, success
    of held-out rows against how well their factors are decoded there."""
    kinds = list(report["layers"][report["chosen"]]["mean"])
    joined = success_B is not None
    most = max(decoded.measures.count(kind) for kind in kinds)
    height = max(2.5, 0.9 + 0.17 * min(most, MOST_FACTORS)) * len(kinds) + 0.2
    figure = plotting.new_figure(8.6 if joined else 6, height)
    axes = figure.subplots(len(kinds), 2 + joined, squeeze=False)
    for row, kind in zip(axes, kinds, strict=True):
        _draw_layers(row[0], report, kind)
        _draw_factors(row[1], report, kind)
        for axis in row[::2] if height > 4 * len(kinds) else ():
            axis.set(box_aspect=1.2, anchor="N")
    if joined:
        quality_B = decoded.quality[decoded.layers.index(decoded.chosen)]
        axes[0, 2].plot(
            quality_B[held_out_B], success_B[held_out_B], ".", color=plotting.OOD_COLOR,
            markersize=3, alpha=0.5,
        )  # fmt: skip
        axes[0, 2].set(
            title=f"Spearman {text.with_interval(report['success'], 2)}",
            ylim=(-0.05, 1.05), ylabel="success of held-out rows",
            xlabel=f"how well their factors are decoded at\n{_plain(report['chosen'])}",
        )  # fmt: skip
        axes[0, 2].ticklabel_format(useOffset=False)
        for axis in axes[1:, 2]:
            axis.set_axis_off()
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3)
    pictures = plotting.saved(figure)
    plotting.close(figure)
    return pictures


def _draw_layers(axis, report, kind):
    names = list(report["layers"])
    means = [layer["mean"][kind] for layer in report["layers"].values()]
    places = np.arange(len(names))
    for region, (title, color, side) in REGIONS.items():
        scores, shuffled = (
            [mean[part] for mean in means] for part in (region, f"shuffled.{region}")
        )
        values = [score["value"] for score in scores]
        axis.plot(places + 0.06 * side, values, color=color, linewidth=1, label=title)
        _draw_points(axis, places + 0.06 * side, scores, color)
        values = [score["value"] for score in shuffled]
        label = SHUFFLED if region == "ood" else None
        axis.plot(places, values, "x:", color=color, alpha=0.6, markersize=4, linewidth=0.8,
                  label=label)  # fmt: skip
    chosen = names.index(report["chosen"])
    axis.axvspan(chosen - 0.3, chosen + 0.3, color="0.93", zorder=0, linewidth=0)
    step = -(-len(names) // MOST_NAMES)
    axis.set_xticks(
        places[::step], [_plain(name) for name in names[::step]], rotation=35, ha="right"
    )
    axis.axhline(CHANCE[kind], **plotting.DOTTED)
    _scale(axis, "y", kind, [mean[part]["value"] for mean in means for part in mean])
    axis.set(
        xlim=(-0.5, len(names) - 0.5), ylabel=f"mean {LABELS[kind]} over factors",
        title="by layer (grey: chosen on ID rows)",
    )  # fmt: skip


def _draw_factors(axis, report, kind):
    factors = {
        name: factor
        for name, factor in report["layers"][report["chosen"]]["factors"].items()
        if factor["measure"] == kind
    }
    title = f"by factor at {_plain(report['chosen'])}"
    if len(factors) > MOST_FACTORS:
        title += f"\n(the first {MOST_FACTORS} of {len(factors)})"
        factors = dict(list(factors.items())[:MOST_FACTORS])
    places = np.arange(len(factors))
    for region, (_, color, side) in REGIONS.items():
        scores = [factor[region] for factor in factors.values()]
        _draw_points(axis, places + 0.12 * side, scores, color, across=True)
    axis.set_yticks(places, [_plain(name) for name in factors])
    axis.set_ylim(len(factors) - 0.4, -0.6)
    axis.axvline(CHANCE[kind], **plotting.DOTTED)
    _scale(axis, "x", kind, [f[region]["value"] for f in factors.values() for region in REGIONS])
    axis.set(xlabel=LABELS[kind], title=title)


def _draw_points(axis, places, scores, color, across=False):
    for place, score in zip(places, scores, strict=True):
        plotting.point_with_interval(
            axis, place, score, across=across, fmt="o", markersize=3.5, linewidth=1, color=color
        )


def _scale(axis, along: str, kind: str, scores):
    """Limits that show all scores; logarithmic below -1 where a score is that low."""
    lowest = np.nanmin(scores, initial=0)
    if kind == "auc":
        axis.set(**{f"{along}lim": (0, 1.05)})
    elif lowest >= LOWEST:
        axis.set(**{f"{along}lim": (LOWEST - 0.05, 1.05)})
    else:
        getattr(axis, f"set_{along}scale")("symlog", linthresh=1)
        axis.set(**{f"{along}lim": (min(1.6 * lowest, -1.05), 1.05)})


def _plain(name: str) -> str:
    """A name that matplotlib shows as it is, and in part where it is long."""
    short = name if len(name) <= 24 else f"{name[:11]}…{name[-12:]}"
    return short.replace("$", r"\$")
