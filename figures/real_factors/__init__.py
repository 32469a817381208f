"""Figures of real factors: importing this registers them."""

from . import figures  # noqa: F401
