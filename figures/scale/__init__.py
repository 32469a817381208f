"""Figures of "Scale leads to compositional generalization": importing this registers them."""

from . import figures, others  # noqa: F401
