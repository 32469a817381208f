"""C14 and K6: what is drawn of a turned object in a gap of angles (Figure 9). The first factor is
the angle, the second, if any, the object."""

from typing import NamedTuple

import numpy as np

from compgen_jax.claims import TINY, above, below, claim, learnt, note
from compgen_jax.metrics import circle
from compgen_jax.metrics.evaluation import CellResults
from compgen_jax.papers.forced_rendering.image_quantities import (
    above_predictors,
    all_rendered,
    from_codes,
    trained,
)

HALF = 0.5  # of the true images' residual, and of the cross-fade's mixing share
SATURATED = 0.01  # a drawn pixel nearer to 0 or 1 counts as this near when its logit is taken
SMOOTH = 1.5  # times the turning of the curve outside the gap
GAP = ({"case": "cos_sin"},)


class Mixing(NamedTuple):
    """Means over the gap's cells, by network: shares of the squared norm outside the span of the
    edges' images, mixing shares, squared errors to the edges' cross-fade and to the true images;
    the true images' share outside, and the cross-fade's mixing share."""

    residual: np.ndarray
    share: np.ndarray
    to_mixture: np.ndarray
    to_truth: np.ndarray
    true_residual: float
    ideal_share: float


def mixing(results: CellResults) -> Mixing:
    """Over the gaps of all objects that have one. ValueError as `circle.gaps`."""
    predictions, truths = (
        np.asarray(drawn, np.float64).reshape(*drawn.shape[:-2], -1)
        for drawn in (results.predictions, results.truths)
    )
    by_cell = []
    for gap in circle.gaps(results.factors, results.held_out):
        drawn, true, edges = predictions[..., gap.cells, :], truths[gap.cells], truths[[*gap.edges]]
        faded = circle.cross_fade(*edges, gap.place)
        residual, mixing_share = circle.edge_fit(drawn, *edges)
        by_cell.append(
            (
                residual,
                mixing_share,
                np.square(drawn - faded).mean(axis=-1),
                np.square(drawn - true).mean(axis=-1),
                circle.edge_fit(true, *edges)[0],
                np.minimum(gap.place, 1 - gap.place),
            )
        )
    fields = zip(*by_cell, strict=True)
    return Mixing(*(np.concatenate(of_gaps, axis=-1).mean(axis=-1) for of_gaps in fields))


def logit_residual(results: CellResults):
    """By network, the share of the gap's logits (before the sigmoid, see `SATURATED`) outside the
    span of those at its edges, over the same share in `circle.windows` of ID angles."""
    cells = results.factors, results.held_out
    gaps = circle.gaps(*cells)
    windows = [window for gap in gaps for window in circle.windows(gap, *cells)]
    drawn = np.clip(np.asarray(results.predictions, np.float64), SATURATED, 1 - SATURATED)
    logits = np.log(drawn / (1 - drawn))
    logits_TxBxP = logits.reshape(-1, len(results.factors), results.truths[0].size)
    in_gaps, in_windows = (
        [
            np.mean(
                np.concatenate(
                    [
                        circle.edge_fit(logits_BxP[gap.cells], *logits_BxP[[*gap.edges]])[0]
                        for gap in stretches
                    ]
                )
            )
            for logits_BxP in logits_TxBxP
        ]
        for stretches in (gaps, windows)
    )
    return np.divide(in_gaps, in_windows).reshape(drawn.shape[:-3])


def rendered_in_gap(results: CellResults, predictions=None):
    """The share of the gap's cells that are rendered, of the results' predictions or of others. The
    ID image that may not be nearer is that of the gap's nearer edge."""
    drawn, are_rendered = results.predictions if predictions is None else predictions, []
    for gap in circle.gaps(results.factors, results.held_out):
        nearest = results.truths[np.array(gap.edges)[np.round(gap.place).astype(int)]]
        inside = drawn[..., gap.cells, :, :]
        are_rendered.append(all_rendered(inside, results.truths[gap.cells], nearest))
    return np.concatenate(are_rendered, axis=-1).mean(axis=-1)


def trivial_shares(results: CellResults) -> dict[str, float]:
    """The share of the gap that baselines render; 'other' is the nearest other object that was seen
    at the same angle. ValueError if none was."""
    true = results.truths.astype(np.float64)
    names = "blank", "mean seen", "nearer edge", "cross-fade", "other"
    drawn = {name: np.zeros_like(true) for name in names}
    for gap in circle.gaps(results.factors, results.held_out):
        edges = true[list(gap.edges)]
        drawn["mean seen"][gap.cells] = true[~results.held_out].mean(axis=0)
        drawn["nearer edge"][gap.cells] = circle.cross_fade(*edges, np.round(gap.place))
        drawn["cross-fade"][gap.cells] = circle.cross_fade(*edges, gap.place)
    for cell in np.flatnonzero(results.held_out):
        same = results.factors == results.factors[cell][None]
        others = true[same[:, 0] & ~same[:, 1:].all(axis=1) & ~results.held_out]
        apart = np.square(others - results.truths[cell][None]).mean(axis=(1, 2))
        drawn["other"][cell] = others[apart.argmin()]
    shares = {name: rendered_in_gap(results, values[None])[0] for name, values in drawn.items()}
    return {name: float(share) for name, share in shares.items()}


def learnt_images(cells: CellResults, words: str = ""):
    # The authors' training loss (.0096) is of their digit of MNIST, and says nothing of a digit
    # with another share of ink.
    drawn, truths = cells.predictions[..., ~cells.held_out, :, :], cells.truths[~cells.held_out]
    return learnt(all_rendered(drawn, truths).mean(axis=-1), f"share rendered ID{words}")


# What is drawn lies near the span of the two true images next to the gap: the share of its squared
# norm outside the span is compared with that of the true images. Both images take part, as the
# nearer one alone lies in the span too: the smaller weight's share (`circle.edge_fit`) is above
# half of that of a linear cross-fade. And what is drawn is nearer to the cross-fade than to the
# truth, which is near the span as well. The authors turn the first "4" of MNIST; the digit here is
# drawn by the code.
@claim("C14", figure="Fig 9", cases=GAP, runs={"single": "rotation"}, after=True)
def mixes_edges(single=None, several=None, logits=False):
    """In the gap, what is drawn mixes the images at its edges, pixel by pixel."""
    cells, words = (several or single).late.cells, ", others seen there" if several else ""
    parts = mixing(cells)
    yield learnt_images(cells, words)
    yield below(
        HALF,
        parts.residual / parts.true_residual,
        f"residual outside the edges' span / the true images'{words}",
        ratio=True,
    )
    name = f"share of the lesser edge / the cross-fade's{words}"
    yield above(HALF, parts.share / parts.ideal_share, name)
    yield below(
        1,
        parts.to_mixture / np.maximum(parts.to_truth, TINY),
        f"MSE to the edges' cross-fade / to the true images{words}",
        ratio=True,
    )
    if logits:
        name = "residual of the logits outside their edges' span / that at ID angles"
        yield below(HALF, logit_residual(cells), name, ratio=True)
    yield note(f"residual of the drawn images{words}", parts.residual)
    yield note(f"residual of the true images{words}", parts.true_residual)


# The layer decides whose curve bends most sharply, as every layer of Figure 9b is a smooth ring.
# The curve of the code is a circle, and C14 is about what is drawn.
@claim("C14.curve", figure="Fig 9b", cases=GAP, runs={"single": "rotation"})
def curve_stays_smooth(single):
    """Through the gap, every hidden layer's curve over the angle is as smooth as outside it."""
    yield learnt_images(single.late.cells)
    ratios = single.late.layers("curve.turning_ratio")[..., 1:-1]
    name = "mean turning angle in the gap / outside, of the hidden layer with most"
    yield below(SMOOTH, ratios.max(axis=-1), name, ratio=True)


@claim("K6", figure="Fig 9", cases=GAP, runs={"net": "rotation_objects"}, after=True)
def gap_is_rendered(net, least=0.5, beyond_predictors=False):
    """One object's gap is rendered where other objects were seen at its angles."""
    cells = net.late.cells
    share, count = rendered_in_gap(cells), cells.held_out.sum()
    yield trained(net)
    yield above(least, share, "share rendered OOD", cells=count)
    if beyond_predictors:
        shares = trivial_shares(cells) | from_codes(net, rendered_in_gap)
        yield above_predictors(share, shares, count)


CLAIMS = (
    mixes_edges,
    # a sigmoid makes any mixture nearly black and white, so a network may mix before it
    mixes_edges.variant(
        "C14.logits",
        "In the gap, what is drawn mixes the images at its edges, and its logits theirs",
        logits=True,
    ),
    curve_stays_smooth,
    mixes_edges.variant(
        "C14.other_objects",
        "In one object's gap, the images at its edges are mixed, although other objects "
        "were seen at its angles",
        runs={"several": "rotation_objects"},
    ),
    gap_is_rendered,
    gap_is_rendered.variant(
        "K6.predictors",
        "Nearly all of one object's gap is rendered, and more than by every trivial predictor",
        least=0.9,
        beyond_predictors=True,
    ),
)
