"""The figures of "Compositional Generalization via Forced Rendering of Disentangled Latents", in
the order of the gallery: importing a module registers its figures."""

from . import (  # noqa: F401, I001
    fig1,
    codes,
    mechanism,
    layers,
    depth,
    lowrank,
    embeddings,
    stripes,
    units,
    controls,
    two_objects,
    three_factors,
    fig9,
    encoders,
    pixels,
    scaling,
    holdout,
    along_training,
)
