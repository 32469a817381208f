"""The figures of "Compositional Generalization via Forced Rendering of Disentangled Latents", in
the order of the gallery: importing a module registers its figures."""

from . import (  # noqa: F401, I001
    figure1,
    mechanism,
    draw_layers,
    draw_lowrank,
    stripes,
    fig9,
    draw_scaling,
)
