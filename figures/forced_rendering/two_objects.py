"""Two objects in each image: is the first one rendered where the second lights every pixel?"""

import jax
import numpy as np

from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.tasks import bump

from .. import plotting
from ..figure import figure

EXAMPLES = 5  # of each region
APART = 4  # pixels between the bumps of an example, so that both can be told
IMAGE, GAP, MAP = 0.62, 0.05, 1.5  # inches
SCORES = {"rendered": "first bump", "rendered_second": "second bump"}


@figure("two_objects", runs=("two_objects",))
def draw(runs):
    """Images of two bumps, of which the first has a hole and the second lies anywhere (K1). (a, b)
    What is asked and what a seed draws, for ID and for held-out places of the first bump (circles).
    It is the seed whose share rendered OOD is the median. (c, d) The share of seeds that render the
    first and the second bump, by the place of the first, whose hole is outlined. Each cell has one
    second bump. Below, the mean over ID and over held-out cells."""
    (run,) = runs.values()
    cells, settings = run.cells, run.config.task
    picture = plotting.new_figure(7.8, 3.75)
    share_T = mean_score(cells, "rendered", cells.held_out)
    seed = np.argsort(share_T)[(len(share_T) - 1) // 2]
    seconds = jax.vmap(lambda point: bump.second_place(point, settings.grid))(cells.factors)
    apart = np.abs(np.asarray(seconds) - cells.factors).max(axis=1) >= APART
    for letter, bottom, region, name, color in (
        ("a", 2.05, ~cells.held_out, "first bump ID", plotting.ID_COLOR),
        ("b", 0.35, cells.held_out, "first bump held out (OOD)", plotting.OOD_COLOR),
    ):
        candidates = np.flatnonzero(region & apart)
        places = np.linspace(0, len(candidates) - 1, EXAMPLES + 2).round().astype(int)[1:-1]
        rows = {"drawn": cells.predictions[seed], "asked": cells.truths}
        for row, (word, images) in enumerate(rows.items()):
            at = bottom + row * (IMAGE + GAP)
            axes = plotting.row_at(picture, 0.4, at, IMAGE, EXAMPLES, GAP)
            for axis, index in zip(axes, candidates[places], strict=True):
                factors = cells.factors[index]
                plotting.show_signal(axis, images[index], settings.image.amplitude, factors, color)
            axes[0].set_ylabel(word)
        plotting.title_left(axes[0], name, color=color)
        plotting.panel_label(axes[0], letter)
    for column, (score, title) in enumerate(SCORES.items()):
        axis = plotting.axis_at(picture, 4.4 + column * (MAP + 0.2), 1.2, MAP, MAP)
        shares = plotting.over_grid(cells.scores[score].mean(axis=0), cells)
        image = plotting.show_map(axis, shares, vmin=0, vmax=1, cmap="cividis")
        plotting.outline(axis, plotting.over_grid(cells.held_out, cells))
        axis.set_title(title)
        means = [
            mean_score(cells, score, mask).mean() for mask in (~cells.held_out, cells.held_out)
        ]
        axis.set_xlabel("x (pixels)\nID {:.2f}, OOD {:.2f}".format(*means))
        if column:
            axis.set(ylabel="", yticks=[])
        plotting.panel_label(axis, "cd"[column])
    bar = plotting.axis_at(picture, 4.4, 0.45, 2 * MAP + 0.2, 0.09)
    picture.colorbar(
        image, cax=bar, orientation="horizontal", label="share of seeds that render it"
    )
    return picture
