"""What several claims measure of drawn images, (S,) or, by seed and late checkpoint, (S, C); and
the conditions that they share."""

import jax
import numpy as np

from compgen_jax.claims import Condition, exact_id, learnt, note
from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import CellResults, mean_score
from compgen_jax.tasks import baselines, images

CLEARLY = 0.05  # of a share: what the ID gate forgives as well
PAPER_GRID = 28


def rendered(cells: CellResults):
    """Share of held-out cells whose image is rendered (`tasks.images.rendered`)."""
    return mean_score(cells, "rendered", cells.held_out)


def rendered_id(cells: CellResults):
    """Share of ID cells whose image is rendered."""
    return mean_score(cells, "rendered", ~cells.held_out)


def rendered_shown(run):
    """Share rendered of the cells that each network was shown, of all ID cells perhaps a few."""
    scores = run.cells.scores["rendered"]
    return np.average(scores, axis=-1, weights=np.broadcast_to(run.shown, scores.shape))


def slope(values, positions=None):
    """Least-squares slope of values (..., K) on positions (K,), by default 0, 1, ...; exactly 0
    where they are equal."""
    positions = np.arange(values.shape[-1]) if positions is None else np.asarray(positions)
    from_mean = positions - np.mean(positions)
    return (values - values[..., :1]) @ (from_mean / np.square(from_mean).sum())


def explained(missed, whole, axes):
    """(...) 1 less the squares of what is missed over those of the whole, which are summed over
    axes; 0 where there is nothing."""
    share, total = (np.square(part).sum(axis=axes) for part in (missed, whole))
    return np.where(total > 0, 1 - share / np.where(total > 0, total, 1), 0.0)


def at_common_seeds(measure, *runs):
    """What `measure` gives of each run, (S, ...), for the seeds that all of these have."""
    common = set.intersection(*({*run.seeds} for run in runs))
    return [measure(run)[[seed in common for seed in run.seeds]] for run in runs]


def trained(*runs):
    """The gate of a claim on runs that must all be right on ID cells, by the worse of them."""
    return learnt(np.min(at_common_seeds(lambda run: exact_id(run.late.cells), *runs), axis=0))


def from_codes(run, share=rendered) -> dict:
    """{predictor of `baselines.FROM_CODES`: share of held-out cells that it renders}."""
    return {name.replace("_", " "): share(getattr(run.late, name)) for name in baselines.FROM_CODES}


def trivial_shares(cells: CellResults) -> dict[str, float]:
    """The share of held-out cells that every trivial predictor renders, by name. They know the true
    images of all ID cells (`baselines.grid_predictions`)."""
    ood = cells.held_out
    predictions = baselines.grid_predictions(cells.truths, ood, cells.sizes)
    nearest = predictions["nearest_seen"][ood]
    return {
        name: float(all_rendered(drawn[ood], cells.truths[ood], nearest).mean())
        for name, drawn in predictions.items()
    }


# (..., B) of what networks draw (..., B, H, W), truths (B, H, W) and perhaps nearest ID images
all_rendered = evaluation.over_networks(jax.vmap(images.rendered))


def best_of(shares: dict):
    """(...) the share of the best predictor, from those by name."""
    return np.max(np.broadcast_arrays(*shares.values()), axis=0)


# --- conditions --------------------------------------------------------------------------------


def rendered_ood(run, name: str = "share rendered OOD", **bounds) -> Condition:
    """On the share of held-out cells rendered."""
    cells = run.late.cells
    return Condition(name, rendered(cells), cells=cells.held_out.sum(), **bounds)


def over_interpolator(run, above: float | None = None) -> Condition:
    """The share rendered OOD less the interpolator's is below `CLEARLY`, and above a bound."""
    less = rendered(run.late.cells) - rendered(run.late.interpolator)
    name = "share rendered OOD, less the interpolator's" + post_hoc(run)
    return Condition(name, less, above, CLEARLY)


def post_hoc(run) -> str:
    """For a condition of which a number was known, at smaller grids, before it was chosen."""
    return ", post hoc" if run.late.cells.grid < PAPER_GRID else ""


def above_predictors(share, shares: dict, cells: int) -> Condition:
    """A share rendered of `cells` OOD cells is above that of every predictor, by name."""
    name = "share rendered OOD, less the best predictor's"
    return Condition(name, share - best_of(shares), above=0, cells=cells, least=-1)


def notes_on_images(run):
    """Further numbers of what is drawn for held-out cells."""
    for name, share in from_codes(run).items():
        yield note(f"share rendered OOD by the {name}", share)
    cells = run.late.cells
    exact = mean_score(cells, "exact_accuracy", cells.held_out)
    yield note("exact accuracy OOD", exact)
    yield note("MSE OOD / blank image's", evaluation.relative_error(cells, cells.held_out))
