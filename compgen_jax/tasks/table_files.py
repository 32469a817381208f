"""Files of images with factor values: opened, checked, and laid out as combinations of factors.

A file is npz or HDF5. Its keys tell its layout:

    imgs, latents_values            dSprites; `metadata`, which is pickled, is never read
    images, labels                  3D Shapes
    images, factors, factor_names   your own: numbers (n, F), and the names of the F factors
    images, and arrays (n,)         your own: each array is a factor, of numbers or of text

Images are (n, H, W) or (n, H, W, C), uint8 (0 and 1 alone, or up to 255) or floats from 0 to 1. In
your own file an array NAME_labels names a factor's values, ascending, and a number NAME_period says
after how much an angle repeats. A factor of text has its words, sorted, as labels. Images of an npz
without compression (`np.savez`) are used in place, and so are those of HDF5 beyond 2 GB if a chunk
has at most 64 images; others are read into memory. The chunks that h5py makes of 3D Shapes have
15,000 images, so that one batch at random would read nearly the whole file.
"""

import contextlib
import functools
import hashlib
import math
import re
import struct
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from compgen_jax import compilation_cache, grids
from compgen_jax.settings import ConfigError, require
from compgen_jax.tasks.task import Factor, cells, geometry

AT_ONCE = 2**26  # bytes of images that are read at a time
IN_MEMORY, CHUNK = 2**31, 64  # bytes of images of an HDF5 file; more stay on disk in small chunks
MOST_CELLS = 2**24  # combinations: a mask and a row for each stay below 200 MB
SAMPLED = 64  # images that are compared, to find a damaged file and the background
FAULTS = (EOFError, KeyError, MemoryError, NotImplementedError, OSError, RuntimeError, TypeError,
          ValueError, struct.error, zipfile.BadZipFile, zlib.error)  # fmt: skip


def _labelled(name: str, labels: str, first: int = 0) -> Factor:
    names = tuple(labels.split(", "))
    return Factor(name, np.arange(first, first + len(names)), real=False, labels=names)


# All values in storage order, the last factor fastest. Sources: github.com/google-deepmind's
# dsprites-dataset and 3d-shapes (stored labels, not the README's).
DSPRITES = (
    Factor("color", np.ones(1)),
    _labelled("shape", "square, ellipse, heart", first=1),
    Factor("scale", np.linspace(0.5, 1, 6)),
    Factor("orientation", np.linspace(0, 2 * np.pi, 40), period=2 * np.pi),
    Factor("posX", np.arange(32) / 31),
    Factor("posY", np.arange(32) / 31),
)
SHAPES3D = (
    *(Factor(f"{of}_hue", np.arange(10) / 10, period=1.0) for of in ("floor", "wall", "object")),
    Factor("scale", np.linspace(0.75, 1.25, 8)),
    _labelled("shape", "cube, cylinder, sphere, pill"),
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
    says: sentences about what was found.
    """

    images: np.ndarray
    white: float
    background: np.ndarray | float
    factors: tuple[Factor, ...]
    rows_B: np.ndarray
    exists_B: np.ndarray
    says: tuple[str, ...]


class _OnDisk:
    """Images (n, H, W) or (n, H, W, C) of an HDF5 data set, read at each use."""

    def __init__(self, stored):
        file = type(stored.file)(stored.file.filename)
        self.stored, self.dtype = file[stored.name], stored.dtype
        self.shape = stored.shape[:3] if stored.shape[3:] == (1,) else stored.shape

    def __getitem__(self, rows):
        ascending, places = np.unique(rows, return_inverse=True)  # HDF5 takes no other order
        return self.stored[ascending].reshape(-1, *self.shape[1:])[places]


class _Found(NamedTuple):
    """Images (n, H, W[, C]), an array, a memory map or an HDF5 data set; the factors, and the
    places of all values (n, F)."""

    images: Any
    factors: tuple[Factor, ...]
    places: np.ndarray


def read(path: str, subset: tuple = (), side: int = 0) -> TableFile:
    """The table in a file; see the head of this module.

    subset: pairs of a factor and its values that are kept: a tuple of labels or of places (from 0,
        ascending), or text START:STOP:STEP such as '::4', as Python slices a list.
    side: pixels along each axis; larger square images are averaged over areas, and kept as float16
        in memory. 0: as stored.

    A factor of one value is left out, and so is the last value of an angle that repeats the first.
    Raises ConfigError, one line, for a file that is missing, damaged or contradicts itself.
    """
    try:
        with contextlib.ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # Python 2 wrote the headers of dSprites
            return _table(_layout(Path(path).expanduser(), stack), subset, side)
    except ConfigError:
        raise
    except FAULTS as error:
        text = getattr(error, "strerror", None) or str(error) or "ends too early"
        raise ConfigError(f"config.task.path={path!r}: {text.splitlines()[0]}") from error


def _require(ok, what: str):
    """Raises ValueError, which `read` says of its path."""
    if not ok:
        raise ValueError(what)


# --- layouts ---------------------------------------------------------------------------------


def _arrays(path: Path, stack):
    """The arrays of a file by name; an HDF5 group's name is joined to theirs by '_'."""
    with path.open("rb") as file:
        begins = file.read(4)
    if begins == b"PK\3\4":
        file = stack.enter_context(path.open("rb"))
        return stack.enter_context(np.load(file, allow_pickle=False))
    _require(begins == b"\x89HDF", "is neither an npz nor an HDF5 file")
    try:
        import h5py
    except ImportError:
        raise ValueError("needs h5py: pip install 'compgen_jax[files]'") from None
    found, file = {}, stack.enter_context(h5py.File(path))
    file.visititems(lambda name, item: found.update({name.replace("/", "_"): item}))
    return {name: item for name, item in found.items() if hasattr(item, "shape")}


def _images(path: Path, arrays, name: str):
    """An npz's array in place if it is not compressed, else in memory; an HDF5 data set as it is.
    Raises ValueError for an array that is no images."""
    array = arrays[name] if isinstance(arrays, dict) else _mapped(path, name)
    array = arrays[name] if array is None else array
    known = array.dtype in (np.uint8, bool) or array.dtype.kind == "f"
    _require(known, f"{name} has {array.dtype}; images must be uint8, or floats from 0 to 1")
    colors = array.shape[-1] if array.ndim == 4 else 1
    hint = "images must be (n, H, W), or (n, H, W, C) with C < 5"
    right = array.ndim in (3, 4) and 0 not in array.shape and colors < 5
    _require(right, f"{name} has shape {array.shape}; {hint}")
    return array


def _mapped(path: Path, name: str):
    """A memory map of an npz's array, or None if it is compressed. numpy maps no member of an npz,
    so its offset is found here."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
        member, formats = archive.getinfo(f"{name}.npy"), np.lib.format
        old = formats.read_magic(stream) == (1, 0)
        header = formats.read_array_header_1_0 if old else formats.read_array_header_2_0
        shape, by_columns, dtype = header(stream)
        start = stream.tell()
    if member.compress_type != zipfile.ZIP_STORED or dtype.hasobject:
        return None
    stat = path.stat()
    _check_sum(path.resolve(), f"{name}.npy", stat.st_size, stat.st_mtime_ns)
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)  # the lengths of the member's own header
        start += member.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
    return np.memmap(path, dtype, "r", start, shape, "F" if by_columns else "C")


@functools.cache
def _check_sum(path: Path, member: str, size: int, modified: int):
    """Raises BadZipFile where an array's bytes are not those that were saved: who maps a file reads
    past its checksum. A file that was right is remembered, as all of it is read here."""
    known = hashlib.sha256(f"{path} {member} {size} {modified}".encode()).hexdigest()
    folder = compilation_cache.folder("checked_files")
    if folder and (folder / known).exists():
        return
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        while stream.read(AT_ONCE):
            pass
    if folder:
        with contextlib.suppress(OSError):  # in a place that cannot be written it is read again
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / known).touch()


def _values(arrays, name: str, *shape):
    """An array of numbers or text of this shape; None stands for any length. Raises ValueError."""
    array = arrays[name]
    array = np.asarray(array.asstr()[()] if array.dtype == object else array[()])
    array = array.astype(str) if array.dtype.kind in "OS" else array
    lengths = zip(shape, array.shape, strict=False)
    right = array.ndim == len(shape) and all(wanted in (None, own) for wanted, own in lengths)
    wanted = tuple("any" if length is None else length for length in shape)
    _require(right, f"{name} has shape {array.shape}; must be {wanted}")
    kind = array.dtype.kind
    finite = kind == "U" or (kind in "biuf" and np.isfinite(array).all())
    _require(finite, f"{name} must be finite numbers or text")
    return array


def _layout(path: Path, stack) -> _Found:
    arrays = _arrays(path, stack)
    names = set(arrays)
    if {"imgs", "latents_values"} <= names:
        images = _images(path, arrays, "imgs")
        values = _values(arrays, "latents_values", len(images), len(DSPRITES))
        return _Found(images, DSPRITES, _places(values, DSPRITES, "dSprites"))
    keys = ", ".join(sorted(names)) or "of no array"
    _require("images" in names, f"has the keys {keys}; {OWN}")
    images = _images(path, arrays, "images")
    count = len(images)
    if {"factors", "factor_names"} <= names:
        table = _values(arrays, "factors", count, None)
        labels = tuple(map(str, _values(arrays, "factor_names", table.shape[1])))
        once = len(set(labels)) == len(labels)
        _require(once, f"factor_names has a name twice: {', '.join(labels)}")
        return _own(images, arrays, dict(zip(labels, table.T, strict=True)))
    if names == {"images", "labels"} and arrays["labels"].ndim > 1:
        values = _values(arrays, "labels", count, len(SHAPES3D))
        return _Found(images, SHAPES3D, _places(values, SHAPES3D, "3D Shapes"))
    is_other = re.compile(r"images|metadata|.*_(labels|period)").fullmatch
    columns = {name: _values(arrays, name, count) for name in arrays if not is_other(name)}
    _require(columns, f"has {count} images and no factors; {OWN}")
    return _own(images, arrays, columns)


def _own(images, arrays, columns: dict) -> _Found:
    factors, places = [], []
    for name, column in columns.items():
        numbers = column if column.dtype.kind == "U" else column.astype(np.float32)
        values, place = np.unique(numbers, return_inverse=True)
        labels, period = (), math.inf
        if f"{name}_period" in arrays and column.dtype.kind != "U":
            period = float(_values(arrays, f"{name}_period"))
            right = np.ptp(values) / 1.0001 < period < math.inf
            hint = "must be greater than 0, and at least the range of the values"
            _require(right, f"{name}_period is {period:g}; {hint}")
        if column.dtype.kind == "U":
            values, labels = np.arange(len(values)), tuple(map(str, values))
        elif f"{name}_labels" in arrays:
            labels = tuple(map(str, _values(arrays, f"{name}_labels", len(values))))
        factors.append(Factor(name, values, not labels, period, labels))
        places.append(place)
    return _Found(images, tuple(factors), np.stack(places, axis=1))


def _places(values_nxF, factors, what: str):
    """(n, F) int: the place of each value. Raises ValueError for one that the layout has not."""
    places = []
    for column, factor in zip(values_nxF.T, factors, strict=True):
        known = np.asarray(factor.values, np.float64)
        place = np.searchsorted((known[1:] + known[:-1]) / 2, column)
        far = np.abs(known[place] - column) > 1e-4
        if far.any():
            raise ValueError(f"{factor.name} is {column[far][0]:g}, and never so in {what}; {OWN}")
        places.append(place)
    return np.stack(places, axis=1)


# --- combinations ----------------------------------------------------------------------------


def _table(found: _Found, subset: tuple, side: int) -> TableFile:
    factors, places, kept_n, says = _selected(found, subset)
    sizes = [len(factor.values) for factor in factors]
    listed = ", ".join(f"{f.name} {len(f.values)}" for f in factors)
    hint = f"has more than {MOST_CELLS} combinations of values ({listed}); round them"
    _require(math.prod(sizes) <= MOST_CELLS, hint)
    row_n = np.flatnonzero(kept_n)
    cell_n = places[row_n] @ np.cumprod([1, *sizes[:-1]])
    images_of_B = np.bincount(cell_n, minlength=math.prod(sizes))
    if images_of_B.max() > 1:
        point = cells(factors)[np.argmax(images_of_B)]
        shown = ", ".join(f"{f.name}={value:g}" for f, value in zip(factors, point, strict=True))
        twice = (images_of_B > 1).sum()
        raise ValueError(f"{twice} combinations have more than one image, such as {shown}")
    exists_B, rows_B = images_of_B > 0, np.zeros(len(images_of_B), np.int64)
    rows_B[cell_n] = row_n
    images, white, background, rows_B[exists_B] = _checked(found.images, rows_B[exists_B], side)
    if not exists_B.all():
        says.append(f"{(~exists_B).sum()} of {len(exists_B)} combinations have no image")
        rows_B = rows_B[grids.nearest_seen(~exists_B, **geometry(factors))]
    return TableFile(images, white, background, factors, rows_B, exists_B, tuple(says))


def _selected(found: _Found, subset: tuple):
    """The factors that vary, the places of their kept values (n, F), which images are kept (n,),
    and sentences about it."""
    names = [factor.name for factor in found.factors]
    for pair in subset:
        hint = f"must be pairs of a factor and its values; factors are {', '.join(names)}"
        right = isinstance(pair, tuple) and len(pair) == 2 and pair[0] in names
        require(right, "task.subset", subset, hint)
    says, wanted = [], dict(subset)
    factors, columns, kept_n = [], [], np.ones(len(found.places), bool)
    for factor, column in zip(found.factors, found.places.T, strict=True):
        values, kept = np.asarray(factor.values, np.float32), np.unique(column)
        first, last = values[kept[0]], values[kept[-1]]
        if last - first > 0.9999 * factor.period:
            again = (column == kept[-1]).sum()
            says.append(f"{factor.name} {last:g} is {first:g} again: {again} images are left out")
            kept = kept[:-1]
        if factor.name in wanted:
            labels = [factor.labels[place] for place in kept] if factor.labels else []
            kept = kept[_chosen(factor.name, labels, len(kept), wanted[factor.name], subset)]
        kept_n &= np.isin(column, kept)
        if len(kept) == 1:
            says.append(f"{factor.name} has one value, and is no factor here")
            continue
        labels = tuple(factor.labels[place] for place in kept) if factor.labels else ()
        factors.append(factor._replace(values=values[kept], labels=labels))
        columns.append(np.minimum(np.searchsorted(kept, column), len(kept) - 1))
    require(kept_n.any(), "task.subset", subset, "keeps no image")
    _require(factors, "has no factor with two values")
    return tuple(factors), np.stack(columns, axis=1), kept_n, says


def _chosen(name: str, labels, count: int, which, subset: tuple):
    """(V',) int ascending: the places, of `count` values, that one pair of a subset keeps."""
    try:
        if isinstance(which, str):
            parts = [int(part) if part.strip() else None for part in which.split(":")]
            chosen = range(count)[slice(*parts)] if len(parts) > 1 else ()
        else:
            place = lambda each: labels.index(each) if isinstance(each, str) else each
            chosen = [range(count)[place(each)] for each in which]
    except (IndexError, TypeError, ValueError):
        chosen = ()
    among = ", ".join((*labels, f"places from 0 to {count - 1}"))
    hint = f"{name} needs START:STOP:STEP, or a tuple of some of {among}"
    require(len(set(chosen)) == len(chosen) > 0, "task.subset", subset, hint)
    return sorted(chosen)


# --- images ----------------------------------------------------------------------------------


def _checked(stored, rows, side: int):
    """The images of rows (B',), what white is, the background, and the rows in what is returned.
    Raises ValueError for floats that are not in 0..1, and if images from all over the file are the
    same."""
    height, width, *channels = stored.shape[1:]
    bytes_each = math.prod(stored.shape[1:]) * stored.dtype.itemsize
    is_small = side not in (0, height)
    hint = f"images have {height} x {width} pixels; must be 0, or less and square"
    require(not is_small or side < height == width, "task.side", side, hint)
    # of an array in memory, at least half must be wanted: the rest would stay as well
    in_place = isinstance(stored, np.memmap) or 2 * len(rows) > len(stored)
    if not isinstance(stored, np.ndarray):
        is_large = len(rows) * bytes_each > IN_MEMORY
        in_place = is_large and (stored.chunks or (1,))[0] <= CHUNK
    in_place &= not is_small
    images = _OnDisk(stored) if in_place and not isinstance(stored, np.ndarray) else stored
    order = np.argsort(rows)
    ascending, top = rows[order], 0.0
    if not in_place:
        size = (side, side, *channels) if is_small else stored.shape[1:]
        images = np.empty((len(rows), *size), np.float16 if is_small else stored.dtype)
        rows = np.arange(len(rows))
    for begin in range(0, len(stored), step := max(1, AT_ONCE // bytes_each)):
        low, high = np.searchsorted(ascending, [begin, begin + step])
        if low == high or (in_place and stored.dtype == np.uint8 and top > 1):
            continue
        batch = stored[begin : begin + step][ascending[low:high] - begin]
        least, most = float(batch.min()), float(batch.max())
        right = stored.dtype.kind != "f" or (least >= 0 and most <= 1)
        _require(right, f"images are {least:g} to {most:g}; floats must be from 0 to 1")
        top = max(top, most)
        if not in_place:
            images[order[low:high]] = _smaller(batch, side) if is_small else batch
    images = images[..., 0] if images.shape[3:] == (1,) else images
    some = images[np.random.default_rng(0).choice(rows, SAMPLED)]
    differ = (some != some[:1]).any()
    _require(differ, f"{SAMPLED} images from all over it are the same: it is damaged")
    white = 255.0 if stored.dtype == np.uint8 and top > 1 else 1.0
    is_black = np.mean(some == 0) > 0.5
    return images, white, 0.0 if is_black else np.float32(some.mean(axis=0) / white), rows


def _smaller(images, side: int):
    """Square images (n, N, N, ...) averaged over areas, (n, side, side, ...) float32."""
    edges, pixel = np.linspace(0, images.shape[1], side + 1), np.arange(images.shape[1])
    shared = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    share = (np.clip(shared, 0, None) * side / images.shape[1]).astype(np.float32)
    rows = np.einsum("ai,nij...->naj...", share, images.astype(np.float32), optimize=True)
    return np.einsum("bj,naj...->nab...", share, rows, optimize=True)
