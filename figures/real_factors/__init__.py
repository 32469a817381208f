"""Figures of real factors: importing this registers them."""

from . import real_factors_figures  # noqa: F401, I001
