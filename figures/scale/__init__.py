"""Figures of "Scaling can lead to compositional generalization": importing this registers them."""

from . import figures, others  # noqa: F401
