"""Figure 10: what decoders of every depth draw for combinations they never saw."""

from compgen_jax.metrics import evaluation

from .. import plotting
from ..figure import figure
from .lookup import BOTH, by_depth, depth_of

# of the held-out region's width and height: a corner, two edges and the centre
POINTS = ((0.1, 0.1), (1.0, 0.35), (0.3, 0.85), (0.5, 0.5))
# sizes in inches
IMAGE, GAP, ROW = 0.47, 0.05, 0.72


@figure("fig10", runs=("bump_cnn", "bump_cnn_depth*", "ramp_cnn", "ramp_cnn_depth*"))
def draw(runs):
    """Figure 10. (a, b) What the first seed of each depth draws at the same held-out points
    (circles), for two codes. Each image has its own scale; its largest value is printed below.
    (c) The error over all held-out cells by depth, that of a blank image being 1; means over seeds
    with 95% intervals, grey dots are seeds."""
    by_code = {code: by_depth(runs, f"{code}_cnn") for code in BOTH}
    height = max(max(map(len, by_code.values())) * ROW + 0.5, 2.1)
    block = len(POINTS) * (IMAGE + GAP) + 0.3
    picture = plotting.new_figure(plotting.WIDTH, height)
    at, tall = len(BOTH) * block + 0.65, min(height - 0.95, 1.9)
    width = plotting.WIDTH - at - 0.08
    error = plotting.axis_at(picture, at, height - 0.5 - tall, width, tall)
    lowest = []
    for index, (code, of_code) in enumerate(by_code.items()):
        for row, run in enumerate(of_code):
            at = 0.3 + index * block, height - 0.5 - IMAGE - row * ROW
            axes = plotting.row_at(picture, *at, IMAGE, len(POINTS), GAP)
            cells = run.cells
            indices = plotting.held_out_cells(cells, POINTS)
            plotting.show_held_out(axes, cells.predictions[0], cells, indices)
            axes[0].set_ylabel(f"depth {depth_of(run)}")
            if row == 0:
                plotting.panel(axes[0], "ab"[index], f"{code} code, seed {cells.seeds[0]}")
        relative = [evaluation.relative_error(run.cells, run.cells.held_out) for run in of_code]
        depths = [depth_of(run) + 0.16 * (index - 0.5) for run in of_code]
        color = plotting.CODE_COLORS[code]
        plotting.show_numbers(error, depths, relative, color, f"{code} code")
        lowest.append(min(values.mean() for values in relative))
    error.axhline(1, **plotting.DOTTED, label="blank image")
    plotting.label_seeds(error)
    error.set_xticks(sorted({depth_of(run) for of_code in by_code.values() for run in of_code}))
    error.set(xlabel="depth", ylabel="OOD MSE / blank image's", ylim=(0, None))
    error.legend(loc="lower left")
    plotting.panel(
        error, "c", f"OOD errors are at least {min(lowest):.0%} of a blank image's", wrap=24
    )
    return picture
