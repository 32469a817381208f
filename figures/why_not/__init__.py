"""Figures of our own study of what decoders of bumps need: importing this registers them."""

from . import why_not_figures  # noqa: F401
