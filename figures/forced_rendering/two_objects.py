"""Two objects in each image: is the first one rendered where the second lights every pixel?"""

import jax
import numpy as np

from compgen_jax.metrics.evaluation import mean_score
from compgen_jax.tasks import bump

from .. import plotting
from ..figure import figure

EXAMPLES = 5  # of each region
APART = 4  # pixels between the bumps of an example, so that both can be told
IMAGE, GAP, MAP = 0.55, 0.05, 1.38  # inches
SCORES = {"rendered": "first bump", "rendered_second": "second bump"}


@figure("two_objects", runs=("two_objects",))
def draw(runs):
    """Images of two bumps, of which the first has a hole and the second lies anywhere (K1). (a, b)
    What is asked and what a seed draws, for ID and for held-out places of the first bump (circles).
    It is the seed whose share rendered OOD is the median. (c, d) The share of seeds that render the
    first and the second bump, by the place of the first, whose hole is outlined. Each cell has one
    second bump; titles have the mean over ID and over held-out cells."""
    (run,) = runs.values()
    cells, settings = run.cells, run.config.task
    picture = plotting.new_figure(plotting.WIDTH, 3.35)
    share_T = mean_score(cells, "rendered", cells.held_out)
    seed = np.argsort(share_T)[(len(share_T) - 1) // 2]
    seconds = jax.vmap(lambda point: bump.second_place(point, settings.grid))(cells.factors)
    apart = np.abs(np.asarray(seconds) - cells.factors).max(axis=1) >= APART
    for letter, bottom, region, name, color in (
        ("a", 1.87, ~cells.held_out, "first bump ID", plotting.ID_COLOR),
        ("b", 0.2, cells.held_out, "first bump held out (OOD)", plotting.OOD_COLOR),
    ):
        candidates = np.flatnonzero(region & apart)
        places = np.linspace(0, len(candidates) - 1, EXAMPLES + 2).round().astype(int)[1:-1]
        rows = {"drawn": cells.predictions[seed], "asked": cells.truths}
        for row, (word, images) in enumerate(rows.items()):
            at = bottom + row * (IMAGE + GAP)
            axes = plotting.row_at(picture, 0.3, at, IMAGE, EXAMPLES, GAP)
            for axis, index in zip(axes, candidates[places], strict=True):
                factors = cells.factors[index]
                plotting.show_signal(axis, images[index], settings.image.amplitude, factors, color)
            axes[0].set_ylabel(word)
        plotting.panel(axes[0], letter, f"{name}, seed {cells.seeds[seed]}", color=color)
    for column, (score, title) in enumerate(SCORES.items()):
        axis = plotting.axis_at(picture, 3.82 + column * (MAP + 0.12), 1.2, MAP, MAP)
        image = plotting.show_share(axis, cells, score)
        means = [
            mean_score(cells, score, mask).mean() for mask in (~cells.held_out, cells.held_out)
        ]
        if column:
            axis.set(ylabel="", yticks=[])
        text = "{} rendered: {:.0%} ID, {:.0%} OOD".format(title, *means)
        plotting.panel(axis, "cd"[column], text, wrap=22)
    bar = plotting.axis_at(picture, 3.82, 0.45, 2 * MAP + 0.02, 0.09)
    picture.colorbar(
        image, cax=bar, orientation="horizontal", label="share of seeds that render it"
    )
    return picture
