"""Figures of "Scaling can lead to compositional generalization": importing this registers them."""

from . import scale_figures  # noqa: F401
