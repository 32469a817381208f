"""The claims of the paper (C) and their controls (K), in the order of their names."""

from compgen_jax.papers.forced_rendering import (
    control_claims,
    figure1_claims,
    layer_claims,
    lowrank_claims,
    mechanism_claims,
    remedies,
    rotation_claims,
    scaling_claims,
)

CLAIMS = (
    *figure1_claims.CLAIMS,
    *mechanism_claims.CLAIMS,
    *layer_claims.CLAIMS,
    *lowrank_claims.CLAIMS,
    *remedies.CLAIMS,
    *scaling_claims.CLAIMS,
    *rotation_claims.CLAIMS,
    *control_claims.CLAIMS,
)
NOTE = (
    "C are the paper's claims, K controls of our own. What a seed draws, and what its layers do "
    "(C4 to C7, C12, C13), is judged by its median over five evaluations in the last tenth of "
    "training. docs/findings/criteria.md has the maps on which criteria were tried, and those that "
    "were withdrawn."
)
