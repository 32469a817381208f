"""Figures of sprites: importing this registers them."""

from . import real_factors_figures  # noqa: F401
