"""Figure 10: what decoders of every depth draw for combinations they never saw."""

from compgen_jax.metrics import evaluation

from .. import plotting
from ..figure import figure
from .lookup import BOTH, by_depth, depth_of

# of the held-out region's width and height: a corner, two edges and the centre
POINTS = ((0.1, 0.1), (1.0, 0.35), (0.3, 0.85), (0.5, 0.5))
# sizes in inches
IMAGE, GAP, ROW = 0.55, 0.05, 0.76


@figure("fig10", runs=("bump_cnn", "bump_cnn_depth*", "ramp_cnn", "ramp_cnn_depth*"))
def draw(runs):
    """Figure 10. (a, b) What the first seed of each depth draws at the same held-out points
    (circles), for two codes. Each image has its own scale; its largest value is printed below.
    (c) The error over all held-out cells by depth, that of a blank image being 1; means over seeds
    with 95% intervals, grey dots are seeds."""
    by_code = {code: by_depth(runs, f"{code}_cnn") for code in BOTH}
    height = max(max(map(len, by_code.values())) * ROW + 0.5, 2.0)
    block = len(POINTS) * (IMAGE + GAP) + 0.45
    picture = plotting.new_figure(len(BOTH) * block + 2.65, height)
    tall = min(height - 0.87, 1.9)
    error = plotting.axis_at(picture, len(BOTH) * block + 0.75, height - 0.42 - tall, 1.75, tall)
    for index, (code, of_code) in enumerate(by_code.items()):
        for row, run in enumerate(of_code):
            at = 0.45 + index * block, height - 0.42 - IMAGE - row * ROW
            axes = plotting.row_at(picture, *at, IMAGE, len(POINTS), GAP)
            cells = run.cells
            indices = plotting.held_out_cells(cells, POINTS)
            plotting.show_held_out(axes, cells.predictions[0], cells, indices)
            axes[0].set_ylabel(f"depth {depth_of(run)}")
            if row == 0:
                plotting.title_left(axes[0], f"{code} code, seed {cells.seeds[0]}")
                plotting.panel_label(axes[0], "ab"[index])
        relative = [evaluation.relative_error(run.cells, run.cells.held_out) for run in of_code]
        depths = [depth_of(run) + 0.16 * (index - 0.5) for run in of_code]
        color = plotting.CODE_COLORS[code]
        plotting.show_numbers(error, depths, relative, color, f"{code} code")
    error.axhline(1, color="0.6", linewidth=0.8, linestyle=":", zorder=0, label="blank image")
    error.set_xticks(sorted({depth_of(run) for of_code in by_code.values() for run in of_code}))
    error.set(xlabel="depth", ylabel="OOD MSE / blank image's", ylim=(0, None))
    error.legend(loc="lower right")
    plotting.panel_label(error, "c")
    return picture
