"""What linear readouts find of the factors in a layer at a task's points, which need not form a
grid."""

import numpy as np
import scipy.spatial

from compgen_jax.metrics import decodability, readout
from compgen_jax.metrics.layers import Layer
from compgen_jax.metrics.registry import layer_metric

FOLDS = 5
SCORES = ("id_r2", "ood_r2", "shuffled.id_r2", "shuffled.ood_r2")


def _scores(layer: Layer, features) -> dict:
    """R^2, means over the factors."""
    known = np.ptp(layer.factors[~layer.held_out], axis=0) > 0  # one never shown cannot be fitted
    decoded = decodability.decode(
        {"layer": features},
        layer.factors[:, known],
        layer.held_out,
        layer.groups,
        FOLDS,
        classes=np.zeros(known.sum(), bool),
    )
    return {
        name: mean_over_factors(decoded.scores[name.removesuffix("_r2")][0], len(known))
        for name in SCORES
    }


def mean_over_factors(scores_F, factors: int) -> float:
    """The mean over the factors that vary in the region, of `factors` in all; one that was never
    shown counts as 0."""
    varying = factors - np.isnan(scores_F).sum()
    return float(np.nansum(scores_F) / varying) if varying else np.nan


@layer_metric(*(f"decode.{name}" for name in SCORES), domain="points")
def decode(layer: Layer) -> dict:
    return {f"decode.{name}": value for name, value in _scores(layer, layer.features).items()}


@layer_metric("decode.untrained.id_r2", "decode.untrained.ood_r2", domain="points")
def decode_untrained(layer: Layer) -> dict:
    """The same of the network before training."""
    scores = _scores(layer, layer.untrained)
    return {f"decode.untrained.{name}": scores[name] for name in ("id_r2", "ood_r2")}


@layer_metric("decode.recovery", "decode.active_recovery", domain="points", of_output=True)
def recoveries(layer: Layer) -> dict:
    """Share of held-out points whose own factors, among all held-out points', lie nearest to what
    is read off the last layer; and that where the nearest has the same factors that are not 0."""
    last, held_out = layer.features.astype(np.float64), layer.held_out
    fit = readout.ridge(readout.decompose(last[~held_out]), layer.factors[~held_out])
    read = fit(last[held_out])
    read_BxF = read.reshape(-1, layer.rows_per_point, read.shape[1]).mean(axis=1)
    true_BxF = layer.factors[held_out][:: layer.rows_per_point]
    nearest_BxF = true_BxF[scipy.spatial.cKDTree(true_BxF).query(read_BxF)[1]]
    same_BxF, as_active_BxF = nearest_BxF == true_BxF, (nearest_BxF != 0) == (true_BxF != 0)
    return {
        "decode.recovery": np.mean(same_BxF.all(axis=1)),
        "decode.active_recovery": np.mean(as_active_BxF.all(axis=1)),
    }
