"""Images of digits: drawn from matplotlib's font, which needs no download, or read from MNIST."""

import functools
import gzip
import zlib
from pathlib import Path

import numpy as np

from compgen_jax.settings import ConfigError

FONT = "fonts/ttf/DejaVuSans-Bold.ttf"  # in matplotlib's own data, the same on every machine
SUPERSAMPLED = 8  # points along each axis of a pixel
MARGIN = 1.5  # pixels from the outline to the inscribed circle, for antialiasing and turning
UNITS = 1000.0  # of the outline, whose curves become polygons at a resolution of about one

SIDE = 28
# files of MNIST and their magic numbers: unsigned bytes, and how many axes
FILES = {"train-images-idx3-ubyte": 0x00000803, "train-labels-idx1-ubyte": 0x00000801}


@functools.lru_cache(maxsize=256)
def drawn(digit: int, side: int):
    """The digit as (side, side) float32, read-only NumPy: the share of each pixel that its outline
    covers. Row 0 is the bottom; it is whole at any angle."""
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
    `path` is a directory of `FILES`, plain or .gz. Raises ConfigError."""
    try:
        images, labels = (_read(Path(path).expanduser() / name) for name in FILES)
        if images.shape != (len(labels), SIDE, SIDE):
            raise ValueError(f"images are {images.shape}; must be ({len(labels)}, 28, 28)")
        missing = sorted(set(digits) - set(labels.tolist()))
        if missing:
            raise ValueError(f"there is no example of {missing}")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ConfigError(f"config.task.mnist_path={path!r}: {error}") from error
    return {digit: images[np.argmax(labels == digit)].astype(np.float32) / 255 for digit in digits}


def _read(path: Path):
    """The array of an IDX file, plain or gzipped."""
    zipped = path.with_name(f"{path.name}.gz")
    content = gzip.decompress(zipped.read_bytes()) if zipped.is_file() else path.read_bytes()
    magic = FILES[path.name]
    numbers = np.frombuffer(content, ">u4", 1 + (magic & 0xFF))
    if numbers[0] != magic:
        raise ValueError(f"{path.name} has magic number {numbers[0]:#010x}, not {magic:#010x}")
    return np.frombuffer(content, np.uint8, offset=numbers.nbytes).reshape(numbers[1:])
