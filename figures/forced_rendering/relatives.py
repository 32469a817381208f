"""Encoders, which see every pixel: in the authors' code and not in their paper."""

from compgen_jax.metrics import evaluation

from .. import plotting
from ..figure import figure
from .lookup import in_order

TITLES = {"encoder_code": "the bump code", "encoder_coordinates": "x and y"}
ENCODER_COLORS = {"encoder_code": plotting.CODE_COLORS["bump"],
                  "encoder_coordinates": plotting.GOLD}  # fmt: skip
SCORES = {"exact_accuracy": "exact", "position_accuracy": "within\n1 pixel"}
TRIVIAL = {"nearest_seen": "nearest seen,\nOOD", "best_constant": "best constant,\nOOD"}
ASIDE = 0.2  # how far each encoder stands from their common place


@figure("encoders", runs=tuple(TITLES), by_default=False)
def draw_encoders(runs):
    """An encoder, which sees every pixel, does not read held-out positions exactly either. Encoders
    are the bump task turned round, in the authors' code and not in their paper. One gives the code
    of an image's bump, the other its x and y. (a, b) The share of seeds whose answer is exact, by
    where the bump is; held-out cells are outlined. A code is exact if the largest unit of each half
    is the right one, x and y if both are off by half a pixel at most. (c) Exact answers, and
    answers within a pixel in x and in y, over held-out and over ID cells; means over seeds. (d)
    Error, that of the mean answer over the same cells being 1; geometric means over seeds. Crosses
    are trivial predictors: the answer of the nearest ID cell, and the best single number. Intervals
    are 95%; grey dots are seeds."""
    runs, within, errors = in_order(TITLES, runs), [], []
    picture = plotting.new_figure(plotting.WIDTH, 4.7)
    above, below = picture.subfigures(2, 1, height_ratios=[1, 1.3])
    maps = above.subplots(1, len(runs), squeeze=False)[0]
    accuracy, error = below.subplots(1, 2)
    for index, (name, run) in enumerate(runs.items()):
        aside, color = 2 * ASIDE * (index - (len(runs) - 1) / 2), ENCODER_COLORS[name]
        image = plotting.show_share(maps[index], run.cells, "exact_accuracy")
        exact, near = (plotting.show_score(accuracy, place + aside, 0.09, run.cells, score, color)
                       for place, score in enumerate(SCORES))  # fmt: skip
        within.append(near)
        title = f"From an image to {TITLES[name]}, {exact:.0%} are exact OOD"
        plotting.panel(maps[index], "ab"[index], title, wrap=30, color=color)
        mean = {key: number["value"] for key, number in run.summary["mean"].items()}
        style = {"mean": plotting.geometric_mean, "across": True, "color": color}
        held_out, error_TxB = run.cells.held_out, evaluation.errors(run.cells)
        of_id = error_TxB[:, ~held_out].mean(axis=1) / mean["id.mean_answer_mse"]
        ood = error_TxB[:, held_out].mean(axis=1) / mean["ood.mean_answer_mse"]
        plotting.show_number(error, -aside, of_id, **style, **plotting.SEEN)
        plotting.show_number(error, -1 - aside, ood, **style, fmt="o")
        errors.append(plotting.geometric_mean(ood)["value"])
        for row, predictor in enumerate(TRIVIAL, start=2):
            relative = mean[f"ood.{predictor}_mse"] / mean["ood.mean_answer_mse"]
            error.plot(relative, -row - aside, plotting.TRIVIAL, color=color, markersize=4)
    above.colorbar(image, ax=list(maps), label="share of seeds, exact", shrink=0.8)
    plotting.label_regions(accuracy)
    plotting.label_mark(accuracy, "trivial predictor, OOD", plotting.TRIVIAL)
    accuracy.set_xticks(range(len(SCORES)), list(SCORES.values()))
    accuracy.set(ylabel="share of combinations", ylim=(-0.04, 1.06), xlim=(-0.5, len(SCORES) - 0.5))
    plotting.label_colors(error, {TITLES[name]: ENCODER_COLORS[name] for name in runs})
    error.axhline(-1.6, color="0.7", linewidth=0.8)
    error.axvline(1, **plotting.DOTTED)
    names = ["encoder, ID", "encoder, OOD", *TRIVIAL.values()]
    error.set_yticks([-row for row in range(len(names))], names)
    error.set(xlabel="MSE relative to the mean answer", ylim=(0.4 - len(names), 0.5))
    plotting.log_scale(error, "x")
    title = f"Within a pixel are {plotting.span(within)} of held-out answers"
    plotting.panel(accuracy, "c", title, wrap=46)
    title = f"OOD errors are {plotting.span(errors)} of the mean answer's"
    plotting.panel(error, "d", title, wrap=40)
    plotting.legend_below(below)
    return picture
