"""The figure of `launch.probe`."""

import numpy as np

from compgen_jax import cli
from compgen_jax.metrics import text

plotting = cli.beside("figures.plotting")
REGIONS = {
    "id": ("seen (ID)", {"color": plotting.ID_COLOR} | plotting.SEEN, "--", -1),
    "ood": ("held out (OOD)", {"color": plotting.OOD_COLOR, "fmt": "o"}, "-", 1),
}
LABELS = {"r2": "$R^2$", "auc": "AUC"}
CHANCE = {"r2": 0.0, "auc": 0.5}
DOT = {"markersize": 3.5, "linewidth": 1}
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
    if joined:
        quality_B = decoded.quality[decoded.layers.index(decoded.chosen)]
        style = {"color": plotting.OOD_COLOR, "markersize": 3, "alpha": 0.5}
        axes[0, 2].plot(quality_B[held_out_B], success_B[held_out_B], ".", **style)
        axes[0, 2].set(
            title=f"Rank correlation {text.with_interval(report['success'], 2)}",
            ylim=(-0.05, 1.05), ylabel="success of held-out rows",
            xlabel=f"how well their factors are decoded at\n{_plain(report['chosen'])}",
        )  # fmt: skip
        axes[0, 2].ticklabel_format(useOffset=False)
        for axis in axes[1:, 2]:
            axis.set_axis_off()
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3)
    return plotting.saved(figure)


def _draw_layers(axis, report, kind):
    names = list(report["layers"])
    means = [layer["mean"][kind] for layer in report["layers"].values()]
    places = np.arange(len(names))
    for region, (title, style, dash, side) in REGIONS.items():
        color = style["color"]
        values = [mean[region]["value"] for mean in means]
        shuffled = [mean[f"shuffled.{region}"]["value"] for mean in means]
        axis.plot(places + 0.06 * side, values, dash, color=color, linewidth=1, label=title)
        axis.plot(places, shuffled, "x:", color=color, alpha=0.6, markersize=4, linewidth=0.8,
                  label="shuffled targets" if region == "ood" else None)  # fmt: skip
        for place, mean in zip(places, means, strict=True):
            plotting.point_with_interval(axis, place + 0.06 * side, mean[region], **style, **DOT)
    chosen = names.index(report["chosen"])
    axis.axvspan(chosen - 0.3, chosen + 0.3, color="0.93", zorder=0, linewidth=0)
    step = -(-len(names) // MOST_NAMES)
    axis.set_xticks(places[::step], map(_plain, names[::step]), rotation=35, ha="right")
    axis.axhline(CHANCE[kind], **plotting.DOTTED)
    axis.set(
        xlim=(-0.5, len(names) - 0.5), ylim=_limits(kind, means),
        ylabel=f"mean {LABELS[kind]} over factors", title="By layer (grey: chosen on ID rows)",
    )  # fmt: skip


def _draw_factors(axis, report, kind):
    factors = report["layers"][report["chosen"]]["factors"]
    factors = {name: factor for name, factor in factors.items() if factor["measure"] == kind}
    title = f"By factor at {_plain(report['chosen'])}"
    if len(factors) > MOST_FACTORS:
        title += f"\n(the first {MOST_FACTORS} of {len(factors)})"
        factors = dict(list(factors.items())[:MOST_FACTORS])
    for place, factor in enumerate(factors.values()):
        for region, (_, style, _, side) in REGIONS.items():
            plotting.point_with_interval(
                axis, place + 0.12 * side, factor[region], across=True, **style, **DOT
            )
    axis.set_yticks(range(len(factors)), map(_plain, factors))
    axis.axvline(CHANCE[kind], **plotting.DOTTED)
    axis.set(
        xlim=_limits(kind, factors.values()), ylim=(len(factors) - 0.4, -0.6),
        xlabel=LABELS[kind], title=title,
    )  # fmt: skip


def _limits(kind: str, by_region) -> tuple[float, float]:
    """The ends of an axis of scores. An R2 below -1, which says that nothing is read, is not
    shown."""
    scores = [each[region]["value"] for each in by_region for region in REGIONS]
    lowest = np.nanmin(scores, initial=1)
    return (0, 1.05) if kind == "auc" else (np.clip(lowest - 0.05, -1.05, -0.3), 1.05)


def _plain(name: str) -> str:
    """A name that matplotlib shows as it is, and in part where it is long."""
    short = name if len(name) <= 24 else f"{name[:11]}…{name[-12:]}"
    return short.replace("$", r"\$")
