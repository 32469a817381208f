"""A figure is a function with its row:

    @figure("fig2", runs=("bump_cnn*", "ramp_cnn*"))
    def draw_layers(runs):
        ...
        return a matplotlib figure

Its caption in docs/findings/gallery.md stands under its name in captions.md. `runs` names the runs
that it shows, of any paper; a '*' stands for any part of a name. Where they differ between the
scales, `runs` is a function scale -> names. The drawing function gets the finished runs as a dict
by name, in the order in which they are trained.
"""

import fnmatch
from collections.abc import Callable
from typing import NamedTuple

FIGURES: dict[str, "Figure"] = {}  # in the order in which their modules are imported


class Figure(NamedTuple):
    """name: what `--only` takes.  draw: finished runs by name -> matplotlib figure.  runs: names
    and patterns, or scale -> these.  scale: at which alone it is drawn, '' for both.  by_default:
    whether it is drawn without being named in `--only`.  also: runs
    that it shows, too, where they are finished."""

    name: str
    draw: Callable
    runs: tuple[str, ...] | Callable
    scale: str = ""
    by_default: bool = True
    also: tuple[str, ...] = ()

    def shows(self, names, scale: str) -> list[str]:
        """Those of the names that the figure shows at a scale, in their order."""
        patterns = self.runs(scale) if callable(self.runs) else self.runs
        return [n for n in names if any(fnmatch.fnmatchcase(n, pattern) for pattern in patterns)]


def figure(name: str, runs: tuple[str, ...] | Callable, **others):
    """Registers the decorated function as a figure; `others` are further fields of `Figure`."""

    def register(draw):
        FIGURES[name] = Figure(name, draw, runs, **others)
        return draw

    return register
