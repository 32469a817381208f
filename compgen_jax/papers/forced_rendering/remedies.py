"""C9, C10 and K10: the second remedy, stripes (Figures 4 and 7)."""

import functools
from typing import NamedTuple

import numpy as np

from compgen_jax.claims import (
    BASE,
    above,
    claim,
    learnt,
    median_over_checkpoints,
    most_seeds,
    note,
    unknown,
)
from compgen_jax.metrics import text
from compgen_jax.metrics.evaluation import CellResults, mean_score
from compgen_jax.papers.forced_rendering import signals
from compgen_jax.papers.forced_rendering.image_quantities import (
    at_common_seeds,
    best_of,
    explained,
    from_codes,
    rendered,
    rendered_shown,
    trivial_shares,
)
from compgen_jax.runs import results
from compgen_jax.tasks import bump

ENOUGH = 0.9  # of held-out cells
WEIGHTS = "lesser stripe", "greater stripe", "product"
# How stripes are shown, by what that adds to a run's name: the polarity of the images, and the code
# of a missing factor. Of networks, images and training the paper says little here, and there is no
# code.
ALONE = tuple(
    {"case": "bump", "setting": setting, "as_shown": name}
    for name, setting in (
        ("", BASE),
        ("_upright", "upright, code zero"),
        ("_off_grid", "inverted, code off the grid"),
        ("_upright_off_grid", "upright, code off the grid"),
        ("_off_canvas", "inverted, label off the canvas"),
    )
)
# bumps beside the stripes that must be enough, at either scale: each has a run of one number
FEW = tuple(alone | {"few": few} for alone in ALONE for few in (30, 50))
# of further decoders that see stripes alone; the base network has 4
DEPTHS = [{"case": f"bump, depth {n}", "as_shown": f"_depth{n}"} for n in (2, 3, 5, 6)]


class Stripes(NamedTuple):
    """What networks draw for one factor, (..., 2N, N, N), and for none, (..., N, N), and the true
    stripes (2N, N, N). The N vertical ones come first."""

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
    """Means over OOD signals, (...) by name, of a fit by a level, both stripes and their product:
    `WEIGHTS`, and `r2` over pixels."""
    vertical, horizontal = signals.stripes_at(stripes_2NxHxW, cells.held_out)
    parts = vertical, horizontal, vertical * horizontal / cells.amplitude
    # all centred over pixels, which fits the level
    parts_QxPx3 = np.stack([centred(part) for part in parts], axis=-1)
    drawn_xQxP = centred(cells.predictions[..., cells.held_out, :, :])
    weights_xQx3 = np.einsum("qkp,...qp->...qk", np.linalg.pinv(parts_QxPx3), drawn_xQxP)
    fit_xQxP = np.einsum("...qk,qpk->...qp", weights_xQx3, parts_QxPx3)
    lesser, greater = np.moveaxis(np.sort(weights_xQx3[..., :2], axis=-1), -1, 0)
    r2 = explained(drawn_xQxP - fit_xQxP, drawn_xQxP, -1)
    columns = zip((*WEIGHTS, "r2"), (lesser, greater, weights_xQx3[..., 2], r2), strict=True)
    return {name: of_signals.mean(axis=-1) for name, of_signals in columns}


def centred(images):
    """(..., P) float64 of images (..., H, W), centred over pixels."""
    flat = np.asarray(images, np.float64).reshape(*images.shape[:-2], -1)
    return flat - flat.mean(axis=-1, keepdims=True)


# --- C9 and K10: stripes alone -----------------------------------------------------------------


# Each OOD signal is fitted by a level, the two stripes and their product, the true bump. Stripes do
# not teach the level: s_x + s_y - c is as additive as any, and adding two inverted images is c = 1.
# The fit must also explain half of the signal's variance, as blank images, noise and bumps
# elsewhere have weights as well. These networks have not seen a point.
@claim("C9", figure="Fig 4b", cases=ALONE, runs={"net": "stripes_0_bumps{as_shown}"}, after=True)
def stripes_add_up(net, larger="lesser stripe", smaller="product", own_parts=False):
    """Trained on stripes alone, decoders draw both stripes of held-out points, added."""
    cells, stripes = net.late.cells, stripes_of(net.late)
    yield learnt(stripe_accuracy(stripes), "accuracy on the stripes")
    if own_parts:
        drawn = cells.predictions[..., cells.held_out, :, :]
        plus = sum(signals.stripes_at(stripes.drawn, cells.held_out))
        missed = drawn - (plus - stripes.null[..., None, :, :])
        r2 = explained(missed.reshape(*missed.shape[:-2], -1), centred(drawn), -1).mean(axis=-1)
        yield above(0.5, r2, "R2 of the network's own f(x) + f(y) - f()")
    else:
        fit = weights(cells, stripes.true)
        yield above(0, fit[larger] - fit[smaller], f"weight of the {larger}, less the {smaller}'s")
        yield above(0.5, fit["r2"], "R2 on level, stripes and product")
    yield note("share rendered OOD", rendered(cells))


# --- C10: a few bumps beside the stripes -------------------------------------------------------


def learnt_bumps_and_stripes(net):
    share = np.minimum(rendered_shown(net.late), stripe_accuracy(stripes_of(net.late)))
    return learnt(share, "share rendered of the bumps shown, or accuracy on the stripes")


# The brightest pixel of a plus is right as well, so that stripes alone are compared by what is
# rendered.
@claim(
    "C10",
    after=True,
    figure="Fig 4b, 7b",
    cases=FEW,
    runs={"net": "stripes_{few}_bumps{as_shown}", "none": "stripes_0_bumps{as_shown}"},
)
def few_bumps_multiply(net, none, few):
    """With a few bumps beside the stripes, x and y of held-out points are right, and more proper
    bumps are drawn than with stripes alone."""
    yield learnt_bumps_and_stripes(net)
    cells, ood = net.late.cells, net.late.cells.held_out
    count, exact = ood.sum(), mean_score(cells, "exact_accuracy", ood)
    yield above(ENOUGH, exact, f"exact accuracy OOD, {few} bumps", cells=count)
    more = np.subtract(*at_common_seeds(lambda run: rendered(run.late.cells), net, none))
    alone = float(median_over_checkpoints(rendered(none.late.cells)).mean())
    if alone > ENOUGH:  # so that bumps can add little
        more = unknown(f"without bumps {text.number(alone)} are rendered as well")
    yield above(0, more, f"share rendered OOD, {few} bumps minus none", cells=count, least=-1)


# It is all or none of the held-out cells in most networks, so that these are counted. The trivial
# predictors know every ID cell.
@claim(
    "C10.rendered",
    after=True,
    figure="Fig 4b, 7b",
    cases=FEW,
    runs={"net": "stripes_{few}_bumps{as_shown}"},
)
def few_bumps_are_rendered(net, few, predictors=False):
    """With a few bumps beside the stripes, most networks render held-out points."""
    yield learnt_bumps_and_stripes(net)
    cells = net.late.cells
    share = rendered(cells)
    if predictors:
        best = best_of(trivial_shares(cells) | from_codes(net))
        name = "share of seeds that render half OOD, and more than every predictor"
        yield most_seeds((share > 0.5) & (share > best), name)
        yield note("share rendered OOD by the best predictor", best)
    else:
        name = f"share of seeds that render {ENOUGH:g} OOD, {few} bumps"
        yield most_seeds(share > ENOUGH, name)
        yield note("share rendered OOD", share)


CLAIMS = (
    stripes_add_up,
    stripes_add_up.variant(
        "C9.own_parts",
        "Trained on stripes alone, decoders draw at held-out points the sum of what they "
        "draw for x alone and for y alone, less what they draw for neither",
        own_parts=True,
    ),
    stripes_add_up.variant(
        "K10",
        "Trained on stripes alone, decoders draw the product of both stripes of held-out "
        "points rather than either stripe",
        cases=(*ALONE, *DEPTHS),
        larger="product",
        smaller="greater stripe",
    ),
    # what any decoder that cannot multiply must draw: so C9 is within reach
    stripes_add_up.variant(
        "K10.additive",
        "Trained on stripes alone, a decoder that adds one image for each factor draws "
        "both stripes of held-out points, added",
        runs={"net": "stripes_0_bumps_additive"},
        cases=({"case": "bump"},),
    ),
    few_bumps_multiply,
    few_bumps_are_rendered,
    few_bumps_are_rendered.variant(
        "C10.baselines",
        "With a few bumps beside the stripes, most networks render more than half of the "
        "held-out points, and more than any predictor that knows bumps alone",
        predictors=True,
    ),
)
