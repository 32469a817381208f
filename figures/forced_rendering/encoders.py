"""The task turned round: does an encoder, which sees every pixel, compose where a decoder does
not?"""

from compgen_jax.metrics import evaluation
from compgen_jax.statistics import geometric_mean_with_interval
from figures import plotting

TITLES = {"code": "image to bump code", "coordinates": "image to x and y"}  # by the role's control
SHORT = {"code": "bump code", "coordinates": "x and y"}
COLORS = {"code": plotting.CODE_COLORS["bump"], "coordinates": plotting.CODE_COLORS["ramp"]}
SCORES = {"exact_accuracy": "exact", "position_accuracy": "within\n1 pixel"}
UNIT = "mean_answer"  # the predictor whose error is 1
TRIVIAL = {"nearest_seen": "nearest seen,\nheld out", "best_constant": "best constant,\nheld out"}
ASIDE = 0.2  # an encoder from the other, either side of a position


def draw(studies):
    """Encoders of the bump task turned round, in the authors' code and not in their paper: the code
    of an image's bump, or its x and y, is asked for. (a, b) Share of seeds whose answer is exact
    (the largest unit of each code is the right one; x and y are off by half a pixel at most), by
    where the bump is; outlined, held-out combinations. (c) Exact answers, and those within a pixel
    in x and in y, over held-out (filled) and seen combinations (open); means. (d) Their error, that
    of the mean answer over the same combinations being 1, beside that of other trivial predictors
    (diamonds; no seeds): the answer of the nearest seen combination, and the best single number;
    geometric means. Both over seeds with 95% intervals; grey dots are seeds."""
    studies = sorted(studies, key=lambda study: list(TITLES).index(study.role.control))
    count = len(studies)
    figure = plotting.new_figure(9.05, 2.75)
    axes = figure.subplots(1, count + 2, width_ratios=[1.05] * count + [1.15, 1.45])
    maps, (accuracy, error) = axes[:count], axes[count:]
    for axis, study in zip(maps, studies, strict=True):
        image = _draw_map(axis, study)
    figure.colorbar(image, ax=list(maps), label="share of seeds, exact", shrink=0.62)
    _draw_accuracy(accuracy, studies)
    _draw_error(error, studies)
    for axis, letter in zip(axes, "abcdef", strict=False):
        plotting.panel_label(axis, letter)
    return figure


def _draw_map(axis, study):
    results = study.results
    rows = results.sizes[::-1]  # y, x
    exact = results.scores["exact_accuracy"].mean(axis=0).reshape(rows)
    image = plotting.show_map(axis, exact, vmin=0, vmax=1)
    plotting.outline(axis, results.held_out.reshape(rows))
    axis.set_title(TITLES[study.role.control], color=COLORS[study.role.control])
    return image


def _asides(studies):
    """(study, its offset from a position that all share)."""
    centre = (len(studies) - 1) / 2
    return [(study, 2 * ASIDE * (index - centre)) for index, study in enumerate(studies)]


def _draw_accuracy(axis, studies):
    for study, aside in _asides(studies):
        results, color = study.results, COLORS[study.role.control]
        for position, score in enumerate(SCORES):
            seen, held_out = (
                evaluation.mean_score(results, score, cells)
                for cells in (~results.held_out, results.held_out)
            )
            plotting.show_number(axis, position + aside - 0.09, held_out, fmt="o", color=color)
            hollow = {"fmt": "s", "color": color, "markerfacecolor": "white"}
            plotting.show_number(axis, position + aside + 0.09, seen, **hollow)
    axis.plot([], [], "o", color="0.3", markersize=4, label="held out")
    axis.plot([], [], "s", color="0.3", markerfacecolor="white", markersize=4, label="seen")
    axis.set_xticks(range(len(SCORES)), list(SCORES.values()))
    axis.set(ylabel="share of combinations", ylim=(-0.04, 1.06), xlim=(-0.5, len(SCORES) - 0.5))
    plotting.legend_above(axis)


def _draw_error(axis, studies):
    names = ["encoder, seen", "encoder, held out", *TRIVIAL.values()]
    for study, aside in _asides(studies):
        color = COLORS[study.role.control]
        for row, (region, values) in enumerate(relative_errors(study).items()):
            marker = {"fmt": "o"} if region == "ood" else {"fmt": "s", "markerfacecolor": "white"}
            marked = {"across": True, "color": color, **marker}
            plotting.show_number(axis, -row - aside, values, geometric_mean_with_interval, **marked)
        for row, error in enumerate(trivial_errors(study).values(), start=2):
            axis.plot(error, -row - aside, "D", color=color, markersize=3.5)
        axis.plot([], [], "o", color=color, markersize=4, label=SHORT[study.role.control])
    axis.axhline(-1.6, color="0.7", linewidth=0.8)
    axis.axvline(1, **plotting.DOTTED)
    axis.set_yticks([-row for row in range(len(names))], names)
    axis.set(xscale="log", xlabel="MSE / the mean answer's", ylim=(0.4 - len(names), 0.5))
    plotting.legend_above(axis)


def relative_errors(study) -> dict:
    """{'id': (T,), 'ood': (T,)}: the mean squared error, the mean answer's of that region being
    1."""
    results = study.results
    masks = {"id": ~results.held_out, "ood": results.held_out}
    return {
        region: evaluation.errors(results)[:, cells].mean(axis=1)
        / study.summary["mean"][f"{region}.{UNIT}_mse"]["value"]
        for region, cells in masks.items()
    }


def trivial_errors(study) -> dict:
    """Over held-out combinations, of each of `TRIVIAL`, the mean answer's being 1."""
    mean = study.summary["mean"]
    unit = mean[f"ood.{UNIT}_mse"]["value"]
    return {name: mean[f"ood.{name}_mse"]["value"] / unit for name in TRIVIAL}
