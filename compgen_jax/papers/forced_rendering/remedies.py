"""C8 to C10, C12 and C13: the two remedies, low rank and stripes (Figures 3, 4, 7 and 15).

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
    worst_exact_id,
)
from compgen_jax.papers.forced_rendering.mechanism import hidden
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
def _log_errors(evidence) -> dict[str, dict]:
    """log10 of the mean squared error, (T,) per seed, by region and ablation."""

    def log_error(run, held_out: bool):
        cells = run.late.cells
        errors = evaluation.errors(cells)[:, cells.held_out == held_out].mean(axis=1)
        return median_over_checkpoints(np.log10(errors), cells.seeds)

    return {
        region: {name: log_error(getattr(evidence, name), region == "OOD") for name in ABLATIONS}
        for region in ("ID", "OOD")
    }


def _over_blank(evidence):
    return _log_errors(evidence)["OOD"]["both"] - np.log10(_blank_mse(evidence.both.late.cells))


def _apart(region: str, name: str, other: str):
    """One ablation's log10 error minus another's; (T,), seeds are paired."""

    def difference(evidence):
        errors = _log_errors(evidence)[region]
        return errors[name] - errors[other]

    return difference


def _from_best(region: str, name: str, best):
    """One ablation's log10 error minus the highest (np.max) or lowest (np.min) of the others."""

    def difference(evidence):
        errors = _log_errors(evidence)[region]
        return errors[name] - best([errors[n] for n in ABLATIONS if n != name], axis=0)

    return difference


def _medians(region: str, name: str, others=ABLATIONS, **bound) -> tuple[Condition, ...]:
    """On the median over seeds of one ablation's log10 error minus each other's."""

    def median(other):
        return lambda evidence: median_with_interval(_apart(region, name, other)(evidence))

    return tuple(
        Condition(f"median log10 MSE {region}, {name} minus {other}", median(other), **bound)
        for other in others
        if other != name
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
        Condition(
            "log10 MSE OOD, none minus the highest of the others",
            _from_best("OOD", "none", np.max),
            above=0,
        ),
        Condition(
            "log10 MSE ID, none minus the lowest of the others",
            _from_best("ID", "none", np.min),
            below=0,
        ),
    ),
    details=lambda e: {
        f"log10 MSE {region}, {name}": values
        for region, errors in _log_errors(e).items()
        for name, values in errors.items()
    },
)
VARIANCE_HELPS = Claim(
    "C8",
    "entropy alone helps little OOD, variance alone much, at a cost ID",
    **OF_LOW_RANK,
    as_stated=(
        *_medians("OOD", "none", ["variance"], above=FACTOR_OF_TWO),
        *_medians("OOD", "none", ["entropy"], below=FACTOR_OF_TWO),
        *_medians("ID", "variance", ["none"], above=0),
    ),
    stricter=(
        Condition(
            "log10 MSE OOD, none minus variance",
            _apart("OOD", "none", "variance"),
            above=FACTOR_OF_TWO,
        ),
        Condition(
            "log10 MSE OOD, none minus entropy",
            _apart("OOD", "none", "entropy"),
            below=FACTOR_OF_TWO,
        ),
        Condition("log10 MSE ID, variance minus none", _apart("ID", "variance", "none"), above=0),
    ),
)
BOTH_ARE_BEST = Claim(
    "C8",
    "both penalties together are best OOD",
    **OF_LOW_RANK,
    as_stated=(
        *_medians("OOD", "both", below=0),
        Condition(
            "median log10 MSE OOD of both, over a blank image's",
            lambda e: median_with_interval(_over_blank(e)),
            below=0,
        ),
    ),
    stricter=(
        Condition(
            "log10 MSE OOD, both minus the lowest of the others",
            _from_best("OOD", "both", np.min),
            below=0,
        ),
        Condition("log10 MSE OOD of both, over a blank image's", _over_blank, below=0),
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
    """Of networks trained on stripes: what they draw for one factor, (T, 2N, N, N), and for none,
    (T, N, N), and the true stripes (2N, N, N), the N vertical ones first."""

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
        return (v - v.mean(axis=-1, keepdims=True)) / np.maximum(
            v.std(axis=-1, keepdims=True), 1e-12
        )

    drawn = standard(cells.predictions[:, cells.held_out])
    return (drawn * standard(images_QxHxW)[None]).mean(axis=(1, 2))


def _of_stripes_alone(evidence) -> dict:
    cells, stripes = evidence.net.late.cells, _stripes(evidence)
    additive, product, _ = _weights(evidence)
    plus = signals.stripes_sum(stripes.true, cells.held_out)
    return {
        "additive weight": additive,
        "product weight": product,
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
    stricter=(
        Condition(
            "R2 of the network's own f(x) + f(y) - f()",
            lambda e: own_sum_r2(e.net.late.cells, _stripes(e)),
            above=0.5,
        ),
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
    cells, few = evidence.net.late.cells, evidence.few
    trivial = controls.trivial_errors(cells)
    return (
        exact_ood(above=0.9)._replace(name=f"exact accuracy OOD, {few} bumps"),
        better_than(trivial, _relative_mse(cells)),
    )


FEW_BUMPS_MULTIPLY = Claim(
    "C10",
    "a few bumps beside the stripes give proper bumps on held-out points",
    figure="Fig 4b, 7b",
    each=FEW,
    runs={
        "net": "stripes_{few}_bumps",
        "none": "stripes_0_bumps",
        "by_bumps": "stripes_*_bumps",
    },
    code="bump",
    trained=lambda e: np.minimum(first_exact_id(e), stripe_accuracy(_stripes(e))),
    as_stated=(
        Condition("product weight, {few} bumps", lambda e: _weights(e)[1], above=0.5),
        Condition(
            "MSE OOD / blank image's, {few} bumps",
            late(_relative_mse),
            below=QUARTER,
            ratio=True,
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

# --- C12 and C13: what the layers do with stripes ----------------------------------------------


def _log_volume(run):
    return run.layers("volume.log10_ratio")


def _spread(run):
    return hidden(run.layers("volume.ood_spread"))


NEARER = Condition(
    "size of log10 volume, OOD minus ID, stripes minus bumps alone",
    lambda e: hidden(np.abs(_log_volume(e.stripes))) - hidden(np.abs(_log_volume(e.alone))),
    below=0,
)
# Two networks with the same hole and paired seeds; means over the hidden layers.
VOLUME_STAYS_SMOOTH = Claim(
    "C12",
    "with stripes, the volume element stays smoother over the hole than with bumps alone",
    figure="Fig 4d",
    runs={"stripes": "donut_stripes", "alone": "bump_cnn"},
    code="bump",
    trained=lambda e: worst_exact_id(e.stripes, e.alone),
    as_stated=(NEARER,),
    stricter=(
        NEARER,
        Condition(
            "sd of log10 volume over the hole, stripes minus bumps alone",
            lambda e: _spread(e.stripes) - _spread(e.alone),
            below=0,
        ),
    ),
    details={
        "log10 volume, OOD minus ID, stripes": lambda e: hidden(_log_volume(e.stripes)),
        "log10 volume, OOD minus ID, bumps alone": lambda e: hidden(_log_volume(e.alone)),
        "sd of log10 volume over the hole, stripes": lambda e: _spread(e.stripes),
        "sd of log10 volume over the hole, bumps alone": lambda e: _spread(e.alone),
    },
)

# of a unit's variance, and on which side of 0 it must change
SHARES = {"one_factor": {"below": 0}, "product": {"above": 0}}
TITLES = {share: f"{share.replace('_', '-')} share, last minus first hidden layer"
          for share in SHARES}  # fmt: skip


def _change(run, share: str, untrained: str = ""):
    """(T,) of a share from the first to the last hidden layer."""
    values_TxL = run.layers(f"{untrained}tuning.weighted_{share}")
    return values_TxL[:, -2] - values_TxL[:, 1]


# Two shares of a unit's variance over all points. One-factor: the larger of what x and what y
# explain alone (1 for a stripe, a half for a plus). Product: what one product of x and y explains
# beyond them (.6 to .8 for a bump, 0 for stripe and plus, .2 or less for noise). Both are means
# over active units in proportion to their variance. Stricter, they change by more than in the same
# network before training, whose convolutions localise as well.
UNITS_TURN_FROM_STRIPES_TO_BUMPS = Claim(
    "C13",
    "trained on stripes and a few bumps, early units are tuned to stripes, late ones to bumps",
    figure="Fig 4e, f, 15",
    each=FEW,
    runs={"net": "stripes_{few}_bumps", "alone": "bump_cnn"},
    code="bump",
    as_stated=tuple(
        Condition(TITLES[share], lambda e, share=share: _change(e.net, share), **bound)
        for share, bound in SHARES.items()
    ),
    stricter=tuple(
        Condition(
            f"{TITLES[share]}, less that before training",
            lambda e, share=share: _change(e.net, share) - _change(e.net, share, "untrained."),
            **bound,
        )
        for share, bound in SHARES.items()
    ),
    details=lambda e: {
        f"{TITLES[share]}, {network}": _change(run, share)
        for network, run in (("stripes", e.net), ("bumps alone", e.alone))
        for share in SHARES
    },
)
CLAIMS = (
    BEST_ID_WORST_OOD,
    VARIANCE_HELPS,
    BOTH_ARE_BEST,
    STRIPES_ADD_UP,
    FEW_BUMPS_MULTIPLY,
    VOLUME_STAYS_SMOOTH,
    UNITS_TURN_FROM_STRIPES_TO_BUMPS,
)
