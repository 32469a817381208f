"""What linear readouts find of the factors in a layer at a task's points, which need not form a
grid."""

import numpy as np

from compgen_jax.metrics import decodability, readout
from compgen_jax.metrics.layers import Layer
from compgen_jax.metrics.registry import layer_metric

SCORES = ("id_r2", "ood_r2", "shuffled.id_r2", "shuffled.ood_r2")

for _array, _names, _prefix in (
    ("features", SCORES, "decode."),
    ("untrained", SCORES[:2], "decode.untrained."),
):

    @layer_metric(*_names, domain="points", prefix=_prefix)
    def decode(layer: Layer, array=_array, names=_names) -> dict:
        """R^2, means over the factors that vary in the region; one that was never known, to which
        nothing can be fitted, counts as 0."""
        known = np.ptp(layer.factors[~layer.held_out], axis=0) > 0
        decoded = decodability.decode(
            {"layer": getattr(layer, array)},
            layer.factors[:, known],
            layer.held_out,
            layer.groups,
            classes=np.zeros(known.sum(), bool),
        )
        means = {}
        for name in names:
            scores_F = decoded.scores[name.removesuffix("_r2")][0]
            varying = len(known) - np.isnan(scores_F).sum()
            means[name] = np.nansum(scores_F) / varying if varying else np.nan
        return means


@layer_metric("recovery", "active_recovery", domain="points", of_output=True, prefix="decode.")
def recoveries(layer: Layer) -> dict:
    """Share of held-out points whose own factors, among all held-out points', lie nearest to what
    is read off the last layer; and that where the nearest has the same factors that are not 0."""
    from scipy.spatial import cKDTree  # takes a fifth of a second to import

    last, held_out = layer.features.astype(np.float64), layer.held_out
    (fit,) = readout.ridge(last[~held_out], [layer.factors[~held_out]])
    read = last[held_out] @ fit.weights + fit.intercept
    read_BxF = read.reshape(-1, layer.rows_per_point, read.shape[1]).mean(axis=1)
    true_BxF = layer.factors[held_out][:: layer.rows_per_point]
    nearest_BxF = true_BxF[cKDTree(true_BxF).query(read_BxF)[1]]
    same_BxF, as_active_BxF = nearest_BxF == true_BxF, (nearest_BxF != 0) == (true_BxF != 0)
    return {
        "recovery": np.mean(same_BxF.all(axis=1)),
        "active_recovery": np.mean(as_active_BxF.all(axis=1)),
    }
