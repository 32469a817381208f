"""The figure of `launch.probe`."""

import io

import matplotlib
import numpy as np

from compgen_jax.metrics import text

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}
ID_COLOR, OOD_COLOR = "#2b7bba", "#e34a33"
REGIONS = {"id": ("ID (seen)", ID_COLOR, -1), "ood": ("OOD (held out)", OOD_COLOR, 1)}
LABELS = {"r2": "$R^2$", "auc": "AUC"}
SHUFFLED = "shuffled targets"
CHANCE = {"r2": 0.0, "auc": 0.5}
CHANCE_LINE = {"color": "0.5", "linestyle": ":", "linewidth": 0.8, "zorder": 0}
LOWEST = -0.25  # where an axis of R2 ends, unless a score is less: then it is logarithmic below -1
MOST_NAMES = 12  # of layers along an axis
MOST_FACTORS = 60  # a taller picture is of no use, and one of thousands can't be drawn


def draw(found, report: dict, success_B, held_out_B) -> dict:
    """{'png', 'pdf'}: bytes of the figure. For each measure (left) the mean score over the factors
    by layer with its interval, and (middle) each factor at the chosen layer; (right), where there
    is success, success of held-out rows against how well their factors are decoded there."""
    with matplotlib.rc_context(STYLE):
        kinds = list(report["layers"][report["chosen"]]["mean"])
        joined = success_B is not None
        most = max(sum(kind == each for each in found.measures) for kind in kinds)
        height = max(2.5, 0.9 + 0.17 * min(most, MOST_FACTORS)) * len(kinds) + 0.2
        figure = plt.figure(figsize=(8.6 if joined else 6, height), layout="constrained")
        axes = figure.subplots(len(kinds), 2 + joined, squeeze=False)
        for row, kind in zip(axes, kinds, strict=True):
            _draw_layers(row[0], report, kind)
            _draw_factors(row[1], report, kind)
            for axis in row[::2] if height > 4 * len(kinds) else ():
                axis.set(box_aspect=1.2, anchor="N")
        if joined:
            quality_B = found.quality[found.layers.index(found.chosen)]
            _draw_success(axes[0, 2], report, quality_B[held_out_B], success_B[held_out_B])
            for axis in axes[1:, 2]:
                axis.set_axis_off()
        entries = dict(zip(*axes[0, 0].get_legend_handles_labels()[::-1], strict=True))
        names = [title for title, _, _ in REGIONS.values()] + [SHUFFLED]
        figure.legend([entries[name] for name in names], names, loc="outside upper center", ncols=3)
        pictures = {"png": saved(figure, "png", dpi=200), "pdf": saved(figure, "pdf")}
        plt.close(figure)
    return pictures


def _draw_layers(axis, report, kind):
    names = list(report["layers"])
    means = [layer["mean"][kind] for layer in report["layers"].values()]
    places = np.arange(len(names))
    for region, (title, color, side) in REGIONS.items():
        _points(axis, places + 0.06 * side, [mean[region] for mean in means], color, title)
    for region, (_, color, _) in REGIONS.items():
        shuffled = _floats([mean[f"shuffled.{region}"]["value"] for mean in means])
        label = SHUFFLED if region == "id" else None
        axis.plot(places, shuffled, "x:", color=color, alpha=0.6, markersize=4,
                  linewidth=0.8, label=label)  # fmt: skip
    chosen = names.index(report["chosen"])
    axis.axvspan(chosen - 0.3, chosen + 0.3, color="0.93", zorder=0, linewidth=0)
    step = -(-len(names) // MOST_NAMES)
    shown = [_plain(name) for name in names[::step]]
    axis.set_xticks(places[::step], shown, rotation=35, ha="right")
    axis.axhline(CHANCE[kind], **CHANCE_LINE)
    scores = [mean[part]["value"] for mean in means for part in mean]
    axis.set(**_scale("y", kind, scores))
    axis.set(xlim=(-0.5, len(names) - 0.5), ylabel=f"mean {LABELS[kind]} over factors")
    axis.set_title("by layer (grey: chosen on ID rows)")


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
        values = [factor[region] for factor in factors.values()]
        _points(axis, places + 0.12 * side, values, color, None, across=True)
    axis.set_yticks(places, [_plain(name) for name in factors])
    axis.set_ylim(len(factors) - 0.4, -0.6)
    axis.axvline(CHANCE[kind], **CHANCE_LINE)
    scores = [factor[region]["value"] for factor in factors.values() for region in REGIONS]
    axis.set(**_scale("x", kind, scores))
    axis.set_xlabel(LABELS[kind])
    axis.set_title(title)


def _points(axis, places, measured, color, label, across=False):
    """Values with their intervals."""
    value, ends = (_floats([each[name] for each in measured]) for name in ("value", "ci95"))
    ends = np.where(np.isnan(ends), value[:, None], ends)
    bars = np.maximum(np.stack([value - ends[:, 0], ends[:, 1] - value]), 0)
    style = {"fmt": "o" if across else "o-", "markersize": 3.5, "linewidth": 1, "capsize": 2}
    if across:
        axis.errorbar(value, places, xerr=bars, color=color, label=label, **style)
    else:
        axis.errorbar(places, value, yerr=bars, color=color, label=label, **style)


def _draw_success(axis, report, quality, success):
    found = report["success"]
    axis.plot(quality, success, ".", color=OOD_COLOR, markersize=3, alpha=0.5)
    axis.set_title(f"Spearman {text.with_interval(found, 2)}")
    axis.set(ylim=(-0.05, 1.05), ylabel="success of held-out rows")
    axis.set_xlabel(f"how well their factors are decoded at\n{_plain(report['chosen'])}")
    axis.ticklabel_format(useOffset=False)


def _scale(side: str, kind: str, scores) -> dict:
    """The limits of an axis that shows all scores, and its scale and ticks."""
    if kind == "auc":
        return {f"{side}lim": (0, 1.05)}
    lowest = np.nanmin(_floats(scores), initial=0)
    if lowest >= LOWEST:
        return {f"{side}lim": (LOWEST - 0.05, 1.05)}
    decades = range(int(np.ceil(np.log10(max(-lowest, 1)))) + 1)
    ticks = [*(-(10.0**decade) for decade in reversed(decades)), 0, 0.5, 1]
    return {
        f"{side}scale": matplotlib.scale.SymmetricalLogScale(None, linthresh=1.1, linscale=2),
        f"{side}ticks": ticks,
        f"{side}ticklabels": [f"{tick:g}" for tick in ticks],
        f"{side}lim": (min(1.6 * lowest, -1.05), 1.05),
    }


def _plain(name: str) -> str:
    """A name that matplotlib shows as it is, and in part where it is long."""
    short = name if len(name) <= 24 else f"{name[:11]}…{name[-12:]}"
    return short.replace("$", r"\$")


def _floats(values):
    """An array, NaN for None."""
    return np.array(values, np.float64)


def saved(figure, suffix, **options) -> bytes:
    content = io.BytesIO()
    metadata = {"CreationDate": None} if suffix == "pdf" else {}
    figure.savefig(content, format=suffix, metadata=metadata, **options)
    return content.getvalue()
