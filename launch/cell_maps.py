"""Numbers of a task's cells as pictures, for `launch.score` and `launch.compare`."""

from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from compgen_jax import grids
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task

from .probe_figure import ID_COLOR, OOD_COLOR, STYLE, saved

MOST_TICKS = 6


class Panel(NamedTuple):
    """title: what is shown.  values: (B,), one number for each cell.  signed: whether 0 is in the
    middle.  share: whether the numbers are shares of networks."""

    title: str
    values: np.ndarray
    signed: bool = False
    share: bool = False


def draw(task: Task, panels: list[Panel]) -> bytes:
    """A png with the panels side by side, as `figure_of`."""
    with matplotlib.rc_context(STYLE):
        return saved(figure_of(task, panels), "png", dpi=200)


def figure_of(task: Task, panels: list[Panel]) -> Figure:
    """A grid of two factors or more is a map over two of them (`tasks.map_axes`), with means over
    the others and the held-out cells outlined. One factor, or points without a grid, are dots: red
    where held out."""
    held_out = tasks.regions(task)["ood"]
    is_map = tasks.has_grid(task) and len(task.factors) > 1
    figure = Figure(figsize=(3.25 * len(panels), 2.8), layout="constrained")
    for axis, panel in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        (_draw_map if is_map else _draw_dots)(axis, task, panel, held_out)
        axis.set_title(panel.title)
    if is_map:
        shown = tasks.map_axes(task.factors, held_out)
        others = ", ".join(f.name for k, f in enumerate(task.factors) if k not in shown)
        note = "outlined: held-out cells" + f", means over {others}" * bool(others)
        figure.supxlabel(note, fontsize=7, color=OOD_COLOR)
    return figure


def _draw_map(axis, task, panel: Panel, held_out_B):
    axes = tasks.map_axes(task.factors, held_out_B)
    first, second = (task.factors[k] for k in axes)
    values_YxX = _over_two(panel.values, task, axes).mean(axis=0)
    limits = {}
    if panel.share:
        limits = {"vmin": 0, "vmax": 1}
    if panel.signed:
        most = max(np.nanmax(np.abs(values_YxX)), 1e-12)
        limits = {"vmin": -most, "vmax": most, "cmap": "RdBu_r"}
    image = axis.imshow(
        values_YxX, origin="lower", interpolation="nearest", aspect="auto", **limits
    )
    axis.figure.colorbar(image, ax=axis)
    _outline(axis, _over_two(held_out_B, task, axes).any(axis=0))
    for factor, set_ticks in ((first, axis.set_xticks), (second, axis.set_yticks)):
        step = -(-len(factor.values) // MOST_TICKS)
        places = np.arange(len(factor.values))[::step]
        names = factor.labels or [f"{value:g}" for value in factor.values]
        set_ticks(places, names[::step])
    axis.set(xlabel=first.name, ylabel=second.name)


def _over_two(values_B, task, axes):
    """(others, V_second, V_first)."""
    over = grids.over_grid(values_B, tasks.sizes(task))
    places = [over.ndim - 1 - k for k in reversed(axes)]
    moved = np.moveaxis(over, places, (-2, -1))
    return moved.reshape(-1, *moved.shape[-2:])


def _outline(axis, mask_YxX):
    padded = np.pad(mask_YxX, 1)
    rows, columns = np.nonzero(padded[1:, 1:-1] != padded[:-1, 1:-1])
    axis.hlines(rows - 0.5, columns - 0.5, columns + 0.5, color=OOD_COLOR, linewidth=1.2)
    rows, columns = np.nonzero(padded[1:-1, 1:] != padded[1:-1, :-1])
    axis.vlines(columns - 0.5, rows - 0.5, rows + 0.5, color=OOD_COLOR, linewidth=1.2)


def _draw_dots(axis, task, panel: Panel, held_out_B):
    if tasks.has_grid(task):
        places, name = tasks.points(task)[:, 0], task.factors[0].name
    else:
        name = "distance to the nearest ID " + ("cell" if task.sampled else "point")
        places = tasks.distance_to_seen(task, held_out_B)
    for mask, color, label in ((~held_out_B, ID_COLOR, "ID"), (held_out_B, OOD_COLOR, "OOD")):
        axis.plot(places[mask], panel.values[mask], ".", color=color, markersize=4, label=label)
    if panel.signed:
        axis.axhline(0, color="0.5", linewidth=0.8, linestyle=":")
    if panel.share:
        axis.set_ylim(-0.05, 1.05)
    axis.set_xlabel(name)
    axis.legend()
