"""Figure 10: what decoders of every depth draw for combinations they never saw."""

from compgen_jax.metrics import evaluation
from compgen_jax.papers.forced_rendering.runs import BOTH, by_depth
from compgen_jax.statistics import mean_with_interval
from figures import plotting

# of the hole's width and height: a corner, two edges and the centre
POINTS = ((0.1, 0.1), (1.0, 0.35), (0.3, 0.85), (0.5, 0.5))
# sizes in inches
IMAGE, GAP, ROW = 0.55, 0.05, 0.76


def draw(studies):
    """Figure 10: at the same held-out points (circles), what the first seed of each depth draws,
    each image on its own scale; and the error over the hole, that of a blank image being 1."""
    by_code = {code: by_depth(studies, code) for code in BOTH}
    rows = max(len(found) for found in by_code.values())
    block = len(POINTS) * (IMAGE + GAP) + 0.45
    height = max(rows * ROW + 0.5, 2.0)
    figure = plotting.new_figure(len(BOTH) * block + 2.65, height)
    for index, (code, found) in enumerate(by_code.items()):
        for row, study in enumerate(found):
            bottom = height - 0.42 - IMAGE - row * ROW
            axes = [
                plotting.axis_at(
                    figure, 0.45 + index * block + column * (IMAGE + GAP), bottom, IMAGE, IMAGE
                )
                for column in range(len(POINTS))
            ]
            _draw_images(axes, study, f"depth {study.role.depth}")
            if row == 0:
                _title(axes[0], "ab"[index], f"{code} code, seed {study.results.seeds[0]}")
    tall = min(height - 0.87, 1.9)
    left = len(BOTH) * block + 0.75
    panel = plotting.axis_at(figure, left, height - 0.42 - tall, 1.75, tall)
    _draw_errors(panel, by_code)
    plotting.panel_label(panel, "c")
    return figure


def _draw_images(axes, study, label):
    results = study.results
    for axis, cell in zip(axes, plotting.held_out_cells(results, POINTS), strict=True):
        plotting.show_scaled(
            axis, results.predictions[0, cell], results.factors[cell], results.amplitude
        )
    axes[0].set_ylabel(label)


def _title(axis, letter, text):
    axis.annotate(text, (0, 1), xytext=(0, 6), xycoords="axes fraction", textcoords="offset points")
    plotting.panel_label(axis, letter)


def _draw_errors(axis, by_code):
    for index, (code, found) in enumerate(by_code.items()):
        color = plotting.CODE_COLORS[code]
        results = [study.results for study in found]
        relative = [evaluation.relative_error(one, one.held_out) for one in results]
        depths = [study.role.depth + 0.16 * (index - 0.5) for study in found]
        means = [mean_with_interval(values)["value"] for values in relative]
        axis.plot(depths, means, "-", color=color, linewidth=1, label=f"{code} code")
        for depth, values in zip(depths, relative, strict=True):
            plotting.show_number(axis, depth, values, fmt="o", color=color)
    axis.axhline(1, color="0.6", linewidth=0.8, linestyle=":", zorder=0, label="blank image")
    axis.set_xticks(sorted({study.role.depth for found in by_code.values() for study in found}))
    axis.set(xlabel="depth", ylabel="OOD MSE / blank image's", ylim=(0, None))
    axis.legend(loc="lower right")
