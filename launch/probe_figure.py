"""The figure of `launch.probe`."""

import io

import matplotlib
import numpy as np

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
REGIONS = {"id": ("seen", ID_COLOR, -1), "ood": ("held out", OOD_COLOR, 1)}
LABELS = {"r2": "$R^2$", "auc": "AUC"}
CHANCE = {"r2": 0.0, "auc": 0.5}
LOWEST = -0.25  # shown; less reads nothing either
MOST_NAMES = 12  # of layers along an axis


def draw(found, report: dict, success_B, held_out_B) -> dict:
    """{'png', 'pdf'}: bytes of the figure. For each measure (left) the mean score over the factors
    by layer with its interval, and (middle) each factor at the chosen layer; (right), where there
    is success, success of held-out rows against how well their factors are decoded there."""
    with matplotlib.rc_context(STYLE):
        kinds = list(report["layers"][report["chosen"]]["mean"])
        joined = success_B is not None
        most = max(sum(kind == each for each in found.measures) for kind in kinds)
        height = max(2.5, 0.9 + 0.17 * most) * len(kinds) + 0.2
        figure = plt.figure(figsize=(8.6 if joined else 6, height), layout="constrained")
        axes = figure.subplots(len(kinds), 2 + joined, squeeze=False)
        for row, kind in zip(axes, kinds, strict=True):
            _draw_layers(row[0], report, kind)
            _draw_factors(row[1], report, kind)
        if joined:
            _draw_success(axes[0, 2], report, found.quality[held_out_B], success_B[held_out_B])
            for axis in axes[1:, 2]:
                axis.set_axis_off()
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=4)
        pictures = {"png": _saved(figure, "png", dpi=200), "pdf": _saved(figure, "pdf")}
        plt.close(figure)
    return pictures


def _draw_layers(axis, report, kind):
    names = list(report["layers"])
    means = [layer["mean"][kind] for layer in report["layers"].values()]
    places = np.arange(len(names))
    for region, (title, color, side) in REGIONS.items():
        _points(axis, places + 0.06 * side, [mean[region] for mean in means], color, title)
    for region, (_, color, _) in REGIONS.items():
        shuffled = [mean[f"shuffled.{region}"]["value"] for mean in means]
        label = "shuffled targets" if region == "id" else None
        axis.plot(places, np.maximum(shuffled, LOWEST), "x:", color=color, alpha=0.6, markersize=4,
                  linewidth=0.8, label=label)  # fmt: skip
    chosen = names.index(report["chosen"])
    axis.axvspan(chosen - 0.3, chosen + 0.3, color="0.93", zorder=0, linewidth=0)
    step = -(-len(names) // MOST_NAMES)
    axis.set_xticks(places[::step], names[::step], rotation=35, ha="right")
    _frame(axis.axhline, kind)
    axis.set_ylim(LOWEST if kind == "r2" else 0, 1.05)
    axis.set(xlim=(-0.5, len(names) - 0.5), ylabel=f"mean {LABELS[kind]} over factors")
    axis.set_title("by layer (grey: chosen on seen rows)")


def _draw_factors(axis, report, kind):
    factors = {
        name: factor
        for name, factor in report["layers"][report["chosen"]]["factors"].items()
        if factor["measure"] == kind
    }
    places = np.arange(len(factors))
    for region, (_, color, side) in REGIONS.items():
        values = [factor[region] for factor in factors.values()]
        _points(axis, places + 0.12 * side, values, color, None, across=True)
    axis.set_yticks(places, list(factors))
    axis.set_ylim(len(factors) - 0.4, -0.6)
    axis.set_xlim(LOWEST if kind == "r2" else 0, 1.05)
    _frame(axis.axvline, kind)
    axis.set_xlabel(LABELS[kind])
    axis.set_title(f"by factor at {report['chosen']}")


def _points(axis, places, measured, color, label, across=False):
    """Values with their intervals; what is below the axis stands on its edge."""
    value = np.array([_known(each["value"]) for each in measured])
    ends = np.array([[_known(end) for end in each["ci95"]] for each in measured])
    shown = np.maximum(value, LOWEST)
    ends = np.where(np.isnan(ends), shown[:, None], np.maximum(ends, LOWEST))
    bars = np.maximum(np.stack([shown - ends[:, 0], ends[:, 1] - shown]), 0)
    style = {"fmt": "o" if across else "o-", "markersize": 3.5, "linewidth": 1, "capsize": 2}
    if across:
        axis.errorbar(shown, places, xerr=bars, color=color, label=label, **style)
    else:
        axis.errorbar(places, shown, yerr=bars, color=color, label=label, **style)


def _draw_success(axis, report, quality, success):
    found = report["success"]
    axis.plot(quality, success, ".", color=OOD_COLOR, markersize=3, alpha=0.5)
    low, high = found["ci95"]
    axis.set_title(f"Spearman {found['value']:.2f} [{low:.2f}, {high:.2f}]")
    axis.set(ylim=(-0.05, 1.05), ylabel="success of held-out rows")
    axis.set_xlabel(f"how well their factors are\ndecoded at {report['chosen']}")


def _frame(line, kind):
    line(CHANCE[kind], color="0.5", linestyle=":", linewidth=0.8, zorder=0)


def _known(value):
    return np.nan if value is None else value


def _saved(figure, suffix, **options) -> bytes:
    content = io.BytesIO()
    metadata = {"CreationDate": None} if suffix == "pdf" else {}
    figure.savefig(content, format=suffix, metadata=metadata, **options)
    return content.getvalue()
