"""The papers' claims as functions of results over seeds: measured value, interval, verdict.

Each criterion was fixed before its result was seen. A criterion is a list of conditions on
means over seeds; the verdict is `reproduced` if every condition holds on the whole 95%
interval, `contradicted` if some condition fails on the whole of it, and `inconclusive`
otherwise, as it is when the network did not learn what it was shown.
"""

from typing import NamedTuple

import numpy as np

from compgen_jax.analysis import evaluation
from compgen_jax.analysis.evaluation import CellResults
from compgen_jax.analysis.statistics import mean_with_interval

REPRODUCED, CONTRADICTED, INCONCLUSIVE = "reproduced", "contradicted", "inconclusive"
TRAINED = 0.95  # exact accuracy on seen combinations, below which nothing is concluded
FAINT = 0.1  # of the amplitude: a second look at peaks that a quarter of it leaves out
WITHIN = 1.0  # pixels: what counts as at, or aligned with, a position


class Condition(NamedTuple):
    """`values` (one per seed) must lie on `side` ('above' or 'below') of `bound`, on average."""

    values: np.ndarray
    side: str
    bound: float


def judge(conditions: list[Condition]) -> str:
    verdicts = []
    for values, side, bound in conditions:
        low, high = mean_with_interval(values)["ci95"]
        holds, fails = (
            (low > bound, high <= bound) if side == "above" else (high < bound, low >= bound)
        )
        verdicts.append(REPRODUCED if holds else CONTRADICTED if fails else INCONCLUSIVE)
    for verdict in (CONTRADICTED, INCONCLUSIVE):
        if verdict in verdicts:
            return verdict
    return REPRODUCED


def fails_ood(code: str, results: CellResults) -> dict:
    """C1: decoders of a disentangled code fail on held-out combinations (Figure 1b, c)."""
    errors, hits = evaluation.error_map(results), evaluation.exact_hits(results)
    ood = results.held_out
    blank = np.square(results.targets).mean(axis=(1, 2))
    exact = hits[:, ood].mean(axis=1)
    relative = errors[:, ood].mean(axis=1) / blank[ood].mean()
    return _entry(
        "C1", code, results, hits,
        statement=f"with the {code} code, held-out combinations are not rendered",
        criterion="exact accuracy OOD < 0.5 and MSE OOD > 0.5 of a blank image's",
        conditions=[Condition(exact, "below", 0.5), Condition(relative, "above", 0.5)],
        measured=exact,
        details={
            "ood_mse_over_blank": relative,
            "id_mse_over_blank": errors[:, ~ood].mean(axis=1) / blank[~ood].mean(),
            "ood_position_accuracy": (evaluation.position_errors(results)[:, ood] <= WITHIN).mean(
                axis=1
            ),
        },
    )  # fmt: skip


def succeeds_near_edge(code: str, results: CellResults) -> dict:
    """C2: some success near the edge of the hole (Figure 1b, c).

    Least-squares slope of the exact accuracy of held-out cells on their nearness (minus the
    distance to the nearest seen cell). Copying the nearest seen image scores 0 everywhere.
    """
    hits, ood = evaluation.exact_hits(results), results.held_out
    nearness = -results.distance[ood]
    centred = nearness - nearness.mean()
    slope = hits[:, ood] @ centred / np.square(centred).sum()
    levels, by_distance = evaluation.profile_by_distance(hits, results)
    return _entry(
        "C2", code, results, hits,
        statement=f"with the {code} code, success OOD grows towards the seen region",
        criterion="slope of OOD exact accuracy on nearness (per pixel) > 0",
        conditions=[Condition(slope, "above", 0.0)],
        measured=slope,
        details={
            f"exact_accuracy_at_{levels[0]:.3g}_pixels": by_distance[:, 0],
            f"exact_accuracy_at_{levels[-1]:.3g}_pixels": by_distance[:, -1],
        },
    )  # fmt: skip


def superposes_seen(code: str, results: CellResults) -> dict:
    """C3: OOD images show several bumps, aligned with the requested x or y (Figure 1b, c).

    A misplaced peak lies more than a pixel from the requested position, and is aligned if it is
    within a pixel of the requested column or row. Chance is the share of seen cells, where
    training has put its bumps, that are so aligned. A peak rises above a quarter of the bump's
    amplitude; the share at a fainter threshold is reported beside it and decides nothing.
    """
    peaks = evaluation.peak_maps(results)[:, results.held_out]  # T, B, H, W
    faint = evaluation.peak_maps(results, FAINT)[:, results.held_out]
    factors = results.factors[results.held_out]
    several = (peaks.sum(axis=(2, 3)) >= 2).mean(axis=1)
    y, x = np.mgrid[0 : results.grid, 0 : results.grid]
    dx, dy = (np.abs(a - factors[:, k, None, None]) for k, a in enumerate((x, y)))
    misplaced = peaks & (np.maximum(dx, dy) > WITHIN)
    aligned = np.minimum(dx, dy) <= WITHIN
    seen = ~results.held_out.reshape(results.grid, results.grid)
    chance_B = (aligned & seen).sum(axis=(1, 2)) / seen.sum()
    counts_TxB = misplaced.sum(axis=(2, 3))
    with np.errstate(invalid="ignore"):
        share = (misplaced & aligned).sum(axis=(1, 2, 3)) / counts_TxB.sum(axis=1)
        chance = (counts_TxB * chance_B).sum(axis=1) / counts_TxB.sum(axis=1)
    return _entry(
        "C3", code, results, evaluation.exact_hits(results),
        statement=f"with the {code} code, OOD images show several bumps, in line with x or y",
        criterion="share of OOD images with 2 or more peaks > 0.5, and the aligned share of "
        "misplaced peaks above chance",
        conditions=[Condition(several, "above", 0.5), Condition(share - chance, "above", 0.0)],
        measured=several,
        details={
            "peaks_per_ood_image": peaks.sum(axis=(2, 3)).mean(axis=1),
            f"share_with_2_peaks_above_{FAINT}": (faint.sum(axis=(2, 3)) >= 2).mean(axis=1),
            "aligned_share": share,
            "aligned_share_by_chance": chance,
        },
    )  # fmt: skip


FIGURE_1 = (fails_ood, succeeds_near_edge, superposes_seen)


def _entry(claim, code, results, hits, *, statement, criterion, conditions, measured, details):
    """A row of claims.json; `details` hold the baselines and what else a reader would ask."""
    trained = hits[:, ~results.held_out].mean(axis=1)
    untrained = not trained.mean() >= TRAINED
    number = mean_with_interval(measured)
    details = {"id_exact_accuracy": trained, **details}
    return {
        "claim": claim,
        "code": code,
        "statement": statement,
        "figure": "Fig 1b, c",
        "criterion": f"{criterion} (if exact accuracy ID >= {TRAINED})",
        "measured": number["value"],
        "ci95": number["ci95"],
        "seeds": list(results.seeds),
        "verdict": INCONCLUSIVE if untrained else judge(conditions),
        "details": {name: mean_with_interval(values) for name, values in details.items()},
    }
