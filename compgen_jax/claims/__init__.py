"""The papers' claims as functions of results over seeds: measured value, interval, verdict."""

from compgen_jax.claims.figure1 import (
    PEAK_THRESHOLDS,
    fails_ood,
    succeeds_near_edge,
    superposes_seen,
)
from compgen_jax.claims.mechanism import (
    clearer_for_bump,
    decays_with_depth,
    distorts_volume,
    mlp_is_opposite,
    resembles_binary_kernel,
    shallow_ramp_is_sharper,
    superposes,
)
from compgen_jax.claims.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    REPRODUCED,
    Condition,
    exact_id,
    judge,
)

FIGURE_1 = (fails_ood, succeeds_near_edge, superposes_seen)

__all__ = [
    "CONTRADICTED",
    "FIGURE_1",
    "INCONCLUSIVE",
    "PEAK_THRESHOLDS",
    "REPRODUCED",
    "Condition",
    "clearer_for_bump",
    "decays_with_depth",
    "distorts_volume",
    "exact_id",
    "fails_ood",
    "judge",
    "mlp_is_opposite",
    "resembles_binary_kernel",
    "shallow_ramp_is_sharper",
    "succeeds_near_edge",
    "superposes",
    "superposes_seen",
]
