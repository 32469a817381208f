"""What can be read of the factors in a layer at a task's points, which need not form a grid.

For each seed a linear readout of every factor is fitted to a layer's activations at ID points and
scored on ID points left out and on OOD points (`decodability`), beside two controls: the same of
the untrained network, and targets permuted among the points.
"""

import numpy as np
import scipy.spatial

from compgen_jax.metrics import decodability, readout
from compgen_jax.metrics.registry import Arrays, layer_metric, output_metric

FOLDS = 5
SCORES = ("id_r2", "ood_r2", "shuffled.id_r2", "shuffled.ood_r2")


class PointLayer(Arrays):
    """One layer at the B points of a task, S rows for each: R = B S rows.

    features, untrained: (R, D), trained and before training.  factors: (R, F) float64; an angle is
    its cosine and sine, a label one column for each that there is.
    held_out: (R,) bool.  groups: (R,) int, equal for points of the same factors, however often
    they were drawn.
    """


class LastLayer(Arrays):
    """What output metrics are given at points: the `features` of the last layer, `factors` and
    `held_out` as a `PointLayer` has them, and rows_per_point, S."""


def _decode(features_RxD, factors_RxF, held_out_R, groups_R) -> dict:
    known = np.ptp(factors_RxF[~held_out_R], axis=0) > 0  # one never shown cannot be fitted
    decoded = decodability.decode(
        {"layer": features_RxD}, factors_RxF[:, known], held_out_R, groups_R, FOLDS,
        classes=np.zeros(known.sum(), bool),
    )  # fmt: skip
    return {
        name: mean_over_factors(decoded.scores[name.removesuffix("_r2")][0], len(known))
        for name in SCORES
    }


@layer_metric(*(f"decode.{name}" for name in SCORES), at="points")
def decode(features_RxD, factors_RxF, held_out_R, groups_R) -> dict:
    """R^2, means over the factors."""
    scores = _decode(features_RxD, factors_RxF, held_out_R, groups_R)
    return {f"decode.{name}": value for name, value in scores.items()}


@layer_metric("decode.untrained.id_r2", "decode.untrained.ood_r2", at="points")
def decode_untrained(untrained_RxD, factors_RxF, held_out_R, groups_R) -> dict:
    """The same of the network before training."""
    scores = _decode(untrained_RxD, factors_RxF, held_out_R, groups_R)
    return {f"decode.untrained.{name}": scores[name] for name in ("id_r2", "ood_r2")}


@output_metric("decode.recovery", "decode.active_recovery", at="points")
def recoveries(features_RxD, factors_RxF, held_out_R, rows_per_point) -> dict:
    """The share of held-out points whose own factors, among all held-out points', lie nearest to
    what is read off the last layer; and the share for which the nearest point has the same active
    factors, those that are not 0."""
    last = features_RxD.astype(np.float64)
    fit = readout.ridge(readout.decompose(last[~held_out_R]), factors_RxF[~held_out_R])
    read_RxF = fit(last[held_out_R])
    read_BxF = read_RxF.reshape(-1, rows_per_point, read_RxF.shape[1]).mean(axis=1)
    true_BxF = factors_RxF[held_out_R][::rows_per_point]
    nearest_BxF = true_BxF[scipy.spatial.cKDTree(true_BxF).query(read_BxF)[1]]
    same_BxF, as_active_BxF = nearest_BxF == true_BxF, (nearest_BxF != 0) == (true_BxF != 0)
    return {
        "decode.recovery": np.mean(same_BxF.all(axis=1)),
        "decode.active_recovery": np.mean(as_active_BxF.all(axis=1)),
    }


def mean_over_factors(scores_F, factors: int) -> float:
    """The mean over the factors that vary in the region, of `factors` in all; one that was never
    shown, so that it has no score, counts as not read at all, 0."""
    varying = factors - np.isnan(scores_F).sum()
    return float(np.nansum(scores_F) / varying) if varying else np.nan
