"""Figures of the league: importing this registers them."""

from . import benchmark_figures  # noqa: F401, I001
