"""Files of images with factor values, npz or HDF5: docs/reference/files.md has their layouts.

Images of an npz without compression (`np.savez`) are mapped from the file, and those of HDF5 beyond
2 GB stay on disk if a chunk has at most 64 images; others are read into memory. (The chunks that
h5py makes of 3D Shapes have 15,000: a batch at random would read nearly the whole file.)
"""

import contextlib
import functools
import math
import re
import struct
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compgen_jax import grids
from compgen_jax.settings import ConfigError
from compgen_jax.tasks.task import Factor, cells, counts, geometry, in_words

AT_ONCE = 2**26  # bytes of images that are read at a time
IN_MEMORY, CHUNK = 2**31, 64  # bytes of images of an HDF5 file; more stay on disk in small chunks
MOST_CELLS = 2**24  # combinations: a mask and a row for each stay below 200 MB
SAMPLED = 64  # images that are compared, to find a damaged file and the background
FAULTS = (EOFError, KeyError, MemoryError, NotImplementedError, OSError, RuntimeError, TypeError,
          ValueError, struct.error, zipfile.BadZipFile, zlib.error)  # fmt: skip
DSPRITES_SHAPES = "square", "ellipse", "heart"
SHAPES3D_SHAPES = "cube", "cylinder", "sphere", "pill"
# All values in storage order, the last factor fastest. Sources: github.com/google-deepmind's
# dsprites-dataset and 3d-shapes (stored labels, not the README's).
DSPRITES = (
    Factor("color", np.ones(1)),
    Factor("shape", np.arange(1, 4), real=False, labels=DSPRITES_SHAPES),
    Factor("scale", np.linspace(0.5, 1, 6)),
    Factor("orientation", np.linspace(0, 2 * np.pi, 40), period=2 * np.pi),
    Factor("posX", np.arange(32) / 31),
    Factor("posY", np.arange(32) / 31),
)
SHAPES3D = (
    Factor("floor_hue", np.arange(10) / 10, period=1.0),
    Factor("wall_hue", np.arange(10) / 10, period=1.0),
    Factor("object_hue", np.arange(10) / 10, period=1.0),
    Factor("scale", np.linspace(0.75, 1.25, 8)),
    Factor("shape", np.arange(4), real=False, labels=SHAPES3D_SHAPES),
    Factor("orientation", np.linspace(-30, 30, 15)),
)
OWN = "your own file has images, factors (n, F) and factor_names, or images and one array a factor"


class TableFile(NamedTuple):
    """The images of all combinations of the factors' values; B is their number.

    images: (N, H, W) or (N, H, W, C), an array, a memory map or `_OnDisk`; divided by `white` they
        are 0..1.
    background: (H, W[, C]) float32 from 0 to 1, the mean image; 0 if most pixels are black.
    rows_B: the image of each combination, or of the nearest one that has an image.
    exists_B: whether a combination has an image.
    """

    images: np.ndarray
    white: float
    background: np.ndarray | float
    factors: tuple[Factor, ...]
    rows_B: np.ndarray
    exists_B: np.ndarray
    says: tuple[str, ...]


class _OnDisk:
    """Images (n, H, W[, C]) of an HDF5 data set, read at each use."""

    def __init__(self, stored):
        file = type(stored.file)(stored.file.filename)  # `read` closes the one of `stored`
        self.stored, self.dtype = file[stored.name], stored.dtype
        self.shape = stored.shape[:3] if stored.shape[3:] == (1,) else stored.shape

    def __getitem__(self, rows):
        ascending, index = np.unique(rows, return_inverse=True)  # HDF5 takes no other order
        return self.stored[ascending].reshape(-1, *self.shape[1:])[index]


def read(path: str, subset: tuple = (), side: int = 0) -> TableFile:
    """The table in a file.

    subset: pairs of a factor and the values to keep: a tuple of labels or of places (from 0), or
        text such as '::4', as Python slices a list.
    side: larger square images are averaged over areas, and kept as float16 in memory. 0: as stored.

    A factor of one value is left out, and so is the last value of an angle that repeats the first.
    Raises ConfigError, one line, for a file that is missing, damaged or contradicts itself.
    """
    try:
        with contextlib.ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # Python 2 wrote the headers of dSprites
            file = Path(path).expanduser()
            return _table(*_layout(file, _arrays(file, stack)), subset, side)
    except ConfigError:
        raise
    except FAULTS as error:
        text = getattr(error, "strerror", None) or str(error) or "ends too early"
        raise ConfigError(f"config.task.path={path!r}: {text.splitlines()[0]}") from error


def _require(ok, what: str):
    if not ok:
        raise ValueError(what)


# --- layouts ---------------------------------------------------------------------------------


def _arrays(path: Path, stack):
    """The arrays of a file by name; an HDF5 group's name is joined to theirs by '_'."""
    file = stack.enter_context(path.open("rb"))
    begins = file.read(4)
    file.seek(0)
    if begins == b"PK\3\4":
        return stack.enter_context(np.load(file, allow_pickle=False))
    _require(begins == b"\x89HDF", "is neither an npz nor an HDF5 file")
    try:
        import h5py
    except ImportError:
        raise ValueError("needs h5py: pip install 'compgen_jax[files]'") from None
    arrays = {}

    def add(name, item):
        if isinstance(item, h5py.Dataset):
            arrays[name.replace("/", "_")] = item

    stack.enter_context(h5py.File(path)).visititems(add)
    return arrays


@functools.cache
def _mapped(path: Path, name: str, size: int, modified: int):
    """A memory map of an npz's array, or None if it is compressed. All is read once for each state
    of a file: a map reads past the checksum, so BadZipFile is raised here."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
        member, formats = archive.getinfo(f"{name}.npy"), np.lib.format
        is_old = formats.read_magic(stream) == (1, 0)
        header = formats.read_array_header_1_0 if is_old else formats.read_array_header_2_0
        shape, by_columns, dtype = header(stream)
        start = stream.tell()
        if member.compress_type != zipfile.ZIP_STORED or dtype.hasobject:
            return None
        while stream.read(AT_ONCE):
            pass
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)  # the lengths of the member's own header
        start += member.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
    return np.memmap(path, dtype, "r", start, shape, "F" if by_columns else "C")


def _values(arrays, name: str, *shape):
    """An array of numbers or text of this shape; None stands for any length."""
    array = arrays[name]
    array = np.asarray(array.asstr()[()] if array.dtype == object else array[()])
    array = array.astype(str) if array.dtype.kind in "OS" else array
    fits = len(shape) == array.ndim and all(
        length in (None, actual) for length, actual in zip(shape, array.shape, strict=True)
    )
    _require(fits, f"{name} has shape {array.shape}; must be {shape} (None: any)")
    kind = array.dtype.kind
    finite = kind == "U" or (kind in "biuf" and np.isfinite(array).all())
    _require(finite, f"{name} must be finite numbers or text")
    return array


def _layout(path: Path, arrays) -> tuple:
    """Images (n, H, W[, C]), an array, a memory map or an HDF5 data set; the factors, and the
    indices of all values (n, F)."""
    names, key = set(arrays), "images"
    if {"imgs", "latents_values"} <= names:
        key = "imgs"
    _require(key in names, f"has the keys {', '.join(sorted(names))}; {OWN}")
    stat, images = path.stat(), None
    if not isinstance(arrays, dict):
        images = _mapped(path.resolve(), key, stat.st_size, stat.st_mtime_ns)
    images = arrays[key] if images is None else images
    known = images.dtype in (np.uint8, bool) or images.dtype.kind == "f"
    _require(known, f"{key} has {images.dtype}; images must be uint8, or floats from 0 to 1")
    fits = images.ndim in (3, 4) and 0 not in images.shape and (*images.shape, 1)[3] < 5
    hint = "images must be (n, H, W), or (n, H, W, C) with C < 5"
    _require(fits, f"{key} has shape {images.shape}; {hint}")
    count, columns = len(images), {}
    if key == "imgs":
        values, factors = _values(arrays, "latents_values", count, len(DSPRITES)), DSPRITES
    elif names == {"images", "labels"} and arrays["labels"].ndim > 1:
        values, factors = _values(arrays, "labels", count, len(SHAPES3D)), SHAPES3D
    elif {"factors", "factor_names"} <= names:
        table = _values(arrays, "factors", count, None)
        labels = tuple(map(str, _values(arrays, "factor_names", table.shape[1])))
        once = len(set(labels)) == len(labels)
        _require(once, f"factor_names has a name twice: {', '.join(labels)}")
        columns = dict(zip(labels, table.T, strict=True))
    else:
        is_other = re.compile(r"images|metadata|.*_(labels|period)").fullmatch
        columns = {name: _values(arrays, name, count) for name in arrays if not is_other(name)}
        _require(columns, f"has {count} images and no factors; {OWN}")
    indices = []
    if not columns:
        for column, factor in zip(values.T, factors, strict=True):
            known = np.asarray(factor.values, np.float64)
            index = np.searchsorted((known[1:] + known[:-1]) / 2, column)
            far = column[np.abs(known[index] - column) > 1e-4]
            if len(far):
                raise ValueError(f"{factor.name} is {far[0]:g}, unlike in its data set; {OWN}")
            indices.append(index)
        return images, factors, np.stack(indices, axis=1)
    factors = []
    for name, column in columns.items():
        is_text, labels, period = column.dtype.kind == "U", (), math.inf
        numbers = column if is_text else column.astype(np.float32)
        values, index = np.unique(numbers, return_inverse=True)
        if f"{name}_period" in arrays and not is_text:
            period = float(_values(arrays, f"{name}_period"))
            hint = "must be greater than 0, and at least the range of the values"
            fits = np.ptp(values) / 1.0001 < period < math.inf
            _require(fits, f"{name}_period is {period:g}; {hint}")
        if is_text:
            values, labels = np.arange(len(values)), tuple(map(str, values))
        elif f"{name}_labels" in arrays:
            labels = tuple(map(str, _values(arrays, f"{name}_labels", len(values))))
        factors.append(Factor(name, values, not labels, period, labels))
        indices.append(index)
    return images, tuple(factors), np.stack(indices, axis=1)


# --- combinations ----------------------------------------------------------------------------


def _table(stored, all_factors, indices_nxF, subset: tuple, side: int) -> TableFile:
    names = [factor.name for factor in all_factors]
    for pair in subset:
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] not in names:
            hint = f"must be pairs of a factor and its values; factors are {', '.join(names)}"
            raise ConfigError(f"config.task.subset={subset!r}: {hint}")
    says, factors, columns, kept_n = [], [], [], np.ones(len(indices_nxF), bool)
    for factor, column in zip(all_factors, indices_nxF.T, strict=True):
        values, present = np.asarray(factor.values, np.float32), np.unique(column)
        first, last = values[present[0]], values[present[-1]]
        if last - first > 0.9999 * factor.period:
            again = (column == present[-1]).sum()
            says.append(f"{factor.name} {last:g} is {first:g} again: {again} images are left out")
            present = present[:-1]
        if factor.name in dict(subset):
            which, count, chosen = dict(subset)[factor.name], len(present), ()
            names = [factor.labels[index] for index in present] if factor.labels else []
            with contextlib.suppress(IndexError, TypeError, ValueError):
                if isinstance(which, str):
                    parts = [int(part) if part.strip() else None for part in which.split(":")]
                    chosen = range(count)[slice(*parts)] if len(parts) > 1 else ()
                else:
                    wanted = [names.index(v) if isinstance(v, str) else v for v in which]
                    chosen = [range(count)[index] for index in wanted]
            if not len(set(chosen)) == len(chosen) > 0:
                among = ", ".join((*names, f"places from 0 to {count - 1}"))
                hint = f"{factor.name} needs START:STOP:STEP, or a tuple of some of {among}"
                raise ConfigError(f"config.task.subset={subset!r}: {hint}")
            present = present[sorted(chosen)]
        kept_n &= np.isin(column, present)
        if len(present) == 1:
            says.append(f"{factor.name} has one value, and is no factor here")
            continue
        labels = tuple(factor.labels[index] for index in present) if factor.labels else ()
        factors.append(factor._replace(values=values[present], labels=labels))
        columns.append(np.minimum(np.searchsorted(present, column), len(present) - 1))
    if not kept_n.any():
        raise ConfigError(f"config.task.subset={subset!r}: keeps no image")
    _require(factors, "has no factor with two values")
    sizes = counts(factors)
    listed = ", ".join(f"{f.name} {len(f.values)}" for f in factors)
    hint = f"has more than {MOST_CELLS} combinations of values ({listed}); round them"
    _require(math.prod(sizes) <= MOST_CELLS, hint)
    row_n = np.flatnonzero(kept_n)
    cell_n = np.stack(columns, axis=1)[row_n] @ np.cumprod([1, *sizes[:-1]])
    images_of_B = np.bincount(cell_n, minlength=math.prod(sizes))
    twice = np.flatnonzero(images_of_B > 1)
    if len(twice):
        point = in_words(factors, cells(factors)[twice[0]])
        raise ValueError(f"{len(twice)} combinations have more than one image, such as {point}")
    exists_B, rows_B = images_of_B > 0, np.zeros(len(images_of_B), np.int64)
    rows_B[cell_n] = row_n
    images, white, background, rows_B[exists_B] = _checked(stored, rows_B[exists_B], side)
    if not exists_B.all():
        says.append(f"{(~exists_B).sum()} of {len(exists_B)} combinations have no image")
        rows_B = rows_B[grids.nearest_seen(~exists_B, **geometry(factors))[0]]
    return TableFile(images, white, background, tuple(factors), rows_B, exists_B, tuple(says))


# --- images ----------------------------------------------------------------------------------


def _checked(stored, rows, side: int):
    """The images of rows (B',), what white is, the background, and the rows in what is returned."""
    height, width, *channels = stored.shape[1:]
    bytes_each = math.prod(stored.shape[1:]) * stored.dtype.itemsize
    is_small, size, dtype = side not in (0, height), stored.shape[1:], stored.dtype
    if is_small:
        if not side < height == width:
            hint = f"images have {height} x {width} pixels; must be 0, or less and square"
            raise ConfigError(f"config.task.side={side}: {hint}")
        size, dtype = (side, side, *channels), np.float16
        # the share (side, height) that each pixel of an axis has in each smaller one
        edges, pixel = np.linspace(0, height, side + 1), np.arange(height)
        shared = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
        share = (np.clip(shared, 0, None) * side / height).astype(np.float32)
    order, top = np.argsort(rows), 0.0
    ascending = rows[order]
    if not isinstance(stored, np.ndarray):
        is_large = len(rows) * bytes_each > IN_MEMORY
        in_place = is_large and not is_small and (stored.chunks or (1,))[0] <= CHUNK
        images = _OnDisk(stored) if in_place else None
    else:
        # of an array in memory, at least half must be wanted: the rest would stay as well
        is_mapped, images = isinstance(stored, np.memmap), stored
        in_place = not is_small and (is_mapped or 2 * len(rows) > len(stored))
    if not in_place:
        images, rows = np.empty((len(rows), *size), dtype), np.arange(len(rows))
    step = max(1, AT_ONCE // bytes_each)
    for begin in range(0, len(stored), step):
        low, high = np.searchsorted(ascending, [begin, begin + step])
        if low == high or (in_place and stored.dtype == np.uint8 and top > 1):
            continue
        batch = stored[begin : begin + step][ascending[low:high] - begin]
        least, most = float(batch.min()), float(batch.max())
        in_range = batch.dtype.kind != "f" or (least >= 0 and most <= 1)
        _require(in_range, f"images are {least:g} to {most:g}; floats must be from 0 to 1")
        top = max(top, most)
        if is_small:
            lines = np.einsum("ai,nij...->naj...", share, np.float32(batch), optimize=True)
            batch = np.einsum("bj,naj...->nab...", share, lines, optimize=True)
        if not in_place:
            images[order[low:high]] = batch
    images = images[..., 0] if images.shape[3:] == (1,) else images
    some = images[np.random.default_rng(0).choice(rows, SAMPLED)]
    differ = (some != some[:1]).any()
    _require(differ, f"{SAMPLED} images from all over it are the same: it is damaged")
    white = 255.0 if stored.dtype == np.uint8 and top > 1 else 1.0
    is_black = np.mean(some == 0) > 0.5
    return images, white, 0.0 if is_black else np.float32(some.mean(axis=0) / white), rows
