"""The task turned round: does an encoder, which sees every pixel, compose where a decoder does
not?"""

from compgen_jax.metrics import evaluation

from .. import plotting
from ..figure import figure
from .lookup import in_order

TITLES = {"encoder_code": "image to bump code", "encoder_coordinates": "image to x and y"}
SHORT = {"encoder_code": "bump code", "encoder_coordinates": "x and y"}
COLORS = {
    "encoder_code": plotting.CODE_COLORS["bump"],
    "encoder_coordinates": plotting.CODE_COLORS["ramp"],
}
SCORES = {"exact_accuracy": "exact", "position_accuracy": "within\n1 pixel"}
UNIT = "mean_answer"  # the predictor whose error is 1
TRIVIAL = {"nearest_seen": "nearest seen,\nOOD", "best_constant": "best constant,\nOOD"}
ASIDE = 0.2  # how far each encoder stands from their common place


@figure("encoders", runs=tuple(TITLES), by_default=False)
def draw(runs):
    """Encoders: the bump task turned round, in the authors' code and not in their paper. One gives
    the code of an image's bump, the other its x and y. (a, b) The share of seeds whose answer is
    exact, by where the bump is; held-out cells are outlined. A code is exact if the largest unit
    of each half is the right one, x and y if both are off by half a pixel at most. (c) Exact
    answers, and answers within a pixel in x and in y, over held-out (filled) and ID cells (open);
    means over seeds. (d) Error, that of the mean answer over the same cells being 1; geometric
    means over seeds. Diamonds are trivial predictors: the answer of the nearest ID cell, and the
    best single number. Intervals are 95%; grey dots are seeds."""
    shown = in_order(TITLES, runs)
    picture = plotting.new_figure(plotting.WIDTH, 4.7)
    above, below = picture.subfigures(2, 1, height_ratios=[1, 1.3])
    maps = above.subplots(1, len(shown), squeeze=False)[0]
    accuracy, error = below.subplots(1, 2)
    within, errors = [], []
    for index, (name, run) in enumerate(shown.items()):
        aside, color = 2 * ASIDE * (index - (len(shown) - 1) / 2), COLORS[name]
        image = plotting.show_share(maps[index], run.cells, "exact_accuracy")
        exact, near = (evaluation.mean_score(run.cells, score, run.cells.held_out).mean()
                       for score in SCORES)  # fmt: skip
        title = f"{TITLES[name]}: {exact:.0%} exact OOD"
        plotting.panel(maps[index], "ab"[index], title, color=color)
        _draw_accuracy(accuracy, run.cells, aside, color)
        errors.append(_draw_error(error, run, aside, color))
        within.append(near)
    above.colorbar(image, ax=list(maps), label="share of seeds, exact", shrink=0.8)
    plotting.label_regions(accuracy)
    accuracy.plot([], [], "D", color="0.3", markersize=3.5, label="trivial predictor, OOD")
    accuracy.set_xticks(range(len(SCORES)), list(SCORES.values()))
    accuracy.set(ylabel="share of combinations", ylim=(-0.04, 1.06), xlim=(-0.5, len(SCORES) - 0.5))
    plotting.label_colors(error, {SHORT[name]: COLORS[name] for name in shown})
    error.axhline(-1.6, color="0.7", linewidth=0.8)
    error.axvline(1, **plotting.DOTTED)
    names = ["encoder, ID", "encoder, OOD", *TRIVIAL.values()]
    error.set_yticks([-row for row in range(len(names))], names)
    error.set(xlabel="MSE / the mean answer's", ylim=(0.4 - len(names), 0.5))
    plotting.log_scale(error, "x")
    plotting.panel(accuracy, "c", f"within 1 pixel OOD: {plotting.span(within)}")
    title = f"OOD errors: {plotting.span(errors)} of the mean answer's"
    plotting.panel(error, "d", title, wrap=40)
    plotting.legend_below(below)
    return picture


def _draw_accuracy(axis, cells, aside, color):
    for place, score in enumerate(SCORES):
        held_out, seen = (evaluation.mean_score(cells, score, mask)
                          for mask in (cells.held_out, ~cells.held_out))  # fmt: skip
        plotting.show_regions(axis, place + aside, 0.09, held_out, seen, color=color)


def _draw_error(axis, run, aside, color) -> float:
    """Returns the mean error over held-out cells."""
    seen, held_out = relative_errors(run).values()
    style = {"mean": plotting.geometric_mean, "across": True, "color": color}
    plotting.show_number(axis, -aside, seen, **style, **plotting.SEEN)
    plotting.show_number(axis, -1 - aside, held_out, **style, fmt="o")
    for row, error in enumerate(trivial_errors(run).values(), start=2):
        axis.plot(error, -row - aside, "D", color=color, markersize=3.5)
    return plotting.geometric_mean(held_out)["value"]


def relative_errors(run) -> dict:
    """{'id': (T,), 'ood': (T,)}: the mean squared error, the mean answer's of that region being
    1."""
    cells, mean = run.cells, run.summary["mean"]
    return {
        region: evaluation.errors(cells)[:, mask].mean(axis=1)
        / mean[f"{region}.{UNIT}_mse"]["value"]
        for region, mask in (("id", ~cells.held_out), ("ood", cells.held_out))
    }


def trivial_errors(run) -> dict:
    """The error of each of `TRIVIAL` over held-out cells, the mean answer's being 1."""
    mean = run.summary["mean"]
    unit = mean[f"ood.{UNIT}_mse"]["value"]
    return {name: mean[f"ood.{name}_mse"]["value"] / unit for name in TRIVIAL}
