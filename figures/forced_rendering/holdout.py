"""The error by grid and share of the held-out square: a map that is in the authors' code, not in
the paper."""

from string import ascii_lowercase

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.ticker import LogFormatter

from compgen_jax.metrics.error_map import ErrorMap, error_map
from compgen_jax.papers.forced_rendering.scaling import (
    COPIES,
    GRID,
    REGION,
    SCHEMES,
    completed,
    settings_of,
    told_apart,
)

from .. import plotting
from ..figure import figure

SIDE = "task.support.side"
# by whether data sets are in proportion to what is not held out
DATA = {False: "{} bumps at every N", True: "{} bumps times the share of the area not held out"}


@figure("holdout_map", runs=("holdout_map",), by_default=False)
def draw_holdout_map(runs):
    """Error over that of a blank image, mean over seeds, by the grid's side N and the side of the
    held-out square over N. Left: held-out cells. Right: unseen cells outside the square or, where
    training saw all of those, seen ones (with a star, if not so throughout). All maps have one
    colour scale. Small text says how many seeds a number is the mean of, if others failed; grey is
    no number. There is a row of maps for every held-out region, scheme and value of the sweep's
    other axes."""
    (sweep,) = runs.values()
    config = sweep.config
    if config.sweep.search.field:  # then there are several data sets for each N and share
        raise ValueError(f"a map needs one data set for each cell, no search of "
                         f"{config.sweep.search.field!r}")  # fmt: skip
    rows = [row for row in completed(sweep.rows, config) if row[REGION] != "none"]
    if not rows:
        raise ValueError("the table has no held-out region to map")
    grids, sides = (sorted({row[name] for row in rows}) for name in (GRID, SIDE))
    pairs = {
        title: [
            error_map(of_panel, GRID, SIDE, measure, grids, sides)
            for measure in (_held_out, _outside)
        ]
        for title, of_panel in _panels(rows).items()
    }
    norm = _norm([each for pair in pairs.values() for each in pair])
    height = max(0.36 * len(sides), 1.0) + 0.85
    picture = plotting.new_figure(plotting.WIDTH, 0.3 + height * len(pairs))
    axes, letters = picture.subplots(len(pairs), 2, squeeze=False), iter(ascii_lowercase)
    for line, (title, (held_out, outside)) in zip(axes, pairs.items(), strict=True):
        _draw_map(line[0], held_out, grids, sides, norm)
        image = _draw_map(line[1], outside, grids, sides, norm)
        cells = "seen cells" if outside.on_seen_YxX.all() else "unseen cells"
        note = " (* seen cells)" if cells[0] == "u" and outside.on_seen_YxX.any() else ""
        places = f"{title}: held-out cells", f"{cells} outside{note}"
        for axis, errors, where in zip(line, (held_out, outside), places, strict=True):
            text = f"{where}, {plotting.span(errors.values_YxX, '{:.2g}'.format)}"
            plotting.panel(axis, next(letters), text, wrap=38)
        line[0].set_ylabel("side of the square / N")
        line[1].tick_params(labelleft=False)
    for axis in axes.flat:
        axis.set_xlabel("N (pixels)")
    bar = picture.colorbar(image, ax=axes, label="MSE / blank image's", pad=0.01, format="{x:g}",
                           aspect=20 * len(pairs))  # fmt: skip
    bar.ax.yaxis.set_minor_formatter(LogFormatter())
    support = config.task.support
    data = DATA[support.in_proportion].format(support.samples)
    picture.suptitle(f"training sets: {data}")
    return picture


def _panels(rows) -> dict[str, list]:
    """The rows of each map by its title."""
    panels = {}
    for region in sorted({row[REGION] for row in rows}):
        settings = [{k: v for k, v in setting.items() if k != SIDE}
                    for setting in settings_of(rows, region)]  # fmt: skip
        for scheme in SCHEMES.values():
            for setting in settings:
                wanted = setting | {REGION: region, COPIES: scheme.copies}
                of_panel = [row for row in rows if all(row[k] == v for k, v in wanted.items())]
                title = [scheme.title, f"{region} held out", told_apart(setting, settings)]
                if of_panel:
                    panels[", ".join(filter(None, title))] = of_panel
    return panels


def _held_out(row) -> tuple[float, bool]:
    return row["ood.mse"] / row["ood.blank_mse"], False


def _outside(row) -> tuple[float, bool]:
    where = "unseen" if np.isfinite(row["unseen.mse"]) else "seen"
    return row[f"{where}.mse"] / row[f"{where}.blank_mse"], where == "seen"


def _norm(maps) -> LogNorm:
    values = np.concatenate([each.values_YxX.ravel() for each in maps])
    values = values[np.isfinite(values) & (values > 0)]
    return LogNorm(*((values.min(), max(values.max(), 1)) if values.size else (0.1, 1)))


def _draw_map(axis, errors: ErrorMap, grids, sides, norm):
    colors = plotting.plt.get_cmap("viridis").with_extremes(bad="0.85")
    image = axis.imshow(errors.values_YxX, origin="lower", cmap=colors, norm=norm, aspect="auto")
    star = errors.on_seen_YxX & (not errors.on_seen_YxX.all())
    for (y, x), value in np.ndenumerate(errors.values_YxX):
        if np.isnan(value):
            continue
        text = f"{value:.2g}" + "*" * int(star[y, x])
        if errors.succeeded_YxX[y, x] < errors.trials_YxX[y, x]:
            text += f"\n{errors.succeeded_YxX[y, x]} of {errors.trials_YxX[y, x]}"
        color = "black" if norm(value) > 0.6 else "white"
        axis.text(x, y, text, ha="center", va="center", fontsize=plotting.SMALL, color=color)
    axis.set_xticks(range(len(grids)), grids)
    axis.set_yticks(range(len(sides)), [f"{side:.2g}" for side in sides])
    return image
