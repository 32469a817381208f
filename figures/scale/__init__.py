"""Figures of "Scaling can lead to compositional generalization": importing this registers them."""

from . import scale_figures, others  # noqa: F401, I001
