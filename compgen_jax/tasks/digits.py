"""Digits drawn from the font that matplotlib brings along: pictures that need no download."""

import functools

import numpy as np

FONT = "fonts/ttf/DejaVuSans-Bold.ttf"  # in matplotlib's own data, the same on every machine
SUPERSAMPLED = 8  # points along each axis of a pixel
MARGIN = 1.5  # pixels from the outline to the inscribed circle: of antialiasing and of turning
UNITS = 1000.0  # of the outline, whose curves become polygons at a resolution of about one


@functools.lru_cache(maxsize=256)
def drawn(digit: int, side: int):
    """The digit as (side, side) float32 in [0, 1], the share of each pixel that its outline covers;
    read-only NumPy.

    Row 0 is y = 0, the bottom of the digit: it looks right where it is shown with the origin at
    the lower left. It is centred by its bounding box, in the inscribed circle with a margin, so
    that it is whole at any angle.
    """
    polygons = _outline(digit)
    corners = np.concatenate(polygons)
    middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
    scale = (side / 2 - MARGIN) / np.linalg.norm(corners - middle, axis=1).max()
    fine = side * SUPERSAMPLED
    offset = (np.arange(fine) + 0.5) / SUPERSAMPLED - side / 2
    inside = np.zeros((fine, fine), bool)
    for polygon in polygons:  # a point within two of them is in a hole
        inside ^= _within((polygon - middle) * scale, offset)
    image = inside.reshape(side, SUPERSAMPLED, side, SUPERSAMPLED).mean(axis=(1, 3))
    image = image.astype(np.float32)
    image.flags.writeable = False
    return image


def _outline(digit: int) -> list:
    """Closed polygons (n, 2) of (x, y), y upwards: those of holes, too."""
    import matplotlib  # slow to import, and other tasks need none of it
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(fname=f"{matplotlib.get_data_path()}/{FONT}")
    path = TextPath((0, 0), str(digit), size=UNITS, prop=font)
    return [np.asarray(polygon) for polygon in path.to_polygons()]


def _within(polygon, offsets_N):
    """(N, N) bool, [y, x]: the points of a square grid that lie within a polygon."""
    from matplotlib.path import Path

    points = np.stack(np.meshgrid(offsets_N, offsets_N), axis=-1).reshape(-1, 2)
    return Path(polygon).contains_points(points).reshape(len(offsets_N), -1)
