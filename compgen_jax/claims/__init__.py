"""The papers' claims as functions of results over seeds: measured value, interval, verdict."""

from compgen_jax.claims.forced_rendering.controls import (
    conclude,
    lit_pixels_fail,
    on_lit_pixels,
    random_cells_are_composed,
    shared_pixels_compose,
    stripes_beat_trivial_predictors,
    trivial_errors,
    wide_bumps_fail,
)
from compgen_jax.claims.forced_rendering.figure1 import (
    PEAK_THRESHOLDS,
    fails_ood,
    succeeds_near_edge,
    superposes_seen,
)
from compgen_jax.claims.forced_rendering.mechanism import (
    clearer_for_bump,
    decays_with_depth,
    distorts_volume,
    mlp_is_opposite,
    resembles_binary_kernel,
    shallow_ramp_is_sharper,
    superposes,
)
from compgen_jax.claims.forced_rendering.remedies import (
    ABLATIONS,
    few_bumps_multiply,
    penalties_on_embeddings,
    stripes_add_up,
    units_turn_from_stripes_to_bumps,
    volume_stays_smooth,
)
from compgen_jax.claims.forced_rendering.scaling import SCHEMES, needs_images, scored_place
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
    "ABLATIONS",
    "CONTRADICTED",
    "FIGURE_1",
    "INCONCLUSIVE",
    "PEAK_THRESHOLDS",
    "REPRODUCED",
    "SCHEMES",
    "Condition",
    "clearer_for_bump",
    "conclude",
    "decays_with_depth",
    "distorts_volume",
    "exact_id",
    "fails_ood",
    "few_bumps_multiply",
    "judge",
    "lit_pixels_fail",
    "mlp_is_opposite",
    "needs_images",
    "on_lit_pixels",
    "penalties_on_embeddings",
    "random_cells_are_composed",
    "resembles_binary_kernel",
    "scored_place",
    "shallow_ramp_is_sharper",
    "shared_pixels_compose",
    "stripes_add_up",
    "stripes_beat_trivial_predictors",
    "succeeds_near_edge",
    "superposes",
    "superposes_seen",
    "trivial_errors",
    "units_turn_from_stripes_to_bumps",
    "volume_stays_smooth",
    "wide_bumps_fail",
]
