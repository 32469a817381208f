"""Figures of the league: importing this registers them."""

from . import figures  # noqa: F401
