"""C8 to C10: the two remedies, low rank and stripes (Figures 3, 4 and 7).

Quantities of `CellResults` and of finished runs, and the claims.
"""

import functools
from typing import NamedTuple

import numpy as np

from compgen_jax.claims import Claim, Condition, first_exact_id, median_over_checkpoints, once
from compgen_jax.metrics import embeddings, evaluation
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.models import lowrank
from compgen_jax.papers.forced_rendering import controls, signals
from compgen_jax.papers.forced_rendering.images import (
    better_than,
    exact,
    exact_ood,
    late,
    within_a_pixel,
)
from compgen_jax.runs import results
from compgen_jax.statistics import median_with_interval
from compgen_jax.tasks import bump

QUARTER = 0.25  # of a blank image's error
FACTOR_OF_TWO = float(np.log10(2))  # what separates helping little from helping much
# bumps beside the stripes that must be enough, at either scale: each has a run of one number
FEW = {"few": (30, 50)}

# --- C8: low rank ------------------------------------------------------------------------------

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
    return errors | {("OOD", "blank"): np.log10(_blank_mse(evidence.both.late.cells))}


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

# --- C9 and C10: stripes -----------------------------------------------------------------------


class Stripes(NamedTuple):
    """What networks trained on stripes draw for one factor, (T, 2N, N, N), and for none, (T, N, N),
    beside the true stripes (2N, N, N). The N vertical ones come first."""

    drawn: np.ndarray
    null: np.ndarray
    true: np.ndarray


def stripes_of(run) -> Stripes:
    """What its networks draw for one factor alone, at `tasks.bump.stripe_points`, and for none."""
    points = bump.stripe_points(run.config.task.grid)
    nothing = np.full((1, 2), np.nan, np.float32)
    drawn = run.predict(np.concatenate([points, nothing]))
    return Stripes(drawn[:, :-1], drawn[:, -1], true_stripes(run.config.task))


@functools.cache
def true_stripes(settings: bump.Bump):
    """(2N, N, N), as in `Stripes`."""
    return results.truths_at(settings.make(), bump.stripe_points(settings.grid))


@once
def _stripes(evidence) -> Stripes:
    return stripes_of(evidence.net.late)


def stripe_accuracy(stripes: Stripes):
    """(T,) share of stripes whose brightest line, by its mean, is the right one."""
    grid = len(stripes.true) // 2
    vertical, horizontal = stripes.drawn[:, :grid], stripes.drawn[:, grid:]
    lines = [vertical.mean(axis=2).argmax(axis=-1), horizontal.mean(axis=3).argmax(axis=-1)]
    return np.mean([line == np.arange(grid)[None] for line in lines], axis=(0, 2))


def weights(cells: CellResults, stripes_2NxHxW):
    """(T,) each: means over OOD signals of the weights of the stripes' sum and of their product,
    fitted together with a level, and of the fit's R^2 over pixels (0 of a constant signal)."""
    parts = [
        signals.stripes_sum(stripes_2NxHxW, cells.held_out),
        signals.stripes_product(stripes_2NxHxW, cells.held_out, cells.amplitude),
    ]
    parts_QxPx2 = np.stack([part.reshape(len(part), -1) for part in parts], axis=-1)
    drawn = np.asarray(cells.predictions[:, cells.held_out], np.float64)
    drawn_TxQxP = drawn.reshape(*drawn.shape[:2], -1)
    # both centred over pixels, which fits the level
    parts_QxPx2 = parts_QxPx2 - parts_QxPx2.mean(axis=1, keepdims=True)
    drawn_TxQxP = drawn_TxQxP - drawn_TxQxP.mean(axis=2, keepdims=True)
    weights_TxQx2 = np.einsum("qkp,tqp->tqk", np.linalg.pinv(parts_QxPx2), drawn_TxQxP)
    left_TxQxP = drawn_TxQxP - np.einsum("tqk,qpk->tqp", weights_TxQx2, parts_QxPx2)
    r2 = _explained(left_TxQxP, drawn_TxQxP)
    return weights_TxQx2[..., 0].mean(axis=1), weights_TxQx2[..., 1].mean(axis=1), r2.mean(axis=1)


@once
def _weights(evidence):
    return weights(evidence.net.late.cells, _stripes(evidence).true)


def own_sum_r2(cells: CellResults, stripes: Stripes):
    """(T,) mean over OOD signals of the R^2 over pixels of f(x) + f(y) - f(no factor)."""
    drawn = np.asarray(cells.predictions[:, cells.held_out], np.float64)
    sums = [signals.stripes_sum(of_seed, cells.held_out) for of_seed in stripes.drawn]
    left = drawn - (np.stack(sums) - stripes.null[:, None])
    flat = lambda images: images.reshape(*images.shape[:2], -1)
    centred = flat(drawn) - flat(drawn).mean(axis=2, keepdims=True)
    return _explained(flat(left), centred).mean(axis=1)


def _explained(left_TxQxP, whole_TxQxP):
    total = np.square(whole_TxQxP).sum(axis=2)
    share = np.square(left_TxQxP).sum(axis=2) / np.where(total > 0, total, 1)
    return np.where(total > 0, 1 - share, 0.0)


def _mse_to(cells, images_QxHxW):
    """(T,) mean squared error of what is drawn for held-out cells."""
    drawn = cells.predictions[:, cells.held_out]
    return np.square(drawn - images_QxHxW[None]).mean(axis=(1, 2, 3))


def _blank_mse(cells):
    return np.square(cells.truths[cells.held_out]).mean()


def _relative_mse(cells):
    """(T,) of what is drawn for held-out cells, over a blank image's."""
    return _mse_to(cells, cells.truths[cells.held_out]) / _blank_mse(cells)


def _correlation(cells, images_QxHxW):
    """(T,) mean correlation over pixels of what is drawn for held-out cells with images."""

    def standard(images):
        v = images.reshape(*images.shape[:-2], -1)
        spread = np.maximum(v.std(axis=-1, keepdims=True), 1e-12)
        return (v - v.mean(axis=-1, keepdims=True)) / spread

    drawn = standard(cells.predictions[:, cells.held_out])
    return (drawn * standard(images_QxHxW)[None]).mean(axis=(1, 2))


def _of_stripes_alone(evidence) -> dict:
    cells = evidence.net.late.cells
    plus = signals.stripes_sum(_stripes(evidence).true, cells.held_out)
    return {
        "additive weight": _weights(evidence)[0],
        "product weight": _weights(evidence)[1],
        "accuracy OOD within 1 pixel": within_a_pixel(cells),
        "exact accuracy OOD": exact(cells),
        "correlation OOD with the plus": _correlation(cells, plus),
        "correlation OOD with the bump": _correlation(cells, cells.truths[cells.held_out]),
        "MSE OOD to the plus / a blank image's": _mse_to(cells, plus) / np.square(plus).mean(),
        "MSE OOD to the bump / a blank image's": _relative_mse(cells),
    }


# Each OOD signal is fitted by a level, both stripes (their sum's weight is the additive one) and
# their product, the true bump. Stripes do not teach the level: s_x + s_y - c is as additive as any,
# and adding two inverted images is c = 1. As stated, the fit must also explain half of the signal's
# variance, as blank images, noise and bumps elsewhere have weights as well. These networks have not
# seen a point, so what they must have learnt is the stripes.
STRIPES_ADD_UP = Claim(
    "C9",
    "trained on stripes alone, decoders draw both stripes of held-out points, added",
    figure="Fig 4b",
    each=(
        {"run": "stripes_0_bumps", "shown": ""},
        {"run": "stripes_0_bumps_upright", "shown": ", upright, code zero"},
        {"run": "stripes_0_bumps_off_grid", "shown": ", inverted, code off the grid"},
        {"run": "stripes_0_bumps_upright_off_grid", "shown": ", upright, code off the grid"},
    ),
    runs={"net": "{run}"},
    code="bump{shown}",
    trained=lambda e: stripe_accuracy(_stripes(e)),
    trained_name="accuracy on the stripes",
    as_stated=(
        Condition(
            "additive weight minus product weight",
            lambda e: _weights(e)[0] - _weights(e)[1],
            above=0,
        ),
        Condition("R2 on level, stripes and product", lambda e: _weights(e)[2], above=0.5),
    ),
    stricter=Condition(
        "R2 of the network's own f(x) + f(y) - f()",
        lambda e: own_sum_r2(e.net.late.cells, _stripes(e)),
        above=0.5,
    ),
    details=_of_stripes_alone,
)


def _by_bumps(evidence) -> dict:
    """What they draw late in training, by number of bumps."""
    runs = {run.config.task.support.samples: run for run in evidence.by_bumps}
    return {count: runs[count].late.cells for count in sorted(runs)}


def _product_weight(evidence, cells):
    return weights(cells, _stripes(evidence).true)[1]


def _bumps_are_proper(evidence) -> tuple[Condition, ...]:
    cells = evidence.net.late.cells
    return (
        exact_ood(above=0.9)._replace(name="exact accuracy OOD, {few} bumps"),
        better_than(controls.trivial_errors(cells), _relative_mse(cells)),
    )


FEW_BUMPS_MULTIPLY = Claim(
    "C10",
    "a few bumps beside the stripes give proper bumps on held-out points",
    figure="Fig 4b, 7b",
    each=FEW,
    runs={"net": "stripes_{few}_bumps", "none": "stripes_0_bumps", "by_bumps": "stripes_*_bumps"},
    code="bump",
    trained=lambda e: np.minimum(first_exact_id(e), stripe_accuracy(_stripes(e))),
    as_stated=(
        Condition("product weight, {few} bumps", lambda e: _weights(e)[1], above=0.5),
        Condition(
            "MSE OOD / blank image's, {few} bumps", late(_relative_mse), below=QUARTER, ratio=True
        ),
        Condition(
            "product weight, {few} bumps minus none",
            lambda e: _weights(e)[1] - _product_weight(e, e.none.late.cells),
            above=0,
        ),
    ),
    stricter=_bumps_are_proper,
    details=lambda e: {
        f"{name}, {count} bumps": quantity(cells)
        for name, quantity in (
            ("exact accuracy OOD", exact),
            ("MSE OOD / blank image's", _relative_mse),
            ("product weight", functools.partial(_product_weight, e)),
        )
        for count, cells in _by_bumps(e).items()
    },
)
CLAIMS = (
    BEST_ID_WORST_OOD,
    VARIANCE_HELPS,
    BOTH_ARE_BEST,
    STRIPES_ADD_UP,
    FEW_BUMPS_MULTIPLY,
)
