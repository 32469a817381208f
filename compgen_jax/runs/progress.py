"""How often progress bars are drawn."""

import sys


def seconds_between_updates() -> float:
    """Half a second where somebody looks, which is in a terminal or a notebook; else 20 seconds, as
    each update is a line of a log."""
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return 0.5 if in_notebook or sys.stderr.isatty() else 20
