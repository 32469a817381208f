"""C9 and C10: the second remedy, stripes (Figures 4 and 7).

Quantities of `CellResults` and of finished runs, and the claims.
"""

import functools
from typing import NamedTuple

import numpy as np

from compgen_jax.claims import Claim, Condition, first_exact_id, once
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering import controls, signals
from compgen_jax.papers.forced_rendering.images import (
    better_than,
    exact,
    exact_ood,
    late,
    within_a_pixel,
)
from compgen_jax.runs import results
from compgen_jax.tasks import bump

QUARTER = 0.25  # of a blank image's error
# bumps beside the stripes that must be enough, at either scale: each has a run of one number
FEW = {"few": (30, 50)}


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
CLAIMS = STRIPES_ADD_UP, FEW_BUMPS_MULTIPLY
