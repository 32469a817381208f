"""C1 to C3: what the drawn images say (Figure 1b, c). Functions of CellResults."""

from typing import NamedTuple

import numpy as np

from compgen_jax.metrics import evaluation
from compgen_jax.metrics.evaluation import CellResults, mean_score
from compgen_jax.old_claims import Condition, entry, exact_id
from compgen_jax.papers.forced_rendering import signals

WITHIN = 1.0  # pixels: what counts as at, or aligned with, a position
CONTROL = "onehot"  # the code that does not overlap between neighbours


def fails_ood(code: str, results: CellResults, network: str = "") -> dict:
    """C1: decoders of a disentangled code fail on held-out combinations (Figure 1b, c). `network`
    names one beside that of the other claims."""
    ood = results.held_out
    return entry(
        "C1",
        ", ".join(filter(None, (code, network))),
        results.seeds,
        exact_id(results),
        figure="Fig 1b, c",
        statement=f"with the {code} code, held-out combinations are not rendered",
        as_stated={
            "exact accuracy OOD": Condition(
                mean_score(results, "exact_accuracy", ood), "below", 0.5, ood.sum()
            ),
            "MSE OOD / blank image's": Condition(
                evaluation.relative_error(results, ood), "above", 0.5, ratio=True
            ),
        },
        details={
            "MSE ID / blank image's": evaluation.relative_error(results, ~ood),
            "accuracy OOD within 1 pixel": mean_score(results, "position_accuracy", ood),
        },
    )


def succeeds_near_edge(code: str, results: CellResults, control: CellResults) -> dict:
    """C2: some success near the edge of the hole (Figure 1b, c), for codes that overlap.

    Least-squares slope of the exact accuracy of held-out cells on their nearness (minus the
    distance to the nearest seen cell). Copying the nearest seen image scores 0 everywhere. The
    stricter reading asks for more than the one-hot code's, of the same seeds, whose neighbours
    share nothing.
    """
    ood = results.held_out
    slope, other = (_slope_on_nearness(one) for one in (results, control))
    levels, by_distance = evaluation.profile_by_distance(results.scores["exact_accuracy"], results)
    rises = {"slope of exact accuracy OOD on nearness, per pixel": Condition(slope, "above", 0.0)}
    return entry(
        "C2",
        code,
        results.seeds,
        exact_id(results),
        figure="Fig 1b, c",
        statement=f"with the {code} code, success OOD grows towards the seen region",
        as_stated=rises,
        stricter=rises
        | {f"the same, less that of the {CONTROL} code": Condition(slope - other, "above", 0.0)},
        details={
            f"exact accuracy at {levels[0]:.3g} pixels": by_distance[:, 0],
            f"exact accuracy at {levels[-1]:.3g} pixels": by_distance[:, -1],
            f"slope, {CONTROL} code": other,
            "exact accuracy OOD": mean_score(results, "exact_accuracy", ood),
        },
    )


def _slope_on_nearness(results: CellResults):
    """(T,)"""
    nearness = -results.distance[results.held_out]
    centred = nearness - nearness.mean()
    hits = results.scores["exact_accuracy"][:, results.held_out].astype(np.float64)
    hits = hits - hits.mean(axis=1, keepdims=True)  # 0 exactly where all or none are right
    return hits @ centred / np.square(centred).sum()


def superposes_seen(code: str, results: CellResults, network: str = "") -> dict:
    """C3: OOD images show several bumps, aligned with the requested x or y (Figure 1b, c).

    Peaks are `signals.peak_maps`, relative to an image's own maximum, as the authors' images are
    scaled. A misplaced peak lies more than a pixel from the requested position, and is aligned if
    it is within a pixel of the requested column or row. The stricter reading asks for images with
    two or more aligned ones, which a nearest seen image never has, and that most misplaced peaks
    are aligned, as those of noise are not. Chance is the share of seen cells, where training has
    put its bumps, that are so placed; a seed without misplaced peaks has none aligned. `network` as
    in `fails_ood`.
    """
    found, images = aligned_peaks(results), results.held_out.sum()
    return entry(
        "C3",
        ", ".join(filter(None, (code, network))),
        results.seeds,
        exact_id(results),
        figure="Fig 1b, c",
        statement=f"with the {code} code, OOD images show several bumps, in line with x or y",
        as_stated={
            "share of OOD images with 2 peaks": Condition(found.several, "above", 0.5, images)
        },
        stricter={
            "share of OOD images with 2 aligned peaks": Condition(
                found.several_aligned, "above", 0.5, images
            ),
            "aligned share of misplaced peaks": Condition(found.aligned, "above", 0.5, images),
        },
        details={
            "aligned share of misplaced peaks by chance": found.chance,
            "peaks per OOD image": found.per_image,
            "brightest pixel OOD / amplitude": results.predictions[:, results.held_out]
            .max(axis=(2, 3))
            .mean(axis=1)
            / results.amplitude,
        },
    )


class AlignedPeaks(NamedTuple):
    """Per seed: peaks per OOD image, the shares of these with several peaks and with several
    aligned ones, and the aligned share of misplaced peaks with what it would be by chance."""

    per_image: np.ndarray
    several: np.ndarray
    several_aligned: np.ndarray
    aligned: np.ndarray
    chance: np.ndarray


def aligned_peaks(results: CellResults) -> AlignedPeaks:
    peaks = signals.peak_maps(results, results.held_out)  # T, Q, H, W
    factors = results.factors[results.held_out]
    y, x = np.mgrid[0 : results.grid, 0 : results.grid]
    dx, dy = (np.abs(a - factors[:, k, None, None]) for k, a in enumerate((x, y)))
    elsewhere, in_line = np.maximum(dx, dy) > WITHIN, np.minimum(dx, dy) <= WITHIN
    seen = ~results.held_out.reshape(results.grid, results.grid) & elsewhere
    chance_Q = (seen & in_line).sum(axis=(1, 2)) / seen.sum(axis=(1, 2))
    misplaced_TxQ = (peaks & elsewhere).sum(axis=(2, 3))
    aligned_TxQ = (peaks & elsewhere & in_line).sum(axis=(2, 3))
    total_T = np.maximum(misplaced_TxQ.sum(axis=1), 1)
    per_image_TxQ = peaks.sum(axis=(2, 3))
    return AlignedPeaks(
        per_image=per_image_TxQ.mean(axis=1),
        several=(per_image_TxQ >= 2).mean(axis=1),
        several_aligned=(aligned_TxQ >= 2).mean(axis=1),
        aligned=aligned_TxQ.sum(axis=1) / total_T,
        chance=(misplaced_TxQ * chance_Q).sum(axis=1) / total_T,
    )
