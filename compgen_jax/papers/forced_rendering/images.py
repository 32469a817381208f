"""What several claims measure of drawn images: quantities of the run `net`, late in training.

Functions of `CellResults` give one value per network: (S,), or (S, C) at several steps.
"""

from collections.abc import Callable

import jax
import numpy as np

from compgen_jax.claims import Condition, exact_id
from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import CellResults, mean_score
from compgen_jax.tasks import baselines, images

CLEARLY = 0.05  # of a share: what the ID gate forgives as well
PAPER_GRID = 28
AT_THE_END = (  # of `Claim.changed`
    "Its numbers were of the end of training alone, and are now medians over late checkpoints; "
    "verdicts of the end were known."
)


def late(quantity: Callable) -> Callable:
    """evidence -> quantity(what `net` draws at every cell, late in training)."""
    return lambda evidence: quantity(evidence.net.late.cells)


def exact(cells: CellResults):
    """Share of held-out cells whose brightest pixel is the right one."""
    return mean_score(cells, "exact_accuracy", cells.held_out)


def rendered(cells: CellResults):
    """Share of held-out cells whose image is rendered (`tasks.images.rendered`)."""
    return mean_score(cells, "rendered", cells.held_out)


def rendered_id(cells: CellResults):
    """Share of ID cells whose image is rendered."""
    return mean_score(cells, "rendered", ~cells.held_out)


def within_a_pixel(cells: CellResults):
    return mean_score(cells, "position_accuracy", cells.held_out)


def relative_error(cells: CellResults):
    """MSE over held-out cells, a blank image's being 1."""
    return evaluation.relative_error(cells, cells.held_out)


OOD_CELLS = late(lambda cells: cells.held_out.sum())


def rendered_ood(above: float | None = None, below: float | None = None) -> Condition:
    """A condition on the share rendered over held-out cells."""
    return Condition("share rendered OOD", late(rendered), above, below, OOD_CELLS)


def trivial_shares(cells: CellResults) -> dict[str, float]:
    """The share of held-out cells that every trivial predictor renders, by name. They know the true
    images of all ID cells (`baselines.GRID_PREDICTORS`)."""
    ood = cells.held_out
    known = baselines.asked_on_grid(cells.truths, ood, cells.sizes)
    return {
        name: float(all_rendered(predict(known)[ood], cells.truths[ood], known.nearest[ood]).mean())
        for name, predict in baselines.GRID_PREDICTORS.items()
    }


# (..., B) of what networks draw (..., B, H, W), truths (B, H, W) and nearest ID images (B, H, W)
all_rendered = evaluation.over_networks(jax.vmap(images.rendered))


def above_predictors(share, shares: dict, cells: int) -> Condition:
    """A share rendered of `cells` OOD cells is above that of every predictor, by name."""
    best = max(shares, key=lambda name: np.mean(shares[name]))
    of_best = np.max(np.broadcast_arrays(*shares.values()), axis=0)
    name = f"share rendered OOD, less the best predictor's ({best.replace('_', ' ')})"
    return Condition(name, share - of_best, above=0, cells=cells, least=-1)


def interpolated(evidence):
    """(S, 1) share of held-out cells that the interpolator renders, from codes that `net` saw."""
    return rendered(evidence.net.late.interpolator)


def above_trivial(evidence) -> Condition:
    """`net` renders more OOD than every predictor that knows ID images, the interpolator among
    them."""
    cells = evidence.net.late.cells
    known = trivial_shares(cells) | {"interpolator": interpolated(evidence)}
    return above_predictors(rendered(cells), known, OOD_CELLS(evidence))


def over_interpolator(above: float | None = None) -> Callable:
    """evidence -> a condition on the share rendered OOD less the interpolator's: below `CLEARLY`,
    and above a bound."""

    def condition(evidence) -> Condition:
        less = rendered(evidence.net.late.cells) - interpolated(evidence)
        name = f"share rendered OOD, less the interpolator's{post_hoc(evidence)}"
        return Condition(name, less, above, CLEARLY)

    return condition


def post_hoc(evidence) -> str:
    """For a condition of which a number was known, at smaller grids, before it was chosen."""
    return ", post hoc" * (evidence.net.late.cells.grid < PAPER_GRID)


def rendered_shown(run):
    """(...) share rendered of the cells that each network was shown. A network that saw a few bumps
    may be judged whatever it draws at the other ID cells."""
    rendered = run.cells.scores["rendered"]
    return np.average(rendered, axis=-1, weights=np.broadcast_to(run.shown, rendered.shape))


def worst_exact_id(*runs):
    """(S, C) exact accuracy ID of the worse of some runs, where all of them must be trained."""
    return np.min([exact_id(run.late.cells) for run in runs], axis=0)
