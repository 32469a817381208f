"""Maps over the factor plane that figures of the first paper share."""

import numpy as np
from matplotlib.colors import AsinhNorm

from compgen_jax.metrics import geometry

from .. import plotting

# log₁₀ of a volume over that of ID cells, finer near 0
VOLUME = {"cmap": plotting.SIGNED, "norm": AsinhNorm(0.3, -2, 2)}
VOLUME_LABEL = "log₁₀ volume\nover mean of ID cells"


def show_cells(axis, values_NxN, held_out, color="black", **kwargs):
    """A small map with the held-out region outlined, without ticks."""
    image = axis.imshow(values_NxN, origin="lower", interpolation="nearest", **kwargs)
    plotting.outline(axis, held_out, color=color, linewidth=0.8)
    axis.set(xticks=[], yticks=[])
    return image


def volume_bar(figure, image, **position):
    """The scale of log volume, the same in every figure."""
    style = {"label": VOLUME_LABEL, "ticks": (-2, -0.5, 0, 0.5, 2), "format": "{x:g}"}
    figure.colorbar(image, extend="both", **style, **position).minorticks_off()


def show_volumes(axes, run):
    """log₁₀ of every layer's volume element, mean over seeds, less its mean over ID cells. Returns
    an image, for the scale (`volume_bar`)."""
    held_out, volumes = run.maps["held_out"], run.maps["volume"]
    volumes = geometry.log_volume(volumes, axis=(2, 3)).mean(axis=0)
    names = "code", *map(str, range(1, len(volumes) - 1)), "image"
    for axis, volume, name in zip(axes, volumes, names, strict=False):
        image = show_cells(axis, volume - volume[~held_out].mean(), held_out, **VOLUME)
        axis.set_xlabel(name, labelpad=2)
    for axis in axes[len(volumes) :]:
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
