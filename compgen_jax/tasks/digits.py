"""Images of digits: drawn from matplotlib's font, which needs no download, or read from MNIST.

MNIST is read as it is distributed: IDX files of images and of labels, plain or gzipped.
"""

import functools
import gzip
import math
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
    its outline covers. Row 0 is the bottom; it is whole at any angle."""
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
    """MNIST's first training example of each digit, (28, 28) float32 in [0, 1]; row 0 is the top.

    `path` is a directory with train-images-idx3-ubyte and train-labels-idx1-ubyte (each may end in
    .gz), or the file of images. Raises ConfigError for files that are missing or wrong.
    """
    try:
        file = Path(path).expanduser()
        files = [file / name for name in NAMES] if file.is_dir() else [file]
        images_file = next((file for file in map(_plain_or_gz, files) if file), None)
        if images_file is None:
            raise ValueError(f"there is no file {files[0].name}, plain or .gz")
        stem = images_file.name.removesuffix(".gz")
        labels_name = stem.replace("images", "labels").replace("idx3", "idx1")
        labels_file = _plain_or_gz(images_file.with_name(labels_name))
        if labels_name == stem or labels_file is None:
            raise ValueError(f"{stem} must have 'images' in its name, and labels beside it")
        images, labels = _read(images_file, IMAGES), _read(labels_file, LABELS)
        if images.shape != (len(labels), SIDE, SIDE):
            raise ValueError(f"images are {images.shape}; must be ({len(labels)}, 28, 28)")
        missing = sorted(set(digits) - set(labels.tolist()))
        if missing:
            raise ValueError(f"{labels_file.name} has no example of {missing}")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        text = getattr(error, "strerror", None) or error
        raise ConfigError(f"config.task.mnist_path={path!r}: {text}") from error
    return {digit: images[np.argmax(labels == digit)].astype(np.float32) / 255 for digit in digits}


def _plain_or_gz(path: Path) -> Path | None:
    files = path, path.with_name(path.name + ".gz")
    return next((file for file in files if file.is_file()), None)


def _read(path: Path, magic: int):
    """The array of an IDX file."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    numbers = np.frombuffer(content[: len(content) // 4 * 4][: 4 + 4 * (magic & 0xFF)], ">u4")
    kind, *sizes = numbers.tolist() or [0]
    if kind != magic:
        raise ValueError(f"{path.name} has magic number {kind:#010x}, not {magic:#010x}")
    values = np.frombuffer(content, np.uint8, offset=4 * len(numbers))
    if len(values) != math.prod(sizes):
        raise ValueError(f"{path.name} has {len(values)} bytes, not {math.prod(sizes)} of {sizes}")
    return values.reshape(sizes)
