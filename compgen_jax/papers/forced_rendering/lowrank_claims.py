"""C8, C15 and K9: the first remedy, decoders of low-rank embeddings (Figure 3).

Quantities of `CellResults` and of finished runs, and the claims. Only the network without penalties
must be trained, as what the others lose is part of the claim.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.claims import (
    BASE,
    above,
    below,
    claim,
    exact_id,
    learnt,
    median_over_checkpoints,
    note,
)
from compgen_jax.metrics import embeddings, evaluation, geometry
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.models import lowrank
from compgen_jax.papers.forced_rendering.image_quantities import exact, rendered, rendered_ood
from compgen_jax.statistics import median_with_interval

FACTOR_OF_TWO = float(np.log10(2))  # what helps more, helps much
RANK_ONE = 0.99  # of an embedding's energy, in its largest singular value
CONSTANT = 0.9  # of it, constant along the other factor's axis
# which of the penalties (entropy, variance) each keeps
ABLATIONS = {"none": (0, 0), "entropy": (1, 0), "variance": (0, 1), "both": (1, 1)}
EMBEDDING_NUMBERS = {
    "top_share": "energy in the largest singular value",
    "constant_share": "energy constant along the other axis",
}
ALL = {
    "figure": "Fig 3e",
    "cases": [{"case": "onehot"}],
    "runs": {name: f"lowrank_{name}" for name in ABLATIONS},
}
# The networks with both penalties and with none are those of the authors' notebook. There is no
# code of the other two, and the paper does not say how strong their one penalty is.


def embedding_matrices(run):
    """The embeddings of x and of y, (S, N, N, N), indexed [seed, token, row y, column x]."""
    factors = lowrank.embeddings(run.params, run.config.model.vectors)
    scaled = ((factor.values[..., None] * factor.left, factor.right) for factor in factors)
    return [np.matmul(np.swapaxes(left, -2, -1), right) for left, right in scaled]


def embedding_numbers(run) -> dict:
    """`metrics.embeddings.embedding_numbers` of a network's tokens of x and of y."""
    factors = lowrank.embeddings(run.params, run.config.model.vectors)
    weights_SxBxK = np.concatenate([factor.values for factor in factors], axis=1)
    return embeddings.embedding_numbers(*embedding_matrices(run), weights_SxBxK)


# --- C8: errors --------------------------------------------------------------------------------


def log_errors(runs: dict) -> dict:
    """log10 of the mean squared error of every ablation, (S,) by region and name."""
    found = {}
    for region in ("ID", "OOD"):
        for name, run in runs.items():
            cells = run.late.cells
            errors = evaluation.errors(cells)[..., cells.held_out == (region == "OOD")]
            found[region, name] = median_over_checkpoints(np.log10(errors.mean(axis=-1)))
    return found


def _apart(errors: dict, region: str, name: str, other: str):
    """One ablation's minus another's, in pairs of seeds, and what that is called."""
    difference = errors[region, name] - errors[region, other]
    return difference, f"log10 MSE {region}, {name} minus {other}"


def _from_best(errors: dict, region: str, name: str, best, word: str):
    """One ablation's minus the `best` of all others in every seed, and what that is called."""
    others = best([errors[region, other] for other in _others(name)], axis=0)
    title = f"log10 MSE {region}, {name} minus the {word} of the others"
    return errors[region, name] - others, title


def _over_blank(errors: dict, cells: CellResults):
    """Both penalties' over a blank image's, OOD, and what that is called."""
    blank = np.log10(np.square(cells.truths[cells.held_out]).mean())
    return errors["OOD", "both"] - blank, "log10 MSE OOD of both, over a blank image's"


def _median(difference, title: str):
    """The median over seeds instead of the mean, and what that is called."""
    return median_with_interval(difference), f"median {title}"


def _mean(difference, title: str):
    return difference, title


def _others(name: str):
    return [other for other in ABLATIONS if other != name]


def _learnt(runs):
    return learnt(exact_id(runs["none"].late.cells))


@claim("C8", **ALL)
def without_penalties_best_id_worst_ood(**runs):
    """Without penalties, the error is the lowest on seen combinations and the highest on held-out
    ones."""
    errors = log_errors(runs)
    yield _learnt(runs)
    for region, bound in (("OOD", above), ("ID", below)):
        for other in _others("none"):
            yield bound(0, *_median(*_apart(errors, region, "none", other)))
    for (region, name), values in errors.items():
        yield note(f"log10 MSE {region}, {name}", values)


@claim("C8.paired", **ALL)
def without_penalties_best_id_worst_ood_in_every_seed(**runs):
    """Without penalties, the error is below the lowest other ID, and above the highest other OOD,
    in the mean of paired seeds."""
    errors = log_errors(runs)
    yield _learnt(runs)
    yield above(0, *_from_best(errors, "OOD", "none", np.max, "highest"))
    yield below(0, *_from_best(errors, "ID", "none", np.min, "lowest"))


# Little is less than half of what variance alone changes, to either side.
def _variance_helps(runs, of_seeds):
    errors = log_errors(runs)
    yield _learnt(runs)
    much, title = _apart(errors, "OOD", "none", "variance")
    yield above(FACTOR_OF_TWO, *of_seeds(much, title), against=0)
    little, title = _apart(errors, "OOD", "none", "entropy")
    yield below(0, *of_seeds(little - much / 2, f"{title}, less half of variance's"))
    yield above(0, *of_seeds(little + much / 2, f"{title}, plus half of variance's"))
    yield above(0, *of_seeds(*_apart(errors, "ID", "variance", "none")))


@claim("C8.variance", **ALL)
def variance_helps(**runs):
    """On held-out combinations the entropy penalty alone helps little, the variance penalty alone
    much; on seen ones it costs."""
    return _variance_helps(runs, _median)


@claim("C8.variance_paired", **ALL)
def variance_helps_in_the_mean(**runs):
    """Entropy alone helps little OOD, variance alone much, at a cost ID, in the mean of paired
    seeds."""
    return _variance_helps(runs, _mean)


@claim("C8.both", **ALL)
def both_are_best(**runs):
    """Both penalties together are best on held-out combinations."""
    errors = log_errors(runs)
    yield _learnt(runs)
    for other in _others("both"):
        yield below(0, *_median(*_apart(errors, "OOD", "both", other)))
    yield below(0, *_median(*_over_blank(errors, runs["both"].late.cells)))
    for name in ("both", "none"):
        yield note(f"exact accuracy OOD, {name}", exact(runs[name].late.cells))
        yield note(f"share rendered OOD, {name}", rendered(runs[name].late.cells))


@claim("C8.both_paired", **ALL)
def both_are_best_in_every_seed(**runs):
    """Both penalties together are below the best of the others OOD, in the mean of paired seeds."""
    errors = log_errors(runs)
    yield _learnt(runs)
    yield below(0, *_from_best(errors, "OOD", "both", np.min, "lowest"))
    yield below(0, *_over_blank(errors, runs["both"].late.cells))


# --- K9: rank or constancy ---------------------------------------------------------------------


# A matrix of rank one may end where training ends. No accuracy is asked of the network
# with variance alone, as what it renders where nothing was seen shows what it has learnt.
@claim("K9", **ALL)
def constancy_composes_and_rank_one_does_not(**runs):
    """Embeddings of rank one are not enough: with entropy alone they have it and most held-out
    images fail. With variance alone embeddings are constant along the other axis, and most are
    rendered."""
    entropy, variance = runs["entropy"], runs["variance"]
    numbers = {name: embedding_numbers(run) for name, run in runs.items()}
    top, constant = EMBEDDING_NUMBERS
    yield learnt(exact_id(entropy.late.cells), "exact accuracy ID, entropy")
    for bound, at, name, key in (
        (above, RANK_ONE, "entropy", top),
        (below, CONSTANT, "entropy", constant),
        (above, CONSTANT, "variance", constant),
    ):
        yield bound(at, numbers[name][key], f"{EMBEDDING_NUMBERS[key]}, {name}")
    yield rendered_ood(entropy, below=0.5, name="share rendered OOD, entropy")
    yield rendered_ood(variance, above=0.5, name="share rendered OOD, variance")
    for name, of_run in numbers.items():
        for key, title in EMBEDDING_NUMBERS.items():
            yield note(f"{title} at the end of training, {name}", of_run[key])


# --- C15: volume -------------------------------------------------------------------------------


def log_volumes(cells: CellResults):
    """(..., N, N) log10 of the volume element of what is drawn, by differences between neighbouring
    cells: a one-hot code has no derivative."""
    leading = cells.predictions.shape[: -cells.truths.ndim]
    flat = cells.predictions.reshape(-1, *cells.truths.shape)
    volumes = np.stack([geometry.grid_log_volume(one, cells.sizes) for one in flat])
    return volumes.reshape(*leading, *volumes.shape[1:])


class Smoothness(NamedTuple):
    """How smooth the log volume of what is drawn is, by network: its mean absolute difference
    between neighbouring cells, over all cells and over the corner; and its mean distance from that
    of the true images over the corner."""

    roughness: np.ndarray
    in_corner: np.ndarray
    from_true: np.ndarray


def smoothness(cells: CellResults) -> Smoothness:
    volumes = log_volumes(cells)
    corner_NxN = cells.held_out.reshape(cells.sizes[::-1])
    true_NxN = geometry.grid_log_volume(cells.truths, cells.sizes)
    leading, flat = volumes.shape[:-2], volumes.reshape(-1, *volumes.shape[-2:])
    return Smoothness(
        np.reshape([geometry.roughness(one) for one in flat], leading),
        np.reshape([geometry.roughness(one, corner_NxN) for one in flat], leading),
        np.abs(volumes - true_NxN)[..., corner_NxN].mean(axis=-1),
    )


SMOOTH = {
    "figure_setting": BASE,  # the authors' notebook has both networks
    "figure": "Fig 3d",
    "cases": [{"case": "onehot"}],
    "runs": {"none": "lowrank_none", "both": "lowrank_both"},
}
OVER_CORNER = "roughness of log volume over the corner"
FROM_TRUE = "distance of log10 volume from the true images' over the corner"


def _rougher(none, both, field: str):
    """(S,) with both penalties over that without."""
    of_both, of_none = (
        median_over_checkpoints(getattr(smoothness(run.late.cells), field)) for run in (both, none)
    )
    return of_both / of_none


@claim("C15", **SMOOTH)
def volume_is_smoother(none, both):
    """With both penalties the volume element is smoother than without."""
    yield learnt(exact_id(none.late.cells))
    name = "roughness of log volume, both penalties / none"
    yield below(1, _rougher(none, both, "roughness"), name, ratio=True)
    for title, run in (("none", none), ("both", both)):
        of_run = smoothness(run.late.cells)
        yield note(f"roughness of log volume, {title}", of_run.roughness)
        yield note(f"{OVER_CORNER}, {title}", of_run.in_corner)
        yield note(f"{FROM_TRUE}, {title}", of_run.from_true)


@claim("C15.true_images", **SMOOTH)
def volume_over_the_corner_is_nearly_the_true_one(none, both):
    """With both penalties the volume element is smoother over the corner, and nearly that of the
    true images: a plus or noise can have a smooth volume as well."""
    yield learnt(exact_id(none.late.cells))
    name = f"{OVER_CORNER}, both penalties / none"
    yield below(1, _rougher(none, both, "in_corner"), name, ratio=True)
    from_true = smoothness(both.late.cells).from_true
    yield below(FACTOR_OF_TWO, from_true, f"{FROM_TRUE}, both penalties")


CLAIMS = (
    without_penalties_best_id_worst_ood,
    without_penalties_best_id_worst_ood_in_every_seed,
    variance_helps,
    variance_helps_in_the_mean,
    both_are_best,
    both_are_best_in_every_seed,
    constancy_composes_and_rank_one_does_not,
    volume_is_smoother,
    volume_over_the_corner_is_nearly_the_true_one,
)
