"""Maps over the factor plane that figures of the first paper share."""

import numpy as np
from matplotlib.colors import AsinhNorm

from compgen_jax.metrics import geometry

from .. import plotting

VOLUME_LABEL = "log₁₀ volume\nover mean of ID cells"


def show_cells(axis, values_NxN, held_out, color="black", **kwargs):
    """A small map with the held-out region outlined, without ticks."""
    image = axis.imshow(values_NxN, origin="lower", interpolation="nearest", **kwargs)
    plotting.outline(axis, held_out, color=color, linewidth=0.8)
    axis.set(xticks=[], yticks=[])
    return image


def volume_colors(volumes) -> dict:
    """Colours of log₁₀ volumes over that of ID cells, finer near 0; a few of all values are
    beyond."""
    most = np.percentile(np.abs(np.concatenate([np.ravel(values) for values in volumes])), 98)
    most = float(f"{max(most, 1e-3):.1g}")
    return {"cmap": plotting.SIGNED, "norm": AsinhNorm(most / 6, -most, most)}


def volume_bar(figure, image, **position):
    """The scale of log volume."""
    most = image.norm.vmax
    style = {"label": VOLUME_LABEL, "ticks": most * np.array([-1, -0.25, 0, 0.25, 1])}
    figure.colorbar(image, extend="both", format="{x:g}", **style, **position).minorticks_off()


def show_volumes(rows, runs):
    """A run in each row: log₁₀ of every layer's volume element, mean over seeds, less its mean over
    ID cells; below, its mean over held-out cells. Returns an image, for `volume_bar`."""
    maps = []
    for run in runs:
        volumes = geometry.log_volume(run.maps["volume"], axis=(2, 3)).mean(axis=0, dtype=float)
        means = volumes[:, ~run.maps["held_out"]].mean(axis=1)
        maps.append(volumes - means[:, None, None])
    colors = volume_colors(maps)
    for row, run, volumes in zip(rows, runs, maps, strict=True):
        ratios = run.layers("volume.log10_ratio")
        names = "code", *map(str, range(1, len(volumes) - 1)), "image"
        plotting.remember(row[0], names, ratios)
        shown = zip(row, volumes, names, ratios.mean(axis=0), strict=False)
        for axis, volume, name, ratio in shown:
            image = show_cells(axis, volume, run.maps["held_out"], **colors)
            axis.set_title(name, pad=2, loc="center")
            text = f"{ratio:+.2f}".replace("-", plotting.MINUS)
            axis.set_xlabel(text, fontsize=plotting.SMALL, labelpad=2)
        for axis in row[len(names) :]:
            axis.set_axis_off()
    return image


def mosaic(images_BxHxW, columns: int, gap=np.nan):
    """Images in rows of `columns`, the first at the top, with lines of `gap` between."""
    blank = -len(images_BxHxW) % columns
    padded = np.pad(images_BxHxW, ((0, blank), (0, 1), (0, 1)), constant_values=gap)
    padded[len(images_BxHxW) :] = gap
    rows = padded.reshape(-1, columns, *padded.shape[1:])[::-1]
    return np.concatenate(np.concatenate(rows, axis=1), axis=1)[:-1, :-1]


def name_region(axis, held_out_NxN, name: str):
    """A word in the middle of the held-out region."""
    y, x = np.argwhere(held_out_NxN).mean(axis=0)
    axis.text(x, y, name, ha="center", va="center", color=plotting.OOD_COLOR)
