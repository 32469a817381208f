"""Decoders: Flax modules, code -> (image, activations by layer name)."""

from flax import linen as nn

from compgen_jax.config import DecoderConfig
from compgen_jax.models.conv import ConvDecoder
from compgen_jax.models.lowrank import LowRankDecoder
from compgen_jax.models.mlp import MLPDecoder
from compgen_jax.models.pixelwise import PixelwiseDecoder

PADDED = ("conv",)  # decoders whose trials of different grids can share a program


def build(config: DecoderConfig, grid: int, lowering: str) -> nn.Module:
    """The decoder that `config` names; `lowering` is for its convolutions, if it has any."""
    settings = {
        "grid": grid,
        "width": config.width,
        "depth": config.depth,
        "initial_weights": config.initial_weights,
    }
    if config.name == "conv":
        return ConvDecoder(**settings, lowering=lowering)
    if config.name == "lowrank":
        embeddings = {"rank": config.rank, "vectors": config.vectors}
        return LowRankDecoder(**settings, **embeddings, lowering=lowering)
    if config.name == "pixelwise":
        return PixelwiseDecoder(**settings)
    return MLPDecoder(**settings)
