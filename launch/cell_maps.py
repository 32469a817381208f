"""Numbers of a task's cells as pictures, for `launch.score` and `launch.compare`."""

import numpy as np

from compgen_jax import cli, grids
from compgen_jax.runs import judge_run
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.task import Task

plotting = cli.beside("figures.plotting")
MOST_TICKS = 6


def draw(task: Task, scores: dict, title: str, signed: bool = False) -> bytes:
    """A png with a panel for the error and, where there is one, for the score of right and wrong:
    of `scores`, by name (T, B), the mean over seeds at every cell. `signed`: 0 is in the middle.

    A grid of two factors or more is a map over two of them (`tasks.map_axes`), with means over the
    others and the held-out cells outlined. One factor, or points without a grid, are dots: red
    where held out.
    """
    names = list(dict.fromkeys(name for name in (task.error, judge_run.headline(task)) if name))
    held_out_B = tasks.regions(task)["ood"]
    axes = tasks.map_axes(task.factors, held_out_B) if tasks.has_grid(task) else ()
    figure = plotting.new_figure(plotting.COLUMN * len(names), 2.8)
    for axis, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        values_B = scores[name].mean(axis=0, dtype=np.float64)
        most = max(np.nanmax(np.abs(values_B)), 1e-12)
        limits = (0, 1) if name != task.error else (None, None)
        limits = (-most, most) if signed else limits
        if len(axes) == 2:
            colors = {"cmap": plotting.SIGNED} if signed else {}
            _draw_map(axis, task, axes, values_B, held_out_B, limits, colors)
        else:
            _draw_dots(axis, task, values_B, held_out_B, limits)
        axis.set_title(f"{name.replace('_', ' ')}, {title}")
    if len(axes) == 2:
        others = ", ".join(f.name for k, f in enumerate(task.factors) if k not in axes)
        note = "outlined: held-out cells" + (f", means over {others}" if others else "")
        figure.supxlabel(note, fontsize=plotting.SMALL, color=plotting.OOD_COLOR)
    return plotting.saved(figure)["png"]


def _draw_map(axis, task, axes, values_B, held_out_B, limits, colors):
    def over_two(over_B):
        """(others, V_second, V_first)."""
        over = grids.over_grid(over_B, tasks.sizes(task))
        moved = np.moveaxis(over, [over.ndim - 1 - k for k in reversed(axes)], (-2, -1))
        return moved.reshape(-1, *moved.shape[-2:])

    image = axis.imshow(
        over_two(values_B).mean(axis=0), origin="lower", interpolation="nearest", aspect="auto",
        vmin=limits[0], vmax=limits[1], **colors,
    )  # fmt: skip
    axis.figure.colorbar(image, ax=axis)
    plotting.outline(axis, over_two(held_out_B).any(axis=0))
    first, second = (task.factors[k] for k in axes)
    for factor, set_ticks in ((first, axis.set_xticks), (second, axis.set_yticks)):
        step = -(-len(factor.values) // MOST_TICKS)
        names = factor.labels or [f"{value:g}" for value in factor.values]
        set_ticks(np.arange(len(names))[::step], names[::step])
    axis.set(xlabel=first.name, ylabel=second.name)


def _draw_dots(axis, task, values_B, held_out_B, limits):
    if tasks.has_grid(task):
        places, name = tasks.points(task)[:, 0], task.factors[0].name
    else:
        name = "distance to the nearest ID " + ("cell" if task.sampled else "point")
        places = tasks.distance_to_seen(task, held_out_B)
    for mask, mark, _, style in plotting.marks_of_regions(held_out_B):
        axis.plot(places[mask], values_B[mask], mark, markersize=2.5, **style)
    axis.set(xlabel=name, ylim=limits)
    axis.margins(y=0.05)
    axis.legend()
