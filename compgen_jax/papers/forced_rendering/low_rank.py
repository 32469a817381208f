"""C8: the first remedy, decoders of low-rank embeddings (Figure 3).

Quantities of `CellResults` and of finished runs, and the claims.
"""

import numpy as np

from compgen_jax.claims import Claim, Condition, median_over_checkpoints, once
from compgen_jax.metrics import embeddings, evaluation
from compgen_jax.models import lowrank
from compgen_jax.papers.forced_rendering.images import exact, within_a_pixel
from compgen_jax.statistics import median_with_interval

FACTOR_OF_TWO = float(np.log10(2))  # what separates helping little from helping much
# which of the penalties (entropy, variance) each keeps
ABLATIONS = {"none": (0, 0), "entropy": (1, 0), "variance": (0, 1), "both": (1, 1)}
EMBEDDING_NUMBERS = {
    "top_share": "energy in the largest singular value",
    "constant_share": "energy constant along the other axis",
}


def embedding_matrices(run):
    """The embeddings of x and of y, (T, N, N, N), indexed [seed, token, row y, column x]."""
    factors = lowrank.embeddings(run.params, run.config.model.vectors)
    scaled = ((factor.values[..., None] * factor.left, factor.right) for factor in factors)
    return [np.matmul(np.swapaxes(left, -2, -1), right) for left, right in scaled]


def embedding_numbers(run) -> dict:
    """`metrics.embeddings.embedding_numbers` of a network's tokens of x and of y."""
    factors = lowrank.embeddings(run.params, run.config.model.vectors)
    weights_TxBxK = np.concatenate([factor.values for factor in factors], axis=1)
    return embeddings.embedding_numbers(*embedding_matrices(run), weights_TxBxK)


@once
def _log_errors(evidence) -> dict[tuple[str, str], np.ndarray]:
    """log10 of the mean squared error, (T,) per seed, by region and ablation; 'blank' is a blank
    image's."""
    errors = {}
    for region in ("ID", "OOD"):
        for name in ABLATIONS:
            cells = getattr(evidence, name).late.cells
            mean_T = evaluation.errors(cells)[:, cells.held_out == (region == "OOD")].mean(axis=1)
            errors[region, name] = median_over_checkpoints(np.log10(mean_T), cells.seeds)
    cells = evidence.both.late.cells
    return errors | {("OOD", "blank"): np.log10(np.square(cells.truths[cells.held_out]).mean())}


def _compared(region: str, name: str, other, what: str = "", median: bool = False, **bound):
    """A condition on one ablation's log10 error minus another's, over paired seeds: their mean or
    their `median`. `other` is an ablation, or np.max or np.min of all others."""

    def difference(evidence):
        errors = _log_errors(evidence)
        if callable(other):
            others = other([errors[region, n] for n in ABLATIONS if n != name], axis=0)
        else:
            others = errors[region, other]
        apart = errors[region, name] - others
        return median_with_interval(apart) if median else apart

    title = f"{'median ' * median}log10 MSE {region}{what or f', {name} minus {other}'}"
    return Condition(title, difference, **bound)


def _medians(region: str, name: str, **bound) -> tuple[Condition, ...]:
    return tuple(
        _compared(region, name, other, median=True, **bound) for other in ABLATIONS if other != name
    )


# As stated, one ablation's error is on the paper's side of each other's, in the median over seeds.
# Stricter, of the best of the others in every seed, in the mean. Only the network without penalties
# must be trained, as what the others lose is part of the claim.
OF_LOW_RANK = {
    "figure": "Fig 3e",
    "runs": {name: f"lowrank_{name}" for name in ABLATIONS},
    "code": "onehot",
}
BEST_ID_WORST_OOD = Claim(
    "C8",
    "without penalties, the error is the lowest ID and the highest OOD",
    **OF_LOW_RANK,
    as_stated=(*_medians("OOD", "none", above=0), *_medians("ID", "none", below=0)),
    stricter=(
        _compared("OOD", "none", np.max, ", none minus the highest of the others", above=0),
        _compared("ID", "none", np.min, ", none minus the lowest of the others", below=0),
    ),
    details=lambda e: {
        f"log10 MSE {region}, {name}": values
        for (region, name), values in _log_errors(e).items()
        if name in ABLATIONS
    },
)
VARIANCE_HELPS = Claim(
    "C8",
    "entropy alone helps little OOD, variance alone much, at a cost ID",
    **OF_LOW_RANK,
    as_stated=(
        _compared("OOD", "none", "variance", median=True, above=FACTOR_OF_TWO),
        _compared("OOD", "none", "entropy", median=True, below=FACTOR_OF_TWO),
        _compared("ID", "variance", "none", median=True, above=0),
    ),
    stricter=(
        _compared("OOD", "none", "variance", above=FACTOR_OF_TWO),
        _compared("OOD", "none", "entropy", below=FACTOR_OF_TWO),
        _compared("ID", "variance", "none", above=0),
    ),
)
BLANK = " of both, over a blank image's"
BOTH_ARE_BEST = Claim(
    "C8",
    "both penalties together are best OOD",
    **OF_LOW_RANK,
    as_stated=(
        *_medians("OOD", "both", below=0),
        _compared("OOD", "both", "blank", BLANK, median=True, below=0),
    ),
    stricter=(
        _compared("OOD", "both", np.min, ", both minus the lowest of the others", below=0),
        _compared("OOD", "both", "blank", BLANK, below=0),
    ),
    # low rank is not the same as being constant along the other factor's axis
    details=lambda e: (
        {
            "exact accuracy OOD, both": exact(e.both.late.cells),
            "accuracy OOD within 1 pixel, both": within_a_pixel(e.both.late.cells),
            "exact accuracy OOD, none": exact(e.none.late.cells),
        }
        | {
            f"{title}, {name}": embedding_numbers(getattr(e, name))[key]
            for name in ABLATIONS
            for key, title in EMBEDDING_NUMBERS.items()
        }
    ),
)
CLAIMS = BEST_ID_WORST_OOD, VARIANCE_HELPS, BOTH_ARE_BEST
