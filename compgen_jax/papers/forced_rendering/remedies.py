"""C9 and C10: the second remedy, stripes (Figures 4 and 7)."""

import functools
from typing import NamedTuple

import numpy as np

from compgen_jax.claims import (
    above,
    claim,
    learnt,
    median_over_checkpoints,
    note,
    unknown,
)
from compgen_jax.metrics import text
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering import signals
from compgen_jax.papers.forced_rendering.images import (
    above_trivial,
    exact,
    rendered,
    rendered_ood,
    rendered_shown,
    within_a_pixel,
)
from compgen_jax.runs import results
from compgen_jax.tasks import bump

ENOUGH = 0.9  # of held-out cells rendered
# how stripes are shown, by what that adds to a run's name: the polarity of the images, and the code
# of a missing factor
SHOWN = {
    "": "",
    "_upright": "upright, code zero",
    "_off_grid": "inverted, code off the grid",
    "_upright_off_grid": "upright, code off the grid",
    "_off_canvas": "inverted, label off the canvas",
}
ALONE = [{"case": "bump", "setting": setting, "shown": shown} for shown, setting in SHOWN.items()]
# bumps beside the stripes that must be enough, at either scale: each has a run of one number
FEW = [alone | {"few": few} for alone in ALONE for few in (30, 50)]


class Stripes(NamedTuple):
    """What networks trained on stripes draw for one factor, (..., 2N, N, N), and for none,
    (..., N, N), beside the true stripes (2N, N, N). The N vertical ones come first."""

    drawn: np.ndarray
    null: np.ndarray
    true: np.ndarray


@functools.lru_cache(maxsize=4)  # several claims ask for those of one run
def stripes_of(run) -> Stripes:
    """What its networks draw for one factor alone, at `tasks.bump.stripe_points`, and for none."""
    task = run.config.task
    points = bump.stripe_points(task.grid)
    nothing = np.full((1, 2), np.nan, np.float32)
    drawn = run.predict(np.concatenate([points, nothing]))
    true = results.truths_at(task.make(), points)
    return Stripes(drawn[..., :-1, :, :], drawn[..., -1, :, :], true)


def stripe_accuracy(stripes: Stripes):
    """(...) share of stripes whose brightest line, by its mean, is the right one."""
    grid = len(stripes.true) // 2
    vertical, horizontal = np.split(stripes.drawn, [grid], axis=-3)
    lines = [vertical.mean(axis=-2).argmax(axis=-1), horizontal.mean(axis=-1).argmax(axis=-1)]
    return np.mean([line == np.arange(grid) for line in lines], axis=(0, -1))


def weights(cells: CellResults, stripes_2NxHxW):
    """(...) each: means over OOD signals of the lesser of the two stripes' weights, of the weight
    of their product, fitted together with a level, and of the fit's R^2 over pixels (0 of a
    constant signal)."""
    vertical, horizontal = signals.stripes_at(stripes_2NxHxW, cells.held_out)
    parts = vertical, horizontal, vertical * horizontal / cells.amplitude
    parts_QxPx3 = np.stack([_flat(part) for part in parts], axis=-1)
    drawn_xQxP = _flat(cells.predictions[..., cells.held_out, :, :])
    # both centred over pixels, which fits the level
    parts_QxPx3 = parts_QxPx3 - parts_QxPx3.mean(axis=1, keepdims=True)
    drawn_xQxP = drawn_xQxP - drawn_xQxP.mean(axis=-1, keepdims=True)
    weights_xQx3 = np.einsum("qkp,...qp->...qk", np.linalg.pinv(parts_QxPx3), drawn_xQxP)
    left_xQxP = drawn_xQxP - np.einsum("...qk,qpk->...qp", weights_xQx3, parts_QxPx3)
    r2 = _explained(left_xQxP, drawn_xQxP)
    lesser_xQ = weights_xQx3[..., :2].min(axis=-1)
    return lesser_xQ.mean(axis=-1), weights_xQx3[..., 2].mean(axis=-1), r2.mean(axis=-1)


def own_sum_r2(cells: CellResults, stripes: Stripes):
    """(...) mean over OOD signals of the R^2 over pixels of f(x) + f(y) - f(no factor)."""
    drawn = np.asarray(cells.predictions[..., cells.held_out, :, :], np.float64)
    left = drawn - (_plus(stripes.drawn, cells) - stripes.null[..., None, :, :])
    centred = _flat(drawn) - _flat(drawn).mean(axis=-1, keepdims=True)
    return _explained(_flat(left), centred).mean(axis=-1)


def _flat(images):
    """(..., P) float64 of images (..., H, W)."""
    return np.asarray(images, np.float64).reshape(*images.shape[:-2], -1)


def _explained(left_xQxP, whole_xQxP):
    total = np.square(whole_xQxP).sum(axis=-1)
    share = np.square(left_xQxP).sum(axis=-1) / np.where(total > 0, total, 1)
    return np.where(total > 0, 1 - share, 0.0)


def _plus(stripes, cells: CellResults):
    return sum(signals.stripes_at(stripes, cells.held_out))


def _correlation(cells: CellResults, images_QxHxW):
    """(...) mean correlation over pixels of what is drawn for held-out cells with images."""

    def standard(images):
        v = images.reshape(*images.shape[:-2], -1)
        spread = np.maximum(v.std(axis=-1, keepdims=True), 1e-12)
        return (v - v.mean(axis=-1, keepdims=True)) / spread

    drawn = standard(cells.predictions[..., cells.held_out, :, :])
    return (drawn * standard(images_QxHxW)).mean(axis=(-2, -1))


# --- C9: stripes alone -------------------------------------------------------------------------


def _learnt_stripes(net):
    # these networks have not seen a point
    return learnt(stripe_accuracy(stripes_of(net.late)), "accuracy on the stripes")


# Each OOD signal is fitted by a level, the two stripes and their product, the true bump. Stripes do
# not teach the level: s_x + s_y - c is as additive as any, and adding two inverted images is c = 1.
# The fit must also explain half of the signal's variance, as blank images, noise and bumps
# elsewhere have weights as well.
@claim("C9", figure="Fig 4b", cases=ALONE, runs={"net": "stripes_0_bumps{shown}"})
def stripes_add_up(net):
    """Trained on stripes alone, decoders draw both stripes of held-out points, added."""
    yield _learnt_stripes(net)
    cells, true = net.late.cells, stripes_of(net.late).true
    lesser, product, r2 = weights(cells, true)
    yield above(0, lesser - product, "lesser stripe's weight minus product weight")
    yield above(0.5, r2, "R2 on level, stripes and product")
    yield note("lesser stripe's weight", lesser)
    yield note("product weight", product)
    yield note("share rendered OOD", rendered(cells))
    yield note("exact accuracy OOD", exact(cells))
    yield note("accuracy OOD within 1 pixel", within_a_pixel(cells))
    yield note("correlation OOD with the plus", _correlation(cells, _plus(true, cells)))
    of_bump = _correlation(cells, cells.truths[cells.held_out])
    yield note("correlation OOD with the bump", of_bump)


@claim("C9.own_parts", figure="Fig 4b", cases=ALONE, runs={"net": "stripes_0_bumps{shown}"})
def own_stripes_add_up(net):
    """Trained on stripes alone, decoders draw at held-out points the sum of what they draw for x
    alone and for y alone, less what they draw for neither."""
    yield _learnt_stripes(net)
    r2 = own_sum_r2(net.late.cells, stripes_of(net.late))
    yield above(0.5, r2, "R2 of the network's own f(x) + f(y) - f()")


# --- C10: a few bumps beside the stripes -------------------------------------------------------


def _few_bumps_are_rendered(net, few: int):
    shown = np.minimum(rendered_shown(net.late), stripe_accuracy(stripes_of(net.late)))
    yield learnt(shown, "share rendered of the bumps shown, or accuracy on the stripes")
    yield rendered_ood(net, above=ENOUGH, name=f"share rendered OOD, {few} bumps")


@claim(
    "C10",
    figure="Fig 4b, 7b",
    cases=FEW,
    runs={
        "net": "stripes_{few}_bumps{shown}",
        "none": "stripes_0_bumps{shown}",
        "by_bumps": "stripes_*_bumps{shown}",
    },
)
def few_bumps_multiply(net, none, by_bumps, few):
    """A few bumps beside the stripes give proper bumps on held-out points, and stripes alone do
    not."""
    yield from _few_bumps_are_rendered(net, few)
    cells, of_none = net.late.cells, rendered(none.late.cells)
    more = rendered(cells) - of_none
    enough = float(median_over_checkpoints(of_none).mean())
    if enough > ENOUGH:  # so that bumps can add little
        more = unknown(f"without bumps {text.number(enough)} are rendered as well")
    name = f"share rendered OOD, {few} bumps minus none"
    yield above(0, more, name, cells=cells.held_out.sum(), least=-1)
    for run in by_bumps:
        cells, count = run.late.cells, run.config.task.support.samples
        yield note(f"share rendered OOD, {count} bumps", rendered(cells))
        yield note(f"exact accuracy OOD, {count} bumps", exact(cells))
        product = weights(cells, stripes_of(net.late).true)[1]
        yield note(f"product weight, {count} bumps", product)


# The trivial predictors know every ID cell.
@claim("C10.baselines", figure="Fig 4b, 7b", cases=FEW, runs={"net": "stripes_{few}_bumps{shown}"})
def few_bumps_beat_predictors(net, few):
    """A few bumps beside the stripes give proper bumps on held-out points, more of them than any
    predictor that knows bumps alone."""
    yield from _few_bumps_are_rendered(net, few)
    yield from above_trivial(net)


CLAIMS = stripes_add_up, own_stripes_add_up, few_bumps_multiply, few_bumps_beat_predictors
