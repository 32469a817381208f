"""The claims of the paper (C) and controls of our own (K), in the order of their names."""

from compgen_jax.papers.forced_rendering import (
    controls,
    figure1,
    layers,
    low_rank,
    mechanism,
    remedies,
    rotation,
    scaling,
)

CLAIMS = tuple(
    sorted(
        (
            *figure1.CLAIMS,
            *mechanism.CLAIMS,
            *low_rank.CLAIMS,
            *remedies.CLAIMS,
            *layers.CLAIMS,
            *scaling.CLAIMS,
            *rotation.CLAIMS,
            *controls.CLAIMS,
        ),
        key=lambda claim: (claim.name[0], int(claim.name[1:])),
    )
)
