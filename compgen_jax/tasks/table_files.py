"""Files of images with factor values, npz or HDF5: docs/reference/files.md has their layouts.

Images of an npz without compression (`np.savez`) are mapped from the file, and those of HDF5 beyond
2 GB stay on disk if a chunk has at most 64 images; others are read into memory.
"""

import contextlib
import functools
import math
import re
import warnings
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compgen_jax import grids
from compgen_jax.settings import ConfigError, require
from compgen_jax.tasks.task import Factor, counts, geometry

AT_ONCE = 2**26  # bytes of images that are read at a time
IN_MEMORY, CHUNK = 2**31, 64  # bytes of images of an HDF5 file; more stay on disk in small chunks
MOST_CELLS = 2**24  # combinations: what is kept of each stays below 400 MB
SAMPLED = 64  # images that are compared, to find a damaged file and the background
# What the files of dSprites and of 3D Shapes leave unsaid, after the READMEs of
# github.com/google-deepmind's dsprites-dataset and 3d-shapes.
DSPRITES = {
    "factor_names": np.array(["color", "shape", "scale", "orientation", "posX", "posY"]),
    "shape_labels": np.array(["square", "ellipse", "heart"]),
    "orientation_period": np.array(2 * np.pi),
}
HUES = "floor_hue", "wall_hue", "object_hue"
SHAPES3D = {
    "factor_names": np.array([*HUES, "scale", "shape", "orientation"]),
    "shape_labels": np.array(["cube", "cylinder", "sphere", "pill"]),
} | {f"{hue}_period": np.array(1.0) for hue in HUES}
OWN = "your own file has images, factors (n, F) and factor_names, or images and one array a factor"


class TableFile(NamedTuple):
    """The images of all combinations (B) of the factors' values.

    images: (N, H, W[, C]), an array, a memory map or an HDF5 data set (see `take`); divided by
        `white` they are 0..1.
    background: (H, W[, C]) float32 from 0 to 1, the mean image; 0 if most pixels are black.
    rows_n: where the n images in use are, one combination after the other.
    first_B, count_B: which of these are each combination's, or the nearest one's that has images.
    """

    images: np.ndarray
    white: float
    background: np.ndarray | float
    factors: tuple[Factor, ...]
    rows_n: np.ndarray
    first_B: np.ndarray
    count_B: np.ndarray
    exists_B: np.ndarray
    says: tuple[str, ...]


def read(path: str, subset: tuple = (), side: int = 0) -> TableFile:
    """The table in a file. Raises ConfigError, one line, for a file that is missing, damaged or
    contradicts itself.

    subset: pairs of a factor and the values to keep: a tuple of labels or of places (from 0), or
        text such as '::4', as Python slices a list.
    side: larger square images are averaged over areas, and kept as float16. 0: as stored.

    Factors of one value are left out, and so is an angle's last value if it repeats the first.
    """
    try:
        file = Path(path).expanduser()
        with file.open("rb") as stream, _arrays(stream) as arrays, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # Python 2 wrote the headers of dSprites
            stored = _stored(file, arrays)
            return _table(stored, *_columns(arrays, len(stored)), subset, side)
    except ConfigError:
        raise
    except Exception as error:  # a damaged file may raise anything
        text = getattr(error, "strerror", None) or str(error) or repr(error)
        raise ConfigError(f"config.task.path={path!r}: {text.splitlines()[0]}") from error


def _require(ok, what: str):
    if not ok:
        raise ValueError(what)


# --- layouts ---------------------------------------------------------------------------------


def _arrays(stream):
    """A context of a file's arrays by name; an HDF5 group's name is joined to theirs by '_'."""
    begins = stream.read(4)
    stream.seek(0)
    if begins == b"PK\3\4":
        return np.load(stream, allow_pickle=False)
    _require(begins == b"\x89HDF", "is neither an npz nor an HDF5 file")
    import h5py  # of compgen_jax[files]

    file, names = h5py.File(stream.name), []
    file.visit(names.append)
    arrays = {name.replace("/", "_"): file[name] for name in names}
    arrays = {name: item for name, item in arrays.items() if isinstance(item, h5py.Dataset)}
    return contextlib.nullcontext(arrays)  # `take` may read the file later


@functools.cache
def _mapped(path: Path, name: str, size: int, modified: int):
    """A memory map of an npz's array, or None if it is compressed. All is read once, as a map reads
    past the checksum."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        member = archive.getinfo(f"{name}.npy")
        if member.compress_type != zipfile.ZIP_STORED:
            return None
        _require(archive.testzip() is None, "Bad CRC-32")
        file.seek(member.header_offset)
        lengths = np.frombuffer(file.read(30), "<u2")[-2:]  # of two texts before the array
        file.read(int(lengths.sum()))
        if np.lib.format.read_magic(file) != (1, 0):
            return None
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
        return np.memmap(path, dtype, "r", file.tell(), shape, "F" if by_columns else "C")


def _values(arrays, name: str, *shape):
    """An array of finite numbers or of text."""
    array = arrays[name]
    array = np.asarray(array.asstr()[()] if array.dtype == object else array[()])
    array = array.astype(str) if array.dtype.kind in "OS" else array
    _require(array.shape == shape, f"{name} has shape {array.shape}; must be {shape}")
    is_finite = array.dtype.kind == "U" or np.isfinite(array).all()
    _require(is_finite, f"{name} must be finite numbers or text")
    return array


def _stored(path: Path, arrays):
    """Images (n, H, W[, C]): an array, a memory map or an HDF5 data set."""
    key = "imgs" if {"imgs", "latents_values"} <= set(arrays) else "images"
    _require(key in arrays, f"has the keys {', '.join(sorted(arrays))}; {OWN}")
    stat, images = path.stat(), None
    if not isinstance(arrays, dict):
        images = _mapped(path.resolve(), key, stat.st_size, stat.st_mtime_ns)
    images = arrays[key] if images is None else images
    is_known = images.dtype in (np.uint8, bool) or images.dtype.kind == "f"
    _require(is_known, f"{key} has {images.dtype}; images must be uint8, or floats from 0 to 1")
    fits = images.ndim in (3, 4) and (*images.shape, 1)[3] < 5
    hint = "images must be (n, H, W), or (n, H, W, C) with C < 5"
    _require(fits, f"{key} has shape {images.shape}; {hint}")
    return images


def _columns(arrays, count: int) -> tuple:
    """The array (count,) of each factor by name, and the arrays that say more of them."""
    if {"imgs", "latents_values"} <= set(arrays):
        arrays = DSPRITES | {"factors": arrays["latents_values"]}
    elif {*arrays} == {"images", "labels"} and arrays["labels"].ndim > 1:
        arrays = SHAPES3D | {"factors": arrays["labels"]}
    if "factor_names" not in arrays:
        is_other = re.compile(r"images|metadata|.*_(labels|period)").fullmatch
        columns = {name: _values(arrays, name, count) for name in arrays if not is_other(name)}
        _require(columns, f"has {count} images and no factors; {OWN}")
        return columns, arrays
    table = _values(arrays, "factors", count, arrays["factors"].shape[-1])
    names = _values(arrays, "factor_names", table.shape[1]).tolist()
    _require(len({*names}) == len(names), f"factor_names has a name twice: {', '.join(names)}")
    return dict(zip(names, table.T, strict=True)), arrays


def factor_of(name: str, column, arrays=()) -> tuple:
    """The factor of a column (n,) of numbers or text, and the index (n,) of each row's value. The
    `arrays` of a file may say more of it."""
    is_text, labels, period = column.dtype.kind == "U", (), math.inf
    numbers = column if is_text else column.astype(np.float32)
    values, index_n = np.unique(numbers, return_inverse=True)
    if is_text:
        values, labels = np.arange(len(values), dtype=np.float32), tuple(values.tolist())
    elif f"{name}_labels" in arrays:
        labels = tuple(map(str, _values(arrays, f"{name}_labels", len(values))))
    if f"{name}_period" in arrays:
        period = float(_values(arrays, f"{name}_period"))
        hint = "must be greater than 0, and at least the range of the values"
        fits = np.ptp(values) / 1.0001 < period < math.inf
        _require(fits, f"{name}_period is {period:g}; {hint}")
    return Factor(name, values, not labels, period, labels), index_n


# --- combinations ----------------------------------------------------------------------------


def _table(stored, columns: dict, arrays, subset: tuple, side: int) -> TableFile:
    are_pairs = all(len(pair) == 2 and pair[0] in columns for pair in subset)
    hint = f"must be pairs of a factor and its values; factors are {', '.join(columns)}"
    require(are_pairs, "task.subset", subset, hint)
    says, factors, indices, used_n = [], [], [], np.ones(len(stored), bool)
    for name, column in columns.items():
        factor, index_n = factor_of(name, column, arrays)
        present = np.arange(len(factor.values))
        if np.ptp(factor.values) > 0.9999 * factor.period:
            says.append(f"{name} has a last value that is the first again, and is left out")
            present = present[:-1]
        if name in dict(subset):
            labels = factor.labels[: len(present)]
            chosen = _chosen(dict(subset)[name], labels, range(len(present)))
            among = ", ".join((*labels, f"places from 0 to {len(present) - 1}"))
            hint = f"{name} needs START:STOP:STEP, or a tuple of some of {among}"
            require(0 < len(chosen) == len(set(chosen)), "task.subset", subset, hint)
            present = present[sorted(chosen)]
        used_n &= np.isin(index_n, present)
        if len(present) == 1:
            says.append(f"{name} has one value, and is no factor here")
            continue
        labels = tuple(factor.labels[index] for index in present if factor.labels)
        factors.append(factor._replace(values=factor.values[present], labels=labels))
        indices.append(np.searchsorted(present, index_n))
    require(used_n.any(), "task.subset", subset, "keeps no image")
    _require(factors, "has no factor with two values")
    sizes = counts(factors)
    total, listed = math.prod(sizes), ", ".join(f"{f.name} {len(f.values)}" for f in factors)
    hint = f"has more than {MOST_CELLS} combinations of values ({listed}); round them"
    _require(total <= MOST_CELLS, hint)
    row_n = np.flatnonzero(used_n)
    cell_n = np.stack(indices, axis=1)[row_n] @ np.cumprod([1, *sizes[:-1]])
    rows_n = row_n[np.argsort(cell_n, kind="stable")]
    count_B = np.bincount(cell_n, minlength=total)
    first_B, exists_B = np.cumsum(count_B) - count_B, count_B > 0
    if count_B.max() > 1:
        says.append(f"a combination has {count_B[exists_B].min()} to {count_B.max()} images")
    if not exists_B.all():
        says.append(f"{(~exists_B).sum()} of {total} combinations have no image")
        nearest_B = grids.nearest_seen(~exists_B, **geometry(factors))[0]
        first_B, count_B = first_B[nearest_B], count_B[nearest_B]
    images, white, background, rows_n = _checked(stored, rows_n, side)
    of_cells = rows_n, first_B, count_B, exists_B
    return TableFile(images, white, background, tuple(factors), *of_cells, tuple(says))


def _chosen(which, labels: tuple, places: range):
    """The places that one factor's part of `subset` names; none if it cannot be read."""
    with contextlib.suppress(IndexError, TypeError, ValueError):
        if isinstance(which, str):
            ends = [int(part) if part.strip() else None for part in which.split(":")]
            return places[slice(*ends)]
        return [places[labels.index(item) if isinstance(item, str) else item] for item in which]
    return ()


# --- images ----------------------------------------------------------------------------------


def _checked(stored, rows, side: int):
    """The images of rows (n,), what white is, the background, and the rows in what is returned."""
    height, width = stored.shape[1:3]
    bytes_each = math.prod(stored.shape[1:]) * stored.dtype.itemsize
    is_small, shape, dtype = side not in (0, height), stored.shape[1:], stored.dtype
    if is_small:
        hint = f"images have {height} x {width} pixels; must be 0, or less and square"
        require(side < height == width, "task.side", side, hint)
        shape, dtype = (side, side, *shape[2:]), np.float16
        # the share (side, height) that each pixel of an axis has in each smaller one
        fine = np.arange(side * height)
        shared = np.bincount(fine // height * height + fine // side, minlength=len(fine))
        share = (shared.reshape(side, height) / height).astype(np.float32)
    if isinstance(stored, np.ndarray):
        # of an array in memory, at least half must be wanted: the rest would stay as well
        in_place = isinstance(stored, np.memmap) or 2 * len(rows) > len(stored)
    else:
        is_large = len(rows) * bytes_each > IN_MEMORY
        in_place = is_large and (stored.chunks or (1,))[0] <= CHUNK
    in_place &= not is_small
    images, places, top = stored, rows, 0.0
    if not in_place:
        images, places = np.empty((len(rows), *shape), dtype), np.arange(len(rows))
    step = max(1, AT_ONCE // bytes_each)
    if in_place:  # only looked at, so that little of a large file is in memory
        step = -(-step // 16)
    for begin in range(0, len(stored), step):
        wanted = (begin <= rows) & (rows < begin + step)
        if not wanted.any() or (in_place and stored.dtype == np.uint8 and top > 1):
            continue
        batch = stored[begin : begin + step][rows[wanted] - begin]
        least, most = float(batch.min()), float(batch.max())
        in_range = batch.dtype.kind != "f" or (least >= 0 and most <= 1)
        _require(in_range, f"images are {least:g} to {most:g}; floats must be from 0 to 1")
        top = max(top, most)
        if is_small:
            lines = np.einsum("ai,nij...->naj...", share, np.float32(batch), optimize=True)
            batch = np.einsum("bj,naj...->nab...", share, lines, optimize=True)
        if not in_place:
            images[wanted] = batch
    some = take(images, np.random.default_rng(0).choice(places, SAMPLED))
    differ = (some != some[:1]).any()
    _require(differ, f"{SAMPLED} images from all over it are the same: it is damaged")
    white = 255.0 if stored.dtype == np.uint8 and top > 1 else 1.0
    is_black = np.mean(some == 0) > 0.5
    return images, white, 0.0 if is_black else np.float32(some.mean(axis=0) / white), places


def take(images, rows):
    """(..., H, W[, C]): the images of rows (...), without an axis of one channel."""
    ascending, index = np.unique(rows, return_inverse=True)  # HDF5 takes no other order
    shape = images.shape[1:3] if images.shape[3:] == (1,) else images.shape[1:]
    return images[ascending][index.ravel()].reshape(*np.shape(rows), *shape)
