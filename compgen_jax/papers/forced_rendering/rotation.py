"""C14 and K6: what is drawn of a turned object in a gap of angles (Figure 9). Functions of
CellResults, whose first factor is the angle and whose second, if any, is the object."""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics import circle, evaluation
from compgen_jax.metrics.circle import Gap
from compgen_jax.metrics.evaluation import CellResults, mean_score
from compgen_jax.old_claims import TINY, Condition, entry, exact_id

HALF = 0.5  # of the true images' residual, and of the cross-fade's mixing share
FIGURE = "Fig 9"
OTHERS_SEEN = "others seen there"
WHERE = f", {OTHERS_SEEN}"


class Mixing(NamedTuple):
    """Of what is drawn in the gap, means over its cells: shares of the squared norm outside the
    span of the edges' images, mixing shares, the sums of both weights, and mean squared errors to
    the linear cross-fade of the edges and to the true images; (T,) each. `true_residual` is that
    share of the true images, `ideal_share` the cross-fade's mixing share."""

    residual: np.ndarray
    share: np.ndarray
    weight: np.ndarray
    to_mixture: np.ndarray
    to_truth: np.ndarray
    true_residual: float
    ideal_share: float


def mixing(results: CellResults) -> Mixing:
    """Over the gaps of all objects that have one. ValueError as `circle.gaps`."""
    found = [_of_gap(results, gap) for gap in circle.gaps(results.factors, results.held_out)]
    parts = zip(*found, strict=True)
    return Mixing(*(np.concatenate(of_gaps, axis=-1).mean(axis=-1) for of_gaps in parts))


def _of_gap(results: CellResults, gap: Gap) -> tuple:
    """The fields of `Mixing` at every cell of the gap, (T, Q) or (Q,)."""
    flat = lambda images: np.asarray(images, np.float64).reshape(*images.shape[:-2], -1)
    drawn, true = flat(results.predictions[:, gap.cells]), flat(results.truths[gap.cells])
    edges = flat(results.truths[list(gap.edges)])
    weights, faded = circle.edge_weights(drawn, *edges), circle.cross_fade(*edges, gap.place)
    return (
        circle.residual_share(drawn, *edges),
        circle.mixing_share(weights),
        weights.sum(axis=-1),
        np.square(drawn - faded[None]).mean(axis=-1),
        np.square(drawn - true[None]).mean(axis=-1),
        circle.residual_share(true, *edges),
        np.minimum(gap.place, 1 - gap.place),
    )


def mixes_edges(
    single: CellResults, several: CellResults | None = None, code: str = "cos_sin"
) -> dict:
    """C14: in a gap of angles, outputs are pixel mixtures of the images at its edges (Figure 9).

    As stated, of a decoder of one object: what is drawn lies near the span of the two true images
    next to the gap, by the share of its squared norm outside it, against that of the true images;
    both take part, as the nearer edge alone lies in the span too: the smaller weight's share of
    both (`circle.mixing_share`) is above half of that of a linear cross-fade; and it is nearer to
    the cross-fade than to the truth, which is near the span as well. Stricter, the same of a
    decoder of `several` objects that were seen at the angles of the gap of one; without one,
    nothing is concluded.

    ValueError as `circle.gaps`, and if no object of `several` was seen in a gap.
    """
    asked = {"figure": FIGURE, "statement": "in the gap, what is drawn mixes the images at its "
             "edges, pixel by pixel"}  # fmt: skip
    found = mixing(single)
    row = entry(
        "C14",
        code,
        single.seeds,
        exact_id(single),
        as_stated=_mixes(found),
        details=_details(single, found),
        **asked,
    )
    if several is None:
        unknown = np.full(len(single.seeds), np.nan)
        nothing = Mixing(*[unknown] * 5, true_residual=1.0, ideal_share=1.0)
        reading = _mixes(nothing, WHERE)
        missing = entry(
            "C14", code, single.seeds, None, as_stated=reading, unless="not measured", **asked
        )
        return row | {"stricter": missing["as_stated"]}
    _check_others_seen(several)
    found = mixing(several)
    stricter = entry(
        "C14",
        code,
        several.seeds,
        exact_id(several),
        as_stated=_mixes(found, WHERE),
        details=_details(several, found),
        **asked,
    )
    more = {f"{name}, {OTHERS_SEEN}": number for name, number in stricter["details"].items()}
    return row | {"stricter": stricter["as_stated"], "details": row["details"] | more}


def _mixes(found: Mixing, where: str = "") -> dict:
    return {
        f"residual outside the edges' span / the true images'{where}": Condition(
            found.residual / found.true_residual, "below", HALF, ratio=True
        ),
        f"share of the lesser edge / the cross-fade's{where}": Condition(
            found.share / found.ideal_share, "above", HALF
        ),
        f"MSE to the edges' cross-fade / to the true images{where}": Condition(
            found.to_mixture / np.maximum(found.to_truth, TINY), "below", 1.0, ratio=True
        ),
    }


def _details(results: CellResults, found: Mixing) -> dict:
    seeds = len(results.seeds)
    return {
        "residual of the drawn images": found.residual,
        "residual of the true images": np.full(seeds, found.true_residual),
        "share of the lesser edge": found.share,
        "sum of both weights": found.weight,
        "MSE OOD / blank image's": evaluation.relative_error(results, results.held_out),
        "exact accuracy OOD": mean_score(results, "exact_accuracy", results.held_out),
    }


def gap_is_rendered(several: CellResults, code: str = "cos_sin") -> dict:
    """K6: is the gap of one object rendered, where the others were seen at its angles?

    As stated, most images of the gap are the right object at the right angle. Stricter, nearly all
    of them are, and their error is below that of every trivial predictor (`trivial_errors`).
    ValueError as `mixes_edges`.
    """
    trivial, ood = trivial_errors(several), several.held_out
    best = min(trivial, key=trivial.get)
    relative = evaluation.relative_error(several, ood)
    hits = mean_score(several, "exact_accuracy", ood)
    name = "exact accuracy OOD"
    return entry(
        "K6",
        code,
        several.seeds,
        exact_id(several),
        figure=FIGURE,
        statement="one object's gap is rendered where other objects were seen at its angles",
        as_stated={name: Condition(hits, "above", 0.5, ood.sum())},
        stricter={
            name: Condition(hits, "above", 0.9, ood.sum()),
            f"MSE OOD / the best trivial predictor's ({best})": Condition(
                relative / trivial[best], "below", 1.0, ratio=True
            ),
        },
        details={"MSE OOD / blank image's": relative}
        | {f"the same, {name}": np.full(len(several.seeds), trivial[name]) for name in trivial},
    )


def trivial_errors(results: CellResults) -> dict[str, float]:
    """Mean squared errors over the gap, a blank image's being 1: of the mean of all seen images, of
    the image at the nearer edge, of the edges' cross-fade, and of whichever other object that was
    seen at the same angle is nearest. ValueError if none was."""
    _check_others_seen(results)
    true, seen = results.truths.astype(np.float64), ~results.held_out
    predicted = {"blank": [], "mean seen": [], "nearer edge": [], "cross-fade": [], "other": []}
    asked = []
    for gap in circle.gaps(results.factors, results.held_out):
        edges, count = true[list(gap.edges)], len(gap.cells)
        asked.append(true[gap.cells])
        predicted["blank"].append(np.zeros_like(asked[-1]))
        predicted["mean seen"].append(np.repeat(true[seen].mean(axis=0)[None], count, axis=0))
        predicted["nearer edge"].append(circle.cross_fade(*edges, np.round(gap.place)))
        predicted["cross-fade"].append(circle.cross_fade(*edges, gap.place))
        predicted["other"].append(np.stack([_nearest_other(results, q) for q in gap.cells]))
    error = lambda images: np.square(np.concatenate(images) - np.concatenate(asked)).mean()
    return {name: float(error(images) / error(predicted["blank"]))
            for name, images in predicted.items()}  # fmt: skip


def _nearest_other(results: CellResults, cell: int):
    others = np.asarray(results.truths[_others(results, cell)], np.float64)
    apart = np.square(others - results.truths[cell][None]).mean(axis=(1, 2))
    return others[apart.argmin()]


def _others(results: CellResults, cell: int):
    """Seen cells of other objects at the same angle."""
    same = results.factors == results.factors[cell][None]
    return np.flatnonzero(same[:, 0] & ~same[:, 1:].all(axis=1) & ~results.held_out)


def _check_others_seen(results: CellResults):
    if not all(len(_others(results, cell)) for cell in np.flatnonzero(results.held_out)):
        raise ValueError("no other object was seen at some angle of the gap")
