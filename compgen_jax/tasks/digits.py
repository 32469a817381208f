"""Images of digits: drawn from matplotlib's font, which needs no download, or read from MNIST.

MNIST is read as it is distributed: IDX files of images and of labels, plain or gzipped.
"""

import functools
import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from compgen_jax.settings import ConfigError

FONT = "fonts/ttf/DejaVuSans-Bold.ttf"  # in matplotlib's own data, the same on every machine
SUPERSAMPLED = 8  # points along each axis of a pixel
MARGIN = 1.5  # pixels from the outline to the inscribed circle, for antialiasing and turning
UNITS = 1000.0  # of the outline, whose curves become polygons at a resolution of about one

IMAGES, LABELS = 0x00000803, 0x00000801  # magic numbers: unsigned bytes, and how many axes
SIDE = 28
NAMES = ("train-images-idx3-ubyte", "train-images.idx3-ubyte")


@functools.lru_cache(maxsize=256)
def drawn(digit: int, side: int):
    """The digit as (side, side) float32 in [0, 1], read-only NumPy: the share of each pixel that
    its outline covers.

    Row 0 is y = 0, the bottom of the digit: shown with the origin at the lower left, it is upright.
    Its bounding box is centred, and the inscribed circle holds it with a margin, so that it is
    whole at any angle.
    """
    # slow to import, and other tasks need none of it
    import matplotlib
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path as Outline
    from matplotlib.textpath import TextPath

    font = FontProperties(fname=f"{matplotlib.get_data_path()}/{FONT}")
    polygons = TextPath((0, 0), str(digit), size=UNITS, prop=font).to_polygons()
    corners = np.concatenate(polygons)
    middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
    scale = (side / 2 - MARGIN) / np.linalg.norm(corners - middle, axis=1).max()
    fine = side * SUPERSAMPLED
    offset = (np.arange(fine) + 0.5) / SUPERSAMPLED - side / 2
    points = np.stack(np.meshgrid(offset, offset), axis=-1).reshape(-1, 2)
    inside = np.zeros(fine**2, bool)
    for polygon in polygons:  # a point within two of them is in a hole
        inside ^= Outline((np.asarray(polygon) - middle) * scale).contains_points(points)
    image = inside.reshape(side, SUPERSAMPLED, side, SUPERSAMPLED).mean(axis=(1, 3))
    image = image.astype(np.float32)
    image.flags.writeable = False
    return image


def first_of_each(path: str, digits) -> dict:
    """MNIST's first training example of each digit, (28, 28) float32 in [0, 1]; row 0 is the top,
    as in the file.

    `path` is a directory with train-images-idx3-ubyte and train-labels-idx1-ubyte (each may end in
    .gz), or the file of images, with that of labels beside it. Raises ConfigError for a file that
    is missing, damaged or of another kind, for unequal numbers of images and labels, and for a
    missing digit.
    """
    try:
        images_file, labels_file = _find(Path(path).expanduser())
        images, labels = _read(images_file, IMAGES), _read(labels_file, LABELS)
        count, rows, columns = images.shape
        if (rows, columns) != (SIDE, SIDE):
            raise ValueError(f"{images_file.name} has images of {rows} x {columns}, not 28 x 28")
        if count != len(labels):
            both = f"{count} images and {labels_file.name} {len(labels)} labels"
            raise ValueError(f"{images_file.name} has {both}; must be as many")
        missing = sorted(set(digits) - set(labels.tolist()))
        if missing:
            raise ValueError(f"{labels_file.name} has no example of {missing}")
    except (OSError, ValueError) as error:
        text = error.strerror or error if isinstance(error, OSError) else error
        raise ConfigError(f"config.task.mnist_path={path!r}: {text}") from error
    return {digit: images[np.argmax(labels == digit)].astype(np.float32) / 255 for digit in digits}


def _find(path: Path) -> tuple[Path, Path]:
    """The files of images and of labels. Raises ValueError."""
    if path.is_dir():
        images = _first(path / name for name in NAMES)
        if images is None:
            raise ValueError(f"has neither {NAMES[0]} nor {NAMES[0]}.gz")
    elif path.is_file():
        images = path
    else:
        raise ValueError("no such file or directory")
    if "images" not in images.name:
        raise ValueError("a file of images must have 'images' in its name, and 'labels' beside it")
    stem = images.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    labels = _first([images.with_name(stem)])
    if labels is None:
        raise ValueError(f"has no {stem} nor {stem}.gz beside {images.name}")
    return images, labels


def _first(paths) -> Path | None:
    """The first path that is a file, as it is or with .gz."""
    both = (each for path in paths for each in (path, path.with_name(path.name + ".gz")))
    return next((path for path in both if path.is_file()), None)


def _read(path: Path, magic: int):
    """The array of an IDX file. Raises ValueError or OSError for a damaged file."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path.name} is a broken gzip file ({error})") from error
    axes = magic & 0xFF
    if len(content) < 4 + 4 * axes:
        raise ValueError(f"{path.name} is truncated: {len(content)} bytes have no whole header")
    kind, *sizes = struct.unpack(f">{1 + axes}I", content[: 4 + 4 * axes])
    if kind != magic:
        raise ValueError(f"{path.name} has magic number {kind:#010x}, not {magic:#010x}")
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * axes)
    if len(values) != math.prod(sizes):
        wrong = "is truncated" if len(values) < math.prod(sizes) else "is too long"
        shape = "x".join(map(str, sizes))
        raise ValueError(f"{path.name} {wrong}: {len(values)} bytes of {shape} values")
    return values.reshape(sizes)
