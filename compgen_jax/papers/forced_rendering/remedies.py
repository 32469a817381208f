"""C9, C10 and K10: the second remedy, stripes (Figures 4 and 7)."""

import functools
from typing import NamedTuple

import numpy as np

from compgen_jax.claims import (
    above,
    claim,
    learnt,
    median_over_checkpoints,
    most_seeds,
    note,
    unknown,
)
from compgen_jax.metrics import text
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering import signals
from compgen_jax.papers.forced_rendering.image_quantities import (
    at_common_seeds,
    exact,
    from_codes,
    rendered,
    rendered_shown,
    trivial_shares,
    within_a_pixel,
)
from compgen_jax.runs import results
from compgen_jax.tasks import bump

ENOUGH = 0.9  # of held-out cells
DEPTHS = 2, 3, 5, 6  # of further decoders that see stripes alone; the base network has 4
WEIGHTS = "lesser stripe", "greater stripe", "product"
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
OF_DEPTHS = [{"case": f"bump, depth {depth}", "shown": f"_depth{depth}"} for depth in DEPTHS]
# bumps beside the stripes that must be enough, at either scale: each has a run of one number
FEW = [alone | {"few": few} for alone in ALONE for few in (30, 50)]
# of networks, images and training the paper says little here, and there is no code
OF_STRIPES = {"cases": ALONE, "runs": {"net": "stripes_0_bumps{shown}"}}
OF_ADDITIVE = {"cases": [{"case": "bump"}], "runs": {"net": "stripes_0_bumps_additive"}}
OF_FEW = {"cases": FEW, "runs": {"net": "stripes_{few}_bumps{shown}"}}
WITH_NONE = {"none": "stripes_0_bumps{shown}", "by_bumps": "stripes_*_bumps{shown}"}


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


def weights(cells: CellResults, stripes_2NxHxW) -> dict:
    """By name, (...) each, means over OOD signals of a fit by a level, the two stripes and their
    product: the weights, `WEIGHTS`, and `r2` over pixels (0 of a constant signal)."""
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
    stripes_xQx2 = np.sort(weights_xQx3[..., :2], axis=-1)
    found = stripes_xQx2[..., 0], stripes_xQx2[..., 1], weights_xQx3[..., 2], r2
    pairs = zip((*WEIGHTS, "r2"), found, strict=True)
    return {name: of_signals.mean(axis=-1) for name, of_signals in pairs}


def own_sum_r2(cells: CellResults, stripes: Stripes):
    """(...) mean over OOD signals of the R^2 over pixels of f(x) + f(y) - f(no factor)."""
    drawn = np.asarray(cells.predictions[..., cells.held_out, :, :], np.float64)
    plus = sum(signals.stripes_at(stripes.drawn, cells.held_out))
    left = drawn - (plus - stripes.null[..., None, :, :])
    centred = _flat(drawn) - _flat(drawn).mean(axis=-1, keepdims=True)
    return _explained(_flat(left), centred).mean(axis=-1)


def _flat(images):
    """(..., P) float64 of images (..., H, W)."""
    return np.asarray(images, np.float64).reshape(*images.shape[:-2], -1)


def _explained(left_xQxP, whole_xQxP):
    total = np.square(whole_xQxP).sum(axis=-1)
    share = np.square(left_xQxP).sum(axis=-1) / np.where(total > 0, total, 1)
    return np.where(total > 0, 1 - share, 0.0)


# --- C9 and K10: stripes alone -----------------------------------------------------------------


def _learnt_stripes(net):
    # these networks have not seen a point
    return learnt(stripe_accuracy(stripes_of(net.late)), "accuracy on the stripes")


# Each OOD signal is fitted by a level, the two stripes and their product, the true bump. Stripes do
# not teach the level: s_x + s_y - c is as additive as any, and adding two inverted images is c = 1.
# The fit must also explain half of the signal's variance, as blank images, noise and bumps
# elsewhere have weights as well.
def _fitted(net, larger: str, smaller: str):
    """What one weight of the fit exceeds, by their names, is above 0."""
    yield _learnt_stripes(net)
    cells = net.late.cells
    found = weights(cells, stripes_of(net.late).true)
    yield above(0, found[larger] - found[smaller], f"weight of the {larger}, less the {smaller}'s")
    yield above(0.5, found["r2"], "R2 on level, stripes and product")
    for name in WEIGHTS:
        yield note(f"weight of the {name}", found[name])
    yield note("share rendered OOD", rendered(cells))
    yield note("exact accuracy OOD", exact(cells))
    yield note("accuracy OOD within 1 pixel", within_a_pixel(cells))


@claim("C9", figure="Fig 4b", **OF_STRIPES)
def stripes_add_up(net):
    """Trained on stripes alone, decoders draw both stripes of held-out points, added."""
    return _fitted(net, "lesser stripe", "product")


@claim("C9.own_parts", figure="Fig 4b", **OF_STRIPES)
def own_stripes_add_up(net):
    """Trained on stripes alone, decoders draw at held-out points the sum of what they draw for x
    alone and for y alone, less what they draw for neither."""
    yield _learnt_stripes(net)
    r2 = own_sum_r2(net.late.cells, stripes_of(net.late))
    yield above(0.5, r2, "R2 of the network's own f(x) + f(y) - f()")


@claim("K10", figure="Fig 4b", **OF_STRIPES | {"cases": [*ALONE, *OF_DEPTHS]})
def stripes_multiply(net):
    """Trained on stripes alone, decoders draw the product of both stripes of held-out points rather
    than either stripe."""
    return _fitted(net, "product", "greater stripe")


# What any decoder that cannot multiply must draw: so C9 is within reach.
@claim("K10.additive", figure="Fig 4b", **OF_ADDITIVE)
def an_additive_decoder_adds_stripes(net):
    """Trained on stripes alone, a decoder that adds one image for each factor draws both stripes of
    held-out points, added."""
    return _fitted(net, "lesser stripe", "product")


# --- C10: a few bumps beside the stripes -------------------------------------------------------


def _learnt_bumps_and_stripes(net):
    shown = np.minimum(rendered_shown(net.late), stripe_accuracy(stripes_of(net.late)))
    return learnt(shown, "share rendered of the bumps shown, or accuracy on the stripes")


# The brightest pixel of a plus is right as well, so that stripes alone are compared by what is
# rendered.
@claim("C10", figure="Fig 4b, 7b", **OF_FEW | {"runs": OF_FEW["runs"] | WITH_NONE})
def few_bumps_multiply(net, none, by_bumps, few):
    """With a few bumps beside the stripes, x and y of held-out points are right, and more proper
    bumps are drawn than with stripes alone."""
    yield _learnt_bumps_and_stripes(net)
    cells = net.late.cells
    count = cells.held_out.sum()
    yield above(ENOUGH, exact(cells), f"exact accuracy OOD, {few} bumps", cells=count)
    more = np.subtract(*at_common_seeds(lambda run: rendered(run.late.cells), net, none))
    enough = float(median_over_checkpoints(rendered(none.late.cells)).mean())
    if enough > ENOUGH:  # so that bumps can add little
        more = unknown(f"without bumps {text.number(enough)} are rendered as well")
    yield above(0, more, f"share rendered OOD, {few} bumps minus none", cells=count, least=-1)
    for run in by_bumps:
        cells, count = run.late.cells, run.config.task.support.samples
        yield note(f"share rendered OOD, {count} bumps", rendered(cells))
        yield note(f"exact accuracy OOD, {count} bumps", exact(cells))
        product = weights(cells, stripes_of(net.late).true)["product"]
        yield note(f"product weight, {count} bumps", product)


# It is all or none of the held-out cells in most networks, so that these are counted.
@claim("C10.rendered", figure="Fig 4b, 7b", **OF_FEW)
def few_bumps_are_rendered(net, few):
    """With a few bumps beside the stripes, most networks render held-out points."""
    yield _learnt_bumps_and_stripes(net)
    share = rendered(net.late.cells)
    yield most_seeds(share > ENOUGH, f"share of seeds that render {ENOUGH:g} OOD, {few} bumps")
    yield note("share rendered OOD", share)


# The trivial predictors know every ID cell.
@claim("C10.baselines", figure="Fig 4b, 7b", **OF_FEW)
def few_bumps_beat_predictors(net):
    """With a few bumps beside the stripes, most networks render more than half of the held-out
    points, and more than any predictor that knows bumps alone."""
    yield _learnt_bumps_and_stripes(net)
    share, shares = rendered(net.late.cells), trivial_shares(net.late.cells) | from_codes(net)
    best = np.max(np.broadcast_arrays(*shares.values()), axis=0)
    beat = (share > 0.5) & (share > best)
    yield most_seeds(beat, "share of seeds that render half OOD, and more than every predictor")
    yield note("share rendered OOD by the best predictor", best)


CLAIMS = (
    stripes_add_up,
    own_stripes_add_up,
    stripes_multiply,
    an_additive_decoder_adds_stripes,
    few_bumps_multiply,
    few_bumps_are_rendered,
    few_bumps_beat_predictors,
)
